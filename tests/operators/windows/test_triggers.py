"""Triggers: when they fire, what they keep, and what becomes of their state and timers when sessions merge."""

from operator import itemgetter
from typing import Any

import pytest

from rayflink.common.functions.function_classes import WindowFunction
from rayflink.common.records.batches import MAX_TIMESTAMP, RowBatch, Watermark
from rayflink.common.time import Duration, Time
from rayflink.operators.base import UserCodeError
from rayflink.operators.windows.assigners import (
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from rayflink.operators.windows.continuous_triggers import ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger
from rayflink.operators.windows.count_windows import GlobalWindows
from rayflink.operators.windows.delta_trigger import DeltaTrigger
from rayflink.operators.windows.session_windows import EventTimeSessionWindows, ProcessingTimeSessionWindows
from rayflink.operators.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
)
from rayflink.operators.windows.window import TimeWindow, TimeWindowSerializer
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, built_in, collecting
from rayflink.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor
from rayflink.testing import OperatorHarness, at, rec, verify, wm
from tests.operators import laws
from tests.operators.windows.test_session_windows import OUT_OF_ORDER

first = itemgetter(0)
TEN = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
END = Watermark(MAX_TIMESTAMP)


class Listed(WindowFunction):  # type: ignore[type-arg]
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, repr(window), [value for _, value in inputs]


class ListedSessions(WindowFunction):  # type: ignore[type-arg]
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, window.start, window.end, [value for _, value in inputs]


def maker(assigner: Any, trigger: Any = None) -> Any:
    """Return a function that creates operators that list the records of each window."""
    return lambda: window_operator(first, assigner, collecting(), WindowEvaluation(Listed()), WindowRules(trigger))


def sessions(assigner: Any = TEN, **rules: Any) -> Any:
    """Return a function that creates operators that list the records of each session."""
    evaluation = WindowEvaluation(ListedSessions())
    return lambda: window_operator(first, assigner, collecting(), evaluation, WindowRules(**rules))


def summing(assigner: Any, trigger: Any) -> Any:
    """Return a function that creates operators that sum the records of each window."""
    return lambda: window_operator(first, assigner, built_in("sum", 1), None, WindowRules(trigger))


def batch(*records: Any) -> RowBatch:
    """Return records (key, number, timestamp) as a batch."""
    return RowBatch([record[:2] for record in records], [record[2] for record in records])


class Every(Trigger):
    """Fires every n-th record of a window, and may purge."""

    def __init__(self, n: int, result: TriggerResult) -> None:
        self._result = result
        self._n = n
        self._count = ReducingStateDescriptor("count", lambda a, b: a + b)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() < self._n:
            return TriggerResult.CONTINUE
        count.clear()
        return self._result

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self._count).clear()


@pytest.mark.spec("F05", "record", "decides", "F06", "F07", "F30", "fire", "purge")
@pytest.mark.parametrize(
    ("result", "sums"),
    [(TriggerResult.FIRE, [3, 15]), (TriggerResult.FIRE_AND_PURGE, [3, 12]), (TriggerResult.PURGE, [])],
)
def test_a_trigger_decides_by_record_whether_to_fire_and_to_keep(result: TriggerResult, sums: list[int]) -> None:
    records = batch(("a", 1, 1), ("a", 2, 2), ("b", 9, 2), ("a", 4, 3), ("a", 8, 4), ("a", 5, 5))
    make = summing(TumblingEventTimeWindows.of(10), Every(2, result))
    out = laws.verify(make, [records, END])
    assert out == [*((None, ("a", total), 9) for total in sums), END]
    operator = laws.started(make, laws.context())
    laws.flat(laws.answers(operator, records)), laws.flat(laws.answers(operator, END))
    assert laws.snapshot_of(operator).keyed == {}, "the trigger's state is cleared with the window"


@pytest.mark.spec("F05", "own", "F38", "trigger")
def test_each_window_of_a_key_has_a_trigger_of_its_own() -> None:
    records = batch(("a", 1, 2), ("b", 64, 3), ("a", 2, 7), ("a", 4, 9))
    make = summing(SlidingEventTimeWindows.of(10, 5), Every(2, TriggerResult.FIRE))
    laws.verify(make, [records, END], [(None, ("a", 3), 9), (None, ("a", 6), 14), END])


def test_a_count_trigger_keeps_what_it_fires_and_the_window_end_drops_the_rest() -> None:
    verify(
        maker(TumblingEventTimeWindows.of(10), CountTrigger.of(2)),
        [rec(("a", n), n) for n in range(5)] + [wm(9), rec(("a", 6), 12), rec(("a", 7), 13), wm(50)],
        [
            rec(("a", "TimeWindow(start=0, end=10)", [0, 1]), 9),
            rec(("a", "TimeWindow(start=0, end=10)", [0, 1, 2, 3]), 9), wm(9),
            rec(("a", "TimeWindow(start=10, end=20)", [6, 7]), 19), wm(50),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("is_global", [True, False])
def test_a_continuous_event_time_trigger_fires_each_interval_and_at_the_end(is_global: bool) -> None:
    assigner: Any = GlobalWindows.create() if is_global else TumblingEventTimeWindows.of(12)
    steps = [rec(("a", 1), 1), rec(("b", 2), 6), wm(5), rec(("a", 4), 7), wm(9), wm(11), wm(MAX_TIMESTAMP)]
    trigger: Trigger[Any, Any] = ContinuousEventTimeTrigger.of(Duration.of_millis(5))
    verify(maker(assigner, trigger), steps)
    with OperatorHarness(maker(assigner, trigger)) as harness:
        for step in steps:
            harness.give(step)
        fired = [(key, values) for key, _, values in harness.output_values()]
    a, b = ("a", [1, 4]), ("b", [2])
    assert fired[:3] == [("a", [1]), b, a] and sorted(fired[3:]) == ([a, a, b, b] if is_global else [a, b])


@pytest.mark.spec("F05", "timer")
def test_a_continuous_processing_time_trigger_fires_each_interval_of_an_open_window() -> None:
    verify(
        maker(TumblingProcessingTimeWindows.of(12), ContinuousProcessingTimeTrigger.of(Time.milliseconds(5))),
        [at(1), rec(("a", 1)), at(6), rec(("a", 2)), at(11), at(12), at(24)],
        [rec(("a", "TimeWindow(start=0, end=12)", values), 11) for values in ([1], [1, 2], [1, 2])],
    )
    verify(
        maker(TumblingEventTimeWindows.of(12), ContinuousProcessingTimeTrigger.of(5)),
        [rec(("a", 1), 3), at(6), at(7), at(14), at(21), wm(50)],
        [rec(("a", "TimeWindow(start=0, end=12)", [1]), 11)] * 5 + [wm(50)],
    )


def test_the_wall_clock_past_the_end_of_an_event_time_window_fires_it_each_interval() -> None:
    with OperatorHarness(maker(TumblingEventTimeWindows.of(12), ContinuousProcessingTimeTrigger.of(5))) as harness:
        counts = []
        for ms in (1_002, 1_003, 1_005, 1_006, 1_010, 1_011):
            harness.set_processing_time(ms)
            harness.process(("a", ms), 3)
            counts.append(len(harness.output))
        assert counts == [0, 0, 0, 1, 1, 2], "after 1,005 and 1,010 ms, though the window ends at 12 ms of event time"
        harness.advance_watermark(11)
        assert harness.operators[0].waiting_timers == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_event_time", [True, False])
def test_a_session_of_many_records_has_the_timers_of_one(is_event_time: bool) -> None:
    assigner: Any = TEN if is_event_time else ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10))
    trigger: Any = (ContinuousEventTimeTrigger if is_event_time else ContinuousProcessingTimeTrigger).of(4)
    with OperatorHarness(sessions(assigner, trigger=trigger)) as harness:
        for ms in (0, 1, 2, 3):
            harness.set_processing_time(ms)
            harness.process(("a", ms), ms * 4)
        operator: Any = harness.operators[0]
        timers = operator._event_timers if is_event_time else operator._processing_timers
        assert len(timers) == 2, "one for the next firing, one for the end"
        harness.give(wm(50))
        harness.give(at(50))
        assert [state.keyed for states in harness.snapshot().values() for state in states] == [{}]


def test_a_trigger_gets_the_timestamp_of_the_record_with_any_assigner() -> None:
    class Recorder(CountTrigger[Any]):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            seen.append(timestamp)
            return TriggerResult.CONTINUE

    seen: list[int] = []
    with OperatorHarness(maker(GlobalWindows.create(), Recorder(1))) as harness:
        harness.process(("a", 1), 77)
        harness.process(("a", 1))
    assert seen == [77, -(2**63)]


def test_triggers_and_assigners_can_be_written_with_pyflinks_documented_types() -> None:
    class Mine(Trigger[tuple, TimeWindow]):  # type: ignore[type-arg]
        def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> Any:
            return TriggerResult.FIRE

        def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> Any:
            return TriggerResult.CONTINUE

        def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> Any:
            return TriggerResult.CONTINUE

        def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
            """Merges nothing."""

        def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
            """Has nothing to clear."""

    class Hours(WindowAssigner[tuple, TimeWindow]):  # type: ignore[type-arg]
        def assign_windows(self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> Any:
            start = TimeWindow.get_window_start_with_offset(timestamp, 0, 10)
            return [TimeWindow(start, start + 10)]

        def get_default_trigger(self, env: Any) -> Trigger[tuple, TimeWindow]:  # type: ignore[type-arg]
            return Mine()

        def get_window_serializer(self) -> TimeWindowSerializer:
            return TimeWindowSerializer()

        def is_event_time(self) -> bool:
            return True

    verify(maker(Hours()), [rec(("a", 1), 14), wm(50)], [rec(("a", "TimeWindow(start=10, end=20)", [1]), 19), wm(50)])
    assert not Mine().can_merge()


def test_a_trigger_that_does_not_merge_says_so() -> None:
    class Plain(NeverTrigger[Any]):
        on_merge = Trigger.on_merge

    with pytest.raises(NotImplementedError, match="Plain does not work with windows that merge"):
        Plain().on_merge(TimeWindow(0, 1), None)  # type: ignore[arg-type]


class Distance:
    """As Flink's DeltaFunction."""

    def get_delta(self, old: Any, new: Any) -> float:
        return float(new[1] - old[1])


def test_a_delta_trigger_fires_where_a_record_is_far_from_the_one_that_fired_last() -> None:
    steps = [rec(("a", number)) for number in (10, 12, 14, 15, 21)] + [rec(("b", 7)), rec(("b", 9))]
    for delta in (Distance(), lambda old, new: new[1] - old[1]):
        then = [
            rec(("a", "GlobalWindow", numbers), MAX_TIMESTAMP) for numbers in ([10, 12, 14], [10, 12, 14, 15, 21])
        ]
        verify(maker(GlobalWindows.create(), DeltaTrigger.of(3, delta)), steps, then)  # type: ignore[arg-type]


@pytest.mark.parametrize("trigger", [
    PurgingTrigger.of(EventTimeTrigger.create()), CountTrigger.of(2), PurgingTrigger.of(CountTrigger.of(2)),
    ContinuousEventTimeTrigger.of(Duration.of_millis(4)),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("lateness", [0, 15])
@pytest.mark.slow
def test_triggers_that_merge_give_the_same_under_every_hardship(trigger: Any, lateness: int) -> None:
    verify(sessions(trigger=trigger, allowed_lateness_ms=lateness, late_tag_id="late"), OUT_OF_ORDER)


@pytest.mark.spec("F31", "on-merge")
def test_what_the_triggers_of_merged_sessions_counted_is_added_up() -> None:
    steps = [rec(("a", 1), 0), rec(("b", 8), 3), rec(("a", 2), 20), rec(("a", 3), 10), rec(("a", 4), 29)]
    verify(sessions(trigger=CountTrigger.of(3)), steps, [rec(("a", 0, 30, [1, 2, 3]), 29)])


@pytest.mark.spec("F35")
def test_a_timer_that_a_trigger_left_behind_is_passed_over() -> None:
    class Leaves(EventTimeTrigger[Any]):
        def clear(self, window: Any, ctx: Any) -> None:
            """Deletes no timer."""

        def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
            seen.append((time, window.start))
            return super().on_event_time(time, window, ctx)

    seen: list[Any] = []
    with OperatorHarness(sessions(trigger=Leaves(), allowed_lateness_ms=3)) as harness:
        for time in (0, 5):
            harness.process(("a", time), time)
        harness.advance_watermark(50)
        assert harness.output_values() == [("a", 0, 15, [0, 5])]
    assert seen == [(14, 0), (17, 0)], "the timer of [0, 10) is due too, but that window is no more"


@pytest.mark.spec("F35")
def test_a_timer_of_the_wall_clock_that_a_trigger_left_behind_is_passed_over() -> None:
    class Leaves(ProcessingTimeTrigger[Any]):
        def clear(self, window: Any, ctx: Any) -> None:
            """Deletes no timer."""

        def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
            seen.append((time, window.start))
            return super().on_processing_time(time, window, ctx)

    seen: list[Any] = []
    assigner = ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10))
    with OperatorHarness(sessions(trigger=Leaves(), assigner=assigner)) as harness:
        for time in (0, 5):
            harness.set_processing_time(time)
            harness.process(("a", time))
        harness.set_processing_time(50)
        assert harness.output_values() == [("a", 0, 15, [0, 5])]
    assert seen == [(14, 0)], "the timer of [0, 10) is due too, but that window is no more"


def test_a_trigger_may_merge_only_state_that_can_be_merged() -> None:
    class Wrong(EventTimeTrigger[Any]):
        def on_merge(self, window: Any, ctx: Any) -> None:
            ctx.merge_partitioned_state(ValueStateDescriptor("v"))

    with OperatorHarness(sessions(trigger=Wrong())) as harness:
        harness.process(("a", 1), 0)
        with pytest.raises(UserCodeError, match="on_merge") as failure:
            harness.process(("a", 1), 5)
        assert "only list, reducing and aggregating state" in str(failure.value.__cause__)
