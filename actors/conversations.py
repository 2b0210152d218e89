"""All peers of one task: envelopes in and out, and the frames for the task's producers' side.

What concerns received data goes on to the input gate; requests and credit of consumers are answered here.
"""

from __future__ import annotations

from collections.abc import Iterable

from .exchange.frames import (
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
from .exchange.gate import InputGate
from .exchange.links import Incoming, Outgoing
from .exchange.partition import ResultPartition
from .exchange.subpartition import Subpartition
from .settings import TaskSettings

MAX_CALL_BYTES = 4 << 20
"""Data in one call; the first buffer always goes."""


class ProducerFailed(ConnectionError):
    """A producer said that it failed, and nobody has cancelled this task since."""


class Conversations:
    """What a task says and hears.

    Args:
        me: this attempt.
        gate: where received buffers go.
        partitions: what consumers may ask for.
        settings: of the task.
    """

    def __init__(
        self, me: TaskAddress, gate: InputGate, partitions: Iterable[ResultPartition], settings: TaskSettings
    ) -> None:
        self._me, self._gate, self._settings = me, gate, settings
        self._partitions: dict[PartitionId, ResultPartition] = {p.id: p for p in partitions}
        self._readers: dict[tuple[TaskAddress, int], Subpartition] = {}
        self._links: dict[TaskAddress, Outgoing] = {}
        self._incoming: dict[TaskAddress, Incoming] = {}
        self._producer_failed: tuple[str, int] | None = None
        self.stale_messages = 0

    @property
    def calls(self) -> int:
        """Envelopes sent in all."""
        return sum(link.calls for link in self._links.values())

    @property
    def repeated(self) -> int:
        """Envelopes received twice, and dropped."""
        return sum(incoming.repeated for incoming in self._incoming.values())

    @property
    def silent(self) -> bool:
        """Whether nothing is left to say and every call has returned."""
        return not any(link.has_something or link.in_flight for link in self._links.values())

    def say(self, peer: TaskAddress, frame: Frame) -> None:
        """Queue a frame that needs no credit."""
        self._link(peer).say(frame)

    def outgoing(self) -> list[Envelope]:
        """What may be sent now."""
        for producer, frame in self._gate.announcements():
            self.say(producer, frame)
        envelopes = []
        for link in self._links.values():
            while (envelope := link.compose()) is not None:
                envelopes.append(envelope)
        return envelopes

    def returned(self, peer: TaskAddress) -> None:
        """A call to `peer` has returned."""
        self._links[peer].returned()

    def take(self, envelope: Envelope, now_ms: int) -> None:
        """Work an envelope and those that waited for it; one for another attempt is counted and dropped.

        Raises:
            ExchangeError: the protocol was broken.
        """
        if envelope.receiver != self._me:
            self.stale_messages += 1
            return
        incoming = self._incoming.get(envelope.sender)
        if incoming is None:
            incoming = self._incoming[envelope.sender] = Incoming(envelope.sender, self._settings.gap_timeout_ms)
        for ready in incoming.accept(envelope, now_ms):
            for frame in ready.frames:
                self._take_frame(ready.sender, frame, now_ms)

    def check(self, now_ms: int) -> None:
        """Call now and then.

        Raises:
            MessageGap: a missing message is overdue.
            ProducerFailed: a producer said so, and the coordinator has not cancelled this task within the gap timeout.
        """
        for incoming in self._incoming.values():
            incoming.check(now_ms)
        if self._producer_failed is not None and now_ms - self._producer_failed[1] > self._settings.gap_timeout_ms:
            raise ProducerFailed(f"the producer failed: {self._producer_failed[0]}")

    def release(self, cause: str | None) -> None:
        """Give everything up; with a `cause` the consumers are told."""
        for producer, frame in self._gate.release():
            self.say(producer, frame)
        for partition in self._partitions.values():
            for sub in partition.subpartitions:
                told = sub.release(cause)
                if told is not None and sub.consumer is not None:
                    self.say(sub.consumer, told)

    def _take_frame(self, sender: TaskAddress, frame: Frame, now_ms: int) -> None:
        if isinstance(frame, BufferResponse):
            refusal = self._gate.receive(frame)
            if refusal is not None:
                self.say(sender, refusal)
        elif isinstance(frame, AddCredit):
            self._reader(sender, frame.receiver).add_credit(frame.credit)
        elif isinstance(frame, PartitionRequest):
            self._serve(sender, frame)
        elif isinstance(frame, CancelPartitionRequest):
            reader = self._readers.get((sender, frame.receiver))
            if reader is not None:
                reader.release()
        elif isinstance(frame, CloseRequest):
            for (consumer, _), reader in self._readers.items():
                if consumer == sender:
                    reader.release()
        elif isinstance(frame, ErrorResponse):
            self._producer_failed = (frame.cause, now_ms)
        elif isinstance(frame, TaskEventRequest):
            self.say(sender, ErrorResponse(None, "Task event receiver not found."))

    def _serve(self, sender: TaskAddress, request: PartitionRequest) -> None:
        partition = self._partitions.get(request.partition)
        if partition is None or request.subpartition >= len(partition.subpartitions):
            cause = f"PartitionNotFound: {request.partition}, subpartition {request.subpartition}"
            self.say(sender, ErrorResponse(request.receiver, cause))
            return
        sub = partition.subpartitions[request.subpartition]
        sub.request(sender, request.receiver, request.credit)
        self._readers[sender, request.receiver] = sub
        self._link(sender).serve(sub)

    def _reader(self, sender: TaskAddress, receiver: int) -> Subpartition:
        reader = self._readers.get((sender, receiver))
        if reader is None:
            raise LookupError(f"No reader for receiverId = {receiver} of {sender} exists.")
        return reader

    def _link(self, peer: TaskAddress) -> Outgoing:
        link = self._links.get(peer)
        if link is None:
            link = self._links[peer] = Outgoing(self._me, peer, self._settings.max_in_flight, MAX_CALL_BYTES)
        return link
