from functools import partial
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import AggregateFunction, ProcessWindowFunction, WindowFunction
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import MAX_TIMESTAMP, RowBatch, Watermark
from rayflink.common.time import Duration, Time
from rayflink.operators.base import UserCodeError
from rayflink.operators.windows.assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rayflink.operators.windows.triggered_windows import TriggeredWindowOperator
from rayflink.operators.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger, TriggerResult
from rayflink.operators.windows.window import TimeWindow
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, aggregating, built_in, collecting, reducing
from rayflink.operators.windows.window_operator import LATE_METRIC, WindowOperator
from rayflink.state.descriptors import ValueStateDescriptor
from tests.operators.laws import Clock, Metrics, answers, context, flat, now, snapshot_of, started, verify
from tests.operators.write_back import WriteBackTable, write_back_backend

first = itemgetter(0)
TEN = TumblingEventTimeWindows.of(10)
SLIDING = SlidingEventTimeWindows.of(10, 5)
END = Watermark(MAX_TIMESTAMP)


def batch(*records: Any) -> RowBatch:
    """Records (key, number, timestamp)."""
    return RowBatch([record[:2] for record in records], [record[2] for record in records])


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return [0, 0]

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator[0] += value[1]
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


class Listed(ProcessWindowFunction):  # type: ignore[type-arg]
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, [value for _, value in elements]


def made(assigner: Any, contents: Any, evaluation: Any = None, **rules: Any) -> Any:
    return window_operator(first, assigner, contents(), evaluation, WindowRules(**rules))


def maker(contents: Any, **options: Any) -> Any:
    """Makes operators on tumbling windows of 10 ms."""
    return lambda: made(TEN, contents, **options)


def both(assigner: Any, contents: Any, given: list[Any], then: list[Any] | None = None, **options: Any) -> list[Any]:
    """Run on the fast operator and on the one that shows all to the default trigger; both must give the same."""
    trigger = assigner.get_default_trigger()
    out = verify(lambda: made(assigner, contents, **options), given, then)
    assert isinstance(made(assigner, contents, **options), WindowOperator)
    assert verify(lambda: made(assigner, contents, trigger=trigger, **options), given) == out
    return out


@pytest.mark.slow
@pytest.mark.spec("F20", "over", "F38", "state", "E11", "E12", "E25", "F01", "time", "tumbling", "F18", "event-time")
def test_a_tumbling_window_fires_at_its_last_timestamp_before_the_watermark_passes() -> None:
    both(
        TEN,
        lambda: built_in("sum", 1),
        [
            batch(("a", 1, 1), ("b", 2, 9), ("a", 4, 5), ("a", 8, 12)),
            Watermark(8),
            batch(("a", 3, 9)),
            Watermark(9),
            END,
        ],  # fmt: skip
        [Watermark(8), (None, ("a", 8), 9), (None, ("b", 2), 9), Watermark(9), (None, ("a", 8), 19), END],
    )


@pytest.mark.spec("F10")
@pytest.mark.parametrize("trigger", [None, EventTimeTrigger()])
def test_a_window_that_aggregates_keeps_one_value_however_many_records_it_has(trigger: Any) -> None:
    operator: Any = started(maker(lambda: aggregating(Mean()), trigger=trigger), context())
    flat(answers(operator, batch(*(("a", n, n % 10) for n in range(100)))))
    assert list(operator._table.entries(range(128))) == [("a", TimeWindow(0, 10), [4_950, 100])]


@pytest.mark.spec("F30", "late", "F34")
def test_a_record_is_dropped_from_its_finished_windows_and_counts_in_the_others() -> None:
    out = [Watermark(9), (None, ("a", 1), 14), END]
    both(SLIDING, lambda: built_in("sum", 1), [Watermark(9), batch(("a", 1, 7)), END], out, late_tag_id="late")


@pytest.mark.spec("F17", "formula", "X07")
@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(0, [(0, 10), (-5, 5)]), (7, [(5, 15), (0, 10)]), (-1, [(-5, 5), (-10, 0)]), (5, [(5, 15), (0, 10)])],
)
def test_sliding_windows_of_a_timestamp_are_the_latest_first(timestamp: int, expected: list[Any]) -> None:
    assert SLIDING.assign_windows(None, timestamp, None) == expected


@pytest.mark.spec("F17", "formula")
@given(st.integers(-99, 99), st.integers(1, 12), st.integers(1, 12), st.data())
def test_windows_are_those_that_hold_the_timestamp(timestamp: int, size: int, slide: int, data: Any) -> None:
    offset = data.draw(st.integers(1 - slide, slide - 1))
    windows = SlidingEventTimeWindows.of(size, slide, offset).assign_windows(None, timestamp, None)
    starts = [start for start in range(-200, 200) if (start - offset) % slide == 0]
    assert windows == [(s, s + size) for s in reversed(starts) if s <= timestamp < s + size]


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 40)), min_size=1, max_size=15),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_sums_of_sliding_windows_equal_a_naive_count(records: list[Any], size: int, slide: int) -> None:
    assigner = SlidingEventTimeWindows.of(size, slide)
    expected: dict[Any, int] = {}
    for key, number, timestamp in records:
        for window in assigner.assign_windows(None, timestamp, None):
            expected[key, window.end - 1] = expected.get((key, window.end - 1), 0) + number
    operator = started(lambda: window_operator(first, assigner, built_in("sum", 1)), context())
    out = flat(answers(operator, batch(*records))) + flat(answers(operator, END))
    assert {(value[0], stamp): value[1] for _, value, stamp in out[:-1]} == expected
    assert [stamp for _, _, stamp in out[:-1]] == sorted(stamp for _, _, stamp in out[:-1])
    assert snapshot_of(operator).keyed == {}


@pytest.mark.spec("F02", "F30", "added", "F01", "sliding", "F38", "state")
def test_sliding_windows_count_each_record_in_each_of_its_windows() -> None:
    both(
        SLIDING,
        lambda: reducing(lambda a, b: (a[0], a[1] + b[1])),
        [batch(("a", 1, 2), ("b", 2, 7), ("a", 4, 7)), Watermark(9), END],
        [
            (None, ("a", 1), 4), (None, ("a", 5), 9), (None, ("b", 2), 9), Watermark(9),
            (None, ("b", 2), 14), (None, ("a", 4), 14), END,
        ],
    )  # fmt: skip


def test_records_in_gaps_between_windows_are_late_only_behind_the_watermark() -> None:
    gaps = SlidingEventTimeWindows.of(4, 10)
    steps = [batch(("a", 1, 3), ("a", 2, 4), ("a", 4, 9), ("a", 8, 10)), Watermark(7), batch(("a", 9, 5)), END]
    both(gaps, lambda: built_in("sum", 1), steps, [(None, ("a", 1), 3), Watermark(7), ("late", ("a", 9), 5),
                                                   (None, ("a", 8), 13), END], late_tag_id="late")  # fmt: skip


@pytest.mark.slow
@pytest.mark.spec("F09", "F27", "aggregate", "process", "window")
def test_aggregate_process_and_window_functions_see_the_windows_records() -> None:
    steps = [batch(("a", 1, 1), ("b", 2, 9), ("a", 4, 5)), END]
    both(TEN, lambda: aggregating(Mean()), steps, [(None, 2.5, 9), (None, 2.0, 9), END])
    both(TEN, collecting, steps, [(None, ("a", 0, [1, 4]), 9), (None, ("b", 0, [2]), 9), END],
         evaluation=WindowEvaluation(Listed()))  # fmt: skip

    class Twice(WindowFunction):  # type: ignore[type-arg]
        def apply(self, key: Any, window: Any, inputs: Any) -> Any:
            return [key, *inputs]

    both(TEN, lambda: aggregating(Mean()), steps, [(None, "a", 9), (None, 2.5, 9), (None, "b", 9), (None, 2.0, 9), END],
         evaluation=WindowEvaluation(Twice()))  # fmt: skip


@pytest.mark.spec("X14")
def test_the_timers_of_a_window_of_a_minute_stand_at_its_end_less_one() -> None:
    minute = TumblingProcessingTimeWindows.of(60_000)
    for trigger in (None, ProcessingTimeTrigger()):
        clock = Clock()
        clock.ms = 1551505390123
        make = partial(made, minute, lambda: built_in("sum", 1), trigger=trigger)
        operator = started(make, context(clock))
        flat(answers(operator, RowBatch([(1, 1), (2, 1), (3, 1)])))
        window = TimeWindow(1551505380000, 1551505440000)
        assert sorted(operator._processing_timers) == [(1551505439999, key, window) for key in (1, 2, 3)]


@pytest.mark.slow
@pytest.mark.spec("X17")
def test_records_that_are_out_of_order_are_late_up_to_the_watermark_and_no_further() -> None:
    instants = TumblingEventTimeWindows.of(1)
    steps = [
        batch(("a", 1, 1), ("a", 2, 6), ("a", 3, 4)),
        Watermark(5),
        batch(("a", 4, 3), ("a", 5, 5), ("a", 6, 6)),
        END,
    ]
    both(instants, lambda: built_in("sum", 1), steps, [
        (None, ("a", 1), 1), (None, ("a", 3), 4), Watermark(5), ("late", ("a", 4), 3), ("late", ("a", 5), 5),
        (None, ("a", 8), 6), END,
    ], late_tag_id="late")  # fmt: skip


@pytest.mark.spec("F34", "F37", "E08")
def test_late_records_are_counted_or_sent_aside() -> None:
    steps = [batch(("a", 1, 1)), Watermark(9), batch(("a", 2, 9), ("b", 4, 10))]
    expected = [(None, ("a", 1), 9), Watermark(9), ("late", ("a", 2), 9)]
    both(TEN, lambda: built_in("sum", 1), steps, expected, late_tag_id="late")
    for trigger in (None, EventTimeTrigger()):
        metrics = Metrics()
        make = maker(lambda: built_in("sum", 1), trigger=trigger)
        operator = started(make, context(metrics=metrics))
        assert [entry for step in steps for entry in flat(answers(operator, step))] == expected[:2]
        assert metrics.counters[LATE_METRIC].count == 1


@pytest.mark.spec("F07", "F37", "E36", "F30", "clean-up")
def test_within_the_lateness_each_record_fires_its_window_again_then_all_is_cleared() -> None:
    steps = [
        batch(("a", 1, 1)), Watermark(9), batch(("a", 2, 9), ("b", 3, 8)), Watermark(12), batch(("a", 4, 0)),
        Watermark(13), batch(("a", 8, 0)),
    ]  # fmt: skip
    expected = [
        (None, ("a", 1), 9), Watermark(9), (None, ("a", 3), 9), (None, ("b", 3), 9), Watermark(12), (None, ("a", 7), 9),
        Watermark(13), ("late", ("a", 8), 0),
    ]  # fmt: skip
    options = {"allowed_lateness_ms": 4, "late_tag_id": "late"}
    both(TEN, lambda: built_in("sum", 1), steps, expected, **options)
    for trigger in (None, EventTimeTrigger()):
        make = maker(lambda: built_in("sum", 1), trigger=trigger, **options)
        operator = started(make, context())
        for step in steps:
            flat(answers(operator, step))
        assert snapshot_of(operator).keyed == {}


def test_what_a_kept_window_emitted_is_not_the_object_in_state() -> None:
    class Spoil(ProcessWindowFunction):  # type: ignore[type-arg]
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            seen = [value[1][0] for value in elements]
            for value in elements:
                value[1].append("spoilt")
            yield [len(value[1]) for value in elements], seen

    records = RowBatch([("a", [1])], [1])
    options = {"evaluation": WindowEvaluation(Spoil()), "allowed_lateness_ms": 5}
    out = both(TEN, collecting, [records, Watermark(9), RowBatch([("a", [2])], [2])], **options)
    assert out == [(None, ([2], [1]), 9), Watermark(9), (None, ([2, 2], [1, 2]), 9)]


@pytest.mark.slow
@pytest.mark.spec("F19", "X06")
def test_processing_time_windows_fire_when_their_last_millisecond_has_passed() -> None:
    sliding = SlidingProcessingTimeWindows.of(10, 5)
    steps = [RowBatch([("a", 1), ("b", 2)]), now(4), now(5), RowBatch([("a", 4)]), now(9), now(10), END, now(15)]
    expected = [
        (None, ("a", 1), 4), (None, ("b", 2), 4), (None, ("a", 5), 9), (None, ("b", 2), 9), END, (None, ("a", 4), 14),
    ]  # fmt: skip
    both(sliding, lambda: built_in("sum", 1), steps, expected)
    operator = started(lambda: window_operator(first, sliding, built_in("sum", 1)), context())
    flat(answers(operator, steps[0]))
    assert [timer[0] for timer in operator._processing_timers] == [4, 4]  # type: ignore[attr-defined]
    assert operator.next_processing_time() == 5


@pytest.mark.spec("F20", "once", "X08", "E28", "F38", "timers")
def test_many_records_of_a_key_and_window_have_one_timer() -> None:
    for trigger in (None, EventTimeTrigger()):
        make = maker(lambda: built_in("sum", 1), trigger=trigger)
        operator = started(make, context())
        flat(answers(operator, batch(("a", 1, 1), ("a", 1, 2), ("b", 1, 3), ("a", 1, 4))))
        timers = list(operator._event_timers)  # type: ignore[attr-defined]
        assert timers == [(9, "a", TimeWindow(0, 10)), (9, "b", TimeWindow(0, 10))]


@pytest.mark.spec("F03", "F04", "F20", "over")
def test_window_contents_are_in_the_snapshot_and_gone_after_firing() -> None:
    class Marked(Listed):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            context.window_state().get_state(ValueStateDescriptor("fired")).update(True)
            yield from super().process(key, context, elements)

        def clear(self, context: Any) -> None:
            context.window_state().get_state(ValueStateDescriptor("fired")).clear()

    make = maker(collecting, evaluation=WindowEvaluation(Marked()))
    operator = started(make, context())
    flat(answers(operator, batch(("a", 1, 1))))
    snapshot = snapshot_of(operator)
    assert len(snapshot.keyed) == 1 and snapshot.size_bytes > 0
    again = started(make, context(), (snapshot,))
    assert flat(answers(again, END)) == [(None, ("a", 0, [1]), 9), END]
    assert snapshot_of(again).keyed == {}


@pytest.mark.spec("F17", "clock")
def test_windows_of_the_wall_clock_do_not_look_at_timestamps() -> None:
    steps = [now(7), RowBatch([("a", 1)], [9_999]), now(10), now(15)]
    then = [(None, ("a", 1), 9), (None, ("a", 1), 14)]
    both(SlidingProcessingTimeWindows.of(10, 5), lambda: built_in("sum", 1), steps, then)


@pytest.mark.spec("F36", "fire", "purge", "clear")
@pytest.mark.spec("F18", "processing-time")
def test_a_window_of_the_wall_clock_gives_what_it_holds_at_its_end_and_is_cleared() -> None:
    class Purging(ProcessingTimeTrigger[Any]):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
            super().on_element(element, timestamp, window, ctx)
            if ctx.get_current_processing_time() < 4:
                ctx.register_processing_time_timer(4)
            return TriggerResult.PURGE if element[1] == 0 else TriggerResult.CONTINUE

        def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
            return TriggerResult.FIRE_AND_PURGE if time == 4 else TriggerResult.FIRE

    records = RowBatch([("a", 1), ("b", 2), ("b", 0), ("c", 4)])
    steps = [now(3), records, now(5), RowBatch([("a", 8)]), now(9), now(10)]
    windows = TumblingProcessingTimeWindows.of(10)
    make = lambda: made(windows, lambda: built_in("sum", 1), trigger=Purging())  # noqa: E731
    verify(make, steps, [(None, ("a", 1), 9), (None, ("c", 4), 9), (None, ("a", 8), 9)])
    operator = started(make, context())
    for step in steps:
        flat(answers(operator, step))
    assert snapshot_of(operator).keyed == {}, "contents and timers"


def test_window_state_belongs_to_key_and_window_and_global_state_to_the_key() -> None:
    class Count(ProcessWindowFunction):  # type: ignore[type-arg]
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            counts = []
            for store in (context.window_state(), context.global_state()):
                state = store.get_state(ValueStateDescriptor("fired"))
                state.update((state.value() or 0) + 1)
                counts.append(state.value())
            yield key, context.window().start, context.current_watermark(), counts

        def clear(self, context: Any) -> None:
            context.window_state().get_state(ValueStateDescriptor("fired")).clear()

    steps = [batch(("a", 1, 1), ("b", 1, 1)), Watermark(9), batch(("a", 1, 2), ("a", 1, 11)), END]
    options = {"evaluation": WindowEvaluation(Count()), "allowed_lateness_ms": 50}
    assert [entry[1] for entry in both(TEN, collecting, steps, **options) if isinstance(entry, tuple)] == [
        ("a", 0, 9, [1, 1]), ("b", 0, 9, [1, 1]), ("a", 0, 9, [2, 2]), ("a", 10, MAX_TIMESTAMP, [1, 3]),
    ]  # fmt: skip


def test_a_window_function_may_use_side_outputs() -> None:
    class Aside(ProcessWindowFunction):  # type: ignore[type-arg]
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            yield OutputTag("aside"), key
            yield len(elements)

    out = both(TEN, collecting, [batch(("a", 1, 1)), END], evaluation=WindowEvaluation(Aside()))
    assert out == [(None, 1, 9), ("aside", "a", 9), END]


def test_a_firing_of_many_windows_stops_between_batches_and_the_watermark_is_last() -> None:
    operator = started(lambda: window_operator(first, TEN, built_in("sum", 1)), context())
    flat(answers(operator, batch(*((key, 1, 1) for key in range(10_000)))))
    firing = iter(answers(operator, Watermark(9)))
    sizes = []
    for element in firing:
        sizes.append(len(element) if isinstance(element, RowBatch) else element)
        if len(sizes) == 1:
            snapshot = snapshot_of(operator)
    assert sizes == [4096, 4096, 1808, Watermark(9)]
    assert snapshot is not None
    rest = started(lambda: window_operator(first, TEN, built_in("sum", 1)), context(), (snapshot,))
    assert len(flat(answers(rest, Watermark(10)))) == 10_000 - 4096 + 1, "what had not fired is in the snapshot"


@pytest.mark.spec("F29")
def test_the_operators_name_lists_its_parts() -> None:
    windows = TumblingProcessingTimeWindows.of(Time.seconds(5))
    assert window_operator(first, windows, built_in("sum", 1)).name == (
        "Window(TumblingProcessingTimeWindows(5000), ProcessingTimeTrigger, SumAggregator, PassThroughWindowFunction)"
    )
    sliding = window_operator(first, SLIDING, collecting(), WindowEvaluation(Listed()), WindowRules(EventTimeTrigger()))
    assert sliding.name == "Window(SlidingEventTimeWindows(10, 5), EventTimeTrigger, Listed)"
    assert isinstance(sliding, TriggeredWindowOperator)


@pytest.mark.spec("E04", "wanted")
def test_records_without_timestamps_are_refused_with_a_remedy() -> None:
    for trigger in (None, EventTimeTrigger()):
        make = maker(lambda: built_in("sum", 1), trigger=trigger)
        with pytest.raises(UserCodeError, match=r"on record \('a', 1\).*assign_timestamps_and_watermarks"):
            flat(answers(started(make, context()), RowBatch([("a", 1)])))


def test_failures_name_the_method_and_the_record_or_window() -> None:
    class Broken(Listed):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            raise ZeroDivisionError(key)

    for trigger in (None, EventTimeTrigger()):
        make = maker(collecting, evaluation=WindowEvaluation(Broken()), trigger=trigger)
        operator = started(make, context())
        flat(answers(operator, batch(("a", 1, 1))))
        with pytest.raises(UserCodeError, match=r"failed in process on record key 'a' in TimeWindow\(start=0"):
            flat(answers(operator, END))
        make = maker(lambda: aggregating(Mean()), trigger=trigger)
        with pytest.raises(UserCodeError, match=r"failed in add on record \('a', 'x'\)"):
            flat(answers(started(make, context()), batch(("a", 1, 1), ("a", "x", 1))))
        with pytest.raises(UserCodeError, match=r"cannot be a key"):
            flat(answers(started(make, context()), batch(({"a": 1}, 1, 1))))


@pytest.mark.parametrize(
    "make",
    [
        lambda: TumblingEventTimeWindows.of(0),
        lambda: SlidingEventTimeWindows.of(10, 0),
        lambda: TumblingEventTimeWindows.of(Duration.of_millis(5), 5),
        lambda: window_operator(first, TEN, collecting(), rules=WindowRules(allowed_lateness_ms=-1)),
    ],
)
def test_impossible_windows_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="found"):
        make()


def test_default_triggers_follow_the_clock_of_the_assigner() -> None:
    assert isinstance(SLIDING.get_default_trigger(), EventTimeTrigger)
    assert isinstance(SlidingProcessingTimeWindows.of(2, 1).get_default_trigger(), ProcessingTimeTrigger)
    assert Clock().now_ms() == 0


class Remembering(Mean):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))


def test_what_gathers_a_windows_records_has_no_keyed_state() -> None:
    with pytest.raises(UserCodeError) as failure:
        started(lambda: made(TEN, lambda: aggregating(Remembering()), WindowEvaluation(Listed())), context())
    said = str(failure.value.__cause__)
    assert "asked for keyed state 'seen', but a ReduceFunction or AggregateFunction of windows has none" in said


@pytest.mark.parametrize("assigner", [TEN, SLIDING])
@pytest.mark.parametrize("lateness", [pytest.param(0, marks=pytest.mark.slow), 7])
def test_lists_of_records_are_appended_to_where_the_backend_keeps_bytes(
    assigner: Any, lateness: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [
        batch(("a", 1, 1), ("b", 2, 7), ("a", 4, 5)), Watermark(9), batch(("a", 8, 8), ("c", 1, 3), ("a", 16, 12)),
        Watermark(12), batch(("a", 32, 2), ("b", 64, 13)), END,
    ]  # fmt: skip
    both(assigner, collecting, steps, evaluation=WindowEvaluation(Listed()), allowed_lateness_ms=lateness)
    operator = made(assigner, collecting, WindowEvaluation(Listed()), allowed_lateness_ms=lateness)
    operator.create_backend = write_back_backend
    started(lambda: operator, context())
    for method in ("load", "changed"):
        monkeypatch.setattr(WriteBackTable, method, None)
    for number in range(9):
        flat(answers(operator, batch(("a", number, 1), ("d", number, 6))))
    held = {(key, window): len(records) for key, window, records in operator._table.rows()}
    assert held["a", (0, 10)] == held["d", (0, 10)] == 9
