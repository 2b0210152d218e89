"""The steps that join two streams, and the error for a join that cannot be run."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
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
from ..runtime.key_columns import columns_key
from .translation import Translation, hash_partition

_REMEDY = (
    "join windows by both bounds: ON a.window_start = b.window_start AND a.window_end = b.window_end; or bound the "
    "times of both: ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts; or run it in batch mode"
)


def translate_join(translation: Translation, plan: KeyedJoin) -> StreamBuilder:
    """Join two streams by key: rows of equal keys meet in one subtask, without keys all rows in one."""
    names = [
        [side.names[column] for column in plan.required_distribution(index) or ()]
        for index, side in enumerate(plan.inputs)
    ]
    left, right = (hash_partition(translation.stream(plan.inputs[index]), names[index]) for index in (0, 1))
    step = left.add_two_input_operator(
        right,
        type(plan).__name__,
        _factory(plan, translation.session),
        (columns_key(names[0]), columns_key(names[1])),
        " with ".join(_side_identity(plan, index) for index in (0, 1)),
    ).set_description(plan.explain_line())
    return step if all(names) else step.set_parallelism(1)


def translate_broadcast_join(translation: Translation, plan: BroadcastJoin) -> StreamBuilder:
    """Join a table with a small one, all of whose rows every subtask gets."""
    sides = [translation.stream(side) for side in plan.inputs]
    sides[plan.small] = sides[plan.small].broadcast()
    step = sides[0].add_two_input_operator(sides[1], "BroadcastJoin", _factory(plan, translation.session))
    return step.set_description(plan.explain_line())


def _factory(plan: KeyedJoin, session: Session) -> Factory:
    """Return the factory of a join's operator."""
    left, right = (
        JoinSide(arrow_schema(side.schema), keys, plan.required_distribution(index) or (), _side_identity(plan, index))
        for index, (side, keys) in enumerate(zip(plan.inputs, (plan.keys.left, plan.keys.right), strict=True))
    )
    result = arrow_schema(plan.schema)
    spec = JoinSpec(plan.kind, left, right, plan.keys.nulls_match, plan.condition, result, session)
    match plan:
        case BroadcastJoin():
            return Factory(BroadcastJoinOperator, spec, plan.small)
        case IntervalJoin():
            interval = plan.interval
            left_time = _side_time(interval.left, plan.left, session)
            right_time = _side_time(interval.right, plan.right, session)
            bounds = IntervalBounds(left_time, right_time, interval.lower_ms, interval.upper_ms)
            return Factory(TimeIntervalJoinOperator, spec, bounds, interval.is_event_time)
        case WindowJoin():
            zone = session.zone if plan.windowing.by_local_time else "UTC"
            return Factory(WindowJoinOperator, spec, (plan.left_bounds, plan.right_bounds), zone)
        case _:
            return Factory(WindowJoinOperator, spec, None, "UTC")


def _side_identity(plan: KeyedJoin, index: int) -> str:
    """Return the state identity of one side, the first or the second."""
    side = plan.inputs[index]
    bounds = (plan.left_bounds, plan.right_bounds)[index] if isinstance(plan, WindowJoin) else ()
    times = ((plan.interval.left, plan.interval.right)[index],) if isinstance(plan, IntervalJoin) else ()
    keys = (plan.keys.left, plan.keys.right)[index]
    return f"{rows_of(side, keys)}, joined in {all_of(side, (*bounds, *times)) or 'whole'}"


def _side_time(index: int, side: Relation, session: Session) -> SideTime:
    """Return a time column of a side with the bounds of its future values, see `interval_bounds`."""
    column = side.schema[index]
    if column.part is TimePart.PROCTIME:
        return SideTime(None)
    if column.part not in (TimePart.WINDOW_START, TimePart.WINDOW_END):
        return SideTime(index)
    windowing = column.windowing
    assert windowing is not None
    shift = 1 if column.part is TimePart.WINDOW_END else 1 - windowing.size_ms
    return SideTime(index, shift, session.zone if windowing.by_local_time else "UTC")


def unsupported_join(plan: Join) -> SqlError:
    """Return the error for a join of streams that would keep all rows for ever."""
    bounds = (TimePart.WINDOW_START, TimePart.WINDOW_END)
    equal_parts = [
        plan.left.schema[pair.left.index].part
        for pair in equalities(plan).pairs
        if isinstance(pair.left, Column)
        and isinstance(pair.right, Column)
        and plan.left.schema[pair.left.index].part is plan.right.schema[pair.right.index].part
    ]
    equal_bounds = [part for part in bounds if part in equal_parts]
    if len(equal_bounds) == 1:
        missing = bounds[1 - bounds.index(equal_bounds[0])].value
        remedy = f"let a.{missing} = b.{missing} be a condition, too"
        return SqlError(f"a join of windows by {equal_bounds[0].value} alone", remedy, "", plan.place)
    problem = "a join without windows or bounds of time keeps all rows of both sides for ever"
    return SqlError(problem, f"it is not supported yet; {_REMEDY}", "", plan.place)


__all__ = ["translate_broadcast_join", "translate_join", "unsupported_join"]
