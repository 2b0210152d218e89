"""Barriers that overtake records: when the snapshot is taken, and which records belong to it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.alignment import Aborted, Aligned, BarrierAligner, BarrierTracker, Block, Unblock
from rayflink.actors.exchange.frames import BufferResponse, TaskAddress
from rayflink.actors.exchange.recording import InputRecording
from rayflink.actors.exchange.subpartition import Buffer, Subpartition
from rayflink.common.records.batches import CheckpointBarrier, EndOfPartition, Watermark
from tests.actors.exchange.test_gate import data, event, gate_of, taken


def barrier(number: int, aligned: bool = False, until: int | None = None) -> CheckpointBarrier:
    return CheckpointBarrier(number, 100 * number, aligned, aligned_until_ms=until)


# when


def test_the_first_barrier_is_enough_where_all_may_overtake() -> None:
    aligner = BarrierAligner(3)
    assert aligner.announce(barrier(1), 10) == [] and aligner.overtakes_at_ms is not None
    assert aligner.overtake(12) == [Aligned(barrier(1), 2, frozenset({0, 1, 2})), Unblock()]
    assert aligner.overtakes_at_ms is None
    assert [aligner.barrier(channel, barrier(1), 20) for channel in range(3)] == [[], [], []], "their turn comes later"
    assert aligner.announce(barrier(1), 21) == [] and aligner.overtakes_at_ms is None


def test_records_of_a_channel_in_order_are_worked_first() -> None:
    aligner = BarrierAligner(3, in_order=[2])
    aligner.announce(barrier(1), 0)
    assert aligner.overtakes_at_ms is None
    assert aligner.barrier(0, barrier(1), 5) == [Block(0)]
    assert aligner.barrier(2, barrier(1), 9) == [Block(2)]
    assert aligner.overtakes_at_ms is not None
    assert aligner.overtake(9) == [Aligned(barrier(1), 9, frozenset({1})), Unblock()]


def test_an_aligned_barrier_overtakes_when_its_time_is_over() -> None:
    aligner, waits = BarrierAligner(2), barrier(1, aligned=True, until=150)
    assert aligner.barrier(0, waits, 110) == [Block(0)]
    assert aligner.overtakes_at_ms == 150
    assert aligner.overtake(150) == [Aligned(barrier(1, until=150), 40, frozenset({1})), Unblock()]
    in_time = BarrierAligner(2)
    in_time.barrier(0, waits, 110)
    assert in_time.barrier(1, waits, 120) == [Aligned(waits, 10), Unblock()]


def test_one_producer_whose_time_is_over_makes_the_checkpoint_unaligned() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1, aligned=True, until=10**6), 110)
    aligner.announce(barrier(1, until=10**6), 120)
    assert aligner.overtakes_at_ms is not None and aligner.overtakes_at_ms < 120


def test_a_barrier_that_is_to_stay_aligned_overtakes_nothing() -> None:
    aligner = BarrierAligner(2)
    assert aligner.barrier(0, barrier(1, aligned=True), 0) == [Block(0)]
    assert aligner.overtakes_at_ms is None
    assert BarrierTracker(2).overtakes_at_ms is None


def test_an_announced_barrier_subsumes_an_older_checkpoint() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1, aligned=True), 0)
    assert aligner.announce(barrier(2), 5) == [Unblock(), Aborted(1)]
    assert aligner.announce(barrier(1), 6) == []
    assert aligner.overtake(6)[0] == Aligned(barrier(2), 1, frozenset({0, 1}))


def test_a_channel_that_has_ended_is_not_missing() -> None:
    aligner = BarrierAligner(2, in_order=[0])
    aligner.end(0, 0)
    aligner.announce(barrier(1), 1)
    assert aligner.overtake(1)[0] == Aligned(barrier(1), 0, frozenset({1}))


# which


def test_what_comes_before_the_barrier_is_in_the_snapshot_and_nothing_behind_it() -> None:
    gate = gate_of(3, exclusive=9)
    gate.receive(data(0, 0, b"a0"))
    gate.receive(data(0, 1, b"a1"))
    gate.receive(event(0, 2, barrier(1)))
    gate.receive(data(0, 3, b"behind"))
    gate.receive(data(1, 0, b"b0"))
    assert gate.overtaking == [barrier(1)]
    recording = gate.record(1, {0, 1, 2}, (1, [b"half"]))
    assert not recording.is_whole
    gate.receive(data(1, 1, b"late"))
    gate.receive(event(1, 2, Watermark(5)))
    gate.receive(event(1, 3, barrier(1)))
    gate.receive(data(1, 4, b"behind"))
    gate.receive(event(2, 0, EndOfPartition()))
    assert recording.is_whole
    assert recording.bodies == {0: [b"a0", b"a1"], 1: [b"half", b"b0", b"late"]}
    assert recording.size_bytes == 14
    assert [item for channel, item in taken(gate) if channel == 0] == [b"a0", b"a1", barrier(1), b"behind"]


def test_barriers_that_stay_aligned_are_not_announced() -> None:
    gate = gate_of(1)
    gate.receive(event(0, 0, barrier(1, aligned=True)))
    assert gate.overtaking == []
    gate.receive(event(0, 1, barrier(2, aligned=True, until=5)))
    assert gate.overtaking == [barrier(2, aligned=True, until=5)]


def test_a_newer_barrier_ends_what_an_older_one_records() -> None:
    recording = InputRecording(3, {0})
    recording.note(0, barrier(2))
    recording.note(0, b"x")
    assert not recording.is_whole
    recording.note(0, barrier(4))
    recording.note(0, b"y")
    assert recording.is_whole and recording.bodies == {0: [b"x"]}


def test_restored_records_come_before_new_ones_take_no_credit_and_are_recorded_again() -> None:
    gate = gate_of(2, exclusive=1)
    gate.preload(1, [b"old 0", b"old 1"])
    gate.receive(data(0, 0, b"new a"))
    gate.receive(data(1, 0, b"new b"))
    assert gate.queued == 4
    first = gate.next()
    assert first is not None and (first.channel, first.body) == (1, b"old 0")
    gate.recycle(1)
    assert gate.announcements() == [], "no buffer of the channel was free"
    assert gate.record(7, {0, 1}, (0, [])).bodies == {0: [b"new a"], 1: [b"old 1", b"new b"]}
    assert [item for _, item in taken(gate)] == [b"old 1", b"new a", b"new b"]


def requested(*entries: Any) -> Subpartition:
    sub = Subpartition(0)
    sub.request(TaskAddress("consumer"), 7, 9)
    for entry in entries:
        sub.add(Buffer(entry, 1) if isinstance(entry, bytes) else entry)
    return sub


def test_a_barrier_that_waits_too_long_to_be_sent_goes_to_the_front() -> None:
    waiting = barrier(1, aligned=True, until=5)
    sub = requested(b"a", Watermark(1), b"b", waiting, b"c")
    assert sub.awaits_turn(1) and not sub.awaits_turn(2)
    assert sub.overtake_late(barrier(1)) == (Buffer(b"a", 1), Buffer(b"b", 1))
    sent = [sub.poll() for _ in range(5)]
    assert [f.body or f.event for f in sent if f is not None] == [barrier(1), b"a", Watermark(1), b"b", b"c"]
    assert [f.sequence for f in sent if f is not None] == list(range(5)) and sub.backlog == 0
    assert sub.overtake_late(barrier(1)) == ()


@given(st.lists(st.sampled_from(["data", "poll", "barrier", "late"]), max_size=40))
def test_what_was_sent_and_what_is_overtaken_is_all_there_was_before_the_barrier(moves: list[str]) -> None:
    sub, given_records, sent, number = requested(), [], [], 0
    sub.add_credit(1000)
    for move in [*moves, *["poll"] * 60]:
        if move == "data":
            given_records.append(str(len(given_records)).encode())
            sub.add(Buffer(given_records[-1], 1))
        elif move == "poll":
            frame = sub.poll()
            sent += [frame] if isinstance(frame, BufferResponse) else []
        else:
            number += 1
            before = [frame.body for frame in sent if frame.body is not None]
            if move == "barrier":
                overtaken = sub.overtake(barrier(number))
            else:
                sub.add(barrier(number, aligned=True, until=0))
                overtaken = sub.overtake_late(barrier(number))
            assert before + [buffer.body for buffer in overtaken] == given_records
    assert [frame.body for frame in sent if frame.body is not None] == given_records, "and the order is as before"
