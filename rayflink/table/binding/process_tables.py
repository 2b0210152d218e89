"""Binds calls of process table functions in FROM."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rayflink.user_types import UserValue

from ..errors import SqlError, nearest
from ..parsing import dialect
from ..parsing.program_nodes import Applied
from ..parsing.statements import Tree
from ..plan.changelog import Change, ChangelogMode, changes_of
from ..plan.logical import Attribute, Project, Relation, TimePart, Values, order_text
from ..plan.process_tables import ProcessTable, TableArgument
from ..plan.type_rules import common_type, widens
from ..plan.typed import Column, Expr, Function, Literal, Place
from ..plan.upsert_keys import upsert_keys
from ..types import DataType, Root
from ..user_functions.process.declarations import ProcessTableFunctionArgument, Trait
from ..user_functions.process.function_classes import ChangelogContext, ChangelogFunction
from ..user_functions.process.kernels import REQUIRED, SYSTEM_ARGUMENTS, ProcessDeclaration, ProcessKernel
from .expressions import ExpressionBinder, cast, place_of
from .joins import Queries
from .numbering import ensure_order
from .scope import Scope

_UID = re.compile(r"[a-zA-Z_][a-zA-Z_0-9-]*")
OrderKey = tuple[int, bool, bool]
"""Number of a column, whether it descends, and whether nulls come first."""
ROWTIME = "rowtime"
"""Name of the column of the time of a row."""


def process_function(tree: Tree, functions: Mapping[str, Function]) -> Function | None:
    """Return the process table function that a part of FROM calls; None: it is another part.

    Args:
        functions: the user's functions by their names in capitals.
    """
    called = tree.this if isinstance(tree, exp.Table) else None
    function = None
    if isinstance(called, Applied):
        function = called.this
    elif isinstance(called, exp.Anonymous):
        function = functions.get(str(called.name).upper())
    return function if function is not None and isinstance(function.kernel, ProcessKernel) else None


def bind_process(queries: Queries, call: Tree, function: Function) -> Relation:
    """Return the rows of a process table function.

    Args:
        call: with the arguments.

    Raises:
        SqlError: they are not those that it takes.
    """
    return _CallBinder(queries, call, function).bind()


@dataclass(frozen=True)
class _Table:
    """A table argument: its rows, their columns in scope, and what the call says of it."""

    declared: ProcessTableFunctionArgument
    relation: Relation
    argument: TableArgument


class _CallBinder:
    def __init__(self, queries: Queries, call: Tree, function: Function) -> None:
        assert isinstance(function.kernel, ProcessKernel), f"found {function!r}"
        self._queries, self._call, self._function = queries, call, function
        self._declaration: ProcessDeclaration = function.kernel.declaration
        self._place = place_of(call)

    def bind(self) -> Relation:
        """Return the plan of the call."""
        arguments = self._arguments()
        tables = [self._table(declared, arguments[declared.name]) for declared in self._declaration.tables]
        self._ensure_mode(tables)
        tables = self._with_times(tables, arguments.get("on_time"))
        tables = _with_common_keys(tables, self._place)
        scalars = self._scalars(arguments)
        mode = self._mode(tables)
        if mode != ChangelogMode.insert_only() or any(table.argument.takes_updates for table in tables):
            self._ensure_no_time(tables)
        relations = tuple(table.relation for table in tables)
        schema = self._schema(tables)
        return ProcessTable(
            schema, self._function, relations or (Values((), ((),)),),
            tuple(table.argument for table in tables) or (TableArgument(""),), scalars, self._uid(arguments.get("uid")),
            mode, place=self._place,
        )  # fmt: skip

    # arguments

    def _arguments(self) -> dict[str, Tree]:
        """Return the arguments by name, without those that are DEFAULT."""
        names = [*(argument.name for argument in self._declaration.arguments), *SYSTEM_ARGUMENTS]
        arguments: dict[str, Tree] = {}
        for position, tree in enumerate(self._call.expressions):
            is_named = isinstance(tree, dialect.NamedArgument)
            if not is_named and position >= len(names):
                raise self._error(f"is called with {len(self._call.expressions)} arguments", self._usage(), tree)
            name = str(tree.this) if is_named else names[position]
            if name not in names:
                raise self._error(f"has no argument {name!r}{nearest(name, names)}", self._usage(), tree)
            if name in arguments:
                raise self._error(f"is called with two arguments {name!r}", self._usage(), tree)
            arguments[name] = tree.expression if is_named else tree
        known = {name: tree for name, tree in arguments.items() if not _is_default(tree)}
        for argument, default in zip(self._declaration.arguments, self._declaration.defaults, strict=True):
            if argument.name not in known and (argument.is_table or default is REQUIRED):
                raise self._error(f"is called without the argument {argument.name!r}", self._usage(), self._call)
        return known

    def _usage(self) -> str:
        shown = [f"{argument.name} => {'TABLE t' if argument.is_table else argument.data_type}"
                 for argument in self._declaration.arguments]  # fmt: skip
        described = ", ".join([*shown, "on_time => DESCRIPTOR(ts)", "uid => 'name'"])
        return f"write {self._function.name}({described}), the last two where they are needed"

    def _error(self, problem: str, remedy: str, tree: Tree | None = None) -> SqlError:
        place = self._place if tree is None else place_of(tree) or self._place
        return SqlError(f"{self._function.name} {problem}", remedy, "", place)

    def _table(self, declared: ProcessTableFunctionArgument, tree: Tree) -> _Table:
        """Return the table of an argument."""
        if not isinstance(tree, dialect.TableArgument):
            remedy = f"write {declared.name} => TABLE t, or name a query by WITH"
            raise self._error(f"has the argument {declared.name!r}, which is a table", remedy, tree)
        relation, scope = self._queries.table(tree.this)
        relation = self._as_declared(declared, relation, tree)
        partition = tuple(self._column(scope, key) for key in tree.args.get("partition_by") or ())
        for column in partition:
            kind = relation.schema[column].type
            if kind.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW):
                problem = f"has PARTITION BY for {declared.name!r} with a key of type {kind}"
                raise self._error(problem, "partition by a part of it", tree)
        order = tuple(self._key(scope, key) for key in tree.args.get("order_by") or ())
        if not declared.is_set and (partition or order):
            remedy = "leave them out, or declare the trait SET_SEMANTIC_TABLE"
            problem = f"has PARTITION BY or ORDER BY for {declared.name!r}, whose rows are worked by themselves"
            raise self._error(problem, remedy, tree)
        if declared.is_set and not partition and not declared.has(Trait.OPTIONAL_PARTITION_BY):
            remedy = f"write {declared.name} => TABLE t PARTITION BY k, or declare the trait OPTIONAL_PARTITION_BY"
            raise self._error(f"has no PARTITION BY for {declared.name!r}", remedy, tree)
        takes_updates = declared.has(Trait.SUPPORT_UPDATES)
        argument = TableArgument(
            declared.name, partition, self._order(relation, order, tree), None, declared.is_set,
            declared.has(Trait.PASS_COLUMNS_THROUGH), takes_updates,
            takes_updates and _wants_before(declared, relation, partition),
        )  # fmt: skip
        return _Table(declared, relation, argument)

    def _as_declared(self, declared: ProcessTableFunctionArgument, relation: Relation, tree: Tree) -> Relation:
        """Return the rows, which must have the columns of a declared type."""
        kind = declared.data_type
        if not isinstance(kind, DataType):
            return relation
        fields = kind.fields
        types = [column.type for column in relation.schema]
        same = len(fields) == len(types) and all(
            field.type.nullable() == own.nullable() for field, own in zip(fields, types, strict=True)
        )
        if not same:
            problem = f"takes {kind} as {declared.name!r}, and the table has the types {', '.join(map(str, types))}"
            raise self._error(problem, "select such columns, with CAST where types differ", tree)
        if relation.names == [field.name for field in fields]:
            return relation
        schema = tuple(replace(column, name=field.name) for field, column in zip(fields, relation.schema, strict=True))
        return Project(schema, relation, tuple(relation.column(index) for index in range(len(schema))))

    def _column(self, scope: Scope, tree: Tree) -> int:
        inner = tree.this if isinstance(tree, exp.Ordered) else tree
        if not isinstance(inner, exp.Column):
            raise self._error("has an expression in PARTITION BY or ORDER BY", "name columns", tree)
        column, fields = scope.find(tuple(part.name for part in inner.parts), place_of(inner))
        if fields or not isinstance(column, Column):
            raise self._error("has an expression in PARTITION BY or ORDER BY", "name columns", tree)
        return column.index

    def _key(self, scope: Scope, tree: Tree) -> OrderKey:
        """Return the column of a key of ORDER BY, whether it descends, and whether nulls come first."""
        is_ordered = isinstance(tree, exp.Ordered)
        flags = [bool(is_ordered and tree.args.get(name)) for name in ("desc", "nulls_first")]
        return self._column(scope, tree), flags[0], flags[1]

    def _order(self, relation: Relation, order: tuple[OrderKey, ...], tree: Tree) -> tuple[OrderKey, ...]:
        """Return the keys of ORDER BY, of which the first must be a time."""
        columns = [column for column, _, _ in order]
        if order and (order[0][1] or not relation.schema[columns[0]].is_event_time):
            remedy = "order by a column with a WATERMARK first, ascending"
            raise self._error(f"has ORDER BY {order_text(relation.names, order)}", remedy, tree)
        for column, _, _ in order:
            ensure_order(relation.schema[column].type, place_of(tree) or self._place)
        if len(set(columns)) < len(columns):
            raise self._error("has a column twice in ORDER BY", "name it once", tree)
        return order

    def _scalars(self, arguments: Mapping[str, Tree]) -> tuple[tuple[str, Expr], ...]:
        """Return the values of the scalar arguments, in their types; those that are left out have none."""
        binder: ExpressionBinder = self._queries.expressions(Scope(()))
        scalars: list[tuple[str, Expr]] = []
        for argument in self._declaration.arguments:
            tree = arguments.get(argument.name)
            if argument.is_table or tree is None:
                continue
            if isinstance(tree, (dialect.TableArgument, dialect.Descriptor)):
                raise self._error(f"takes a value as {argument.name!r}", self._usage(), tree)
            expr = binder.bind(tree)
            assert isinstance(argument.data_type, DataType), "types are resolved"
            if not widens(expr.type, argument.data_type):
                problem = f"takes {argument.data_type} as {argument.name!r}, found {expr.type}"
                raise self._error(problem, "CAST it", tree)
            scalars.append((argument.name, cast(expr, argument.data_type)))
        return tuple(scalars)

    def _uid(self, tree: Tree | None) -> str:
        if tree is None:
            return self._function.name.lower()
        expr = self._queries.expressions(Scope(())).bind(tree)
        if not isinstance(expr, Literal) or not expr.type.is_text or not _UID.fullmatch(str(expr.value)):
            remedy = "give a string of letters, digits, - and _ that does not begin with a digit"
            raise self._error(f"has the uid {expr}", remedy, tree)
        return str(expr.value)

    # time

    def _with_times(self, tables: Sequence[_Table], tree: Tree | None) -> list[_Table]:
        """Return the tables with the columns that `on_time` names."""
        if tree is not None and not isinstance(tree, dialect.Descriptor):
            raise self._error("has an on_time that is no DESCRIPTOR", "write on_time => DESCRIPTOR(ts)", tree)
        names = [column.name for column in tree.expressions] if tree is not None else []
        unknown = [name for name in names if all(name not in table.relation.names for table in tables)]
        if unknown:
            raise self._error(f"has no column {unknown[0]!r} for on_time", "name a column of its tables", tree)
        timed = [replace(table, argument=replace(table.argument, time=self._time(table, names, tree)))
                 for table in tables]  # fmt: skip
        times = [table.argument.time for table in timed]
        if names and None in times:
            lacking = timed[times.index(None)].declared.name
            raise self._error(f"has on_time without a column of {lacking!r}", "name one of each table, or none", tree)
        for table in timed:
            self._ensure_time(table)
        roots = {table.relation.schema[table.argument.time].type.root for table in timed
                 if table.argument.time is not None}  # fmt: skip
        if len(roots) > 1:
            raise self._error("has on_time of TIMESTAMP and TIMESTAMP_LTZ", "CAST the times to one type", tree)
        return timed

    def _time(self, table: _Table, names: Sequence[str], tree: Tree | None) -> int | None:
        own = [table.relation.names.index(name) for name in names if name in table.relation.names]
        if len(own) > 1:
            problem = f"has on_time with several columns of {table.declared.name!r}"
            raise self._error(problem, "name one of each table", tree)
        for column in own:
            attribute = table.relation.schema[column]
            if attribute.type.root not in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ) or not attribute.is_event_time:
                problem = f"has on_time => DESCRIPTOR({attribute.name}), a column of type {attribute}"
                raise self._error(problem, "name a TIMESTAMP or TIMESTAMP_LTZ column with a WATERMARK", tree)
        return own[0] if own else None

    def _ensure_time(self, table: _Table) -> None:
        """Check that there is a time where one is required, and no other order."""
        argument, names = table.argument, table.relation.names
        if argument.time is None and table.declared.has(Trait.REQUIRE_ON_TIME):
            remedy = "add on_time => DESCRIPTOR(ts), a column of it with a WATERMARK"
            raise self._error(f"requires the time of {argument.name!r}", remedy)
        if argument.order and argument.time not in (None, argument.order[0][0]):
            problem = f"has ORDER BY {names[argument.order[0][0]]} and another column in on_time"
            raise self._error(problem, "name the same column in both")

    # changes

    def _ensure_mode(self, tables: Sequence[_Table]) -> None:
        """Check that sets are those of a stream: in batch mode Flink has no process table functions."""
        if self._queries.is_batch and any(table.declared.is_set for table in tables):
            remedy = "run it in streaming mode: EnvironmentSettings.in_streaming_mode()"
            raise self._error("has state of partitions, which batch mode does not keep", remedy)

    def _mode(self, tables: Sequence[_Table]) -> ChangelogMode:
        """Return the kinds of the function's rows."""
        function = self._declaration.function
        if not isinstance(function, ChangelogFunction):
            return ChangelogMode.insert_only()
        modes = {table.declared.name: ChangelogMode(changes_of(table.relation), table.argument.wants_before)
                 for table in tables}  # fmt: skip
        mode: UserValue = function.get_changelog_mode(ChangelogContext(modes))
        if not isinstance(mode, ChangelogMode):
            raise self._error(f"has the changelog mode {mode!r}", "return ChangelogMode.upsert(), all() or the like")
        if Change.UPDATE in mode.changes and not mode.before and not any(table.argument.partition for table in tables):
            problem = "updates rows without the row before, and has no PARTITION BY that finds them"
            raise self._error(problem, "write PARTITION BY, or return ChangelogMode.all()")
        return mode

    def _ensure_no_time(self, tables: Sequence[_Table]) -> None:
        """Check that rows which change have no time, as in Flink."""
        if self._declaration.has_timers or any(table.argument.time is not None for table in tables):
            problem = "has times or timers, and takes or gives rows that change"
            raise self._error(problem, "leave on_time and on_timer out, or take and give rows that only come")

    # result

    def _schema(self, tables: Sequence[_Table]) -> tuple[Attribute, ...]:
        """Return the columns: those that are passed on, those of the function, and the time."""
        columns = [
            replace(table.relation.schema[column], part=None, windowing=None)
            for table in tables
            for column in table.argument.columns(len(table.relation.schema))
        ]
        columns += [Attribute(field.name, field.type) for field in self._declaration.result.fields]
        times = [table.relation.schema[table.argument.time].type for table in tables if table.argument.time is not None]
        kind = common_type(times) if times else None
        if kind is not None:
            columns.append(Attribute(ROWTIME, kind.not_null(), TimePart.ROWTIME))
        return _with_own_names(columns)


def _is_default(tree: Tree) -> bool:
    """Return whether an argument is DEFAULT."""
    is_name = isinstance(tree, exp.Column) and not tree.table and not tree.this.args.get("quoted")
    return is_name and str(tree.name).upper() == "DEFAULT"


def _wants_before(
    declared: ProcessTableFunctionArgument, relation: Relation, partition: Sequence[int]
) -> bool:  # fmt: skip
    """Return whether updates must include the row before: none finds it where PARTITION BY is no part of its key."""
    by_key = any(set(partition) <= key for key in upsert_keys(relation)) and bool(partition)
    return declared.has(Trait.REQUIRE_UPDATE_BEFORE) or not (declared.is_set and by_key)


def _with_common_keys(tables: Sequence[_Table], place: Place | None) -> list[_Table]:
    """Check that the tables have the same types in PARTITION BY.

    Raises:
        SqlError: they have not: equal keys would not meet.
    """
    kinds = [
        tuple(table.relation.schema[column].type.nullable() for column in table.argument.partition) for table in tables
    ]
    if len(set(kinds)) > 1:
        shown = " and ".join(f"({', '.join(map(str, kind))})" for kind in kinds)
        remedy = "name columns of the same types in the same order, with CAST where they differ"
        raise SqlError(f"PARTITION BY of several tables has the types {shown}", remedy, "", place)
    return list(tables)


def _with_own_names(columns: Sequence[Attribute]) -> tuple[Attribute, ...]:
    """Return columns of which a second of its name gets a number, as Flink numbers them."""
    counts: dict[str, int] = {}
    result: list[Attribute] = []
    for column in columns:
        count = counts.get(column.name, 0)
        counts[column.name] = count + 1
        result.append(column if not count else replace(column, name=f"{column.name}{count - 1}"))
    return tuple(result)


__all__ = ["ROWTIME", "bind_process", "process_function"]
