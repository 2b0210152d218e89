"""The producer's queue for one consumer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rayflink.actors.exchange.frames import BufferResponse, ErrorResponse, TaskAddress
from rayflink.actors.exchange.subpartition import Buffer, ExchangeError, Subpartition, SubpartitionState
from rayflink.common.records.batches import CheckpointBarrier, EndOfPartition, Watermark

CONSUMER = TaskAddress("consumer")


def requested(credit: int = 2) -> Subpartition:
    sub = Subpartition(0)
    sub.request(CONSUMER, 7, credit)
    return sub


def buffers(*bodies: bytes) -> list[Buffer]:
    return [Buffer(body, 1) for body in bodies]


def add(sub: Subpartition, *entries: object) -> None:
    for entry in entries:
        assert sub.add(entry)  # type: ignore[arg-type]


@pytest.mark.spec("N14", "N01", "N22", "N20")
def test_nothing_is_sent_before_the_consumer_asks_and_the_first_buffer_right_after() -> None:
    sub = Subpartition(0)
    add(sub, *buffers(b"a"))
    assert not sub.available
    assert sub.poll() is None
    only_an_event = Subpartition(0)
    add(only_an_event, Watermark(5))
    assert only_an_event.poll() is None
    sub.request(CONSUMER, 7, 1)
    assert sub.poll() == BufferResponse(7, 0, 0, b"a")


@pytest.mark.spec("O08", "O10", "O17", "sequence", "available", "X50", "cost")
def test_a_buffer_costs_one_credit_and_waits_without() -> None:
    sub = requested(credit=1)
    add(sub, *buffers(b"a", b"b"))
    assert sub.poll() == BufferResponse(7, 0, 1, b"a")
    assert sub.credit == 0
    assert not sub.available
    assert sub.poll() is None
    sub.add_credit(1)
    assert sub.poll() == BufferResponse(7, 1, 0, b"b")


@pytest.mark.spec("O09", "O17", "available", "X50", "cost")
def test_events_need_no_credit_and_are_no_backlog() -> None:
    sub = requested(credit=0)
    add(sub, CheckpointBarrier(1, 0))
    assert sub.available
    assert sub.poll() == BufferResponse(7, 0, 0, None, CheckpointBarrier(1, 0))
    add(sub, *buffers(b"a"), CheckpointBarrier(2, 0))
    assert (sub.backlog, sub.available) == (1, False)


@pytest.mark.spec("N19", "O10")
def test_the_backlog_counts_data_buffers_and_their_bytes() -> None:
    sub = requested()
    add(sub, *buffers(b"abc", b"de"), Watermark(1))
    assert (sub.backlog, sub.queued_bytes) == (2, 5)
    sub.poll()
    assert (sub.backlog, sub.queued_bytes) == (1, 2)
    found = sub.statistics()
    assert (found.buffers_sent, found.bytes_sent, found.credit, found.state) == (1, 3, 1, "reading")


def test_a_watermark_replaces_the_one_it_follows_and_none_before_a_buffer() -> None:
    sub = requested()
    add(sub, Watermark(1), Watermark(2), *buffers(b"a"), Watermark(3), Watermark(4))
    found = [sub.poll() for _ in range(3)]
    assert [f.event if isinstance(f, BufferResponse) else None for f in found] == [Watermark(2), None, Watermark(4)]
    assert [f.sequence for f in found if isinstance(f, BufferResponse)] == [0, 1, 2]


@pytest.mark.spec("N19", "N18")
def test_nothing_is_taken_after_the_end() -> None:
    sub = requested()
    add(sub, EndOfPartition())
    assert not sub.add(Buffer(b"late", 1))
    assert sub.poll() == BufferResponse(7, 0, 0, None, EndOfPartition())
    assert sub.state is SubpartitionState.CONSUMED
    assert not sub.add(Buffer(b"later", 1))


@pytest.mark.spec("N22", "O26")
def test_release_drops_what_waits_and_doing_it_twice_changes_nothing() -> None:
    sub = requested()
    add(sub, *buffers(b"a"))
    assert sub.release() is None
    assert not len(sub._entries)
    assert sub.release() is None
    assert (sub.backlog, sub.queued_bytes, sub.poll()) == (0, 0, None)
    assert not sub.add(Buffer(b"b", 1))


@pytest.mark.spec("O19")
def test_a_reader_is_told_why_the_producer_failed() -> None:
    assert requested().release("ValueError: boom") == ErrorResponse(7, "ValueError: boom")
    assert Subpartition(0).release("ValueError: boom") is None


def test_what_was_consumed_stays_consumed() -> None:
    sub = requested()
    add(sub, EndOfPartition())
    sub.poll()
    assert sub.release("too late") is None
    assert sub.state is SubpartitionState.CONSUMED


@pytest.mark.spec("N17")
def test_a_second_consumer_is_refused() -> None:
    with pytest.raises(ExchangeError, match="subpartition 0 is reading, asked for by other"):
        requested().request(TaskAddress("other"), 1, 1)


def test_an_overtaking_barrier_goes_first_and_gives_what_it_overtook() -> None:
    sub = requested()
    add(sub, *buffers(b"a"), Watermark(1), *buffers(b"b"))
    assert sub.overtake(CheckpointBarrier(1, 0, aligned=False)) == tuple(buffers(b"a", b"b"))
    assert sub.poll() == BufferResponse(7, 0, 2, None, CheckpointBarrier(1, 0, aligned=False))
    assert sub.poll() == BufferResponse(7, 1, 1, b"a")


@pytest.mark.parametrize("end", [lambda sub: sub.release(), lambda sub: (sub.add(EndOfPartition()), sub.poll())])
def test_nothing_overtakes_in_a_subpartition_that_has_ended(end: Callable[[Subpartition], object]) -> None:
    sub = requested()
    end(sub)
    assert sub.overtake(CheckpointBarrier(1, 0)) == ()
    assert sub.poll() is None
