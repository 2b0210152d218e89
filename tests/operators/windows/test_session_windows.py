from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import AggregateFunction, ProcessWindowFunction, WindowFunction
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.time import Time
from rayflink.operators.base import UserCodeError
from rayflink.operators.windows.continuous_triggers import ContinuousEventTimeTrigger
from rayflink.operators.windows.merging_window_set import MergingWindowSet, UnknownWindow
from rayflink.operators.windows.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from rayflink.operators.windows.triggers import (
    EventTimeTrigger,
)
from rayflink.operators.windows.window import TimeWindow
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, aggregating, built_in, collecting, reducing
from rayflink.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from rayflink.state.memory import HashMapBackend
from rayflink.testing import OperatorHarness, at, rec, side, verify, wm

first = itemgetter(0)
TEN = EventTimeSessionWindows.with_gap(Time.milliseconds(10))


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return [0, 0]

    def add(self, value: Any, accumulator: Any) -> Any:
        return [accumulator[0] + value[1], accumulator[1] + 1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


class Listed(WindowFunction):  # type: ignore[type-arg]
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, window.start, window.end, [value for _, value in inputs]


class GapInRecord(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return int(element[1])


def maker(contents: Any = collecting, evaluation: Any = None, assigner: Any = TEN, **rules: Any) -> Any:
    """Makes session operators; `evaluation` is a function."""
    return lambda: window_operator(
        first, assigner, contents(), None if evaluation is None else WindowEvaluation(evaluation), WindowRules(**rules)
    )


@pytest.mark.spec("F21", "F22", "F23", "F01", "session")
def test_records_at_most_the_gap_apart_are_one_session_and_sessions_that_touch_merge() -> None:
    verify(
        maker(evaluation=Listed()),
        [
            rec(("a", 1), 0), rec(("a", 2), 9), rec(("b", 3), 4), rec(("a", 4), 19), rec(("a", 5), 30), wm(13), wm(28),
            wm(99),
        ],
        [
            rec(("b", 4, 14, [3]), 13), wm(13), rec(("a", 0, 29, [1, 2, 4]), 28), wm(28),
            rec(("a", 30, 40, [5]), 39), wm(99),
        ],
    )  # fmt: skip


@pytest.mark.spec("X11")
def test_an_event_time_session_gives_its_result_when_the_watermark_reaches_its_end() -> None:
    records = [rec(("a", 1), 0), rec(("a", 2), 5)]
    verify(maker(evaluation=Listed()), [*records, wm(13)], [wm(13)])
    verify(maker(evaluation=Listed()), [*records, wm(14), wm(99)], [rec(("a", 0, 15, [1, 2]), 14), wm(14), wm(99)])


@pytest.mark.spec("F22", "F23", "F24", "F25", "F31", "contents", "persisted", "X09")
def test_a_record_that_comes_late_joins_two_sessions_with_all_they_hold() -> None:
    given_records = [rec(("a", 1), 0), rec(("a", 2), 20), wm(8), rec(("a", 3), 10), wm(28), wm(29), wm(50)]
    verify(maker(evaluation=Listed()), given_records, [
        wm(8), wm(28), rec(("a", 0, 30, [1, 2, 3]), 29), wm(29), wm(50),
    ])  # fmt: skip
    verify(maker(lambda: built_in("sum", 1)), given_records, [wm(8), wm(28), rec(("a", 6), 29), wm(29), wm(50)])
    verify(maker(lambda: aggregating(Mean())), given_records, [wm(8), wm(28), rec(2.0, 29), wm(29), wm(50)])
    verify(maker(lambda: reducing(max)), given_records, [wm(8), wm(28), rec(("a", 3), 29), wm(29), wm(50)])


OUT_OF_ORDER = [
    rec(("a", 1), 31), rec(("a", 2), 0), rec(("b", 4), 7), rec(("a", 8), 12), wm(5), rec(("a", 16), 22),
    rec(("b", 32), 17), wm(21), rec(("a", 64), 4), rec(("c", 128), 3), wm(26), rec(("b", 256), 18), wm(44),
    rec(("a", 512), 41), wm(200),
]  # fmt: skip


@pytest.mark.parametrize("lateness", [pytest.param(0, marks=pytest.mark.slow), 15])
@pytest.mark.parametrize("contents", [lambda: built_in("sum", 1), collecting, lambda: aggregating(Mean())])
def test_sessions_are_the_same_under_every_hardship(contents: Any, lateness: int) -> None:
    verify(maker(contents, allowed_lateness_ms=lateness, late_tag_id="late"), OUT_OF_ORDER)


@pytest.mark.spec("F34")
def test_a_record_of_a_finished_session_is_late_and_one_that_reaches_an_open_is_not() -> None:
    verify(
        maker(lambda: built_in("sum", 1), late_tag_id="late"),
        [rec(("a", 1), 20), wm(15), rec(("a", 2), 5), rec(("a", 4), 10), wm(99)],
        [wm(15), side("late", ("a", 2), 5), rec(("a", 5), 29), wm(99)],
    )


@pytest.mark.spec("F31", "late")
def test_within_the_lateness_a_session_fires_again_and_is_then_cleared() -> None:
    make = maker(lambda: built_in("sum", 1), allowed_lateness_ms=10, late_tag_id="late")
    steps = [rec(("a", 1), 0), wm(9), rec(("a", 2), 5), wm(14), rec(("a", 4), 8), wm(40), rec(("a", 8), 9)]
    verify(make, steps, [
        rec(("a", 1), 9), wm(9), rec(("a", 3), 14), wm(14), rec(("a", 7), 17), wm(40), side("late", ("a", 8), 9),
    ])  # fmt: skip
    with OperatorHarness(make) as harness:
        for step in steps:
            harness.give(step)
        (state,) = harness.snapshot()["0" * 32]
        assert state.keyed == {}, "contents, timers, the trigger's state and the set of windows are cleared"


@pytest.mark.spec("F21", "F36", "merging")
def test_sessions_by_the_wall_clock() -> None:
    assigner = ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10))
    verify(
        maker(evaluation=Listed(), assigner=assigner),
        [
            rec(("a", 1)), at(6), rec(("a", 2)), rec(("b", 3)), at(15), rec(("a", 4)), at(16), at(25), rec(("a", 5)),
            at(36),
        ],
        [rec(("b", 6, 16, [3]), 15), rec(("a", 0, 25, [1, 2, 4]), 24), rec(("a", 25, 35, [5]), 34)],
    )  # fmt: skip


def test_the_gap_may_depend_on_the_record() -> None:
    steps = [rec(("a", 5), 0), rec(("a", 20), 3), rec(("a", 1), 22), wm(22), rec(("a", 4), 40), wm(99)]
    then = [rec(("a", 0, 23, [5, 20, 1]), 22), wm(22), rec(("a", 40, 44, [4]), 43), wm(99)]
    for extractor in (GapInRecord(), itemgetter(1)):
        verify(maker(evaluation=Listed(), assigner=EventTimeSessionWindows.with_dynamic_gap(extractor)), steps, then)
    assigner = ProcessingTimeSessionWindows.with_dynamic_gap(GapInRecord())
    assert isinstance(assigner, DynamicProcessingTimeSessionWindows)
    assert repr(DynamicEventTimeSessionWindows.with_dynamic_gap(GapInRecord())) == "DynamicEventTimeSessionWindows()"
    verify(
        maker(evaluation=Listed(), assigner=assigner),
        [rec(("a", 5)), rec(("a", 9)), at(6), rec(("a", 1)), at(9)],
        [rec(("a", 0, 9, [5, 9, 1]), 8)],
    )


def sessions_of(times: list[int], gap: int) -> list[tuple[int, int, list[int]]]:
    """What sessions are, said in another way: sorted times, cut where the next is further than the gap."""
    groups: list[list[int]] = []
    for time in sorted(times):
        if groups and time <= groups[-1][-1] + gap:
            groups[-1].append(time)
        else:
            groups.append([time])
    return [(group[0], group[-1] + gap, group) for group in groups]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=25), st.integers(1, 9))
def test_in_whatever_order_records_come_the_sessions_are_those_of_their_times(times: list[int], gap: int) -> None:
    with OperatorHarness(maker(evaluation=Listed(), assigner=EventTimeSessionWindows(gap))) as harness:
        for time in times:
            harness.process(("a", time), time)
        harness.advance_watermark(MAX_TIMESTAMP)
        found = [(start, end, sorted(values)) for _, start, end, values in harness.output_values()]
    assert found == sessions_of(times, gap)


def in_flight(assigner: Any = TEN) -> MergingWindowSet:
    return MergingWindowSet(assigner, HashMapBackend(range(128), 128).map_table(MapStateDescriptor("set")))


@pytest.mark.spec("F24", "F33")
def test_a_merged_window_keeps_the_state_of_one_of_its_parts() -> None:
    windows, merges = in_flight(), []

    def add(start: int, end: int) -> Any:
        return windows.add("k", TimeWindow(start, end), lambda *merge: merges.append(merge))

    a, b, whole = TimeWindow(0, 10), TimeWindow(20, 30), TimeWindow(0, 30)
    assert (add(0, 10), add(20, 30), add(0, 10)) == (a, b, a) and merges == []
    assert add(10, 20) == whole and merges == [(whole, [a, b], a, [b])]
    assert windows.state_window("k", whole) == a and windows.state_window("k", a) is None
    assert add(3, 13) == whole and len(merges) == 1, "what lies within a window merges nothing"
    assert add(0, 30) == whole and windows.state_window("k", whole) == a
    assert windows.add("other", a, lambda *merge: None) == a
    windows.retire("k", whole)
    with pytest.raises(UnknownWindow, match=r"Window TimeWindow\(start=0, end=30\) is not in in-flight window set"):
        windows.retire("k", whole)


@pytest.mark.spec("X10", "F31", "timers", "contents")
def test_three_windows_that_merge_leave_one_state_and_one_timer() -> None:
    windows, merges = in_flight(), []
    a, b, c, d = TimeWindow(0, 5), TimeWindow(10, 15), TimeWindow(20, 24), TimeWindow(0, 26)
    for window in (a, b, c):
        windows.add("k", window, lambda *merge: merges.append(merge))
    assert windows.add("k", TimeWindow(3, 26), lambda *merge: merges.append(merge)) == d
    [(merged, parts, kept, others)] = merges
    assert (merged, set(parts), {kept, *others}) == (d, {a, b, c}, {a, b, c}) and len(others) == 2
    assert windows.state_window("k", d) == kept
    assert [windows.state_window("k", window) for window in (a, b, c)] == [None] * 3
    steps = [rec(("k", 5), 0), rec(("k", 5), 10), rec(("k", 4), 20), rec(("k", 23), 3)]
    dynamic = EventTimeSessionWindows.with_dynamic_gap(GapInRecord())
    make = maker(evaluation=Listed(), assigner=dynamic, allowed_lateness_ms=3)
    verify(make, [*steps, wm(24), wm(25)], [wm(24), rec(("k", 0, 26, [5, 5, 4, 23]), 25), wm(25)])
    triggered = maker(evaluation=Listed(), assigner=dynamic, allowed_lateness_ms=3, trigger=EventTimeTrigger())
    verify(triggered, [*steps, wm(24), wm(25)], [wm(24), rec(("k", 0, 26, [5, 5, 4, 23]), 25), wm(25)])
    with OperatorHarness(triggered) as harness:
        for step in steps:
            harness.give(step)
        [operator] = harness.operators
        timers = [(time, window) for time, _, window in operator._event_timers]  # type: ignore[attr-defined]
        assert timers == [(25, d), (28, d)], "to fire and, with an allowed lateness of 3 ms, to be cleared"


class Odd(MergingWindowAssigner[Any, Any]):
    """Windows [t, t + 10) of which the second one of a key merges into a window that is given."""

    def __init__(self, result: Any, parts: int = 2, event_time: bool = True) -> None:
        self._result, self._parts, self._event_time = result, parts, event_time

    def merge_windows(self, windows: Any, callback: Any) -> None:
        callback.merge(set(list(windows)[-self._parts :]), self._result)

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        start = timestamp if self._event_time else context.get_current_processing_time()
        return [TimeWindow(start, start + 10)]

    def get_default_trigger(self, env: Any) -> Any:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return self._event_time


@pytest.mark.spec("F32", "F33")
def test_a_merge_into_the_past_or_into_no_window_is_an_error() -> None:
    with OperatorHarness(maker(assigner=Odd(TimeWindow(0, 5)))) as harness:
        harness.advance_watermark(8)
        harness.process(("a", 1), 7)
        with pytest.raises(UserCodeError, match="merge_windows") as failure:
            harness.process(("a", 1), 8)
        assert "cannot become earlier than the current watermark by merging" in str(failure.value.__cause__)
    with OperatorHarness(maker(assigner=Odd(TimeWindow(0, 5), event_time=False))) as harness:
        harness.set_processing_time(7)
        harness.process(("a", 1))
        harness.clock.advance(1)
        with pytest.raises(UserCodeError, match="merge_windows") as failure:
            harness.process(("a", 1))
        assert "earlier than the current processing time by merging" in str(failure.value.__cause__)
    with OperatorHarness(maker(assigner=Odd(TimeWindow(0, 50), parts=1))) as harness:
        harness.process(("a", 1), 7)
        with pytest.raises(UserCodeError) as failure:
            harness.process(("a", 1), 8)
        assert isinstance(failure.value.__cause__, UnknownWindow)


def test_state_of_a_merging_window_is_refused_and_that_of_the_key_is_there() -> None:
    class Counts(ProcessWindowFunction):  # type: ignore[type-arg]
        def __init__(self, store: str) -> None:
            self._store = store

        def process(self, key: Any, context: Any, elements: Any) -> Any:
            state = getattr(context, self._store)().get_state(ValueStateDescriptor("fired"))
            state.update((state.value() or 0) + 1)
            yield key, context.window().end, state.value()

    steps = [rec(("a", 1), 0), wm(9), rec(("a", 1), 20), wm(29)]
    verify(maker(evaluation=Counts("global_state")), steps, [
        rec(("a", 10, 1), 9), wm(9), rec(("a", 30, 2), 29), wm(29),
    ])  # fmt: skip
    with OperatorHarness(maker(evaluation=Counts("window_state"))) as harness:
        harness.process(("a", 1), 0)
        with pytest.raises(UserCodeError) as failure:
            harness.advance_watermark(9)
        assert "'fired': use global_state()" in str(failure.value.__cause__)


def test_an_accumulator_that_cannot_be_merged_names_the_method() -> None:
    class Broken(Mean):
        def merge(self, acc_a: Any, acc_b: Any) -> Any:
            raise ZeroDivisionError

    with OperatorHarness(maker(lambda: aggregating(Broken()))) as harness:
        harness.process(("a", 1), 0)
        harness.process(("a", 1), 20)
        with pytest.raises(UserCodeError, match="failed in merge on record key 'a' in TimeWindow"):
            harness.process(("a", 1), 10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EventTimeSessionWindows.with_gap(Time.milliseconds(0)),
        lambda: ProcessingTimeSessionWindows.with_gap(-5),
        lambda: EventTimeSessionWindows.with_dynamic_gap(5),
        lambda: ContinuousEventTimeTrigger.of(0),
    ],
)
def test_impossible_sessions_are_refused(make: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="found"):
        make()


def test_a_gap_that_is_not_above_0_names_the_record() -> None:
    with (
        OperatorHarness(maker(assigner=EventTimeSessionWindows.with_dynamic_gap(GapInRecord()))) as harness,
        pytest.raises(UserCodeError, match=r"assign_windows on record \('a', 0\)") as failure,
    ):
        harness.process(("a", 0), 0)
    assert "above 0 ms, and the extractor gave 0" in str(failure.value.__cause__)


def test_the_operators_name_says_what_merges() -> None:
    assert maker(lambda: built_in("sum", 1))().name == (
        "Window(EventTimeSessionWindows(10), EventTimeTrigger, SumAggregator, PassThroughWindowFunction)"
    )
