"""Runs a join on both bounds of equal windowings when the windows end.

Source: apache/flink WindowJoinUtil and StreamPhysicalWindowJoinRule.

Example:

    SELECT a.id FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS a
    JOIN TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS b
    ON a.id = b.id AND a.window_start = b.window_start AND a.window_end = b.window_end

Without the rule:

    Calc(select=[id])
    +- IntervalJoin(interval=[lowerBound=0, upperBound=0, isRowTime=true, leftTimeIndex=window_start,
         rightTimeIndex=window_start], joinType=[InnerJoin], where=[id = id AND window_start = window_start AND
         window_end = window_end], select=[id, window_start, window_end, id0, window_start0, window_end0])
       :- Exchange(distribution=[hash[id, window_start, window_end]])
       :  +- Calc(select=[id, window_start, window_end])
       :     +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])
       :        +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
       :           +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])
       +- Exchange(distribution=[hash[id, window_start, window_end]])
          +- Calc(select=[id, window_start, window_end])
             +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])
                +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                   +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])

With the rule:

    Calc(select=[id])
    +- WindowJoin(window=[TUMBLE(size=[1 min])], joinType=[InnerJoin], where=[id = id], select=[id,
         window_start, window_end, id0, window_start0, window_end0])
       :- Exchange(distribution=[hash[id]])
       :  +- Calc(select=[id, window_start, window_end])
       :     +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])
       :        +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
       :           +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])
       +- Exchange(distribution=[hash[id]])
          +- Calc(select=[id, window_start, window_end])
             +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])
                +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                   +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])
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


def _joined(relation: Relation) -> Relation:
    if not isinstance(relation, Join) or relation.is_whole:
        return relation
    condition = equalities(relation)
    bounds = {part: pair for pair in condition.pairs if (part := _bound_of(pair, relation)) is not None}
    if set(bounds) != set(_BOUNDS):
        return relation
    start, end = ((pair.left.index, pair.right.index) for pair in map(bounds.__getitem__, _BOUNDS))  # type: ignore[attr-defined]
    left, right = relation.left.schema[end[0]], relation.right.schema[end[1]]
    windowing = _windowing(left, right, relation)
    base = keyed(relation, [pair for pair in condition.pairs if pair not in bounds.values()], condition.rest)
    join = WindowJoin(
        base.schema, base.left, base.right, base.kind, base.keys, base.condition, windowing,
        (start[0], end[0]), (start[1], end[1]), place=relation.place,
    )  # fmt: skip
    return as_before(relation, join)


def _bound_of(pair: Pair, join: Join) -> TimePart | None:
    """Return the window bound that both sides have equal, if there is one."""
    if not (isinstance(pair.left, Column) and isinstance(pair.right, Column)):
        return None
    part = join.left.schema[pair.left.index].part
    return part if part in _BOUNDS and part is join.right.schema[pair.right.index].part else None


def _windowing(left: Attribute, right: Attribute, join: Join) -> Windowing:
    windowing, other = left.windowing, right.windowing
    if windowing is None or other is None or windowing.describe_without_time() != other.describe_without_time():
        shown = " and ".join(
            "other windows" if windows is None else windows.describe_without_time() for windows in (windowing, other)
        )
        remedy = "window both sides by the same function with the same lengths"
        raise SqlError(f"a join of windows of {shown}", remedy, "", join.place)
    if not windowing.is_event_time:
        remedy = "window both sides by a column with a WATERMARK"
        raise SqlError("a join of windows of processing time", remedy, "", join.place)
    return replace(windowing, partition=())


__all__ = ["recognize_window_join"]
