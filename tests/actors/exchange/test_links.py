"""The conversation of one task with one peer: gathered on the way out, put in order on the way in."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.frames import AddCredit, BufferResponse, Envelope, TaskAddress
from rayflink.actors.exchange.links import Incoming, MessageGap, Outgoing
from rayflink.actors.exchange.subpartition import Buffer, Subpartition
from rayflink.common.records.batches import EndOfPartition, Watermark

ME, PEER = TaskAddress("me"), TaskAddress("peer")


def read_by_peer(outgoing: Outgoing, receiver: int, credit: int, *bodies: bytes) -> Subpartition:
    sub = Subpartition(receiver)
    for body in bodies:
        sub.add(Buffer(body, 1))
    sub.request(PEER, receiver, credit)
    outgoing.serve(sub)
    return sub


def bodies(envelope: Envelope | None) -> list[tuple[int, bytes | None]]:
    assert envelope is not None
    return [(f.receiver, f.body) for f in envelope.frames if isinstance(f, BufferResponse)]


@pytest.mark.spec("N37", "N40")
def test_one_call_carries_everything_for_the_peer() -> None:
    outgoing = Outgoing(ME, PEER, 1, 1 << 20)
    outgoing.say(AddCredit(9, 2))
    read_by_peer(outgoing, 0, 2, b"a0", b"a1", b"a2")
    read_by_peer(outgoing, 1, 1, b"b0").add(Watermark(5))
    envelope = outgoing.compose()
    assert envelope == Envelope(
        ME,
        PEER,
        0,
        (
            AddCredit(9, 2),
            BufferResponse(0, 0, 2, b"a0"),
            BufferResponse(1, 0, 0, b"b0"),
            BufferResponse(0, 1, 1, b"a1"),
            BufferResponse(1, 1, 0, None, Watermark(5)),
        ),
    )
    assert not outgoing.has_something


@pytest.mark.spec("O06", "bound", "again", "N37", "O18", "completion", "P03")
def test_while_its_calls_are_under_way_nothing_is_sent_and_all_is_gathered() -> None:
    outgoing = Outgoing(ME, PEER, 2, 1 << 20)
    outgoing.say(AddCredit(0, 1))
    assert outgoing.compose() is not None
    outgoing.say(AddCredit(1, 1))
    assert outgoing.compose() is not None
    outgoing.say(AddCredit(2, 1))
    outgoing.say(AddCredit(3, 1))
    assert outgoing.compose() is None
    assert outgoing.has_something
    outgoing.returned()
    envelope = outgoing.compose()
    assert envelope is not None
    assert (envelope.sequence, envelope.frames) == (2, (AddCredit(2, 1), AddCredit(3, 1)))
    assert (outgoing.in_flight, outgoing.calls) == (2, 3)


@pytest.mark.spec("O18", "available")
def test_with_nothing_to_say_there_is_no_call() -> None:
    outgoing = Outgoing(ME, PEER, 1, 1 << 20)
    read_by_peer(outgoing, 0, 0, b"no credit")
    assert outgoing.compose() is None
    assert (outgoing.calls, outgoing.in_flight) == (0, 0)


def test_a_call_holds_no_more_than_its_bytes_but_always_one_buffer() -> None:
    outgoing = Outgoing(ME, PEER, 9, max_bytes=10)
    read_by_peer(outgoing, 0, 9, b"x" * 100, b"y" * 6, b"z" * 6, b"w" * 6)
    sizes = []
    while (envelope := outgoing.compose()) is not None:
        sizes.append(envelope.body_bytes)
    assert sizes == [100, 12, 6]


@pytest.mark.spec("O18", "again")
def test_channels_take_turns_across_calls() -> None:
    outgoing = Outgoing(ME, PEER, 9, max_bytes=1)
    read_by_peer(outgoing, 0, 9, b"a", b"a", b"a")
    read_by_peer(outgoing, 1, 9, b"b", b"b", b"b")
    found = [bodies(outgoing.compose())[0][1] for _ in range(6)]
    assert found == [b"a", b"b"] * 3


@pytest.mark.spec("O27", "O26")
def test_what_was_consumed_or_cancelled_is_no_longer_looked_at() -> None:
    outgoing = Outgoing(ME, PEER, 9, 1 << 20)
    ended = read_by_peer(outgoing, 0, 1, b"a")
    ended.add(EndOfPartition())
    cancelled = read_by_peer(outgoing, 1, 1, b"b")
    cancelled.release()
    going = read_by_peer(outgoing, 2, 1, b"c")
    assert [receiver for receiver, _ in bodies(outgoing.compose())] == [0, 2, 0]
    going.add(Watermark(1))
    assert bodies(outgoing.compose()) == [(2, None)]
    assert outgoing._subpartitions == [going]


def numbered(sequence: int) -> Envelope:
    return Envelope(PEER, ME, sequence, (AddCredit(0, sequence + 1),))


@given(st.permutations(range(12)), st.lists(st.integers(0, 11), max_size=12))
def test_each_envelope_is_worked_once_and_in_order(order: list[int], repeats: list[int]) -> None:
    incoming = Incoming(PEER, 1000)
    worked: list[int] = []
    for sequence in [*order[:6], *repeats, *order, *repeats]:
        worked += [envelope.sequence for envelope in incoming.accept(numbered(sequence), 0)]
    assert worked == list(range(12))
    assert incoming.repeated == 6 + 2 * len(repeats)
    incoming.check(10**9)


def test_a_missing_envelope_is_an_error_after_the_deadline() -> None:
    incoming = Incoming(PEER, gap_timeout_ms=1000)
    incoming.accept(numbered(0), 0)
    incoming.check(10**6)
    incoming.accept(numbered(2), 500)
    incoming.check(1500)
    with pytest.raises(MessageGap, match=r"message 1 from peer is missing, waited 1001 ms with 1 later ones") as caught:
        incoming.check(1501)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert [e.sequence for e in incoming.accept(numbered(1), 1501)] == [1, 2]
    incoming.check(10**6)


def test_no_more_than_a_window_is_held_for_a_missing_one() -> None:
    incoming = Incoming(PEER, 1000, window=3)
    for sequence in (1, 2, 3):
        assert incoming.accept(numbered(sequence), 0) == []
    with pytest.raises(MessageGap, match="message 0 from peer is missing"):
        incoming.accept(numbered(4), 0)
