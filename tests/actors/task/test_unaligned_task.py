"""What a task does with a barrier that overtakes records: its snapshot, what it sends, and how it begins from one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rayflink.actors.exchange.codec import encode_batch
from rayflink.actors.messages.in_flight import CHANNELS, InFlight
from rayflink.actors.messages.messages import CheckpointAborted, CheckpointAcknowledged, TriggerCheckpoint
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.task import StreamTask
from rayflink.common.records.batches import CheckpointBarrier, EndOfData, EndOfPartition, RowBatch
from rayflink.operators.base import Operator
from tests.actors.task.task_bench import DATASET, ListSource, TaskBench, rows_in_body
from tests.actors.task.test_task_checkpoints import Gathers, seen_in

ONE_BUFFER = {"taskmanager.network.memory.buffers-per-channel": "1",
              "taskmanager.network.memory.floating-buffers-per-gate": "0"}  # fmt: skip
BARRIER = CheckpointBarrier(1, 900, aligned=False)


def records_in(ack: CheckpointAcknowledged) -> dict[str, list[Any]]:
    """List of channels -> the records in it."""
    lists = {name: part for snapshot in ack.snapshots.values() for name, part in snapshot.lists.items()}
    return {
        name: [row for body in bodies for row in rows_in_body(body)]  # type: ignore[arg-type]
        for name, (mode, bodies) in lists.items()
        if mode == CHANNELS
    }


def received(channel: int) -> str:
    return f"in-flight input {channel:032x}/0"


TO_SEND = f"in-flight output {DATASET}/0"


def acknowledged(bench: TaskBench) -> list[CheckpointAcknowledged]:
    return bench.reported(CheckpointAcknowledged)


def test_the_first_barrier_takes_the_snapshot_and_late_records_follow_into_it() -> None:
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(0, 1)
    bench.work()
    bench.feed(0, 2, BARRIER, 3)
    bench.feed(1, 4)
    bench.work()
    assert bench.output.index(BARRIER) == 1, "it is sent in front of what is worked behind it"
    assert sorted(bench.output[2:]) == [2, 3, 4], "nothing is held back"
    assert not acknowledged(bench)
    bench.feed(1, 5, BARRIER, 6)
    bench.work()
    (ack,) = acknowledged(bench)
    assert seen_in(replace(ack, snapshots=state_alone(ack))) == [1]
    assert records_in(ack) == {received(0): [2], received(1): [4, 5]}
    assert ack.metrics.in_flight_bytes == sum(len(encode_batch(RowBatch([n]))) for n in (2, 4, 5))


def test_the_alignment_lasts_to_the_last_barrier_though_the_first_overtakes() -> None:
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(0, BARRIER)
    bench.work()
    bench.clock.advance(30)
    bench.feed(1, 5)
    bench.work()
    assert bench.task.report().metrics["checkpointAlignmentTime"] == 0, "it is not over yet"
    bench.clock.advance(12)
    bench.feed(1, BARRIER)
    bench.work()
    (ack,) = acknowledged(bench)
    assert (ack.metrics.start_delay_ms, ack.metrics.alignment_ms) == (100, 42)
    assert bench.task.report().metrics["checkpointAlignmentTime"] == 42_000_000


def state_alone(ack: CheckpointAcknowledged) -> dict[str, Any]:
    return {
        name: replace(part, lists={n: entry for n, entry in part.lists.items() if entry[0] != CHANNELS})
        for name, part in ack.snapshots.items()
    }


@pytest.mark.spec("X20", "H05")
def test_of_the_channels_of_chandy_and_lamport_only_c_to_d_holds_a_record() -> None:
    for _ in ("A to B", "A to C"):
        bench = TaskBench([Gathers()], (0,)).start()
        bench.feed(0, 1)
        bench.work()
        bench.feed(0, BARRIER)
        bench.work()
        (ack,) = acknowledged(bench)
        assert records_in(ack) == {}, "the first marker found all worked"
        assert bench.output == [1, BARRIER]
    from_b, from_c = 0, 1
    d = TaskBench([Gathers()], (0, 0)).start()
    for channel, what in ((from_b, BARRIER), (from_c, 5), (from_c, BARRIER)):
        d.feed(channel, what)
        d.work()
    (ack,) = acknowledged(d)
    assert seen_in(replace(ack, snapshots=state_alone(ack))) == []
    assert records_in(ack) == {received(from_c): [5]}
    assert d.output == [BARRIER, 5], "no second marker"


def test_a_task_without_credit_snapshots_too_and_what_waits_to_be_sent_is_in_it() -> None:
    bench = TaskBench([Gathers()], (0, 0), ONE_BUFFER).start(credit=0)
    bench.feed(0, 1)
    assert bench.work() is Progress.BACK_PRESSURED
    bench.feed(1, 2)
    bench.feed(1, BARRIER)
    bench.feed(0, BARRIER)
    bench.work()
    assert bench.output == [BARRIER], "it needs no credit"
    (ack,) = acknowledged(bench)
    assert records_in(ack) == {received(1): [2], TO_SEND: [1]}
    bench.give_credit(9)
    bench.work()
    assert bench.output == [BARRIER, 1, 2]


class Slowly(Operator):
    """Passes on one record a piece, so that full outputs stop it in the middle of a batch."""

    def process(self, batch: Any, input_index: int) -> Any:
        return (RowBatch([value]) for value in batch.values)


def test_the_current_element_finishes_with_full_outputs_and_the_rest_is_recorded() -> None:
    slicer = _ThreeRows()
    bench = TaskBench([Slowly()], (0,), ONE_BUFFER)
    bench.task = StreamTask(bench.deployment, bench.clock, slicer=slicer)
    bench.start(credit=0)
    bench.feed(0, RowBatch([1, 2, 3, 4, 5]))
    assert bench.work() is Progress.BACK_PRESSURED
    bench.feed(0, BARRIER)
    bench.work()
    (ack,) = acknowledged(bench)
    assert records_in(ack) == {TO_SEND: [1, 2, 3], received(0): [4, 5]}


class Ninefold(Operator):
    """Gives nine records for each batch, one a piece."""

    def process(self, batch: Any, input_index: int) -> Any:
        return (RowBatch([value]) for value in range(9))


def test_an_element_that_gives_too_much_is_not_finished_without_credit() -> None:
    bench = TaskBench([Ninefold()], (0,), ONE_BUFFER).start(credit=0)
    bench.feed(0, 1)
    bench.work()
    bench.feed(0, BARRIER)
    bench.work()
    assert bench.output == [] and bench.task.buffers_held == 1 + 5 + 1, "its share, the overdraft, and the barrier"
    bench.give_credit(4)
    bench.work()
    assert bench.output == [0, 1, 2, 3, BARRIER]
    (ack,) = acknowledged(bench)
    assert records_in(ack) == {TO_SEND: [4, 5, 6, 7, 8]}


class _ThreeRows:
    """Slices of three records."""

    def rows(self, available: int) -> int:
        return min(available, 3)

    def expect(self, rows: int) -> None: ...

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def may_continue(self) -> bool:
        return True


def test_a_source_without_credit_begins_a_checkpoint() -> None:
    bench = TaskBench([ListSource([RowBatch([n]) for n in range(9)], ends=False)], (), ONE_BUFFER).start(credit=0)
    assert bench.work() is Progress.BACK_PRESSURED
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.work()
    assert bench.output == [BARRIER]
    (ack,) = acknowledged(bench)
    assert records_in(ack) == {TO_SEND: [0]}
    bench.task.mail(TriggerCheckpoint(CheckpointBarrier(2, 950)))
    bench.work()
    assert len(acknowledged(bench)) == 1, "an aligned one waits for credit"


@pytest.mark.parametrize("waits_in", ["front", "output"])
def test_an_aligned_barrier_that_takes_too_long_becomes_unaligned(waits_in: str) -> None:
    waiting = CheckpointBarrier(1, 900, aligned_until_ms=1_050)
    bench = TaskBench([Gathers()], (0, 0), ONE_BUFFER).start(credit=0)
    bench.feed(0, 1)
    bench.feed(1, *((2,) if waits_in == "front" else ()), waiting)
    bench.feed(0, waiting)
    bench.work()
    assert not acknowledged(bench) and BARRIER not in bench.output
    due = bench.task.deadline_ms()
    assert due is not None and due <= 1_050
    bench.clock.advance(50)
    bench.work()
    assert bench.output == [replace(waiting, aligned=False)]
    (ack,) = acknowledged(bench)
    assert records_in(ack) == {TO_SEND: [1], **({received(1): [2]} if waits_in == "front" else {})}


def test_an_aligned_barrier_that_is_in_time_holds_no_records() -> None:
    waiting = CheckpointBarrier(1, 900, aligned_until_ms=1_050)
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(0, 1, waiting, 2)
    bench.feed(1, 3)
    bench.work()
    assert bench.output == [1, 3] and not acknowledged(bench)
    bench.feed(1, waiting)
    bench.work()
    (ack,) = acknowledged(bench)
    assert records_in(ack) == {} and bench.output == [1, 3, waiting, 2]


def test_records_of_a_channel_in_order_are_worked_before_the_snapshot() -> None:
    bench = TaskBench([Gathers()], (0, 0))
    specs = (bench.deployment.inputs[0], replace(bench.deployment.inputs[1], in_order=True))
    bench.task = StreamTask(replace(bench.deployment, inputs=specs), bench.clock)
    bench.start()
    bench.feed(1, 1)
    bench.feed(0, BARRIER)
    bench.work()
    assert not acknowledged(bench) and BARRIER not in bench.output
    bench.feed(0, 2)
    bench.feed(1, 3, BARRIER, 4)
    bench.work()
    (ack,) = acknowledged(bench)
    assert sorted(seen_in(replace(ack, snapshots=state_alone(ack)))) == [1, 3] and records_in(ack) == {}
    assert sorted(bench.output[3:]) == [2, 4]


def test_a_checkpoint_that_is_given_up_records_nothing_more_and_the_next_one_does() -> None:
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(0, BARRIER)
    bench.work()
    bench.task.mail(CheckpointAborted(1))
    bench.feed(1, 1, BARRIER)
    bench.feed(0, CheckpointBarrier(2, 950, aligned=False))
    bench.work()
    assert not acknowledged(bench)
    bench.feed(1, 2, CheckpointBarrier(2, 950, aligned=False))
    bench.work()
    (ack,) = acknowledged(bench)
    assert ack.checkpoint_id == 2 and records_in(ack) in ({received(1): [2]}, {received(1): [1, 2]})


def test_the_end_of_a_channel_ends_its_records_and_the_task_waits_for_them() -> None:
    bench = TaskBench([Gathers()], (0, 0), ONE_BUFFER).start(credit=0)
    bench.feed(1, 1)
    assert bench.work() is Progress.BACK_PRESSURED
    bench.feed(1, 2, EndOfData(), EndOfPartition())
    bench.feed(0, EndOfData(), EndOfPartition())
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.work()
    (ack,) = acknowledged(bench)
    assert records_in(ack) == {TO_SEND: [1], received(1): [2]} and not ack.data_is_over


def test_restored_records_come_before_new_ones_and_are_sent_before_what_they_become() -> None:
    bench = TaskBench([Gathers()], (0, 0))
    body = {n: encode_batch(RowBatch([n])) for n in range(9)}
    here = InFlight(
        {(f"{1:032x}", 0): (body[3], body[4])}, {(DATASET, 0): (body[1],)}, {DATASET: (body[2],)}
    )  # fmt: skip
    bench.task = StreamTask(replace(bench.deployment, in_flight=here), bench.clock)
    bench.start()
    bench.feed(0, 5)
    bench.feed(1, 6)
    bench.work()
    assert bench.output == [1, 2, 3, 4, 5, 6]


def test_a_task_that_is_over_sends_the_rest_before_its_end() -> None:
    bench = TaskBench([ListSource([])], ())
    here = InFlight({}, {(DATASET, 0): (encode_batch(RowBatch([1])),)}, {})
    bench.task = StreamTask(replace(bench.deployment, in_flight=here, finished=True), bench.clock)
    bench.start()
    bench.work()
    assert bench.output[0] == 1 and EndOfData() in bench.output
