"""The plan of an INSERT, and of INSERT INTO table PARTITION (key = value)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..binding.expressions import ExpressionBinder, cast
from ..binding.queries import project
from ..binding.scope import Scope
from ..connectors.connector_registry import connector
from ..connectors.contract import TableSink
from ..definitions import ColumnDefinition, Path, TableDefinition, parts_of
from ..errors import SqlError, nearest
from ..parsing.statements import Tree
from ..plan.conflicts import OnConflict
from ..plan.logical import ANONYMOUS, Relation, Schema, Sink
from ..plan.type_rules import contains_raw, widens
from ..plan.typed import Column, Evaluation, Expr, Literal, Session
from . import resolution
from .planning_context import PlanningContext, check_table

if TYPE_CHECKING:
    from ..schema import TableDescriptor


class Insertion(NamedTuple):
    """The parts of an INSERT.

    Args:
        path: of the table to write.
        columns: those that the query gives; None: all.
        partition: values of partition keys, as they are written.
        overwrites: whether the rows take the place of those that are there.
        on_conflict: the treatment of several rows with one primary key; None: none is said.
    """

    path: tuple[str, ...]
    plan: Relation
    columns: tuple[str, ...] | None = None
    partition: Mapping[str, Any] = {}
    overwrites: bool = False
    on_conflict: OnConflict | None = None


def plan_insert(context: PlanningContext, insertion: Insertion) -> Sink:
    """Return the plan of an INSERT into a table of the catalog.

    Raises:
        SqlError: there is no such table, or it does not take the rows.
    """
    path, table = context.table_to_write(insertion.path)
    return plan_rows(context, path, table, insertion)


def insert_into(
    context: PlanningContext, target: str | TableDescriptor, plan: Relation, overwrites: bool = False,
    on_conflict: OnConflict | None = None,
) -> Sink:  # fmt: skip
    """Return the plan that writes rows to a table of the catalog, or to one that a descriptor says.

    A descriptor without a schema takes the columns of the rows.

    Raises:
        SqlError: there is no such table, or it does not take the rows.
    """
    if isinstance(target, str):
        insertion = Insertion(parts_of(target), plan, overwrites=overwrites, on_conflict=on_conflict)
        return plan_insert(context, insertion)
    path, table = context.anonymous_path(ANONYMOUS), target.definition
    if not table.columns:
        table = replace(table, columns=tuple(ColumnDefinition(column.name, column.type) for column in plan.schema))
    check_table(path, table)
    insertion = Insertion(path, plan, overwrites=overwrites, on_conflict=on_conflict)
    return plan_rows(context, path, table, insertion)


def plan_rows(context: PlanningContext, path: Path, table: TableDefinition, insertion: Insertion) -> Sink:
    """Return the plan of an INSERT into a table, whether the catalog has it or not.

    Raises:
        SqlError: the table does not take the rows.
    """
    name = ".".join(path)
    sink = connector(path, table).sink(resolution.connected(path, table, False, context.zone))
    values = _partition_values(table, name, insertion.partition)
    plan, columns = _with_partition(insertion.plan, table, insertion.columns, values)
    if insertion.overwrites:
        sink = _overwriting(sink, name, values, context.is_batch)
    declared = tuple(column.type for column in table.columns if column.is_written and column.type is not None)
    rows = fit_columns(plan, table, columns, name)
    stored = None if insertion.overwrites else table
    return Sink((), rows, path, sink, declared, on_conflict=insertion.on_conflict, definition=stored, place=plan.place)


def _overwriting(sink: TableSink, name: str, partition: Mapping[str, Expr], is_batch: bool) -> TableSink:
    """Return a sink whose rows take the place of those that are there.

    Raises:
        SqlError: it cannot, or the rows never end.
    """
    if not is_batch:
        remedy = "write INSERT INTO, or run it in batch mode: EnvironmentSettings.in_batch_mode()"
        raise SqlError("INSERT OVERWRITE in streaming mode", remedy)
    overwriting = sink.overwriting(_constants(partition))
    if overwriting is None:
        raise SqlError(f"{name} does not take INSERT OVERWRITE", "write INSERT INTO, or take 'filesystem'")
    return overwriting


def _partition_values(table: TableDefinition, name: str, values: Mapping[str, Tree]) -> dict[str, Expr]:
    """Return the values that PARTITION gives, as expressions of the keys' types.

    Raises:
        SqlError: one is not for a partition key, or is of another type.
    """
    keys = table.partition_keys
    if values and not keys:
        raise SqlError(f"PARTITION is written, and {name} is not partitioned", "leave PARTITION out")
    types = {column.name: column.type for column in table.columns}
    expressions: dict[str, Expr] = {}
    for key, tree in values.items():
        kind = types.get(key)
        if key not in keys or kind is None:
            problem = f"{key!r} is no partition key of {name}{nearest(key, keys)}"
            raise SqlError(problem, f"its keys are {', '.join(keys)}")
        expressions[key] = cast(ExpressionBinder(Scope.of("", ())).bind(tree), kind)
    return expressions


def _with_partition(
    plan: Relation, table: TableDefinition, columns: tuple[str, ...] | None, values: Mapping[str, Expr]
) -> tuple[Relation, tuple[str, ...] | None]:
    """Return a query's rows with the keys of its partition, and the columns of the table that they then give.

    Raises:
        SqlError: a column is given twice.
    """
    if not values:
        return plan, columns
    if twice := next((name for name in columns or () if name in values), None):
        raise SqlError(f"column {twice!r} is in PARTITION and in the columns", "name it once", "", plan.place)
    names = columns or tuple(column.name for column in table.columns if column.is_written and column.name not in values)
    if len(names) != len(plan.schema):
        problem = f"the query gives {len(plan.schema)} columns, and the partition takes {len(names)}"
        raise SqlError(problem, f"wanted is {', '.join(names)}", "", plan.place)
    exprs = [*(plan.column(index) for index in range(len(names))), *values.values()]
    whole = (*names, *values)
    return project(plan, exprs, list(whole)), whole


def _constants(values: Mapping[str, Expr]) -> dict[str, Any]:
    """Return the values as pyarrow's scalars."""
    return {key: Evaluation([], 1, Session()).column(expr)[0] for key, expr in values.items()}


def fit_columns(plan: Relation, table: TableDefinition, columns: tuple[str, ...] | None, name: str) -> Relation:
    """Return a query's rows with the columns of the table to write, cast to their types.

    Args:
        columns: the columns that the query gives, in its order; None: all that are written.
        name: of the table, for errors.

    Raises:
        SqlError: there are more or fewer, or one is of another type.
    """
    written = [column for column in table.columns if column.is_written]
    names = list(columns) if columns is not None else [column.name for column in written]
    resolution.checked_columns(names, [column.name for column in written], None, "")
    if twice := next((column for column in names if names.count(column) > 1), None):
        raise SqlError(f"column {twice!r} of {name} is given twice", "name it once")
    if len(names) != len(plan.schema):
        problem = f"the query gives {len(plan.schema)} columns, and {name} takes {len(names)}"
        remedy = f"it gives {_describe_columns(plan.schema)}; wanted is {', '.join(names)}"
        raise SqlError(problem, remedy, "", plan.place)
    exprs = [_cast_column(plan, names, column, name) for column in written]
    return project(plan, exprs, [column.name for column in written])


def _cast_column(plan: Relation, names: list[str], column: ColumnDefinition, table_name: str) -> Expr:
    """Return the value of a column of the table: that of the query, or NULL where the query does not give it."""
    assert column.type is not None
    if column.name not in names:
        return _absent(column, table_name)
    index = names.index(column.name)
    source = plan.schema[index]
    if not widens(source.type, column.type):
        problem = f"column {column.name!r} of {table_name} is of type {column.type}, the query gives {source.type}"
        remedy = f"write CAST(... AS {column.type.nullable()}) in the query"
        if contains_raw(source.type):
            remedy = f"let a function make a {column.type.nullable()} of the objects"
        raise SqlError(problem, remedy, "", plan.place)
    value = Column(source.type, index, source.name)
    return cast(value, column.type.as_nullable(source.type.is_nullable))


def _absent(column: ColumnDefinition, name: str) -> Expr:
    assert column.type is not None
    if not column.type.is_nullable:
        problem = f"the query gives nothing for column {column.name!r} of {name}, which is {column.type}"
        raise SqlError(problem, "name it in the INSERT, and select a value for it")
    return Literal(column.type, None)


def _describe_columns(schema: Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


__all__ = ["Insertion", "fit_columns", "insert_into", "plan_insert", "plan_rows"]
