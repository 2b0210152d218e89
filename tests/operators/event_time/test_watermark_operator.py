from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, RowBatch, Watermark, WatermarkStatus
from rayflink.common.time import Duration
from rayflink.common.watermarks import TimestampAssigner, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from rayflink.operators.base import UserCodeError
from rayflink.operators.event_time.watermark_operator import TimestampsAndWatermarksOperator
from rayflink.operators.event_time.watermark_valve import InputWatermarks, WatermarkValve
from rayflink.testing import HARDSHIPS
from tests.operators.laws import Clock, answers, context, flat, now, run, started, verify

IDLE, ACTIVE = WatermarkStatus(True), WatermarkStatus(False)


def itself(value: Any, previous: int) -> int:
    return int(value)


def watermarks(strategy: WatermarkStrategy, steps: list[Any]) -> list[Any]:
    """Output of the steps, the same for every division into batches."""

    def make() -> TimestampsAndWatermarksOperator:
        return TimestampsAndWatermarksOperator(strategy, 10)

    return verify(make, steps, without=[name for name in HARDSHIPS if name.startswith("restored")])


@pytest.mark.spec("E19")
def test_bounded_out_of_orderness_emits_the_maximum_less_the_bound_less_one() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=3)).with_timestamp_assigner(itself)
    steps = [RowBatch([3, 9, 5]), now(9), now(10), RowBatch([4]), now(25), RowBatch([20]), now(29), now(30)]
    out = watermarks(strategy, steps)
    assert out == [
        (None, 3, 3), (None, 9, 9), (None, 5, 5), Watermark(5), (None, 4, 4), (None, 20, 20), Watermark(16),
    ]  # fmt: skip


def test_monotonous_timestamps_emit_the_greatest_less_one() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(itself)
    assert watermarks(strategy, [RowBatch([3, 9]), now(10)])[-1] == Watermark(8)


def test_without_records_no_watermark_is_emitted() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    assert watermarks(strategy, [now(10), now(20)]) == []
    assert watermarks(WatermarkStrategy.no_watermarks(), [RowBatch([1], [1]), now(10)]) == [(None, 1, 1)]


@pytest.mark.spec("E05", "E21", "derived", "E22")
def test_a_punctuated_watermark_follows_its_record_within_the_batch() -> None:
    class EveryRise(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark(Watermark(event_timestamp))

        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            pass

    strategy = WatermarkStrategy.for_generator(EveryRise).with_timestamp_assigner(itself)
    out = watermarks(strategy, [RowBatch([3, 5, 4, 6]), now(10)])
    assert out == [
        (None, 3, 3), Watermark(3), (None, 5, 5), Watermark(5), (None, 4, 4), (None, 6, 6), Watermark(6),
    ]  # fmt: skip


@pytest.mark.spec("E21", "none")
def test_a_record_need_not_give_a_watermark() -> None:
    class Marked(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            if event % 2:
                output.emit_watermark(Watermark(event_timestamp))

        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            pass

    strategy = WatermarkStrategy.for_generator(Marked).with_timestamp_assigner(lambda value, previous: 10 * value)
    assert watermarks(strategy, [RowBatch([3, 4, 6, 7]), now(10)]) == [
        (None, 3, 30), Watermark(30), (None, 4, 40), (None, 6, 60), (None, 7, 70), Watermark(70),
    ]  # fmt: skip


@pytest.mark.spec("E04", "own-unit", "E23", "replaced")
def test_an_assigner_sees_the_timestamp_so_far_and_replaces_it() -> None:
    seen = []

    class Shift(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            seen.append(record_timestamp)
            return 7

    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(Shift())
    make = TimestampsAndWatermarksOperator(strategy)
    assert run(lambda: make, [RowBatch(["a"], [5]), RowBatch(["b"])]) == [(None, "a", 7), (None, "b", 7)]
    assert seen == [5, MIN_TIMESTAMP]


@pytest.mark.spec("E17", "declared")
def test_a_quiet_stream_becomes_idle_and_active_with_its_next_watermark() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(itself)
    steps = [RowBatch([5]), now(10), now(20), now(30), now(40), now(50), now(60), RowBatch([9]), now(70), now(80)]
    out = watermarks(strategy.with_idleness(Duration.of_millis(25)), steps)
    assert out == [(None, 5, 5), Watermark(4), IDLE, (None, 9, 9), ACTIVE, Watermark(8)]


@pytest.mark.spec("E18", "E23", "replaced")
def test_upstream_watermarks_and_statuses_are_replaced_all_but_the_last() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(itself)
    out = watermarks(strategy, [Watermark(99), IDLE, RowBatch([5]), Watermark(MAX_TIMESTAMP), now(10)])
    assert out == [(None, 5, 5), Watermark(MAX_TIMESTAMP)]


def test_finish_emits_the_watermark_of_the_last_records() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(itself)
    operator = started(lambda: TimestampsAndWatermarksOperator(strategy), context())
    assert flat(answers(operator, RowBatch([5]))) == [(None, 5, 5)]
    assert list(operator.finish()) == [Watermark(4)]


@pytest.mark.parametrize("interval", [0, 30])
def test_the_interval_is_an_option_and_zero_means_never(interval: int) -> None:
    clock = Clock()
    ctx = context(clock, config={"pipeline.auto-watermark-interval": f"{interval} ms"})
    operator = started(lambda: TimestampsAndWatermarksOperator(WatermarkStrategy.no_watermarks()), ctx)
    assert operator.next_processing_time() == (interval or None)
    assert list(operator.on_processing_time(1000)) == []


def test_a_timestamp_that_is_no_int_and_a_failing_assigner_name_the_record() -> None:
    half_ms = (lambda v, p: v / 2, "epoch milliseconds, found 2.5 of type float")
    for assign, problem in (half_ms, (lambda v, p: v["x"], "")):
        strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(assign)
        operator = started(lambda s=strategy: TimestampsAndWatermarksOperator(s), context())  # type: ignore[misc]
        with pytest.raises(UserCodeError, match=f"failed in extract_timestamp on record 5.*{problem}"):
            list(answers(operator, RowBatch([5])))


def test_wrong_strategies_are_refused_where_they_are_made() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=-1))
    with pytest.raises(ValueError, match="above 0"):
        WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(0))
    with pytest.raises(TypeError, match="TimestampAssigner"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(5)
    with pytest.raises(TypeError, match="returns a generator"):
        WatermarkStrategy.for_generator(WatermarkStrategy.no_watermarks().create_generator())  # type: ignore[arg-type]


@pytest.mark.spec("E13", "least", "rises", "X16")
def test_the_valve_gives_the_minimum_of_its_channels_and_only_when_it_rises() -> None:
    valve = WatermarkValve(4)
    given = [(0, 2), (1, 4), (2, 3), (3, 6), (0, 4), (1, 7), (2, 6)]
    assert [valve.watermark(*one) for one in given] == [[], [], [], [Watermark(2)], [Watermark(3)], [], [Watermark(4)]]
    assert valve.watermarks == [4, 7, 6, 6]


@pytest.mark.spec("E06", "E13", "greatest", "least", "E14", "least", "E24", "X18")
@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20))))
def test_the_valve_equals_the_minimum_over_the_maxima_and_never_falls(n: int, marks: list[tuple[int, int]]) -> None:
    valve, out = WatermarkValve(n), []
    marks = [(channel % n, timestamp) for channel, timestamp in marks]
    greatest = [MIN_TIMESTAMP] * n
    for channel, timestamp in marks:
        out += valve.watermark(channel, timestamp)
        greatest[channel] = max(greatest[channel], timestamp)
        assert valve.current == min(greatest)
    assert [mark.timestamp for mark in out] == sorted({mark.timestamp for mark in out})  # type: ignore[union-attr]


@pytest.mark.spec("E17", "left-out", "again", "E26")
def test_an_idle_channel_holds_nothing_back_and_rejoins_when_it_has_caught_up() -> None:
    valve = WatermarkValve(2)
    assert valve.watermark(0, 5) == []
    assert valve.status(1, True) == [Watermark(5)]
    assert valve.watermark(1, 9) == [], "of an idle channel"
    assert valve.status(1, False) == []
    assert valve.watermark(0, 8) == [Watermark(8)], "channel 1 is behind and does not hold back yet"
    assert valve.watermark(1, 7) == []
    assert valve.watermark(1, 8) == []
    assert valve.watermark(0, 12) == [], "channel 1 has caught up and takes part"
    assert valve.watermark(1, 10) == [Watermark(10)]


@pytest.mark.spec("E26")
def test_when_all_are_idle_the_greatest_watermark_goes_out_and_then_the_status() -> None:
    valve = WatermarkValve(2)
    valve.watermark(0, 5)
    valve.watermark(1, 9)
    assert valve.status(0, True) == [Watermark(9)]
    assert valve.status(1, True) == [IDLE]
    assert valve.status(1, True) == []
    assert valve.status(0, False) == [ACTIVE]
    assert valve.status(1, False) == []


@pytest.mark.spec("E17", "again", "E26")
def test_a_channel_that_rejoins_alone_gives_its_watermark_at_once() -> None:
    valve = WatermarkValve(3)
    for channel, timestamp in ((0, 5), (1, 30), (2, 20)):
        valve.watermark(channel, timestamp)
    assert valve.status(0, True) == [Watermark(20)]
    assert valve.status(0, False) == [], "it is behind"
    assert valve.status(1, True) == valve.status(2, True) == []
    assert valve.status(1, False) == [Watermark(30)]
    assert valve.watermark(1, 40) == [Watermark(40)]


@pytest.mark.spec("E26")
def test_the_watermark_of_idle_channels_does_not_depend_on_their_order() -> None:
    valve = WatermarkValve(3)
    for channel, timestamp in ((0, 5), (1, 30), (2, 20)):
        valve.watermark(channel, timestamp)
    valve.status(0, True)
    valve.status(0, False)
    valve.status(1, True)
    valve.status(2, True)
    assert valve.status(0, True) == [Watermark(30), IDLE], "also when the last of them had not caught up"


steps = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 3, "idle", "active"])), max_size=40)


@given(steps)
def test_the_watermark_is_the_minimum_of_active_channels_or_the_maximum_of_idle_ones(
    steps: list[tuple[int, int | str]],
) -> None:
    valve, marks, idle, behind = WatermarkValve(3), [MIN_TIMESTAMP] * 3, [False] * 3, [False] * 3
    for channel, what in steps:
        before = valve.current
        if isinstance(what, int):
            out = valve.watermark(channel, what)
            if not idle[channel]:
                marks[channel] = max(marks[channel], what)
        else:
            out = valve.status(channel, what == "idle")
            if idle[channel] is not (what == "idle"):
                idle[channel] = what == "idle"
                behind[channel] = marks[channel] < before
        behind = [late and mark < before for late, mark in zip(behind, marks, strict=True)]
        taking_part = [m for m, away, late in zip(marks, idle, behind, strict=True) if not away and not late]
        joined = min(taking_part, default=before) if not all(idle) else max(marks)
        assert valve.current == max(before, joined)
        assert [event.timestamp for event in out if isinstance(event, Watermark)] == [
            mark for mark in [valve.current] if mark > before
        ]


def test_an_ended_channel_is_left_out_and_the_end_of_all_is_silent() -> None:
    valve = WatermarkValve(3)
    valve.watermark(0, 5)
    valve.watermark(1, 7)
    assert valve.end(2) == [Watermark(5)]
    assert valve.end(0) == [Watermark(7)]
    assert valve.status(0, False) == []
    assert valve.end(1) == []


def test_when_others_are_idle_the_end_of_the_last_active_channel_makes_the_task_idle() -> None:
    valve = WatermarkValve(2)
    valve.status(0, True)
    valve.watermark(1, 7)
    assert valve.end(1) == [IDLE]


def test_the_last_watermark_of_all_is_taken_from_an_idle_channel_too() -> None:
    valve = WatermarkValve(1)
    valve.watermark(0, 5)
    assert valve.status(0, True) == [WatermarkStatus(True)]
    assert valve.watermark(0, 9) == []
    assert valve.watermark(0, MAX_TIMESTAMP) == [WatermarkStatus(False), Watermark(MAX_TIMESTAMP)]


@pytest.mark.spec("X18")
def test_two_inputs_give_the_minimum_of_both() -> None:
    marks = InputWatermarks([0, 0, 1])
    assert marks.watermark(0, 100) == marks.watermark(2, 50) == []
    assert marks.watermark(1, 70) == [Watermark(50)]
    assert marks.watermark(2, 90) == [Watermark(70)]
    assert marks.watermarks == [100, 70, 90]


def test_when_both_inputs_are_idle_the_watermark_of_the_slower_one_stays() -> None:
    marks = InputWatermarks([0, 1])
    marks.watermark(0, 1000)
    assert marks.watermark(1, 100) == [Watermark(100)]
    assert marks.status(0, True) == []
    assert marks.status(1, True) == [WatermarkStatus(True)]
    assert marks.status(1, False) == [WatermarkStatus(False)]
    assert marks.watermark(1, 150) == [Watermark(150)]  # not late: 1000 was never given out


def test_an_input_that_ended_without_the_last_watermark_holds_nobody_back() -> None:
    marks = InputWatermarks([0, 1])
    assert marks.watermark(0, 10) == []
    marks.end(1)
    assert marks.watermark(0, 20) == [Watermark(20)]
