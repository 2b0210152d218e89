"""The harness by hand: time, side outputs, snapshots, and its own refusals."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rayflink.common.batches import Batch, Element, RowBatch
from rayflink.connectors.collection import CollectionSource
from rayflink.operators.base import Operator, UserCodeError
from rayflink.operators.keyed import KeyedReduceOperator
from rayflink.operators.sources import ReaderSourceOperator
from rayflink.operators.stateless import MapOperator
from rayflink.testing import OperatorHarness, Place, at, rec, verify, wm


class Alarm(Operator):
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
    verify(Alarm, given=[rec(1), at(12), rec(2), at(30)], then=[rec("10 at 12"), rec("22 at 30")], without=no_restore)


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
        assert harness.output_values() == [2, 3]


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
