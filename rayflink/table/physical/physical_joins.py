"""The operators of joins, and what is said of a join that cannot be run."""

from __future__ import annotations

from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..optimizer.join_keys import equalities
from ..plan.joins import BroadcastJoin, IntervalJoin, Join, KeyedJoin, WindowJoin
from ..plan.lineage import all_of, rows_of
from ..plan.logical import Relation, TimePart
from ..plan.typed import Column, Session
from ..runtime.joins.broadcast_join import BroadcastJoinOperator
from ..runtime.joins.interval_bounds import IntervalBounds, SideTime
from ..runtime.joins.interval_join import TimeIntervalJoinOperator
from ..runtime.joins.join_rows import JoinSide, JoinSpec
from ..runtime.joins.window_join import WindowJoinOperator

_REMEDY = (
    "join windows by both bounds: ON a.window_start = b.window_start AND a.window_end = b.window_end; or bound the "
    "times of both: ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts; or run it in batch mode"
)


def join_factory(plan: KeyedJoin, session: Session) -> Factory:
    """Makes the operator of a join."""
    left, right = (
        JoinSide(arrow_schema(side.schema), keys, plan.required_distribution(at) or (), side_identity(plan, at))
        for at, (side, keys) in enumerate(zip(plan.inputs, (plan.keys.left, plan.keys.right), strict=True))
    )
    result = arrow_schema(plan.schema)
    spec = JoinSpec(plan.kind, left, right, plan.keys.nulls_match, plan.condition, result, session)
    if isinstance(plan, BroadcastJoin):
        return Factory(BroadcastJoinOperator, spec, plan.small)
    if isinstance(plan, IntervalJoin):
        interval = plan.interval
        own, other = _time(interval.left, plan.left, session), _time(interval.right, plan.right, session)
        bounds = IntervalBounds(own, other, interval.lower_ms, interval.upper_ms)
        return Factory(TimeIntervalJoinOperator, spec, bounds, interval.is_event_time)
    if isinstance(plan, WindowJoin):
        zone = session.zone if plan.windowing.by_local_time else "UTC"
        return Factory(WindowJoinOperator, spec, (plan.left_bounds, plan.right_bounds), zone)
    return Factory(WindowJoinOperator, spec, None, "UTC")


def side_identity(plan: KeyedJoin, at: int) -> str:
    """Return the state identity of one side."""
    side = plan.inputs[at]
    bounds = (plan.left_bounds, plan.right_bounds)[at] if isinstance(plan, WindowJoin) else ()
    times = ((plan.interval.left, plan.interval.right)[at],) if isinstance(plan, IntervalJoin) else ()
    keys = (plan.keys.left, plan.keys.right)[at]
    return f"{rows_of(side, keys)}, joined in {all_of(side, (*bounds, *times)) or 'whole'}"


def _time(at: int, side: Relation, session: Session) -> SideTime:
    """Return the bounds of a column's future times, see `interval_bounds`."""
    one = side.schema[at]
    if one.part is TimePart.PROCTIME:
        return SideTime(None)
    if one.part not in (TimePart.WINDOW_START, TimePart.WINDOW_END):
        return SideTime(at)
    windowing = one.windowing
    assert windowing is not None
    shift = 1 if one.part is TimePart.WINDOW_END else 1 - windowing.size_ms
    return SideTime(at, shift, session.zone if windowing.by_local_time else "UTC")


def refused(plan: Join) -> SqlError:
    """Return the error for a join of streams that keeps all rows for ever."""
    parts = (TimePart.WINDOW_START, TimePart.WINDOW_END)
    equal = [
        plan.left.schema[pair.left.index].part
        for pair in equalities(plan).pairs
        if isinstance(pair.left, Column)
        and isinstance(pair.right, Column)
        and plan.left.schema[pair.left.index].part is plan.right.schema[pair.right.index].part
    ]
    found = [one for one in parts if one in equal]
    if len(found) == 1:
        other = parts[1 - parts.index(found[0])].value
        remedy = f"let a.{other} = b.{other} be a condition, too"
        return SqlError(f"a join of windows by {found[0].value} alone", remedy, "", plan.place)
    problem = "a join without windows or bounds of time keeps all rows of both sides for ever"
    return SqlError(problem, f"it is not supported yet; {_REMEDY}", "", plan.place)


__all__ = ["join_factory", "refused", "side_identity"]
