"""Runs a join whose condition bounds the time of one side by that of the other, so that it keeps rows only for a while.

The times are time attributes of both sides, or bounds of windows, which rows still to come have behind the watermark,
too: `runtime/interval_bounds.py` says how far. Flink joins by time attributes alone.

Source: apache/flink IntervalJoinUtil.extractWindowBoundsFromPredicate.

Example:

    SELECT o.id FROM orders o JOIN payments p
    ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '1' HOUR

Without the rule:

    Calc(select=[id])
    +- Join(joinType=[InnerJoin], where=[id = id AND (ts0 >= ts) AND (ts0 <= (ts + 3600000))], select=[id, ts, id0,
         ts0], leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey])
       :- Exchange(distribution=[hash[id]])
       :  +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])
       +- Exchange(distribution=[hash[id]])
          +- TableSourceScan(table=[[payments, project=[id, ts]]], fields=[id, ts])

With the rule:

    Calc(select=[id])
    +- IntervalJoin(interval=[lowerBound=0, upperBound=3600000, isRowTime=true, leftTimeIndex=ts, rightTimeIndex=ts],
         joinType=[InnerJoin], where=[id = id], select=[id, ts, id0, ts0])
       :- Exchange(distribution=[hash[id]])
       :  +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
       :     +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])
       +- Exchange(distribution=[hash[id]])
          +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
             +- TableSourceScan(table=[[payments, project=[id, ts]]], fields=[id, ts])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...plan.joins import Interval, IntervalJoin, Join
from ...plan.logical import Attribute, Relation, TimePart, WindowKind
from ...plan.typed import Call, Column, Expr, Literal
from ...types import Root
from ..conditions import parts_of
from ..join_keys import as_before, equalities, keyed

_SIGNS = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
"""A comparison -> the one that says the same of its arguments in the other order."""
_MILLISECONDS = 3
"""Digits of a second that times have; those with more are compared once more."""


def recognize_interval_join(plan: Relation) -> Relation:
    """Join by times that are bounded from below and above, in a stream."""
    return plan.mapped(_joined)


@dataclass(frozen=True)
class _Bound:
    """A bound from a condition: right time - left time is at least `lower`, at most `upper`."""

    columns: tuple[int, int]
    lower: int | None
    upper: int | None


def _joined(relation: Relation) -> Relation:
    if not isinstance(relation, Join) or relation.is_whole or relation.kind.is_of_left:
        return relation
    bounds = {part: bound for part in parts_of(relation.condition) if (bound := _bound(part, relation)) is not None}
    interval = _interval(list(bounds.values()), relation)
    if interval is None:
        return relation
    condition = equalities(relation)
    if _digits(interval, relation) <= _MILLISECONDS:
        own = (interval.left, interval.right)
        rest = [part for part in condition.rest if part not in bounds or bounds[part].columns != own]
    else:
        rest = list(condition.rest)
        interval = replace(interval, lower_ms=interval.lower_ms - 1, upper_ms=interval.upper_ms + 1)
    base = keyed(relation, condition.pairs, rest)
    join = IntervalJoin(
        base.schema, base.left, base.right, base.kind, base.keys, base.condition, interval, place=relation.place
    )
    return as_before(relation, join)


def _interval(bounds: Sequence[_Bound], join: Join) -> Interval | None:
    """Return the first two columns of which both bounds are known."""
    for columns in dict.fromkeys(bound.columns for bound in bounds):
        lowers = [bound.lower for bound in bounds if bound.columns == columns and bound.lower is not None]
        uppers = [bound.upper for bound in bounds if bound.columns == columns and bound.upper is not None]
        if lowers and uppers:
            is_event_time = join.left.schema[columns[0]].part is not TimePart.PROCTIME
            return Interval(*columns, max(lowers), min(uppers), is_event_time)
    return None


def _digits(interval: Interval, join: Join) -> int:
    """Return the number of fractional digits of a second in either time."""
    kinds = join.left.schema[interval.left].type, join.right.schema[interval.right].type
    return max(kind.precision or 0 for kind in kinds) if interval.is_event_time else 0


def _bound(part: Expr, join: Join) -> _Bound | None:
    if not isinstance(part, Call) or part.function.name not in _SIGNS:
        return None
    left_time, right_time = (_moved_time(arg) for arg in part.args)
    if left_time is None or right_time is None:
        return None
    sign = part.function.name
    if left_time[0] >= join.width > right_time[0]:
        left_time, right_time, sign = right_time, left_time, _SIGNS[sign]
    left, right = left_time[0], right_time[0] - join.width
    if not left < join.width <= right_time[0] or not _are_times(join.left.schema[left], join.right.schema[right]):
        return None
    apart = left_time[1] - right_time[1]  # left + left_time[1] < right + right_time[1]: right - left > apart
    lower = {"<": apart + 1, "<=": apart, "=": apart}.get(sign)
    upper = {">": apart - 1, ">=": apart, "=": apart}.get(sign)
    return _Bound((left, right), lower, upper)


def _are_times(left: Attribute, right: Attribute) -> bool:
    """Return whether rows with such times may be forgotten after a while."""
    if left.type.root is not right.type.root:
        return False
    if left.part is TimePart.PROCTIME or right.part is TimePart.PROCTIME:
        return left.part is right.part
    return _follows_watermark(left) and _follows_watermark(right)


def _follows_watermark(attribute: Attribute) -> bool:
    if attribute.is_event_time:
        return True
    windowing = attribute.windowing
    if (
        attribute.part not in (TimePart.WINDOW_START, TimePart.WINDOW_END)
        or windowing is None
        or not windowing.is_event_time
    ):
        return False
    return attribute.part is TimePart.WINDOW_END or windowing.kind is not WindowKind.SESSION


def _moved_time(expr: Expr) -> tuple[int, int] | None:
    """Number of a column, and how many milliseconds are added to it."""
    if isinstance(expr, Column):
        return expr.index, 0
    if not isinstance(expr, Call) or expr.function.name not in ("+", "-"):
        return None
    left, right = expr.args
    by, moved = _milliseconds(right), _moved_time(left)
    if by is None and expr.function.name == "+":
        by, moved = _milliseconds(left), _moved_time(right)
    if by is None or moved is None:
        return None
    return moved[0], moved[1] + (by if expr.function.name == "+" else -by)


def _milliseconds(expr: Expr) -> int | None:
    if isinstance(expr, Call) and expr.function.name == "negate":
        inner = _milliseconds(expr.args[0])
        return None if inner is None else -inner
    if isinstance(expr, Literal) and expr.type.root is Root.INTERVAL_DAY_TIME and expr.value is not None:
        return int(expr.value)
    return None


__all__ = ["recognize_interval_join"]
