"""The life of a task and of the operators in it, whatever the end."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rayflink.actors.messages import CancelTask, CheckpointAborted, CheckpointComplete
from rayflink.actors.progress import Progress
from rayflink.common.batches import (
    MAX_TIMESTAMP,
    Batch,
    Element,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.operators.base import Operator
from rayflink.operators.stateless import MapOperator
from tests.actors.task_bench import ListSource, Logged, TaskBench


def two(**fails: str) -> tuple[TaskBench, list[str]]:
    """A task of the operators a and b in a row, each with the call in which it fails, and the log of their calls."""
    log: list[str] = []
    return TaskBench([Logged(log, name, fails.get(name, "")) for name in "ab"]), log


@pytest.mark.spec("L01", "L02", "L09", "K08", "L14")
def test_a_task_goes_through_its_life_in_order():
    bench, log = two()
    bench.start()
    bench.feed(0, "x", Watermark(5))
    bench.end(0)
    assert bench.work() is Progress.DONE
    assert log == [
        "a.setup", "b.setup",
        "b.initialize_state", "b.open", "a.initialize_state", "a.open",
        "a.process", "b.process", "a.process_watermark", "b.process_watermark",
        "a.finish", "b.finish", "a.close", "b.close",
    ]  # fmt: skip
    assert bench.output == ["x", Watermark(5), EndOfData(), EndOfPartition()]
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"]


@pytest.mark.spec("L13", "K07")
def test_a_source_ends_with_the_last_watermark():
    source = ListSource([RowBatch([1, 2]), RowBatch([3])])
    bench = TaskBench([source, MapOperator(lambda n: n * 10)], channels=()).start()
    assert bench.work() is Progress.DONE
    assert bench.output == [10, 20, 30, Watermark(MAX_TIMESTAMP), EndOfData(), EndOfPartition()]
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"]
    assert source.closed == 1


@pytest.mark.spec("L06")
def test_a_task_is_finished_when_its_output_was_fetched_and_not_before():
    bench = TaskBench([ListSource([RowBatch([1])])], channels=()).start(credit=0)
    assert bench.work() is Progress.IDLE
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING"]
    assert "waits until 1 partitions are fetched" in bench.task.waits_for()
    bench.give_credit(1)
    assert bench.work() is Progress.DONE
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"]


@pytest.mark.spec("L05", "L11", "L08", "K11")
@pytest.mark.parametrize("moment", ["created", "started", "after a record"])
def test_a_cancel_closes_every_operator_once_and_finishes_none(moment):
    bench, log = two()
    if moment == "created":
        bench.task.mail(CancelTask())
        assert bench.work() is Progress.DONE
        assert (bench.states, log) == (["CANCELED"], [])
        return
    bench.start()
    if moment == "after a record":
        bench.feed(0, "x")
        bench.work()
    bench.task.mail(CancelTask())
    bench.task.mail(CancelTask())
    bench.work()
    assert log[-2:] == ["a.close", "b.close"]
    assert [line for line in log if "finish" in line or line.count("close") > 1] == []
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "CANCELED"]


@pytest.mark.spec("L08", "L10", "K11")
@pytest.mark.parametrize("where", ["initialize_state", "open", "process", "process_watermark", "finish"])
@pytest.mark.parametrize("who", ["a", "b"])
def test_a_failure_closes_once_what_was_opened(where, who):
    bench, log = two(**{who: where})
    bench.start()
    bench.feed(0, "x", Watermark(1))
    bench.end(0)
    bench.work()
    assert bench.states[-1] == "FAILED"
    assert f"{who} failed in {where}" in bench.failure.message
    tried = [name for name in "ab" if f"{name}.initialize_state" in log]
    assert [line for line in log if line.endswith("close")] == [f"{name}.close" for name in tried]


@pytest.mark.spec("L08")
def test_all_are_closed_even_when_one_raises_while_closing():
    for end in ("input", "cancel"):
        bench, log = two(a="close")
        bench.start()
        if end == "input":
            bench.end(0)
        else:
            bench.task.mail(CancelTask())
        bench.work()
        assert [line for line in log if line.endswith("close")] == ["a.close", "b.close"]
        assert bench.states[-1] == ("FAILED" if end == "input" else "CANCELED")
        assert bench.task.metrics.close_errors == 1


class Due(Logged):
    """Has a timer that is due from the first moment on, and another one after each of its `firings` but the last."""

    def __init__(self, log: list[str], firings: int) -> None:
        super().__init__(log)
        self.firings = firings

    def next_processing_time(self) -> int | None:
        return 0 if self.log.count("op.on_processing_time") < self.firings else None

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        self._says("on_processing_time")
        return (RowBatch([f"timer at {now_ms}"]),)


@pytest.mark.spec("L02")
def test_no_timer_fires_before_the_operators_are_open():
    log: list[str] = []
    bench = TaskBench([Due(log, firings=1)])
    bench.feed(0, "x")
    assert log == []
    bench.start()
    bench.work()
    assert log == ["op.setup", "op.initialize_state", "op.open", "op.on_processing_time", "op.process"]
    assert bench.output == ["timer at 1000", "x"]


def test_completed_and_aborted_checkpoints_are_told_to_every_operator():
    bench, log = two()
    bench.start()
    bench.task.mail(CheckpointComplete(3))
    bench.task.mail(CheckpointAborted(4))
    bench.work()
    assert log[-4:] == [
        "a.notify_checkpoint_complete 3", "b.notify_checkpoint_complete 3",
        "a.notify_checkpoint_aborted 4", "b.notify_checkpoint_aborted 4",
    ]  # fmt: skip


@pytest.mark.spec("E27", "U07")
def test_latency_markers_and_statuses_go_through_the_operators():
    bench, log = two()
    bench.start()
    marker = LatencyMarker(7, "0" * 32, 0)
    bench.feed(0, marker, WatermarkStatus(True))
    bench.work()
    assert log[-2:] == ["a.process_latency_marker", "b.process_latency_marker"]
    assert bench.output == [marker, WatermarkStatus(True)]


@pytest.mark.spec("E26", "X16")
def test_the_task_joins_the_watermarks_of_its_channels():
    """The clocks of the worked example: (2, 4, 3, 6), then 4 on the first channel, then 7 on the second."""
    bench = TaskBench([Logged([])], channels=(0, 0, 0, 0)).start()
    for channel, timestamp in enumerate((2, 4, 3, 6)):
        bench.feed(channel, Watermark(timestamp))
        bench.work()
    assert bench.output == [Watermark(2)]
    bench.feed(0, Watermark(4))
    bench.work()
    assert bench.output == [Watermark(2), Watermark(3)]
    bench.feed(1, Watermark(7))
    bench.work()
    assert bench.output == [Watermark(2), Watermark(3)]
    bench.feed(2, WatermarkStatus(True))
    bench.work()
    assert bench.output[-1] == Watermark(4)


class Inputs(Operator):
    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (RowBatch([(input_index, value) for value in batch.values]),)  # type: ignore[union-attr]

    def end_input(self, input_index: int) -> Iterable[Element]:
        return (RowBatch([f"end of {input_index}"]),)

    def finish(self) -> Iterable[Element]:
        return (RowBatch(["finish"]),)


@pytest.mark.spec("L17")
def test_two_inputs_are_told_apart_and_end_one_after_the_other():
    bench = TaskBench([Inputs()], channels=(0, 1, 1)).start()
    bench.feed(0, "x")
    bench.feed(1, "y")
    bench.work()
    bench.end(1)
    bench.work()
    assert sorted(bench.output) == [(0, "x"), (1, "y")], "another channel of the input goes on"
    bench.end(2)
    bench.work()
    bench.feed(0, "z")
    bench.work()
    bench.end(0)
    assert bench.work() is Progress.DONE
    assert bench.output[2:] == ["end of 1", (0, "z"), "finish", EndOfData(), EndOfPartition()]


# what a failure says


def test_a_failure_in_user_code_names_operator_line_and_record():
    bench = TaskBench([MapOperator(str.strip), MapOperator(lambda text: 1 / int(text))]).start()
    bench.feed(0, RowBatch([" 1", "0 ", "2"]))
    bench.work()
    failure = bench.failure
    assert (failure.kind, failure.operator, failure.call_site, failure.record) == (
        "ZeroDivisionError", "Operator 1", "job.py:2", "'0'",
    )  # fmt: skip
    assert "test_task_life.py" in failure.traceback
    assert "1 / int(text)" in failure.traceback
    assert "rayflink/operators" not in failure.traceback
    assert "actors/task.py" not in failure.traceback


def test_a_failed_task_tells_its_consumer_and_lets_its_producer_go():
    bench = TaskBench([MapOperator(lambda n: 1 / n)]).start()
    bench.work()
    bench.feed(0, 0)
    bench.task.step()
    said = {(e.receiver, type(f).__name__) for e in bench.task.outgoing() for f in e.frames}
    assert {("producer 0", "CancelPartitionRequest"), ("consumer", "ErrorResponse")} <= said


@pytest.mark.spec("E31")
def test_no_timer_of_processing_time_fires_after_the_end_of_input():
    log: list[str] = []
    bench = TaskBench([Due(log, firings=1_000)]).start()
    bench.feed(0, "x")
    bench.end(0)
    for _ in range(50):
        bench.task.step()
    before, after = log[: log.index("op.finish")], log[log.index("op.finish") + 1 :]
    assert "op.on_processing_time" in before
    assert after == ["op.close"]
    assert bench.task.deadline_ms() is None
