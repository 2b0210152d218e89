"""The steps that join two streams, and the error for a join that cannot be run."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.groups import GroupAggregate, MiniBatch
from ..plan.joins import BroadcastJoin, IntervalJoin, Join, KeyedJoin, StreamJoin, WindowJoin
from ..plan.lineage import all_of, rows_of
from ..plan.logical import Relation, TimePart, length_text
from ..plan.multi_joins import MultiJoin
from ..plan.ranks import Rank
from ..plan.typed import Session
from ..runtime.joins.broadcast_join import BroadcastJoinOperator
from ..runtime.joins.interval_bounds import IntervalBounds, SideTime
from ..runtime.joins.interval_join import TimeIntervalJoinOperator
from ..runtime.joins.join_rows import JoinSide, JoinSpec
from ..runtime.joins.mini_batch_join import MiniBatchJoinOperator
from ..runtime.joins.stored_side import SideState
from ..runtime.joins.stream_join import StreamJoinOperator, StreamJoinSpec
from ..runtime.joins.window_join import WindowJoinOperator
from ..runtime.key_columns import columns_key
from ..runtime.keyed_state.keyed_multiset import RowForm
from ..types import Root
from .translation import Translation, hash_partition

_REMEDY = (
    "join windows by both bounds: ON a.window_start = b.window_start AND a.window_end = b.window_end; or bound the "
    "times of both: ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts; or run it in batch mode"
)


def translate_join(translation: Translation, plan: KeyedJoin) -> StreamBuilder:
    """Join two streams by key: rows of equal keys meet in one subtask, without keys all rows in one."""
    if isinstance(plan, BroadcastJoin):
        return _translate_broadcast_join(translation, plan)
    names = [
        [side.names[column] for column in plan.required_distribution(index) or ()]
        for index, side in enumerate(plan.inputs)
    ]
    left, right = (hash_partition(translation.stream(plan.inputs[index]), names[index]) for index in (0, 1))
    step = left.add_two_input_operator(
        right,
        type(plan).__name__,
        _stream_factory(translation, plan) if isinstance(plan, StreamJoin) else _factory(plan, translation.session),
        (columns_key(names[0]), columns_key(names[1])),
        " with ".join(_side_identity(plan, index) for index in (0, 1)),
    )
    line = plan.explain_line()
    if isinstance(plan, StreamJoin):
        shown = "" if translation.settings.mini_batch is None else ", miniBatch=[true]"
        line = f"{line[:-1]}{_shown_ttls(translation, plan)}{shown})"
    step = step.set_description(line)
    return step if all(names) else step.set_parallelism(1)


def _shown_ttls(translation: Translation, plan: StreamJoin) -> str:
    left, right = (translation.side_ttl_ms(plan, index) for index in (0, 1))
    if not left and not right:
        return ""
    if left == right:
        return f", stateTtl=[{length_text(left)}]"
    shown = (length_text(ttl) if ttl else "none" for ttl in (left, right))
    return ", leftStateTtl=[{}], rightStateTtl=[{}]".format(*shown)


def _translate_broadcast_join(translation: Translation, plan: BroadcastJoin) -> StreamBuilder:
    """Join a table with a small one, all of whose rows every subtask gets."""
    sides = [translation.stream(side) for side in plan.inputs]
    sides[plan.small] = sides[plan.small].broadcast()
    step = sides[0].add_two_input_operator(sides[1], "BroadcastJoin", _factory(plan, translation.session))
    return step.set_description(plan.explain_line())


def _spec(plan: KeyedJoin, session: Session) -> JoinSpec:
    """Return what a join's operator is to do."""
    left, right = (
        JoinSide(
            arrow_schema(side.schema), keys, plan.required_distribution(index) or (), _side_identity(plan, index),
            plan.unique[index] if isinstance(plan, StreamJoin) else (),
        )
        for index, (side, keys) in enumerate(zip(plan.inputs, (plan.keys.left, plan.keys.right), strict=True))
    )  # fmt: skip
    result = arrow_schema(plan.schema)
    return JoinSpec(plan.kind, left, right, plan.keys.nulls_match, plan.condition, result, session)


def _stream_factory(translation: Translation, plan: StreamJoin) -> Factory:
    """Return the factory of the operator of a join of streams."""
    spec = _spec(plan, translation.session)
    left, right = (
        SideState(
            row_form(translation, plan, index),
            translation.side_ttl_ms(plan, index),
            (plan.kind.keeps_left or plan.kind.is_of_left, plan.kind.keeps_right)[index],
            plan.is_upsert,
        )
        for index in (0, 1)
    )
    join = StreamJoinSpec(spec, left, right, translation.wants_before(plan))
    limits = mini_batch_of(translation, plan)
    return Factory(StreamJoinOperator, join) if limits is None else Factory(MiniBatchJoinOperator, join, limits)


def mini_batch_of(translation: Translation, plan: Relation) -> MiniBatch | None:
    """Return the size of a join's mini-batches; None: it has none.

    Behind a step with mini-batches of its own, rows wait for a tenth of the time.
    """
    limits = translation.settings.mini_batch
    if limits is None:
        return None
    has_waited = any(isinstance(below, _MINI_BATCHED) for side in plan.inputs for below in side.walk())
    return limits.of_parts() if has_waited else limits


_MINI_BATCHED = (GroupAggregate, Rank, StreamJoin, MultiJoin)


def row_form(translation: Translation, plan: StreamJoin | MultiJoin, index: int) -> RowForm:
    """Return what distinguishes the rows of a side, by its number.

    Raises:
        SqlError: its rows may be taken back, have no unique key, and cannot be compared.
    """
    side = plan.inputs[index]
    if plan.has_key_as_unique(index):
        return RowForm.SINGLE
    if translation.changes(side) in (Change.INSERT, Change.NONE):
        return RowForm.APPENDED
    if plan.unique[index]:
        return RowForm.UNIQUE
    for column in side.schema:
        if column.type.items or column.type.root is Root.ROW:
            problem = (
                f"{column.name!r} of a side of a join is a {column.type}, whose values cannot be compared, and rows "
            )
            problem += "of the side may be taken back"
            remedy = "give the side a primary key or a GROUP BY, select a part of the column, or CAST it to STRING"
            raise SqlError(problem, remedy, "", plan.place)
    return RowForm.COUNTED


def _factory(plan: KeyedJoin, session: Session) -> Factory:
    """Return the factory of a join's operator."""
    spec = _spec(plan, session)
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
    """Return the error for a join of streams without the rule by which it is run."""
    problem = "a join without windows or bounds of time keeps all rows of both sides for ever"
    return SqlError(problem, f"let the planner have the rule stream_join, or {_REMEDY}", "", plan.place)


__all__ = ["mini_batch_of", "row_form", "translate_join", "unsupported_join"]
