"""The life of a task and of the operators in it, whatever the end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest

from rayflink.actors.exchange.frames import PartitionId, PartitionRequest, WindowUpdate
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.messages import CancelTask, CheckpointAborted, CheckpointComplete
from rayflink.actors.task.progress import Progress
from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import BoundedMultiInput, ProcessingTimers
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.stateless import MapOperator
from rayflink.state.clock import ManualClock
from tests.actors.task.task_bench import CONSUMER, DATASET, ListSource, Logged, TaskBench


def two(**fails: str) -> tuple[TaskBench, list[str]]:
    """A task of the operators a and b in a row, each with the call in which it fails, and the log of their calls."""
    log: list[str] = []
    return TaskBench([Logged(log, name, fails.get(name, "")) for name in "ab"]), log


@pytest.mark.spec("L01", "L02", "L09", "operators", "K08", "L14", "H45", "before-open")
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


@pytest.mark.spec("L06", "finish", "N17")
def test_a_task_is_finished_when_its_output_was_fetched_and_not_before():
    bench = TaskBench([ListSource([RowBatch([1])])], channels=()).start(credit=0)
    assert bench.work() is Progress.IDLE
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING"]
    assert "waits until 1 partitions are fetched" in bench.task.waits_for()
    bench.give_credit(1)
    assert bench.work() is Progress.DONE
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"]


@pytest.mark.spec("L06", "failure")
def test_a_task_whose_output_cannot_be_ended_fails(monkeypatch):
    bench = TaskBench([ListSource([RowBatch([1])])], channels=()).start()

    def fails():
        raise OSError("disk full")

    monkeypatch.setattr(bench.task._writers[0], "finish", fails)
    assert bench.work() is Progress.DONE
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING", "FAILED"]
    assert "OSError: disk full" in bench.failure.message


@pytest.mark.spec("L05", "L11", "L08", "operators", "state", "K11", "cancelled")
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


@pytest.mark.spec("L08", "operators", "state", "L10", "closed", "K11", "failed")
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


@pytest.mark.spec("L08", "operators", "state", "L10", "closed")
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


class Due(Logged, ProcessingTimers):
    """Has a timer that is due from the first moment on, and another one after each of its `firings` but the last."""

    def __init__(self, log: list[str], firings: int) -> None:
        super().__init__(log)
        self.firings = firings

    def next_processing_time(self) -> int | None:
        return 0 if self.log.count("op.on_processing_time") < self.firings else None

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        self._says("on_processing_time")
        return (RowBatch([f"timer at {now_ms}"]),)


class Long(Logged, ProcessingTimers):
    """Works each record and each snapshot for a second, in which a timer becomes due; a timer fires in three parts."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(log)
        self.due: int | None = None

    def next_processing_time(self) -> int | None:
        return self.due

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        self.due = None
        for part in range(3):
            self._says(f"timer {part}")
            yield RowBatch([f"timer {part}"])

    def process(self, batch: Any, input_index: int) -> Iterable[Element]:
        self._works("process")
        yield batch

    def snapshot_state(self, checkpoint_id: int) -> Any:
        self._works("snapshot")

    def _works(self, what: str) -> None:
        self._says(f"{what} begins")
        self.due = self.ctx.clock.now_ms() + 500
        self.ctx.clock.advance(1_000)
        self._says(f"{what} ends")


TIMER = ["op.timer 0", "op.timer 1", "op.timer 2"]


@pytest.mark.spec("E32")
def test_a_timer_that_is_due_fires_when_all_operators_are_open_and_not_before():
    log: list[str] = []
    bench = TaskBench([Logged(log, "first"), Due(log, firings=1)]).start()
    bench.work()
    opened = ["op.initialize_state", "op.open", "first.initialize_state", "first.open"]
    assert log[2:] == [*opened, "op.on_processing_time"]


@pytest.mark.spec("E31", "lock")
def test_no_timer_fires_amid_a_record_or_a_snapshot():
    log: list[str] = []
    bench = TaskBench([Long(log)]).start()
    bench.feed(0, "x")
    bench.work()
    bench.feed(0, CheckpointBarrier(1, 0))
    bench.work()
    assert log[3:] == ["op.process begins", "op.process ends", *TIMER, "op.prepare_snapshot",
                       "op.snapshot begins", "op.snapshot ends", *TIMER]  # fmt: skip


@pytest.mark.spec("E31", "await")
@pytest.mark.spec("L09", "await")
@pytest.mark.spec("L09", "flush")
def test_a_timer_fired_by_the_end_of_input_finishes_before_outputs_flush_and_close():
    log: list[str] = []
    bench = TaskBench([Long(log)])
    bench.start(credit=-1)
    bench.feed(0, "x")
    for _ in range(4):
        bench.task.step()
    bench.end(0)
    assert bench.work() is Progress.DONE or bench.output == []
    request = PartitionRequest(PartitionId(DATASET, 0), 0, 0, 1_000)
    bench.say(CONSUMER, request, WindowUpdate(0, 0, 1 << 40, 1 << 20))
    assert bench.work() is Progress.DONE
    assert log[3:] == ["op.process begins", "op.process ends", *TIMER, "op.finish", "op.close"]
    assert bench.output == ["x", "timer 0", "timer 1", "timer 2", EndOfData(), EndOfPartition()]


@pytest.mark.spec("E31", "clock")
def test_processing_time_is_that_of_the_system_unless_another_clock_is_set():
    def program():
        env = StreamExecutionEnvironment({"execution.target": "local"})
        times = env.from_collection([1]).key_by(lambda n: n)
        return env, times.process(lambda value, ctx: [ctx.timer_service().current_processing_time()])

    before = time.time_ns() // 1_000_000
    [now] = program()[1].execute_and_collect()
    assert before <= now <= time.time_ns() // 1_000_000
    env, times = program()
    times.sink_to(CollectSink("now"))
    clock = ManualClock(5)
    result = InProcessCluster(env.get_job_graph(), clock, lambda ms: clock.advance(1)).run()
    [now] = result.accumulators["now"]
    assert 5 <= now < 1_000


@pytest.mark.spec("L09", "backend")
def test_state_and_its_storage_are_there_before_an_operator_is_initialized():
    seen = []

    class Looking(KeyedProcessOperator):
        def initialize_state(self, snapshots):
            seen.append((self.ctx.clock is not None, self.ctx.managed_memory is not None))
            super().initialize_state(snapshots)
            seen.append(self.backend.key_groups)

        def open(self):
            seen.append(self.keyed_state is not None)
            super().open()

    bench = TaskBench([Looking(str, lambda value, ctx: None)]).start()
    assert seen == [(True, True), range(128), True]
    assert bench.task is not None


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


@pytest.mark.spec("E26", "X16", "E13", "rises")
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


class Inputs(Operator, BoundedMultiInput):
    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (RowBatch([(input_index, value) for value in batch.values]),)  # type: ignore[union-attr]

    def end_input(self, input_index: int) -> Iterable[Element]:
        return (RowBatch([f"end of {input_index}"]),)

    def finish(self) -> Iterable[Element]:
        return (RowBatch(["finish"]),)


@pytest.mark.spec("L17", "I13", "inputs")
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
    assert "actors/task/task.py" not in failure.traceback


@pytest.mark.spec("L10", "outputs", "L08", "network", "N24", "O19", "N30")
def test_a_failed_task_tells_its_consumer_and_lets_its_producer_go():
    bench = TaskBench([MapOperator(lambda n: 1 / n)]).start()
    bench.work()
    bench.feed(0, 0)
    bench.task.step()
    said = {(e.receiver, type(f).__name__) for e in bench.task.outgoing() for f in e.frames}
    assert {("producer 0", "CancelPartitionRequest"), ("consumer", "ErrorResponse")} <= said


@pytest.mark.spec("E31", "quiesce", "L09", "quiesce", "L10", "timers")
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
