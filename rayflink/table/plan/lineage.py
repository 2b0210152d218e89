"""Lineage of columns, in terms of a plan's tables; it identifies the state of a query.

Filters take no part: a query whose conditions have changed goes on with the rows that it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .groups import GroupAggregate
from .joins import Join, KeyedJoin
from .logical import Filter, Project, Relation, Sort, Union, Unnest, WatermarkAssigner, WindowAggregate, WindowTable
from .ranks import Rank
from .typed import Column, Expr


def lineage(relation: Relation, at: int) -> str:
    """Return a column of a relation, over the columns of the tables below it."""
    name = relation.schema[at].name
    match relation:
        case Project():
            return _expression(relation.exprs[at], relation.input)
        case Filter() | WatermarkAssigner() | Sort():
            return lineage(relation.input, at)
        case WindowTable() if at >= len(relation.input.schema):
            time = lineage(relation.input, relation.windowing.time)
            return _bound(relation, at, f"{relation.windowing.describe_without_time()} by {time}")
        case WindowTable() | Rank() if at < len(relation.input.schema):
            return lineage(relation.input, at)
        case Unnest():
            kept = relation.kept
            element = _expression(relation.collection, relation.input)
            return lineage(relation.input, kept[at]) if at < len(kept) else f"part {at - len(kept)} of {element}"
        case GroupAggregate() if at < len(relation.grouping):
            return lineage(relation.input, relation.grouping[at])
        case WindowAggregate():
            return _of_aggregate(relation, at)
        case Union():
            return " or ".join(dict.fromkeys(lineage(one, at) for one in relation.sources))
        case Join() | KeyedJoin():
            width = relation.width
            return lineage(relation.left, at) if at < width else lineage(relation.right, at - width)
        case _:
            return name


def _expression(expr: Expr, below: Relation) -> str:
    def named(one: Expr) -> Expr:
        return replace(one, name=lineage(below, one.index)) if isinstance(one, Column) else one

    return str(expr.mapped(named))


def _of_aggregate(relation: WindowAggregate, at: int) -> str:
    number = at - len(relation.grouping)
    if number < 0:
        return lineage(relation.input, relation.grouping[at])
    if number < len(relation.calls):
        return relation.calls[number].describe(
            [lineage(relation.input, at) for at in range(len(relation.input.schema))]
        )
    return _bound(relation, at, windows_of(relation))


def windows_of(relation: WindowAggregate) -> str:
    """Return the windows of an aggregation, with what they go by."""
    if relation.windowing is not None:
        return f"{relation.windowing.describe_without_time()} by {lineage(relation.input, relation.windowing.time)}"
    assert relation.bounds is not None
    start, end = (lineage(relation.input, at).partition("(") for at in relation.bounds)
    return start[2].removesuffix(")") if start[2] == end[2] else "".join((*start, *end))


def _bound(relation: Relation, at: int, windows: str) -> str:
    part = relation.schema[at].part
    return f"{'window' if part is None else part.value}({windows})"


def all_of(relation: Relation, columns: Iterable[int]) -> str:
    """Several columns."""
    return ", ".join(lineage(relation, at) for at in columns)


def aggregation_of(relation: WindowAggregate) -> str:
    """Return the state identity of an aggregation: its keys, aggregates and windows."""
    below = relation.input
    names = [lineage(below, at) for at in range(len(below.schema))]
    calls = ", ".join(call.describe(names) for call in relation.calls)
    return f"{calls or 'nothing'} by {all_of(below, relation.grouping) or 'nothing'} in {windows_of(relation)}"


def rows_of(relation: Relation, keys: Iterable[int] = ()) -> str:
    """Whole rows, and what they are distinguished by."""
    return f"{all_of(relation, range(len(relation.schema)))} by {all_of(relation, keys) or 'nothing'}"


__all__ = ["aggregation_of", "all_of", "lineage", "rows_of", "windows_of"]
