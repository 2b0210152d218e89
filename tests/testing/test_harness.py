"""The harness by hand: time, side outputs, snapshots, and its own refusals."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rayflink.common.records.batches import Batch, Element, RowBatch
from rayflink.connectors.collection import CollectionSource
from rayflink.datastream.functions import KeyedProcessFunction
from rayflink.operators.base import Operator, UserCodeError
from rayflink.operators.capabilities import BoundedMultiInput, ProcessingTimers
from rayflink.operators.keyed.rolling import KeyedReduceOperator
from rayflink.operators.sources import ReaderSourceOperator
from rayflink.operators.stateless import MapOperator
from rayflink.testing import (
    MAX_WATERMARK,
    OperatorHarness,
    Place,
    active,
    at,
    end,
    idle,
    in2,
    operator_of,
    rec,
    verify,
    wm,
)


class Alarm(Operator, ProcessingTimers):
    """Fires 10 ms after each record, and says when."""

    def open(self) -> None:
        self.due: list[int] = []

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self.due += [self.ctx.clock.now_ms() + 10] * len(batch)
        return ()

    def next_processing_time(self) -> int | None:
        return min(self.due, default=None)

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        fired, self.due = [d for d in self.due if d <= now_ms], [d for d in self.due if d > now_ms]
        return (RowBatch([f"{due} at {now_ms}" for due in fired]),)


def test_processing_time_moves_by_hand_and_fires_what_is_due():
    with OperatorHarness(Alarm) as harness:
        harness.process("x")
        harness.set_processing_time(9)
        assert harness.output == []
        harness.process("y")
        harness.set_processing_time(19)
        assert harness.output_values() == ["10 at 19", "19 at 19"]


def test_moments_are_steps_of_a_case():
    no_restore = [
        "restored after each step",
        "restored after each record",
    ]
    verify(
        Alarm, elements=[rec(1), at(12), rec(2), at(30)], then=[rec("10 at 12"), rec("22 at 30")], without=no_restore
    )


def test_time_never_goes_back():
    with OperatorHarness(Alarm) as harness:
        harness.set_processing_time(5)
        with pytest.raises(ValueError, match="a clock advances by 0 ms or more, not by -1"):
            harness.set_processing_time(4)


class StuckTimer(Alarm):
    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return ()


def test_a_timer_that_is_never_done_is_an_error_and_no_endless_loop():
    with OperatorHarness(StuckTimer) as harness:
        harness.process("x")
        with pytest.raises(AssertionError, match="fired its timers of 10 and still asks for 10"):
            harness.set_processing_time(50)


def test_a_snapshot_starts_another_operator_at_the_same_place():
    def total() -> Operator:
        return KeyedReduceOperator(lambda pair: pair[0], lambda a, b: (a[0], a[1] + b[1]))

    harness = OperatorHarness(total)
    harness.process(("a", 1), 1)
    harness.advance_watermark(1)
    snapshot = harness.snapshot()
    harness.process(("a", 10), 2)
    restored = harness.restore(total, snapshot)
    restored.process(("a", 2), 2)
    restored.advance_watermark(1)
    assert restored.output == [rec(("a", 3), 2)], "the watermark stands where it stood"
    restored.close()


def test_the_operator_sees_the_place_it_is_told():
    with OperatorHarness(Alarm, place=Place(2, 3, 64, {"a": "b"})) as harness:
        ctx = harness.operators[0].ctx
        assert (ctx.subtask, ctx.parallelism, ctx.max_parallelism, ctx.config) == (2, 3, 64, {"a": "b"})


def test_a_source_is_polled_until_its_end():
    with OperatorHarness(lambda: ReaderSourceOperator(CollectionSource([1, 2, 3]))) as harness:
        assert harness.split_requests == 1
        source = harness.operators[0]
        assert harness.poll()
        assert harness.output == []
        from rayflink.connectors.collection import CollectionSplit

        source.add_splits([CollectionSplit(1)])  # type: ignore[attr-defined]
        source.no_more_splits()  # type: ignore[attr-defined]
        while harness.poll(1):
            pass
        assert harness.output_values() == [2, 3] and harness.output[-1] == MAX_WATERMARK
        assert not harness.poll() and harness.output.count(MAX_WATERMARK) == 1


def test_a_source_that_is_stopped_says_its_own_last_things_before_the_last_watermark():
    class Farewell(ReaderSourceOperator):
        def finish(self) -> Iterable[Element]:
            return (RowBatch(["farewell"]),)

    with OperatorHarness(lambda: Farewell(CollectionSource([1]))) as harness:
        harness.end_input()
        assert harness.output == [rec("farewell"), MAX_WATERMARK]


def test_only_a_source_is_polled():
    with OperatorHarness(Alarm) as harness, pytest.raises(TypeError, match="only a source is polled, found Alarm"):
        harness.poll()


def test_errors_of_user_code_come_through():
    with OperatorHarness(lambda: MapOperator(lambda n: 1 / n)) as harness:
        with pytest.raises(UserCodeError, match="failed in map on record 0: ZeroDivisionError"):
            harness.process(0)


def test_what_is_no_element_is_refused():
    with OperatorHarness(Alarm) as harness, pytest.raises(TypeError, match="found 3; give rec, columns, wm"):
        harness.give(3)  # type: ignore[arg-type]


def test_take_gives_what_came_since_the_last_call():
    with OperatorHarness(lambda: MapOperator(str)) as harness:
        harness.process(1)
        assert harness.take() == [rec("1")]
        harness.advance_watermark(4)
        assert harness.take() == [wm(4)]
        assert harness.take() == []


# the end of input


class Later(KeyedProcessFunction):
    """Sets a timer of event time 10 ms after each record, and one of processing time far ahead."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        ctx.timer_service().register_processing_time_timer(10**15)

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()} {ctx.time_domain().name}"


later = operator_of(Later, key=lambda word: word)


class Farewell(Operator, BoundedMultiInput):
    """Says what ends, and when it is finished."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (batch,)

    def end_input(self, input_index: int) -> Iterable[Element]:
        return (RowBatch([f"input {input_index} ended"]),)

    def finish(self) -> Iterable[Element]:
        return (RowBatch(["finished"], [99]),)


def test_at_the_end_timers_of_event_time_fire_under_every_hardship():
    given = [rec("a", 1), rec("b", 5), wm(11), rec("c", 7), end()]
    then = [rec("a EVENT_TIME", 11), wm(11), rec("b EVENT_TIME", 15), rec("c EVENT_TIME", 17), MAX_WATERMARK]
    verify(later, given, then)
    verify(later, [*given[:-1], MAX_WATERMARK, end()], then)  # the last watermark comes once


def test_a_case_without_an_end_and_a_harness_that_is_closed_fire_nothing():
    verify(later, [rec("a", 1), wm(5)], [wm(5)])
    harness = OperatorHarness(later)
    harness.process("a", 1)
    harness.close()
    assert harness.output == []


def test_timers_of_processing_time_never_fire_after_the_end():
    with OperatorHarness(later) as harness:
        harness.process("a", 1)
        harness.end_input()
        assert harness.take() == [rec("a EVENT_TIME", 11), MAX_WATERMARK]
        harness.set_processing_time(10**16)
        assert harness.clock.now_ms() == 10**16 and harness.take() == []
        assert harness.operators[0].ctx.metrics.counter("numProcessingTimersDropped").get_count() == 1
        restored = harness.restore(later, harness.snapshot(1))
        restored.set_processing_time(10**17)
        assert restored.take() == []
        restored.close()


def test_operators_of_a_chain_finish_behind_the_last_watermark_head_first():
    with OperatorHarness(lambda: [Farewell(), later()]) as harness:
        harness.process("a", 1)
        harness.end_input()
        assert harness.output == [rec("a EVENT_TIME", 11), MAX_WATERMARK], "the timer of what comes last is not set off"
        assert harness.operators[1].ctx.metrics.counter("numProcessingTimersDropped").get_count() == 2


def test_event_time_ends_with_the_last_of_two_inputs():
    harness = OperatorHarness(Farewell, inputs=2)
    harness.give(wm(5))
    harness.give(in2(wm(3)))
    harness.end_input(0)
    assert harness.take() == [wm(3), rec("input 0 ended")]
    harness.advance_watermark(8, 1)
    harness.process("x", 9, 1)
    harness.end_input(1)
    assert harness.take() == [wm(8), rec("x", 9), MAX_WATERMARK, rec("finished", 99)]
    harness.close()


def test_an_idle_input_comes_back_to_end():
    harness = OperatorHarness(Farewell, inputs=2)
    harness.give(in2(idle()))
    harness.give(wm(5))
    harness.end_input(0)
    assert harness.take() == [wm(5), rec("input 0 ended")]
    harness.end_input(1)
    assert harness.take() == [MAX_WATERMARK, rec("finished", 99)]
    harness.close()


def test_nothing_follows_the_end_of_an_input():
    with OperatorHarness(Farewell, inputs=2) as harness:
        harness.end_input(1)
        for late, found in [(rec(1), "records"), (wm(9), "a watermark"), (active(), "a status")]:
            with pytest.raises(ValueError, match=f"input 1 has ended and was given {found}; give it before"):
                harness.give(in2(late))
        with pytest.raises(ValueError, match="input 1 has ended and was given its end again"):
            harness.end_input(1)
        harness.give(end())  # what has not ended yet
        assert harness.output_values() == ["input 1 ended", "finished"]
        with pytest.raises(ValueError, match="input 0 has ended and was given its end again"):
            harness.give(end())
