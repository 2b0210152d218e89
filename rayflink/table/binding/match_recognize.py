"""MATCH_RECOGNIZE as a plan: what its measures and conditions say about the rows of a match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from ..errors import SqlError
from ..parsing.match_clauses import MatchClause
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Project, Relation, Schema, TimePart
from ..plan.matching import (
    AggregateReference,
    ClassifierReference,
    Definition,
    MatchRecognize,
    Pick,
    Reference,
    RowField,
    RowReference,
)
from ..plan.typed import Column, Expr, Function, Literal, Place
from ..runtime.aggregates.aggregates import AggregateKind, result_type
from ..types import DataTypes, Root
from . import literals
from .expressions import AGGREGATES, NILADIC, ExpressionBinder, call, place_of
from .joins import conjuncts
from .numbering import ensure_key, ensure_order
from .row_patterns import bind_pattern, bind_skip, bind_subsets, define_trees, unknown_variable
from .scope import Scope

_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_PICKS = {"FIRST": Pick.FIRST, "LAST": Pick.LAST}
_CLAUSE = "MATCH_RECOGNIZE"


def match_recognize(
    relation: Relation, scope: Scope, clause: MatchClause, functions: Mapping[str, Function], is_whole: bool
) -> Relation:
    """Return the matches of a pattern in the rows of a relation.

    Args:
        relation: the table in front of the clause.
        scope: its columns.
        functions: the user's functions by their names in capitals.
        is_whole: its rows are those of a whole table.

    Raises:
        SqlError: the clause means nothing, or what is not supported.
    """
    return _MatchBinder(relation, scope, clause, functions, is_whole).bind()


@dataclass(frozen=True)
class _Argument:
    """An expression of the columns of one variable's rows.

    Args:
        column: number of the column that has its values.
        expr: the expression.
        variables: indexes of the variables; none: all rows.
        text: the expression, as plans show it.
    """

    column: int
    expr: Expr
    variables: tuple[int, ...]
    text: str


class _MatchBinder:
    def __init__(
        self, relation: Relation, scope: Scope, clause: MatchClause, functions: Mapping[str, Function], is_whole: bool
    ) -> None:
        self._relation, self._scope, self._clause = relation, scope, clause
        self.functions, self._is_whole = functions, is_whole
        self._computed: list[Expr] = []
        """Expressions over the columns of the relation, which become further columns."""
        self.fields: list[RowField] = []
        self.pattern, self.names = bind_pattern(clause)
        self.subsets = bind_subsets(clause, self.names)

    @property
    def schema(self) -> Schema:
        """Return the columns of the relation."""
        return self._relation.schema

    def bind(self) -> Relation:
        """Return the plan of the clause."""
        partition = self._partition()
        order = self._order()
        self.time = order[0][0]
        measures, exprs, measure_names = self._measures()
        conditions, definitions = self._definitions()
        row_columns = list(partition)
        is_all_rows = self._clause.args["rows"] == "ALL"
        if is_all_rows:
            row_columns += [index for index, _, _ in order if index not in row_columns]
        leading = len(row_columns)
        if is_all_rows:
            row_columns += [index for index in range(len(self.schema)) if index not in row_columns]
        self._ensure_distinct(measure_names, [self.schema[index].name for index in row_columns])
        shown = [self._shown(index) for index in row_columns]
        values = [Attribute(item.name, item.type, self._part(item)) for item in measures]
        if not shown and not values:
            problem = "MATCH_RECOGNIZE has no columns"
            raise SqlError(problem, "write MEASURES, or PARTITION BY", "", place_of(self._clause))
        match = MatchRecognize(
            (*shown, *values), self._input(), partition, order, self.pattern, self.names, definitions,
            tuple(self.fields), conditions, measures, tuple(row_columns),
            bind_skip(self._clause, self.names, self.subsets), self._within(), is_all_rows, self._is_whole,
            place=place_of(self._clause),
        )  # fmt: skip
        width = len(shown)
        columns: list[Expr] = [match.column(index) for index in range(width)]
        results = [_moved(expr, match, width) for expr in exprs]
        schema = [self._named(expr, name, match) for expr, name in zip(results, measure_names, strict=True)]
        all_exprs = (*columns[:leading], *results, *columns[leading:])
        return Project((*shown[:leading], *schema, *shown[leading:]), match, all_exprs)

    def _input(self) -> Relation:
        """Return the relation with the columns that are computed of its rows."""
        relation = self._relation
        if not self._computed:
            return relation
        fresh = [Attribute(f"$m{number}", expr.type) for number, expr in enumerate(self._computed)]
        below = [relation.column(index) for index in range(len(relation.schema))]
        return Project((*relation.schema, *fresh), relation, (*below, *self._computed))

    def _shown(self, index: int) -> Attribute:
        """Return a column of rows in the result; their times are no time attribute, as rows wait for a match."""
        attribute = self.schema[index]
        return replace(attribute, part=None, windowing=None)

    def _part(self, reference: Reference) -> TimePart | None:
        is_time = isinstance(reference, RowReference) and reference.name == "MATCH_ROWTIME()"
        return TimePart.ROWTIME if is_time and not self._is_whole else None

    def _named(self, expr: Expr, name: str, match: MatchRecognize) -> Attribute:
        if isinstance(expr, Column):
            return replace(match.schema[expr.index], name=name)
        return Attribute(name, expr.type, TimePart.PROCTIME if str(expr) == "PROCTIME()" else None)

    # clauses

    def _partition(self) -> tuple[int, ...]:
        columns: list[int] = []
        for tree in self._clause.args.get("partition_by") or ():
            column = self._row_binder().bind(tree)
            if not isinstance(column, Column):
                remedy = "compute it in a query in front of MATCH_RECOGNIZE, and partition by its column"
                raise SqlError("PARTITION BY has an expression", remedy, "", place_of(tree))
            ensure_key(column.type, place_of(tree))
            if column.index not in columns:
                columns.append(column.index)
        return tuple(columns)

    def _order(self) -> tuple[tuple[int, bool, bool], ...]:
        order = self._clause.args.get("order")
        if order is None:
            remedy = "write ORDER BY and the time attribute behind PARTITION BY"
            raise SqlError(f"{_CLAUSE} has no ORDER BY", remedy, "", place_of(self._clause))
        keys: list[tuple[int, bool, bool]] = []
        for tree in order.expressions:
            column = self._row_binder().bind(tree.this)
            if not isinstance(column, Column):
                remedy = "compute it in a query in front of MATCH_RECOGNIZE, and order by its column"
                raise SqlError(f"ORDER BY of {_CLAUSE} has an expression", remedy, "", place_of(tree))
            ensure_order(column.type, place_of(tree))
            keys.append((column.index, bool(tree.args.get("desc")), bool(tree.args.get("nulls_first"))))
        if not self._is_whole:
            self._ensure_time(keys, place_of(order.expressions[0]))
        return tuple(keys)

    def _ensure_time(self, keys: list[tuple[int, bool, bool]], place: Place | None) -> None:
        first, is_descending, _ = keys[0]
        attribute = self.schema[first]
        if not attribute.is_time:
            problem = f"ORDER BY of {_CLAUSE} begins with {attribute.name!r} of type {attribute}, no time attribute"
            remedy = "order by the column of a WATERMARK, or by one AS PROCTIME(); further columns may follow it"
            raise SqlError(problem, remedy, "", place)
        if is_descending:
            problem = f"ORDER BY of {_CLAUSE} has the time attribute in descending order"
            raise SqlError(problem, "leave DESC out: the rows of a stream come in the order of time", "", place)
        if not attribute.is_event_time and len(keys) > 1:
            problem = f"ORDER BY of {_CLAUSE} has columns behind the processing time"
            remedy = "leave them out: rows are matched as they come; or order by a column with a WATERMARK"
            raise SqlError(problem, remedy, "", place)

    def _within(self) -> int | None:
        tree = self._clause.args.get("within")
        if tree is None:
            return None
        place = place_of(tree)
        interval = literals.interval(tree.this, tree.args["unit"], tree.args.get("to"), place)
        if interval.type.root is Root.INTERVAL_YEAR_MONTH:
            raise SqlError("WITHIN has a length in months", "give days or less, which have a fixed length", "", place)
        assert isinstance(interval, Literal)
        if int(interval.value) <= 0:
            raise SqlError(f"WITHIN has a length of {interval.value} ms", "give a length above 0", "", place)
        time = self.schema[self.time].type
        order = self._clause.args["order"].expressions[0]
        if not time.is_timestamp or order.args.get("desc"):
            remedy = "let ORDER BY begin with a TIMESTAMP in ascending order"
            raise SqlError("WITHIN needs rows in the order of their times", remedy, "", place_of(order))
        return int(interval.value)

    def _ensure_distinct(self, measures: Sequence[str], others: Sequence[str]) -> None:
        for number, tree in enumerate(self._clause.args.get("measures") or ()):
            name = measures[number]
            if name in measures[:number] or name in others:
                what = "another measure" if name in measures[:number] else "a column of the result"
                problem = f"the measure {name!r} has the name of {what}"
                raise SqlError(problem, "give it another name", "", place_of(tree.args["alias"]))

    def _measures(self) -> tuple[tuple[Reference, ...], list[Expr], list[str]]:
        collector = References(self, "MEASURES", None)
        exprs: list[Expr] = []
        names: list[str] = []
        for measure in self._clause.args.get("measures") or ():
            exprs.append(collector.binder().bind(measure.this))
            names.append(measure.alias)
        return tuple(collector.references), exprs, names

    def _definitions(self) -> tuple[tuple[Reference, ...], tuple[Definition, ...]]:
        trees = define_trees(self._clause, self.names)
        references: list[Reference] = []
        definitions: list[Definition] = []
        for index, name in enumerate(self.names):
            tree = trees.get(name)
            definitions.append(Definition() if tree is None else self._definition(tree, index, references))
        return tuple(references), tuple(definitions)

    def _definition(self, tree: Tree, index: int, references: list[Reference]) -> Definition:
        """Return the condition of a variable, whose parts that depend on the row alone are apart."""
        collector = References(self, "DEFINE", index, references)
        row: Expr | None = None
        match: Expr | None = None
        for part in conjuncts(tree):
            what = f"the condition of {self.names[index]}"
            condition = collector.binder().condition(part, what)
            columns = [references[item.index] for item in condition.walk() if isinstance(item, Column)]
            if all(isinstance(item, RowReference) and item.pick is Pick.CURRENT for item in columns):
                condition = condition.mapped(lambda item: _field_of(item, references))
                row = condition if row is None else call("AND", [row, condition], place_of(tree))
            else:
                match = condition if match is None else call("AND", [match, condition], place_of(tree))
        return Definition(row, match)

    # rows

    def _row_binder(self) -> ExpressionBinder:
        return ExpressionBinder(self._scope, functions=self.functions)

    def field(self, column: int, back: int = 0) -> int:
        """Return the number of a field, which is added if there is none."""
        field = RowField(column, back)
        if field not in self.fields:
            self.fields.append(field)
        return self.fields.index(field)

    def argument(self, tree: Tree, where: str) -> _Argument:
        """Return an expression of the columns of one variable's rows.

        Raises:
            SqlError: it is of the rows of several variables.
        """
        scope = _VariableScope(self._scope, self, where)
        expr = ExpressionBinder(scope, lambda part: _refused(part, where), self.functions).bind(tree)
        used = scope.used
        if len(used) > 1:
            problem = f"{tree.sql()} is of rows of several variables"
            remedy = "let the argument of a function be of one, as in SUM(A.x) + SUM(B.x)"
            raise SqlError(problem, remedy, "", place_of(tree))
        prefix, variables = next(iter(used.items()), ("", ()))
        text = str(
            expr.mapped(lambda item: replace(item, name=prefix + item.name) if isinstance(item, Column) else item)
        )
        if isinstance(expr, Column):
            return _Argument(expr.index, expr, variables, text)
        if expr not in self._computed:
            self._computed.append(expr)
        column = len(self.schema) + self._computed.index(expr)
        return _Argument(column, expr, variables, text)

    def variables(self, name: str) -> tuple[int, ...] | None:
        """Return the indexes of a variable or a subset; None: there is none of the name."""
        return (self.names.index(name),) if name in self.names else self.subsets.get(name)


class _VariableScope(Scope):
    """The columns of the input, behind the names of variables; remembers these in `used`."""

    def __init__(self, scope: Scope, binder: _MatchBinder, where: str) -> None:
        super().__init__(scope.parts, scope.merged)
        object.__setattr__(self, "_binder", binder)
        object.__setattr__(self, "_where", where)
        object.__setattr__(self, "used", {})

    used: dict[str, tuple[int, ...]]
    _binder: _MatchBinder
    _where: str

    def find(self, names: tuple[str, ...], place: Place | None) -> tuple[Expr, tuple[str, ...]]:
        variables = self._binder.variables(names[0]) if len(names) > 1 else None
        if variables is not None:
            self.used[f"{names[0]}."] = variables
            return super().find(names[1:], place)
        is_column = any(names[0] == item.name for item in self.schema)
        is_table = len(names) > 1 and any(names[0] == part.alias for part in self.parts)
        if len(names) > 1 and not is_column and not is_table:
            raise unknown_variable(names[0], self._binder.names, self._where, place)
        self.used[""] = ()
        return super().find(names, place)


class References:
    """Binds expressions over the rows of a match, and collects what they refer to.

    Args:
        binder: of the clause.
        where: "MEASURES" or "DEFINE".
        own: index of the variable whose condition is bound; None in MEASURES.
        references: those so far, to which others are added.
    """

    def __init__(
        self, binder: _MatchBinder, where: str, own: int | None, references: list[Reference] | None = None
    ) -> None:
        self._match, self._where, self._own = binder, where, own
        self.references: list[Reference] = [] if references is None else references

    def binder(self) -> ExpressionBinder:
        """Return what binds a measure or a condition."""
        return ExpressionBinder(Scope(()), self._known, self._match.functions)

    def _known(self, tree: Tree) -> Expr | None:
        """Return the column of a reference; None: the tree is none."""
        if isinstance(tree, (exp.Column, exp.Dot)):
            return self._row(tree) if _is_name(tree) else None
        if not isinstance(tree, exp.Anonymous) or str(tree.name).upper() in self._match.functions:
            return None
        name, place = str(tree.name).upper(), place_of(tree)
        if name in ("FINAL", "RUNNING"):
            return self._run(name, tree)
        if name in (*_PICKS, "PREV"):
            return self._column(self._picked(tree, False), tree)
        if name == "NEXT":
            remedy = "give the row behind a variable of its own, and compare there: B AS B.x > LAST(A.x)"
            raise SqlError("NEXT looks at rows that have not come yet, which is not supported", remedy, "", place)
        if name in _AGGREGATES:
            return self._column(self._aggregate(tree, False), tree)
        if name in AGGREGATES:
            raise SqlError(f"{name} is not supported in {_CLAUSE}", f"write {', '.join(_AGGREGATES)}", "", place)
        if name == "CLASSIFIER":
            return self._column(self._classifier(tree), tree)
        if name == "MATCH_ROWTIME":
            return self._column(self._rowtime(tree), tree)
        if name == "MATCH_PROCTIME":
            return call("PROCTIME", (), place)
        if name == "MATCH_NUMBER":
            raise SqlError("MATCH_NUMBER is not supported", "leave it out: matches are not numbered", "", place)
        return None

    def _column(self, reference: Reference, tree: Tree) -> Column:
        if reference not in self.references:
            self.references.append(reference)
        return Column(reference.type, self.references.index(reference), reference.name, place=place_of(tree))

    def _run(self, word: str, tree: Tree) -> Expr:
        inner = tree.expressions[0]
        name = str(inner.name).upper() if isinstance(inner, exp.Anonymous) else ""
        if self._own is not None and word == "FINAL":
            raise SqlError(
                "FINAL in DEFINE", "leave it out: only rows up to the current one are known", "", place_of(tree)
            )
        is_final = word == "FINAL"
        if name in (*_PICKS, "PREV"):
            return self._column(self._picked(inner, is_final), tree)
        if name in _AGGREGATES:
            return self._column(self._aggregate(inner, is_final), tree)
        remedy = f"write it before FIRST, LAST, {', '.join(_AGGREGATES)}"
        raise SqlError(f"{word} stands before {name or inner.sql()}", remedy, "", place_of(tree))

    def _row(self, tree: Tree) -> Expr:
        """Return a column that stands alone: that of the last row."""
        return self._column(self._reference(tree, Pick.LAST, 0, 0, False, ""), tree)

    def _reference(self, tree: Tree, pick: Pick, offset: int, back: int, is_final: bool, form: str) -> RowReference:
        """Return a reference to an expression of a row.

        Args:
            form: how the reference is shown, with {} for the expression; "": as the expression.
        """
        argument = self._match.argument(tree, self._where)
        variables = argument.variables
        is_own = self._own is not None and (not variables or self._own in variables)
        if is_own and pick is Pick.LAST and offset == 0:
            pick = Pick.CURRENT
        kind = argument.expr.type
        kind = kind if pick is Pick.CURRENT and not back else kind.nullable()
        if not form:
            form = "{}" if pick is Pick.CURRENT and not is_final else "LAST({})"
        name = f"{'FINAL ' * is_final}{form.format(argument.text)}"
        if pick is Pick.CURRENT:
            variables, is_final = (), False
        return RowReference(kind, name, variables, self._match.field(argument.column, back), pick, offset, is_final)

    def _picked(self, tree: Tree, is_final: bool) -> RowReference:
        """Return the reference of FIRST, LAST or PREV."""
        name = str(tree.name).upper()
        argument, offset = self._argument_and_offset(tree, 0 if name != "PREV" else 1)
        suffix = f", {offset}" if len(tree.expressions) > 1 else ""
        if name in _PICKS:
            return self._reference(argument, _PICKS[name], offset, 0, is_final, f"{name}({{}}{suffix})")
        inner = str(argument.name).upper() if isinstance(argument, exp.Anonymous) else ""
        if inner not in _PICKS:
            return self._reference(argument, Pick.LAST, 0, offset, is_final, f"PREV({{}}{suffix})")
        value, inner_offset = self._argument_and_offset(argument, 0)
        inner_suffix = f", {inner_offset}" if len(argument.expressions) > 1 else ""
        form = f"PREV({inner}({{}}{inner_suffix}){suffix})"
        return self._reference(value, _PICKS[inner], inner_offset, offset, is_final, form)

    def _argument_and_offset(self, tree: Tree, default: int) -> tuple[Tree, int]:
        arguments, place = list(tree.expressions), place_of(tree)
        usage = f"write {tree.name}(A.x) or {tree.name}(A.x, 1)"
        if not 1 <= len(arguments) <= 2:
            raise SqlError(f"{tree.name} has {len(arguments)} arguments", usage, "", place)
        if len(arguments) == 1:
            return arguments[0], default
        offset = arguments[1]
        if not isinstance(offset, exp.Literal) or offset.is_string or not offset.this.isdecimal():
            raise SqlError(f"{tree.name} has the offset {offset.sql()}, no whole number", usage, "", place)
        return arguments[0], int(offset.this)

    def _aggregate(self, tree: Tree, is_final: bool) -> AggregateReference:
        name, place, arguments = str(tree.name).upper(), place_of(tree), list(tree.expressions)
        prefix = "FINAL " * is_final
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            remedy = "leave DISTINCT out; or give all rows, and aggregate them in a window behind"
            raise SqlError(f"{name}(DISTINCT ...) is not supported in {_CLAUSE}", remedy, "", place)
        if name == "COUNT" and (not arguments or isinstance(arguments[0], exp.Star)):
            return AggregateReference(DataTypes.BIGINT(False), f"{prefix}COUNT(*)", name, (), None, is_final)
        if len(arguments) != 1:
            raise SqlError(f"{name} has {len(arguments)} arguments", f"write {name}(A.x)", "", place)
        argument = self._match.argument(arguments[0], self._where)
        try:
            kind = result_type(AggregateKind(name), argument.expr.type.nullable())
        except InvalidTypesError as error:
            raise SqlError(str(error), "see docs/sql.md", "", place) from error
        field = self._match.field(argument.column)
        return AggregateReference(kind, f"{prefix}{name}({argument.text})", name, argument.variables, field, is_final)

    def _classifier(self, tree: Tree) -> ClassifierReference:
        if tree.expressions:
            raise SqlError("CLASSIFIER has an argument", "write CLASSIFIER()", "", place_of(tree))
        if self._own is not None:
            problem = "CLASSIFIER in DEFINE is the variable that is defined"
            raise SqlError(problem, "compare columns of variables instead", "", place_of(tree))
        return ClassifierReference(DataTypes.STRING(), "CLASSIFIER()")

    def _rowtime(self, tree: Tree) -> RowReference:
        place, time = place_of(tree), self._match.time
        attribute = self._match.schema[time]
        if len(tree.expressions) > 1:
            raise SqlError("MATCH_ROWTIME has several arguments", "write MATCH_ROWTIME()", "", place)
        if tree.expressions:
            argument = self._match.argument(tree.expressions[0], self._where)
            if argument.column != time:
                problem = f"MATCH_ROWTIME({argument.text}) is not of the time attribute that the rows are ordered by"
                raise SqlError(problem, f"write MATCH_ROWTIME({attribute.name})", "", place)
        if not attribute.type.is_timestamp or attribute.part is TimePart.PROCTIME:
            remedy = "write MATCH_PROCTIME(), or let ORDER BY begin with a column with a WATERMARK"
            raise SqlError("MATCH_ROWTIME without event time", remedy, "", place)
        if self._own is not None:
            problem = "MATCH_ROWTIME in DEFINE"
            raise SqlError(problem, f"write {attribute.name}, the time of the row", "", place)
        return RowReference(attribute.type, "MATCH_ROWTIME()", (), self._match.field(time), Pick.LAST, 0, True)


def _is_name(tree: Tree) -> bool:
    """Return whether a tree is a column, with the fields of it; CURRENT_DATE and the like are functions."""
    if isinstance(tree, exp.Dot):
        return _is_name(tree.this)
    return isinstance(tree, exp.Column) and not (len(tree.parts) == 1 and tree.name.upper() in NILADIC)


def _refused(tree: Tree, where: str) -> Expr | None:
    """Refuse functions of matches within arguments of others."""
    name = str(tree.name).upper() if isinstance(tree, exp.Anonymous) else ""
    if name in (*_PICKS, *_AGGREGATES, "PREV", "NEXT", "CLASSIFIER"):
        remedy = "write them side by side, as in LAST(A.x) - FIRST(A.x)"
        raise SqlError(f"{name} stands within another function of {where}", remedy, "", place_of(tree))
    return None


def _field_of(expr: Expr, references: Sequence[Reference]) -> Expr:
    """Return a reference to the current row as the field of the row."""
    if not isinstance(expr, Column):
        return expr
    reference = references[expr.index]
    assert isinstance(reference, RowReference)
    return replace(expr, index=reference.field)


def _moved(expr: Expr, match: MatchRecognize, width: int) -> Expr:
    """Return a measure over the columns of the matches."""
    return expr.mapped(lambda item: replace(match.column(item.index + width), place=item.place)
                       if isinstance(item, Column) else item)  # fmt: skip


__all__ = ["match_recognize"]
