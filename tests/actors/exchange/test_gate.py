"""All input channels of a task, drawn from in turn."""

from __future__ import annotations

import pickle
import sys

import pytest

from rayflink.actors.exchange.frames import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    PartitionId,
    PartitionRequest,
    TaskAddress,
)
from rayflink.actors.exchange.gate import BufferReordering, ChannelSpec, ChannelState, GateItem, InputGate
from rayflink.actors.exchange.subpartition import ExchangeError
from rayflink.common.records.batches import EndOfPartition, Event, Watermark

UNKNOWN = TaskAddress("nobody")


def gate_of(channels: int, exclusive: int = 2, floating: int = 0, gates: int = 1) -> InputGate:
    specs = tuple(
        ChannelSpec(PartitionId("d" * 32, i), 5, TaskAddress(f"producer {i}"), i % gates, i % gates)
        for i in range(channels)
    )
    gate = InputGate(specs, exclusive, floating)
    gate.request_partitions()
    return gate


def data(channel: int, sequence: int, body: bytes = b"x", backlog: int = 0) -> BufferResponse:
    return BufferResponse(channel, sequence, backlog, body)


def event(channel: int, sequence: int, what: Event) -> BufferResponse:
    return BufferResponse(channel, sequence, 0, None, what)


def taken(gate: InputGate) -> list[tuple[int, bytes | Event | None]]:
    items = []
    while (item := gate.next()) is not None:
        items.append((item.channel, item.event if item.body is None else item.body))
    return items


@pytest.mark.spec("N01", "N25", "request", "N27", "once", "O03", "X46", "N30")
def test_each_channel_asks_its_producer_once_with_its_own_buffers_as_credit() -> None:
    gate = InputGate((ChannelSpec(PartitionId("d" * 32, 0), 1, TaskAddress("p")),), 2, 8)
    assert gate.request_partitions() == [("p", PartitionRequest(PartitionId("d" * 32, 0), 1, 0, 2))]
    assert gate.request_partitions() == []


@pytest.mark.spec("N25", "poll", "N30", "O22", "taken", "O24")
def test_what_arrives_is_given_once_and_the_empty_gate_gives_nothing() -> None:
    gate = gate_of(1)
    assert gate.next() is None
    gate.receive(data(0, 0, b"a"))
    assert gate.next() == GateItem(0, 0, b"a", None)
    assert gate.next() is None


@pytest.mark.spec("N26", "N29", "O31", "fair")
def test_channels_take_turns_and_each_keeps_its_order() -> None:
    gate = gate_of(3, gates=2)
    for sequence, body in enumerate((b"a0", b"a1")):
        gate.receive(data(0, sequence, body))
    gate.receive(data(1, 0, b"b0"))
    gate.receive(data(2, 0, b"c0"))
    assert [body for _, body in taken(gate)] == [b"a0", b"b0", b"c0", b"a1"]


@pytest.mark.spec("X56", "O24")
def test_a_gap_in_the_sequence_is_an_error() -> None:
    gate = gate_of(1, exclusive=4)
    gate.receive(data(0, 0))
    gate.receive(data(0, 1))
    with pytest.raises(BufferReordering, match="expected buffer with sequence number 2, but received 3") as caught:
        gate.receive(data(0, 3))
    assert (caught.value.expected, caught.value.actual) == (2, 3)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.spec("O24")
def test_a_repeated_buffer_is_an_error() -> None:
    gate = gate_of(1)
    gate.receive(data(0, 0))
    with pytest.raises(BufferReordering):
        gate.receive(data(0, 0))


@pytest.mark.spec("O22", "missing")
def test_a_buffer_without_credit_is_an_error() -> None:
    gate = gate_of(1, exclusive=1)
    gate.receive(data(0, 0))
    with pytest.raises(ExchangeError, match="no buffer available in channel 0"):
        gate.receive(data(0, 1))


@pytest.mark.spec("O23", "O09")
def test_events_occupy_no_buffer() -> None:
    gate = gate_of(1, exclusive=1)
    for sequence in range(5):
        gate.receive(event(0, sequence, Watermark(sequence)))
    gate.receive(data(0, 5))
    assert gate.announcements() == []


@pytest.mark.spec("O23", "O10")
def test_an_event_says_what_waits_behind_it() -> None:
    gate = gate_of(1, exclusive=1, floating=3)
    gate.receive(BufferResponse(0, 0, 2, None, Watermark(1)))
    assert gate.announcements() == [("producer 0", AddCredit(0, 2))]


def test_watermarks_that_wait_behind_one_another_are_one() -> None:
    gate = gate_of(2)
    for sequence in range(1000):
        gate.receive(event(0, sequence, Watermark(sequence)))
    gate.receive(data(0, 1000))
    gate.receive(event(0, 1001, Watermark(2000)))
    gate.receive(event(1, 0, Watermark(7)))
    assert gate.queued == 4
    assert taken(gate) == [(0, Watermark(999)), (1, Watermark(7)), (0, b"x"), (0, Watermark(2000))]


@pytest.mark.spec("O21", "cancelled")
def test_an_unknown_channel_is_cancelled() -> None:
    gate = gate_of(1)
    assert gate.receive(data(4, 0)) == CancelPartitionRequest(4)
    assert gate.receive(data(-1, 0)) == CancelPartitionRequest(-1)


@pytest.mark.spec("O21", "released")
def test_a_buffer_of_an_unknown_channel_is_held_by_nobody() -> None:
    gate, body = gate_of(1), bytearray(b"x" * 1_000)
    before = sys.getrefcount(body)
    assert gate.receive(data(4, 0, body)) == CancelPartitionRequest(4)  # type: ignore[arg-type]
    assert sys.getrefcount(body) == before
    assert (gate.queued, gate.next()) == (0, None)
    assert gate.receive(data(0, 0)) is gate.receive(data(0, 1)) is None, "both buffers of channel 0 are still its own"


def test_another_attempt_of_the_producer_is_cancelled() -> None:
    gate = gate_of(1)
    assert gate.receive(data(0, 0), UNKNOWN) == CancelPartitionRequest(0)
    assert gate.receive(data(0, 0), TaskAddress("producer 0")) is None
    assert gate.queued == 1


@pytest.mark.spec("N26", "O22", "released", "N30")
def test_a_released_gate_wants_nothing_and_gives_nothing() -> None:
    gate = gate_of(2)
    gate.receive(data(0, 0))
    gate.receive(event(1, 0, EndOfPartition()))
    taken(gate)
    gate.preload(0, [b"of the checkpoint"])
    assert gate.has_input
    assert gate.release() == [("producer 0", CancelPartitionRequest(0))]
    assert (gate.has_input, gate.queued, gate.statistics().restored) == (False, 0, 0)
    assert gate.receive(data(0, 1)) == CancelPartitionRequest(0)
    assert gate.release() == []
    with pytest.raises(ExchangeError, match="after it was released"):
        gate.next()


@pytest.mark.spec("N28", "finished", "N25", "finished", "N26")
def test_the_gate_is_finished_when_every_channel_has_ended() -> None:
    gate = gate_of(2)
    gate.receive(event(0, 0, EndOfPartition()))
    gate.receive(data(1, 0))
    assert not gate.is_finished
    taken(gate)
    assert not gate.is_finished
    assert gate.channels[0].state is ChannelState.FINISHED
    gate.receive(event(1, 1, EndOfPartition()))
    taken(gate)
    assert gate.is_finished


def test_a_gate_without_channels_is_finished() -> None:
    assert InputGate((), 2, 8).is_finished


@pytest.mark.spec("O10", "O16", "reset", "receiver", "O31", "messages")
def test_credit_follows_the_backlog_and_is_announced_once() -> None:
    gate = gate_of(2, exclusive=2, floating=3)
    gate.receive(data(0, 0, backlog=2))
    assert gate.announcements() == [("producer 0", AddCredit(0, 3))]
    assert gate.announcements() == []


@pytest.mark.spec("M11", "P02", "processed")
def test_a_buffer_is_credit_again_only_when_its_batch_has_been_worked() -> None:
    gate = gate_of(1, exclusive=1)
    gate.receive(data(0, 0))
    gate.next()
    assert gate.announcements() == []
    gate.recycle(0)
    assert gate.announcements() == [("producer 0", AddCredit(0, 1))]


@pytest.mark.spec("O11")
def test_a_buffer_that_comes_back_serves_the_channel_that_waits_for_it() -> None:
    gate = gate_of(2, exclusive=1, floating=1)
    gate.receive(data(0, 0, backlog=1))
    gate.receive(data(0, 1))
    gate.receive(data(1, 0, backlog=1))
    assert gate.announcements() == [("producer 0", AddCredit(0, 1))]
    gate.next()
    gate.recycle(0)
    assert [frame for _, frame in gate.announcements()] == [AddCredit(0, 1)]
    gate.recycle(0)
    assert AddCredit(1, 1) in [frame for _, frame in gate.announcements()]


@pytest.mark.spec("N28", "released")
def test_a_channel_that_has_ended_leaves_its_floating_buffers_to_the_others() -> None:
    gate = gate_of(2, exclusive=1, floating=1)
    gate.receive(data(0, 0, backlog=1))
    gate.receive(data(1, 0, backlog=1))
    assert gate.announcements() == [("producer 0", AddCredit(0, 1))]
    gate.receive(event(0, 1, EndOfPartition()))
    taken(gate)
    assert gate.announcements() == [("producer 1", AddCredit(1, 1))]
    assert gate.receive(data(0, 2)) == CancelPartitionRequest(0), "it takes nothing more"


@pytest.mark.spec("O11", "O31", "fair")
def test_under_skew_floating_buffers_go_where_the_backlog_is() -> None:
    gate = gate_of(3, exclusive=1, floating=4)
    for channel, backlog in enumerate((4, 2, 0)):
        gate.receive(data(channel, 0, backlog=backlog))
    assert gate.announcements() == [("producer 0", AddCredit(0, 4))]
    for sequence in range(1, 5):
        gate.receive(data(0, sequence))
    while (item := gate.next()) is not None:
        gate.recycle(item.channel)
    assert {frame for _, frame in gate.announcements()} == {AddCredit(0, 1), AddCredit(1, 3), AddCredit(2, 1)}


@pytest.mark.spec("O11", "M17", "floating")
def test_gates_do_not_share_floating_buffers() -> None:
    gate = gate_of(2, exclusive=1, floating=1, gates=2)
    gate.receive(data(0, 0, backlog=5))
    gate.receive(data(1, 0, backlog=5))
    assert [frame for _, frame in gate.announcements()] == [AddCredit(0, 1), AddCredit(1, 1)]


@pytest.mark.spec("O16", "released")
def test_no_credit_is_announced_for_a_channel_that_has_ended() -> None:
    gate = gate_of(1)
    gate.receive(data(0, 0))
    gate.receive(event(0, 1, EndOfPartition()))
    taken(gate)
    gate.recycle(0)
    assert gate.announcements() == []


@pytest.mark.spec("H13", "H14")
def test_a_channel_held_back_keeps_what_it_has_until_all_go_on() -> None:
    gate = gate_of(2)
    gate.receive(data(0, 0, b"a0"))
    gate.block(0)
    gate.receive(data(0, 1, b"a1"))
    gate.receive(data(1, 0, b"b0"))
    assert taken(gate) == [(1, b"b0")]
    gate.unblock()
    assert taken(gate) == [(0, b"a0"), (0, b"a1")]
