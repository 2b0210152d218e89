"""Rows as sets: without repetition, in both, in one and not in the other."""

from __future__ import annotations

from dataclasses import replace

from ..errors import SqlError
from ..functions.row_counts import REPLICATE
from ..plan.aggregate_call import AggregateCall
from ..plan.groups import GroupAggregate
from ..plan.logical import Attribute, Filter, Project, Relation, Schema, Union, Unnest
from ..plan.typed import Expr, Literal, Place
from ..types import DataTypes, Root
from .expressions import apply, call

_COUNT = DataTypes.BIGINT(False)


def without_time(schema: Schema) -> Schema:
    """Return the columns without their part in time."""
    return tuple(replace(attribute, part=None, windowing=None) for attribute in schema)


def distinct(relation: Relation, place: Place | None, is_whole: bool) -> Relation:
    """Remove repeated rows.

    Args:
        is_whole: rows are those of a whole table.
    Raises:
        SqlError: a column has values that are not compared.
    """
    _check(relation.schema, place)
    columns = tuple(range(len(relation.schema)))
    return GroupAggregate(without_time(relation.schema), relation, columns, (), is_whole, place=place)


def intersect_or_except(union: Union, is_both: bool, is_all: bool, place: Place | None, is_whole: bool) -> Relation:
    """Return rows of the first of two sides that are among those of the second as well, or are not.

    Args:
        union: the sides, with columns of the same types.
        is_both: they are to be in both.
        is_all: a row that is there m times on the first side, and n times on the second, is returned min(m, n) or
            m - n times, else once.
        is_whole: rows are those of whole tables.
    Raises:
        SqlError: a column has values that are not compared.
    """
    _check(union.schema, place)
    width = len(union.schema)
    counters = [Attribute(name, _COUNT) for name in ("$left", "$right")]
    marked = tuple(
        Project((*side.schema, *counters), side, (*(side.column(index) for index in range(width)), *_marks(number)))
        for number, side in enumerate(union.sources)
    )
    union_all = Union((*without_time(union.schema), *counters), marked)
    counts = tuple(AggregateCall("SUM", (width + index,), _COUNT) for index in (0, 1))
    counted = GroupAggregate(union_all.schema, union_all, tuple(range(width)), counts, is_whole, place=place)
    nothing = Literal(_COUNT, 0)
    if is_all:
        sides = [counted.column(width), counted.column(width + 1)]
        times = call("LEAST", sides, place) if is_both else call("-", sides, place)
        return _replicated(counted, width, call("GREATEST", [times, nothing], place), without_time(union.schema))
    left = call(">", [counted.column(width), nothing], place)
    right = call(">" if is_both else "=", [counted.column(width + 1), nothing], place)
    chosen = Filter(counted.schema, counted, call("AND", [left, right], place), place=place)
    return Project(without_time(union.schema), chosen, tuple(chosen.column(index) for index in range(width)))


def _replicated(relation: Relation, width: int, times: Expr, schema: Schema) -> Relation:
    """Return the first columns of rows, each row as often as a number says."""
    element = Attribute("$n", DataTypes.TINYINT(False))
    rows = Unnest((*schema, element), relation, apply(REPLICATE, [times], None), tuple(range(width)))
    return Project(schema, rows, tuple(rows.column(index) for index in range(width)))


def _marks(side: int) -> tuple[Expr, Expr]:
    return Literal(_COUNT, 1 - side), Literal(_COUNT, side)


def _check(schema: Schema, place: Place | None) -> None:
    nested = (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW, Root.RAW)
    wrong = next((field for field in schema if field.type.root in nested), None)
    if wrong is not None:
        raise SqlError(f"column {wrong.name!r} of type {wrong.type} cannot be compared", "leave it out", "", place)


__all__ = ["intersect_or_except", "distinct", "without_time"]
