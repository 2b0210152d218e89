"""A task's end of the exchange with all its peers: envelopes in and out, and the frames for its role as producer.

What concerns received data goes on to the input gate; requests and credit of consumers are answered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from rayflink.common.text_output.logs import get_logger

from .exchange_statistics import EndpointStatistics
from .frames import (
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
    WindowUpdate,
)
from .gate import InputGate
from .links import Incoming, Outgoing
from .partition import ResultPartition
from .registry import PartitionNotFound, PartitionRegistry
from .subpartition import Subpartition

log = get_logger(__name__)

MAX_CALL_BYTES = 4 << 20
"""Data in one call; the first buffer always goes."""


class ProducerFailed(ConnectionError):
    """A producer reported its failure, and the coordinator has not cancelled this task since."""


class ExchangeEndpoint:
    """Sends and receives a task's envelopes.

    Args:
        me: this attempt.
        gate: where received buffers go.
        partitions: what consumers may ask for.
        max_in_flight: envelopes to one peer that may wait for their answer.
        gap_timeout_ms: how long an envelope may be missing before its channel has failed.
    """

    def __init__(
        self,
        me: TaskAddress,
        gate: InputGate,
        partitions: Iterable[ResultPartition],
        max_in_flight: int,
        gap_timeout_ms: int,
    ) -> None:
        self._me, self._gate = me, gate
        self._max_in_flight, self._gap_timeout_ms = max_in_flight, gap_timeout_ms
        self._registry = PartitionRegistry(partitions)
        self._readers: dict[tuple[TaskAddress, int], Subpartition] = {}
        self._links: dict[TaskAddress, Outgoing] = {}
        self._incoming: dict[TaskAddress, Incoming] = {}
        self._composed: list[Envelope] = []
        self._producer_failed: tuple[str, int] | None = None
        self.stale_messages = 0

    @property
    def calls(self) -> int:
        """Return the number of envelopes sent in all."""
        return sum(link.calls for link in self._links.values())

    @property
    def repeated(self) -> int:
        """Return the number of envelopes that were received twice, and dropped."""
        return sum(incoming.repeated for incoming in self._incoming.values())

    @property
    def silent(self) -> bool:
        """Return whether nothing is left to send and every call has returned."""
        return not any(link.has_something or link.in_flight for link in self._links.values())

    def say(self, peer: TaskAddress, frame: Frame) -> None:
        """Queue a frame that needs no credit."""
        self._link(peer).say(frame)

    def outgoing(self) -> list[Envelope]:
        """Return the envelopes that may be sent now.

        Raises:
            SpillError: data cannot be read again; what was composed before comes with the next call.
        """
        for producer, frame in self._gate.announcements():
            self.say(producer, frame)
        for link in self._links.values():
            while (envelope := link.compose()) is not None:
                self._composed.append(envelope)
        composed, self._composed = self._composed, []
        return composed

    def returned(self, peer: TaskAddress) -> None:
        """Note that a call to `peer` has returned."""
        self._links[peer].returned()

    def take(self, envelope: Envelope, now_ms: int) -> None:
        """Process an envelope and those that waited for it; one for another attempt is counted and dropped.

        Raises:
            ExchangeError: the protocol was broken.
        """
        if envelope.receiver != self._me:
            self.stale_messages += 1
            return
        incoming = self._incoming.get(envelope.sender)
        if incoming is None:
            incoming = self._incoming[envelope.sender] = Incoming(envelope.sender, self._gap_timeout_ms)
        for ready in incoming.accept(envelope, now_ms):
            for frame in ready.frames:
                self._handle_frame(ready.sender, frame, now_ms)

    def check(self, now_ms: int) -> None:
        """Check deadlines; to be called now and then.

        Raises:
            MessageGap: a missing message is overdue.
            ProducerFailed: a producer said so, and the coordinator has not cancelled this task within the gap timeout.
        """
        for incoming in self._incoming.values():
            incoming.check(now_ms)
        for producer, frame in self._gate.repeated_requests(now_ms):
            self.say(producer, frame)
        if self._producer_failed is not None and now_ms - self._producer_failed[1] > self._gap_timeout_ms:
            raise ProducerFailed(f"the producer failed: {self._producer_failed[0]}")

    def deadline_ms(self) -> int | None:
        """Return when `check` has something to do that no mail announces, or None."""
        return self._gate.retry_ms()

    def subscribe(self, partition: PartitionId, event: type, listener: Callable[[object], None]) -> None:
        """Call the listener with events of type `event` that consumers of one of this task's partitions send upstream.

        Raises:
            PartitionNotFound: this task produces no such partition.
        """
        self._registry.subscribe(partition, event, listener)

    def send_task_event(self, event: object) -> None:
        """Send an event upstream, to the producers of all channels.

        Raises:
            ExchangeError: a producer was not asked for its data yet, or the gate is released.
        """
        for producer, frame in self._gate.task_events(event):
            self.say(producer, frame)

    def release(self, cause: str | None) -> None:
        """Release all channels and partitions; a `cause` is reported to the consumers."""
        for producer, frame in self._gate.release():
            self.say(producer, frame)
        for partition in self._registry.shut_down():
            for sub in partition.subpartitions:
                error = sub.release(cause)
                if error is not None and sub.consumer is not None:
                    self.say(sub.consumer, error)

    def statistics(self) -> EndpointStatistics:
        """Return the present counts of the messages to and from every peer."""
        return EndpointStatistics(
            {peer: link.statistics() for peer, link in self._links.items()},
            {peer: incoming.statistics() for peer, incoming in self._incoming.items()},
            self.stale_messages,
        )

    def _handle_frame(self, sender: TaskAddress, frame: Frame, now_ms: int) -> None:
        match frame:
            case BufferResponse():
                refusal = self._gate.receive(frame, sender, now_ms)
                if refusal is not None:
                    self.say(sender, refusal)
            case AddCredit():
                self._reader(sender, frame.receiver).add_credit(frame.credit)
            case WindowUpdate():
                if (reader := self._readers.get((sender, frame.receiver))) is not None:
                    reader.update_window(frame.worked, frame.window, frame.buffer_rows)
            case PartitionRequest():
                self._serve(sender, frame)
            case CancelPartitionRequest():
                if (reader := self._readers.get((sender, frame.receiver))) is not None:
                    reader.release()
            case CloseRequest():
                for (consumer, _), reader in self._readers.items():
                    if consumer == sender:
                        reader.release()
            case ErrorResponse():
                self._handle_error(sender, frame, now_ms)
            case TaskEventRequest():
                if not self._registry.publish(frame.partition, frame.event):
                    self.say(sender, ErrorResponse(frame.receiver, "Task event receiver not found."))
            case _:
                _drop_unknown(frame, sender)

    def _handle_error(self, sender: TaskAddress, error: ErrorResponse, now_ms: int) -> None:
        """Fail the task after an error, unless the channels concerned are complete, or may ask again."""
        channels = self._gate.reading_from(sender, error.receiver)
        if error.retryable:
            for channel in channels:
                self._gate.unknown_partition(channel, now_ms)
        elif channels and self._producer_failed is None:
            self._producer_failed = (f"{error.cause} (input channels {channels}, producer {sender})", now_ms)

    def _serve(self, sender: TaskAddress, request: PartitionRequest) -> None:
        try:
            sub = self._registry.subpartition(request.partition, request.subpartition)
        except PartitionNotFound as error:
            self.say(sender, ErrorResponse(request.receiver, str(error), retryable=True))
            return
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
            link = self._links[peer] = Outgoing(self._me, peer, self._max_in_flight, MAX_CALL_BYTES)
        return link


def _drop_unknown(frame: NoReturn, sender: TaskAddress) -> None:
    """Drop what is no frame: mypy rejects the call while a frame has no case, and a peer of another version may send
    one.
    """
    log.warning("unexpected message from %s dropped: %r", sender, frame)
