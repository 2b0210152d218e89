"""What a task says to its peers and how it takes what they say."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rayflink.actors.exchange.endpoint import ExchangeEndpoint, ProducerFailed
from rayflink.actors.exchange.frames import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    CloseRequest,
    Envelope,
    ErrorResponse,
    Frame,
    PartitionId,
    PartitionRequest,
    TaskAddress,
    TaskEventRequest,
)
from rayflink.actors.exchange.gate import ChannelSpec, InputGate
from rayflink.actors.exchange.partition import PoolLimits, ResultPartition
from rayflink.actors.exchange.registry import PartitionNotFound
from rayflink.actors.exchange.subpartition import Buffer, ExchangeError, SubpartitionState
from rayflink.actors.messages.settings import TaskSettings
from rayflink.common.records.batches import CheckpointBarrier, EndOfPartition

ME, UP, DOWN = TaskAddress("me"), TaskAddress("upstream"), TaskAddress("downstream")
OTHER = TaskAddress("another producer")
MINE = PartitionId("b" * 32, 0)


class Talk:
    """One task's conversations; the test is every peer of it."""

    def __init__(self, producers: tuple[TaskAddress, ...] = (UP, UP, OTHER), subpartitions: int = 2) -> None:
        specs = tuple(ChannelSpec(PartitionId("a" * 32, i), 0, peer) for i, peer in enumerate(producers))
        self.gate = InputGate(specs, 2, 0, backoff_ms=(100, 400))
        self.partition = ResultPartition(MINE, subpartitions, PoolLimits(8, 8))
        self.peers = ExchangeEndpoint(ME, self.gate, [self.partition], TaskSettings().max_in_flight, 1_000)
        for producer, request in self.gate.request_partitions():
            self.peers.say(producer, request)
        self._numbers: dict[TaskAddress, int] = {}
        self.heard()

    def hear(self, sender: TaskAddress, *frames: Any, now_ms: int = 0) -> None:
        number = self._numbers.get(sender, 0)
        self._numbers[sender] = number + 1
        self.peers.take(Envelope(sender, ME, number, frames), now_ms)

    def envelopes(self) -> list[Envelope]:
        envelopes = self.peers.outgoing()
        for envelope in envelopes:
            self.peers.returned(envelope.receiver)
        return envelopes

    def heard(self) -> list[tuple[TaskAddress, Frame]]:
        """What the task has said since the last call."""
        return [(envelope.receiver, frame) for envelope in self.envelopes() for frame in envelope.frames]

    def read(self, subpartition: int = 0, receiver: int = 0, credit: int = 2) -> None:
        self.hear(DOWN, PartitionRequest(MINE, subpartition, receiver, credit))


def buffers(frames: list[tuple[TaskAddress, Frame]]) -> list[tuple[int, bytes | None]]:
    return [(frame.receiver, frame.body) for _, frame in frames if isinstance(frame, BufferResponse)]


# the producer's side


@pytest.mark.spec("O07", "N31", "view")
def test_a_request_makes_a_reader_and_credit_lets_it_go_on() -> None:
    talk = Talk()
    for number in range(3):
        talk.partition.add(1, Buffer(b"%d" % number, 1))
    talk.read(subpartition=1, receiver=7, credit=1)
    assert talk.heard() == [(DOWN, BufferResponse(7, 0, 2, b"0"))]
    assert talk.heard() == []
    talk.hear(DOWN, AddCredit(7, 2))
    assert buffers(talk.heard()) == [(7, b"1"), (7, b"2")]


@pytest.mark.spec("O07", "N31", "view", "O04", "answered")
@pytest.mark.parametrize("wrong", [(PartitionId("c" * 32, 0), 0), (PartitionId("b" * 32, 1), 0), (MINE, 2)])
def test_a_request_for_what_is_not_there_is_answered_with_an_error(wrong: tuple[PartitionId, int]) -> None:
    talk = Talk()
    talk.hear(DOWN, PartitionRequest(*wrong, receiver=3, credit=2))
    [(peer, answer)] = talk.heard()
    assert isinstance(answer, ErrorResponse)
    assert (peer, answer.receiver, answer.retryable) == (DOWN, 3, True)
    assert answer.cause.startswith("PartitionNotFound: partition ")


@pytest.mark.spec("O07")
@pytest.mark.parametrize(("goodbye", "left"), [(CancelPartitionRequest(0), [1]), (CloseRequest(), [])])
def test_a_cancel_releases_one_reader_and_a_close_all_of_the_consumer(goodbye: Frame, left: list[int]) -> None:
    talk = Talk()
    talk.read(0, receiver=0)
    talk.read(1, receiver=1)
    talk.hear(DOWN, goodbye)
    reading = [s.index for s in talk.partition.subpartitions if s.state is SubpartitionState.READING]
    assert reading == left
    assert talk.partition.fully_consumed is (left == [])


@pytest.mark.spec("O07")
def test_a_message_nobody_knows_is_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk()
    with caplog.at_level(logging.WARNING):
        talk.hear(DOWN, "hello", PartitionRequest(MINE, 0, 0, 1))
    assert "unexpected message from downstream dropped: 'hello'" in caplog.text
    assert talk.partition.subpartitions[0].state is SubpartitionState.READING


@pytest.mark.spec("O20")
def test_credit_for_a_reader_that_does_not_exist_is_an_error() -> None:
    talk = Talk()
    talk.read(receiver=4)
    with pytest.raises(LookupError, match=r"No reader for receiverId = 5 of downstream exists\."):
        talk.hear(DOWN, AddCredit(5, 1))


@pytest.mark.spec("O28", "staged")
def test_what_has_no_credit_is_staged_and_goes_in_its_order() -> None:
    talk = Talk()
    talk.read(credit=0)
    for number in range(4):
        talk.partition.add(0, Buffer(b"%d" % number, 1))
    assert talk.heard() == []
    talk.hear(DOWN, AddCredit(0, 1))
    assert buffers(talk.heard()) == [(0, b"0")]
    talk.hear(DOWN, AddCredit(0, 5))
    assert [body for _, body in buffers(talk.heard())] == [b"1", b"2", b"3"]


@pytest.mark.spec("O29", "avoided", "O31", "unblocked", "P03")
def test_a_channel_without_credit_holds_up_neither_its_neighbour_nor_a_barrier() -> None:
    talk = Talk()
    talk.read(0, receiver=0, credit=0)
    talk.read(1, receiver=1, credit=1)
    talk.partition.add(0, Buffer(b"stuck", 1))
    talk.partition.add(1, Buffer(b"goes", 1))
    barrier = CheckpointBarrier(1, 0)
    talk.partition.subpartitions[1].add(barrier)
    frames = [frame for _, frame in talk.heard()]
    assert frames == [BufferResponse(1, 0, 0, b"goes"), BufferResponse(1, 1, 0, None, barrier)]


@pytest.mark.spec("O05", "one")
def test_two_tasks_share_one_connection_for_all_their_channels() -> None:
    talk = Talk()
    talk.read(0, receiver=0)
    talk.read(1, receiver=1)
    for channel in range(2):
        talk.partition.add(channel, Buffer(b"x", 1))
        talk.partition.subpartitions[channel].add(EndOfPartition())
    [envelope] = talk.envelopes()
    assert (envelope.receiver, len(envelope.frames)) == (DOWN, 4)
    assert talk.peers.silent
    assert talk.partition.fully_consumed


@pytest.mark.spec("N33", "O07", "C35", "events", "N36", "task-event")
def test_an_event_against_the_stream_reaches_its_subscriber() -> None:
    talk, heard = Talk(), list[object]()
    talk.peers.subscribe(MINE, str, heard.append)
    talk.hear(DOWN, TaskEventRequest(MINE, "superstep 3 done", 0))
    assert heard == ["superstep 3 done"]
    assert talk.heard() == []


@pytest.mark.spec("N33", "O07")
def test_an_event_nobody_subscribed_to_is_answered_with_an_error() -> None:
    talk = Talk()
    talk.hear(DOWN, TaskEventRequest(MINE, "superstep 3 done", 6))
    assert talk.heard() == [(DOWN, ErrorResponse(6, "Task event receiver not found."))]
    with pytest.raises(PartitionNotFound):
        talk.peers.subscribe(PartitionId("c" * 32, 0), str, print)


# the consumer's side


def test_what_another_attempt_of_the_producer_sends_is_refused() -> None:
    talk, stale = Talk(), TaskAddress("upstream, attempt 0")
    talk.hear(stale, BufferResponse(0, 0, 0, b"old"))
    assert talk.heard() == [(stale, CancelPartitionRequest(0))]
    talk.hear(UP, BufferResponse(0, 0, 0, b"new"))
    item = talk.gate.next()
    assert item is not None
    assert item.body == b"new"


@pytest.mark.spec("N31", "backoff", "O04", "delayed")
def test_a_partition_the_producer_does_not_know_yet_is_asked_for_again_and_again() -> None:
    talk = Talk()
    missing = ErrorResponse(1, "PartitionNotFound", retryable=True)
    now = 0
    for wait in (100, 200, 400):
        talk.hear(UP, missing, now_ms=now)
        assert talk.peers.deadline_ms() == now + wait
        talk.peers.check(now + wait - 1)
        assert talk.heard() == []
        now += wait
        talk.peers.check(now)
        assert talk.heard() == [(UP, PartitionRequest(PartitionId("a" * 32, 1), 0, 1, 2))]
        assert talk.peers.deadline_ms() is None
    with pytest.raises(PartitionNotFound, match=r"producer 1, subpartition 0"):
        talk.hear(UP, missing, now_ms=now)


@pytest.mark.spec("N31", "backoff")
def test_a_released_gate_asks_no_more() -> None:
    talk = Talk()
    talk.hear(UP, ErrorResponse(1, "PartitionNotFound", retryable=True))
    talk.peers.release(None)
    talk.heard()
    talk.peers.check(10_000)
    assert talk.heard() == []


@pytest.mark.spec("N31", "released", "O25", "channel")
@pytest.mark.parametrize(("receiver", "channels"), [(1, "[1]"), (None, "[0, 1]")])
def test_an_error_concerns_its_channel_or_all_of_the_connection(receiver: int | None, channels: str) -> None:
    talk = Talk()
    talk.hear(UP, ErrorResponse(receiver, "ValueError: boom"), now_ms=10)
    talk.peers.check(1_010)  # the coordinator has its time to cancel the task, whose failure would be a consequence
    expected = f"the producer failed: ValueError: boom (input channels {channels}, producer upstream)"
    with pytest.raises(ProducerFailed) as caught:
        talk.peers.check(1_011)
    assert str(caught.value) == expected


@pytest.mark.spec("O25", "channel")
@pytest.mark.parametrize("error", [ErrorResponse(2, "boom"), ErrorResponse(0, "boom"), ErrorResponse(9, "boom")])
def test_an_error_about_an_ended_channel_or_of_another_sender_changes_nothing(error: ErrorResponse) -> None:
    talk = Talk()
    talk.hear(UP, BufferResponse(0, 0, 0, None, EndOfPartition()))
    assert talk.gate.next() is not None
    talk.hear(UP, error)
    talk.peers.check(100_000)


@pytest.mark.spec("N33", "N25", "event")
def test_an_event_goes_to_the_producer_of_every_channel_that_is_read() -> None:
    talk = Talk(producers=(UP, OTHER))
    talk.hear(OTHER, BufferResponse(1, 0, 0, None, EndOfPartition()))
    talk.gate.next()
    talk.peers.send_task_event("done")
    assert talk.heard() == [(UP, TaskEventRequest(PartitionId("a" * 32, 0), "done", 0))]


@pytest.mark.spec("N33")
def test_an_event_without_a_producer_is_an_error() -> None:
    gate = InputGate((ChannelSpec(PartitionId("a" * 32, 0), 0, UP),), 2, 0)
    peers = ExchangeEndpoint(ME, gate, [], 2, 1_000)
    wanted = r"Error while publishing event 'done' to producer\. The producer could not be found\."
    with pytest.raises(ExchangeError, match=wanted):
        peers.send_task_event("done")
    gate.request_partitions()
    peers.send_task_event("done")
    gate.release()
    with pytest.raises(ExchangeError, match=wanted):
        peers.send_task_event("done")


@pytest.mark.spec("O05", "concurrency")
def test_requests_of_several_channels_that_come_at_once_go_by_one_connection() -> None:
    talk = Talk()
    talk.hear(DOWN, *(PartitionRequest(MINE, channel, channel, 1) for channel in range(2)), AddCredit(1, 1))
    for channel in range(2):
        talk.partition.add(channel, Buffer(b"x", 1))
    [envelope] = talk.envelopes()
    assert (envelope.receiver, envelope.sequence) == (DOWN, 0)
    assert buffers([(DOWN, frame) for frame in envelope.frames]) == [(0, b"x"), (1, b"x")]
    talk.partition.add(1, Buffer(b"y", 1))
    [envelope] = talk.envelopes()
    assert (envelope.receiver, envelope.sequence) == (DOWN, 1), "the same connection goes on"


@pytest.mark.spec("O05", "counted")
def test_a_connection_lasts_until_its_last_channel_is_released() -> None:
    talk = Talk()
    talk.read(0, receiver=0)
    talk.read(1, receiver=1)
    talk.hear(DOWN, CancelPartitionRequest(0))
    assert not talk.partition.fully_consumed
    talk.partition.add(1, Buffer(b"x", 1))
    assert buffers(talk.heard()) == [(1, b"x")], "the other channel still has it"
    talk.hear(DOWN, CancelPartitionRequest(1))
    assert talk.partition.fully_consumed and talk.peers.silent
    assert talk.heard() == []
