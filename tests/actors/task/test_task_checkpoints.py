"""What a task does with barriers: what its snapshot holds, what it forwards, and what it declines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rayflink.actors.messages.messages import (
    AssignSplits,
    CancelTask,
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointDeclined,
    TriggerCheckpoint,
)
from rayflink.actors.messages.states import ExecutionState
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.snapshot_writing import SnapshotWritten
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import (
    Batch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    RowBatch,
    Watermark,
    rows_of,
)
from rayflink.connectors.collection import CollectionSource, CollectionSplit
from rayflink.operators.base import Operator, OperatorSnapshot
from rayflink.operators.sources import SPLITS_STATE, ReaderSourceOperator
from rayflink.state.snapshots import KeyedParts
from tests.actors.task.task_bench import ListSource, Logged, TaskBench


class Gathers(Operator):
    """Its state is the list of all records it has seen."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self.seen += rows_of(batch)
        return (batch,)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return OperatorSnapshot(lists={"seen": ("split", tuple(str(value).encode() for value in self.seen))})


def seen_in(ack: CheckpointAcknowledged) -> list[int]:
    (snapshot,) = ack.snapshots.values()
    return [int(entry) for entry in snapshot.lists["seen"][1]]


BARRIER = CheckpointBarrier(1, 900)
B, C = 0, 1


def fed_by_b_and_c(**config: str) -> TaskBench:
    """The worked example: the barrier of B, then 6 and 7 of B and 4 of C, then the barrier of C."""
    bench = TaskBench([Gathers()], (0, 0), {key.replace("_", "."): value for key, value in config.items()}).start()
    bench.feed(B, BARRIER, 6, 7)
    bench.feed(C, 4)
    bench.work()
    bench.clock.advance(30)
    bench.feed(C, BARRIER)
    bench.work()
    return bench


@pytest.mark.spec("X21", "H09", "H13", "H14", "H40", "H37")
def test_records_behind_a_barrier_wait_until_all_barriers_are_there():
    bench = fed_by_b_and_c()
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert seen_in(ack) == [4]
    assert bench.output == [4, BARRIER, 6, 7]
    assert (ack.checkpoint_id, ack.metrics.alignment_ms, ack.metrics.start_delay_ms) == (1, 30, 100)


def oldest_wait_ms(bench: TaskBench) -> Any:
    return bench.task.report().metrics["oldestBarrierWaitingTimeMs"]


@pytest.mark.parametrize("mode", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_the_oldest_barrier_waits_from_its_receipt_until_all_are_here(mode: str):
    bench = TaskBench([Gathers()], (0, 0), {"execution.checkpointing.mode": mode}).start()
    waits = [oldest_wait_ms(bench)]
    for channel, elements in [(B, [6, BARRIER]), (C, [4]), (B, [CheckpointBarrier(2, 950)]), (C, [BARRIER])]:
        bench.feed(channel, *elements)
        bench.work()
        bench.clock.advance(10)
        waits.append(oldest_wait_ms(bench))
    bench.feed(C, CancelCheckpointMarker(2))
    bench.work()
    bench.feed(B, CheckpointBarrier(2, 950))
    bench.work()
    bench.clock.advance(10)
    assert [*waits, oldest_wait_ms(bench)] == [0, 10, 20, 30, 20, 0], "the newer barrier, then a cancelled one"


def test_a_barrier_behind_records_and_a_triggered_one_wait_for_room():
    buffers = ("buffers-per-channel", "1"), ("floating-buffers-per-gate", "0")
    config = {f"taskmanager.network.memory.{name}": number for name, number in buffers}
    behind = TaskBench([Gathers()], config=config).start(credit=0)
    behind.feed(0, 1)
    behind.work()
    behind.feed(0, 2)
    source = TaskBench([ListSource([RowBatch([n]) for n in range(50)], ends=False)], ()).start(credit=0)
    for bench in (behind, source):
        assert bench.work() is Progress.BACK_PRESSURED
    behind.feed(0, BARRIER)
    source.task.mail(TriggerCheckpoint(BARRIER))
    for bench in (behind, source):
        bench.work()
        bench.clock.advance(70)
        assert oldest_wait_ms(bench) == 70
        bench.give_credit(100)
        bench.work()
        assert oldest_wait_ms(bench) == 0 and len(bench.reported(CheckpointAcknowledged)) == 1


@pytest.mark.spec("H42", "attempt", "checkpoint", "metrics", "state", "C35", "checkpoint-responder")
def test_an_acknowledgement_names_task_checkpoint_state_and_duration():
    bench = fed_by_b_and_c()
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert (ack.attempt, ack.checkpoint_id) == (bench.deployment.attempt, BARRIER.checkpoint_id)
    assert [seen_in(ack), list(ack.snapshots)] == [[4], [bench.deployment.operators[0].operator_id]]
    assert (ack.metrics.start_delay_ms, ack.metrics.alignment_ms) == (100, 30)
    assert ack.metrics.state_bytes >= ack.metrics.written_bytes > 0


@pytest.mark.spec("X22", "H41")
def test_at_least_once_does_not_wait_and_has_records_of_after_the_barrier():
    bench = fed_by_b_and_c(**{"execution.checkpointing.mode": "AT_LEAST_ONCE"})
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert sorted(seen_in(ack)) == [4, 6, 7]
    assert bench.output[-1] == BARRIER


@pytest.mark.spec("H40", "H39", "H36", "held-up")
def test_a_channel_that_has_ended_is_not_waited_for():
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(B, 1, BARRIER, 2)
    bench.work()
    assert bench.reported(CheckpointAcknowledged) == []
    bench.end(C)
    bench.work()
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert seen_in(ack) == [1]
    assert bench.output == [1, BARRIER, 2]


@pytest.mark.spec("H39", "H36", "marker")
def test_a_cancelled_checkpoint_lets_the_records_go_and_is_passed_on():
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(B, BARRIER, 6)
    bench.feed(C, 4, CancelCheckpointMarker(1), 5)
    bench.work()
    assert sorted(v for v in bench.output if isinstance(v, int)) == [4, 5, 6]
    assert CancelCheckpointMarker(1) in bench.output
    assert bench.reported(CheckpointAcknowledged) == []
    (declined,) = bench.reported(CheckpointDeclined)
    assert declined.checkpoint_id == 1 and not declined.is_failure


@pytest.mark.spec("H35", "L02")
def test_what_must_precede_the_barrier_goes_first_and_the_snapshot_is_taken_after():
    log: list[str] = []
    bench = TaskBench([Logged(log, "a"), Logged(log, "b")]).start()
    bench.feed(0, BARRIER, "x")
    bench.work()
    calls = [line for line in log if "snapshot" in line or "process" in line]
    assert calls == [
        "a.prepare_snapshot", "b.process", "b.prepare_snapshot", "a.snapshot_state", "b.snapshot_state",
        "a.process", "b.process",
    ]  # fmt: skip
    assert bench.output == ["before barrier 1", "before barrier 1", BARRIER, "x"]


@pytest.mark.spec("H35")
def test_the_barrier_is_sent_before_the_state_is_copied():
    order: list[str] = []

    class Slow(Gathers):
        def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
            order.append(f"snapshot with {bench.task._writers[0].partition.subpartitions[0]._entries[-1]}")
            return super().snapshot_state(checkpoint_id)

    bench = TaskBench([Slow()]).start(credit=-1)
    bench.feed(0, BARRIER)
    bench.work()
    assert order == [f"snapshot with {BARRIER}"]


@pytest.mark.spec("H15", "sink")
def test_a_sink_acknowledges():
    bench = TaskBench([Gathers()], has_output=False).start()
    bench.feed(0, 1, 2, BARRIER)
    bench.work()
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert seen_in(ack) == [1, 2]


class CountingSource(ListSource):
    """The numbers 1, 2, 3, ...; the state is how many were given out."""

    def __init__(self, count: int) -> None:
        super().__init__([RowBatch([n]) for n in range(1, count + 1)], ends=False)
        self.count = count

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        given = self.count - len(self.batches)
        return OperatorSnapshot(lists={"offset": ("split", (str(given).encode(),))})


class SumOfEvenAndOdd(Operator):
    def __init__(self) -> None:
        self.even = self.odd = 0

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        for n in rows_of(batch):
            self.even, self.odd = (self.even + n, self.odd) if n % 2 == 0 else (self.even, self.odd + n)
        return ()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return OperatorSnapshot(lists={"sums": ("split", (f"{self.even} {self.odd}".encode(),))})


@pytest.mark.spec("X24", "H11", "snapshot", "H09")
def test_a_checkpoint_at_offset_5_holds_the_sums_of_the_first_five_numbers():
    """The source gives its barrier after five of eight records; both states belong to exactly those."""
    bench = TaskBench([CountingSource(8), SumOfEvenAndOdd()], channels=()).start()
    for _ in range(5):
        bench.step()
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.work()
    (ack,) = bench.reported(CheckpointAcknowledged)
    offset, sums = (snapshot.lists for _, snapshot in sorted(ack.snapshots.items()))
    assert offset == {"offset": ("split", (b"5",))}
    assert sums == {"sums": ("split", (b"6 9",))}
    assert bench.output == [BARRIER]
    later = CheckpointBarrier(2, 950)
    bench.task.mail(TriggerCheckpoint(later))
    bench.work()
    (_, ack) = bench.reported(CheckpointAcknowledged)
    assert [snapshot.lists for _, snapshot in sorted(ack.snapshots.items())] == [
        {"offset": ("split", (b"8",))},
        {"sums": ("split", (b"20 16",))},
    ], "it has gone on meanwhile"
    assert bench.output == [BARRIER, later]


@pytest.mark.spec("H33", "declined", "H34")
def test_a_task_that_can_not_take_part_declines():
    not_started = TaskBench([ListSource([RowBatch([1])])], channels=())
    not_started.task.mail(TriggerCheckpoint(BARRIER))
    not_started.step()
    assert [d.reason for d in not_started.reported(CheckpointDeclined)] == ["the task is CREATED"]
    no_source = TaskBench([Gathers()]).start()
    finished = TaskBench([ListSource([])], channels=()).start(credit=0)
    unread = TaskBench([ListSource([RowBatch([1])])], channels=()).start(credit=0)
    assert finished.work() is Progress.DONE
    assert unread.work() is Progress.IDLE
    for bench in (no_source, unread, finished):
        bench.task.mail(TriggerCheckpoint(BARRIER))
        bench.work()
        assert [d.checkpoint_id for d in bench.reported(CheckpointDeclined)] == [1]
        assert bench.reported(CheckpointAcknowledged) == []
    assert finished.output == [Watermark(2**63 - 1), EndOfData(), EndOfPartition()]


@pytest.mark.spec("H33", "failed", "late")
def test_a_snapshot_that_raises_fails_the_task():
    class Broken(Gathers):
        def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
            raise OSError("disk full")

    bench = TaskBench([Broken()]).start()
    bench.feed(0, BARRIER)
    bench.work()
    assert bench.states[-1] == "FAILED"
    assert "OSError: disk full" in bench.failure.message
    late = TaskBench([Broken()]).start()
    late.feed(0, BARRIER)
    late.task.mail(CancelTask())
    late.work()
    assert late.states[-1] == "CANCELED", "a task that no longer runs takes none"


# checkpoints that begin at a task without barriers


@pytest.mark.spec("H33", "declined")
@pytest.mark.parametrize("mode", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_a_task_whose_producers_have_finished_checkpoints_behind_all_they_sent(mode):
    bench = TaskBench([Gathers()], (0, 0), {"execution.checkpointing.mode": mode}).start()
    bench.end(B)
    bench.work()
    bench.feed(C, 1, 2)
    bench.end(C)
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.clock.advance(30)
    assert bench.work() is Progress.DONE
    assert bench.reported(CheckpointDeclined) == []
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert (ack.checkpoint_id, seen_in(ack)) == (1, [1, 2])
    assert bench.output == [1, 2, EndOfData(), BARRIER, EndOfPartition()]
    assert bench.states[-1] == "FINISHED"


class GathersOneByOne(Gathers):
    """Gives each record away as a batch of its own, so that full outputs stop it within a batch."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        for row in rows_of(batch):
            self.seen.append(row)
            yield RowBatch([row])


ONE_BUFFER = {"taskmanager.network.memory.max-buffers-per-channel": "1"}


def test_a_trigger_that_comes_when_the_last_records_are_being_worked_waits_for_them():
    bench = TaskBench([GathersOneByOne(), Gathers()], config=ONE_BUFFER).start(credit=0)
    bench.feed(0, RowBatch([1, 2, 3]))
    bench.end(0)
    assert bench.work() is Progress.BACK_PRESSURED
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.work()
    bench.give_credit(100)
    assert bench.work() is Progress.DONE
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert {snapshot.lists["seen"][1] for snapshot in ack.snapshots.values()} == {(b"1", b"2", b"3")}
    assert bench.output == [1, 2, 3, EndOfData(), BARRIER, EndOfPartition()]


def test_a_source_begins_a_checkpoint_after_the_batch_it_gave_and_not_within():
    source = ListSource([RowBatch([1, 2, 3])], ends=False)
    bench = TaskBench([source, GathersOneByOne()], channels=(), config=ONE_BUFFER).start(credit=0)
    assert bench.work() is Progress.BACK_PRESSURED
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.work()
    assert bench.reported(CheckpointAcknowledged) == []
    bench.give_credit(100)
    bench.work()
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert seen_in(ack) == [1, 2, 3]
    assert bench.output == [1, 2, 3, BARRIER]


def test_a_trigger_is_declined_while_one_producer_still_runs():
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.end(B)
    bench.feed(C, 1)
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.work()
    (declined,) = bench.reported(CheckpointDeclined)
    assert "not all have finished" in declined.reason
    bench.feed(C, BARRIER)
    bench.work()
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert seen_in(ack) == [1]


def test_a_source_takes_part_until_it_is_closed_and_answers_a_repeated_trigger_once():
    bench = TaskBench([CountingSource(2)], channels=()).start()
    for number in (1, 1, 2):
        bench.task.mail(TriggerCheckpoint(CheckpointBarrier(number, 900)))
    bench.work()
    assert [ack.checkpoint_id for ack in bench.reported(CheckpointAcknowledged)] == [1, 2]


def test_what_was_written_for_an_aborted_checkpoint_is_reported_so_that_its_files_go():
    bench = TaskBench([CountingSource(2)], channels=()).start()
    bench.task.mail(TriggerCheckpoint(CheckpointBarrier(1, 900)))
    while not isinstance(bench.task._mailbox[-1] if bench.task.has_mail else None, SnapshotWritten):
        bench.task.step()
    bench.task._mailbox.appendleft(CheckpointAborted(1))
    bench.work()
    assert [ack.checkpoint_id for ack in bench.reported(CheckpointAcknowledged)] == [1]


class Captures(Operator):
    """Its state is a capture that notes what becomes of it."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (batch,)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return OperatorSnapshot(capture=self)

    def write(self, writer: Any) -> KeyedParts:
        self.log.append("written")
        return KeyedParts()

    def release(self) -> None:
        self.log.append("released")


@pytest.mark.spec("H38", "H11", "acknowledged")
def test_every_operator_of_the_chain_is_captured_and_released_even_if_one_fails():
    log: list[str] = []
    bench = TaskBench([Captures(log), Captures(log)]).start()
    bench.feed(0, BARRIER)
    bench.work()
    assert log == ["written", "written", "released", "released"]
    assert len(bench.reported(CheckpointAcknowledged)) == 1
    log.clear()
    bench = TaskBench([Captures(log), Logged([], "b", fails_in="snapshot_state")]).start()
    bench.feed(0, BARRIER)
    bench.work()
    assert bench.task.state is ExecutionState.FAILED and log == ["released"]


def test_splits_that_come_while_a_source_drains_stay_with_the_enumerator():
    bench = TaskBench([ReaderSourceOperator(CollectionSource([1, 2]))], channels=()).start()
    bench.task.mail(TriggerCheckpoint(CheckpointBarrier(1, 900, stop=StopMode.DRAIN)))
    bench.task.mail(AssignSplits("0" * 32, (CollectionSplit(),)))
    bench.work()
    (ack,) = bench.reported(CheckpointAcknowledged)
    assert [snapshot.lists[SPLITS_STATE][1] for snapshot in ack.snapshots.values()] == [()]


def test_a_checkpoint_that_a_newer_one_overtakes_is_no_failure_of_the_job():
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(B, BARRIER)
    bench.feed(C, CheckpointBarrier(2, 950))
    bench.feed(B, CheckpointBarrier(2, 950))
    bench.work()
    assert [(d.checkpoint_id, d.is_failure) for d in bench.reported(CheckpointDeclined)] == [(1, False)]
    assert [ack.checkpoint_id for ack in bench.reported(CheckpointAcknowledged)] == [2]


@pytest.mark.parametrize("aligned", [True, False])
def test_a_source_that_finds_a_new_checkpoint_at_each_step_still_gives_its_records(aligned):
    bench = TaskBench([ListSource([RowBatch([n]) for n in range(5)])], ()).start()
    for number in range(1, 20):
        bench.task.mail(TriggerCheckpoint(CheckpointBarrier(number, 900, aligned=aligned)))
        bench.step()
    assert [row for row in bench.output if isinstance(row, int)] == [0, 1, 2, 3, 4]


def test_a_task_triggered_at_each_step_processes_what_its_finished_producers_sent():
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(B, 1, 2)
    bench.feed(C, 3)
    bench.end(B)
    bench.end(C)
    for number in range(1, 30):
        bench.task.mail(TriggerCheckpoint(CheckpointBarrier(number, 900)))
        bench.step()
    assert sorted(seen_in(bench.reported(CheckpointAcknowledged)[-1])) == [1, 2, 3]


def test_the_savepoint_that_drains_a_source_is_taken_after_an_earlier_checkpoint():
    bench = TaskBench([ListSource([], ends=False)], ()).start()
    for barrier in (CheckpointBarrier(1, 900), CheckpointBarrier(2, 900, stop=StopMode.DRAIN)):
        bench.task.mail(TriggerCheckpoint(barrier))
    bench.work()
    assert [ack.checkpoint_id for ack in bench.reported(CheckpointAcknowledged)] == [1, 2]
    assert "FINISHED" not in bench.states, "it waits until the savepoint is complete"
