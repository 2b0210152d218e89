"""A join of rows of equal windows is run when the windows are over: both bounds must be equal, of equal windowings.

Source: apache/flink WindowJoinUtil and StreamPhysicalWindowJoinRule.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import SqlError
from ...plan.joins import Join, WindowJoin
from ...plan.logical import Attribute, Relation, TimePart, Windowing
from ...plan.typed import Column
from ..join_keys import Pair, as_before, equalities, keyed

_BOUNDS = (TimePart.WINDOW_START, TimePart.WINDOW_END)


def recognize_window_join(plan: Relation) -> Relation:
    """Join by both bounds of windows, in a stream."""
    return plan.mapped(_joined)


def _joined(one: Relation) -> Relation:
    if not isinstance(one, Join) or one.is_whole:
        return one
    found = equalities(one)
    bounds = {part: pair for pair in found.pairs if (part := _bound_of(pair, one)) is not None}
    if set(bounds) != set(_BOUNDS):
        return one
    start, end = ((pair.left.index, pair.right.index) for pair in map(bounds.__getitem__, _BOUNDS))  # type: ignore[attr-defined]
    left, right = one.left.schema[end[0]], one.right.schema[end[1]]
    windowing = _windowing(left, right, one)
    made = keyed(one, [pair for pair in found.pairs if pair not in bounds.values()], found.rest)
    join = WindowJoin(
        made.schema, made.left, made.right, made.kind, made.keys, made.condition, windowing,
        (start[0], end[0]), (start[1], end[1]), place=one.place,
    )  # fmt: skip
    return as_before(one, join)


def _bound_of(pair: Pair, join: Join) -> TimePart | None:
    """Which bound of windows is equal on both sides, if one is."""
    if not (isinstance(pair.left, Column) and isinstance(pair.right, Column)):
        return None
    part = join.left.schema[pair.left.index].part
    return part if part in _BOUNDS and part is join.right.schema[pair.right.index].part else None


def _windowing(left: Attribute, right: Attribute, join: Join) -> Windowing:
    one, other = left.windowing, right.windowing
    if one is None or other is None or one.describe_without_time() != other.describe_without_time():
        shown = " and ".join("other windows" if each is None else each.describe_without_time() for each in (one, other))
        remedy = "window both sides by the same function with the same lengths"
        raise SqlError(f"a join of windows of {shown}", remedy, "", join.place)
    if not one.is_event_time:
        remedy = "window both sides by a column with a WATERMARK"
        raise SqlError("a join of windows of processing time", remedy, "", join.place)
    return replace(one, partition=())


__all__ = ["recognize_window_join"]
