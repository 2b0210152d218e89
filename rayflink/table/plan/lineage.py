"""Lineage of columns, in terms of a plan's tables; it identifies the state of a query.

Filters take no part: a query whose conditions have changed goes on with the rows that it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rayflink.common.errors import assert_never

from .groups import GroupAggregate
from .joins import Join, KeyedJoin
from .logical import (
    Filter,
    Project,
    Relation,
    Scan,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from .lookup_joins import LookupJoin
from .matching import MatchRecognize
from .multi_joins import MultiJoin
from .op_columns import FromChangelog, ToChangelog
from .over import OverAggregate, call_text
from .plan_nodes import node_of
from .process_tables import ProcessTable
from .ranks import Rank
from .typed import Column, Expr
from .upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize


def lineage(relation: Relation, index: int) -> str:
    """Return a column of a relation, over the columns of the tables below it."""
    node, name = node_of(relation), relation.schema[index].name
    match node:
        case Project():
            return _expression(node.exprs[index], node.input)
        case Filter() | WatermarkAssigner() | Sort() | ChangelogNormalize() | UpsertMaterialize():
            return lineage(node.input, index)
        case WindowTable() if index >= len(node.input.schema):
            time = lineage(node.input, node.windowing.time)
            return _bound(node, index, f"{node.windowing.describe_without_time()} by {time}")
        case WindowTable():
            return lineage(node.input, index)
        case Rank() | NumberCopies():
            return lineage(node.input, index) if index < len(node.input.schema) else name
        case OverAggregate():
            return lineage(node.input, index) if index < node.width else _of_over(node, index)
        case MatchRecognize():
            return (
                lineage(node.input, node.row_columns[index])
                if index < len(node.row_columns)
                else f"{name} of {node.pattern}"
            )
        case Unnest():
            columns = node.row_columns
            element = _expression(node.collection, node.input)
            return (
                lineage(node.input, columns[index])
                if index < len(columns)
                else f"part {index - len(columns)} of {element}"
            )
        case LookupJoin():
            width, table = node.width, ".".join(node.table.known_path)
            return lineage(node.input, index) if index < width else f"{node.exprs[index - width]} of {table}"
        case GroupAggregate():
            return _of_groups(node, index)
        case ProcessTable():
            return f"{name} of {node.uid}"
        case WindowAggregate():
            return _of_aggregate(node, index)
        case Union():
            return " or ".join(dict.fromkeys(lineage(source, index) for source in node.sources))
        case Join() | KeyedJoin():
            width = node.width
            return lineage(node.left, index) if index < width else lineage(node.right, index - width)
        case MultiJoin():
            source = node.input_of(index)
            return lineage(node.relations[source], index - node.starts[source])
        case Scan() | Values() | ToChangelog() | FromChangelog() | Sink():
            return name
        case _:
            assert_never(node)


def _expression(expr: Expr, below: Relation) -> str:
    def named(part: Expr) -> Expr:
        return replace(part, name=lineage(below, part.index)) if isinstance(part, Column) else part

    return str(expr.mapped(named))


def _of_groups(relation: GroupAggregate, index: int) -> str:
    if index < len(relation.grouping):
        return lineage(relation.input, relation.grouping[index])
    return relation.calls[index - len(relation.grouping)].describe(_all_lineages(relation.input))


def _all_lineages(relation: Relation) -> list[str]:
    return [lineage(relation, index) for index in range(len(relation.schema))]


def groups_of(relation: GroupAggregate) -> str:
    """Return the state identity of groups of a stream: their keys and aggregates."""
    below = relation.input
    calls = ", ".join(call.describe(_all_lineages(below)) for call in relation.calls)
    return f"{calls or 'nothing'} by {all_of(below, relation.grouping) or 'nothing'}"


def _of_over(relation: OverAggregate, column: int) -> str:
    call = call_text(relation.calls[column - relation.width], _all_lineages(relation.input))
    return f"{call} over {over_of(relation)}"


def over_of(relation: OverAggregate) -> str:
    """Return what the rows around each row are, by which functions OVER them are computed."""
    below = relation.input
    order = ", ".join(f"{lineage(below, column)}{' DESC' if down else ''}" for column, down, _ in relation.keys)
    return f"{relation.frame} by {all_of(below, relation.partition) or 'nothing'} ordered by {order or 'nothing'}"


def _of_aggregate(relation: WindowAggregate, index: int) -> str:
    number = index - len(relation.grouping)
    if number < 0:
        return lineage(relation.input, relation.grouping[index])
    if number < len(relation.calls):
        return relation.calls[number].describe(_all_lineages(relation.input))
    return _bound(relation, index, windows_of(relation))


def windows_of(relation: WindowAggregate) -> str:
    """Return the windows of an aggregation, with what they go by."""
    if relation.windowing is not None:
        return f"{relation.windowing.describe_without_time()} by {lineage(relation.input, relation.windowing.time)}"
    assert relation.bounds is not None
    start, end = (lineage(relation.input, index).partition("(") for index in relation.bounds)
    return start[2].removesuffix(")") if start[2] == end[2] else "".join((*start, *end))


def _bound(relation: Relation, column: int, windows: str) -> str:
    part = relation.schema[column].part
    return f"{'window' if part is None else part.value}({windows})"


def all_of(relation: Relation, columns: Iterable[int]) -> str:
    """Several columns."""
    return ", ".join(lineage(relation, index) for index in columns)


def aggregation_of(relation: WindowAggregate) -> str:
    """Return the state identity of an aggregation: its keys, aggregates and windows."""
    below = relation.input
    calls = ", ".join(call.describe(_all_lineages(below)) for call in relation.calls)
    return f"{calls or 'nothing'} by {all_of(below, relation.grouping) or 'nothing'} in {windows_of(relation)}"


def rows_of(relation: Relation, keys: Iterable[int] = ()) -> str:
    """Whole rows, and what they are distinguished by."""
    return f"{all_of(relation, range(len(relation.schema)))} by {all_of(relation, keys) or 'nothing'}"


__all__ = ["aggregation_of", "all_of", "groups_of", "lineage", "over_of", "rows_of", "windows_of"]
