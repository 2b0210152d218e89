"""The input gate: all input channels of a task, read in turn.

Source: apache/flink SingleInputGate, UnionInputGate, RemoteInputChannel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from rayflink.common.records.batches import CheckpointBarrier, EndOfPartition, Event, Watermark

from .alignment import BarrierArrivals
from .backoff import RequestBackoff
from .credits import ChannelCredit, FloatingPool
from .debloating import BufferDebloater
from .exchange_statistics import ChannelStatistics, GateStatistics
from .frames import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    Frame,
    PartitionId,
    PartitionRequest,
    TaskAddress,
    TaskEventRequest,
    WindowUpdate,
)
from .recording import InputRecording
from .registry import PartitionNotFound
from .subpartition import ExchangeError


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """The description of an input channel: which subpartition of which producer it reads, for which input.

    Where it delivers `in_order`, no barrier overtakes its records.
    """

    partition: PartitionId
    subpartition: int
    producer: TaskAddress
    gate: int = 0
    input_index: int = 0
    in_order: bool = False


class BufferReordering(ExchangeError):
    """A buffer arrived out of order."""

    def __init__(self, channel: int, expected: int, actual: int) -> None:
        super().__init__(channel, expected, actual)
        self.channel, self.expected, self.actual = channel, expected, actual

    def __str__(self) -> str:
        return (
            f"buffer re-ordering on channel {self.channel}: expected buffer with sequence number {self.expected}, "
            f"but received {self.actual}; a message was lost, the attempt must be restarted"
        )


class ChannelState(Enum):
    """Life of an input channel: not asked for yet, delivering, ended."""

    CREATED = "created"
    REQUESTED = "requested"
    FINISHED = "finished"
    RELEASED = "released"


class InputChannel:
    """One subpartition as its consumer sees it."""

    def __init__(self, index: int, spec: ChannelSpec, credit: ChannelCredit, backoff: RequestBackoff) -> None:
        self.index, self.spec, self.credit, self.backoff = index, spec, credit, backoff
        self.state = ChannelState.CREATED
        self.next_sequence = 0
        self.blocked = False
        self.queue: deque[bytes | Event] = deque()
        self.buffers_in = 0
        self.bytes_in = 0

    def request(self) -> PartitionRequest:
        """Return the request for the producer, with the channel's own buffers as credit."""
        return PartitionRequest(self.spec.partition, self.spec.subpartition, self.index, self.credit.initial)

    def statistics(self) -> ChannelStatistics:
        """Return the present counts."""
        received = self.buffers_in, self.bytes_in
        return ChannelStatistics(self.state.name, self.blocked, len(self.queue), *received, self.credit.statistics())


@dataclass(frozen=True, slots=True)
class GateItem:
    """An item of the gate: an encoded batch (`body`), whose buffer must be recycled, or an event."""

    channel: int
    input_index: int
    body: bytes | None
    event: Event | None


class InputGate:
    """The channels of all inputs of one task.

    Args:
        specs: one a channel.
        exclusive: buffers each channel owns.
        floating: buffers each gate (job edge) lends to its channels.
        backoff_ms: first and longest wait before a partition its producer does not know is asked for again.
        debloater: sizes the channels' windows in records; None: only credit bounds what is in flight.
    """

    def __init__(
        self,
        specs: tuple[ChannelSpec, ...],
        exclusive: int,
        floating: int,
        backoff_ms: tuple[int, int] = (100, 10_000),
        debloater: BufferDebloater | None = None,
    ) -> None:
        self.debloater = debloater
        self._windows_due: set[int] = set()
        self._pools = pools = {gate: FloatingPool(floating) for gate in dict.fromkeys(spec.gate for spec in specs)}
        self._retries: list[tuple[int, int]] = []  # when, which channel
        self._ready: deque[int] = deque()
        self._queued = [False] * len(specs)
        self._unfinished = len(specs)
        self._credit_due: list[int] = []
        self._released = False
        self._restored: deque[tuple[int, bytes]] = deque()
        self._works_restored = False
        self._recording: InputRecording | None = None
        self.overtaking: list[CheckpointBarrier] = []
        """Barriers that may overtake records, received since the task looked; they wait in their channels as well."""
        self.arrivals = BarrierArrivals()
        note = self._credit_due.append
        self.channels = [
            InputChannel(
                i, spec, ChannelCredit(exclusive, pools[spec.gate], partial(note, i)), RequestBackoff(*backoff_ms)
            )
            for i, spec in enumerate(specs)
        ]

    @property
    def is_finished(self) -> bool:
        """Return whether every channel has delivered its end of partition."""
        return self._unfinished == 0

    @property
    def floating(self) -> dict[int, int]:
        """Return for each gate the buffers it lends to its channels."""
        return {gate: pool.size for gate, pool in self._pools.items()}

    def channels_of(self, gate: int) -> int:
        """Return the number of channels of a gate."""
        return sum(1 for channel in self.channels if channel.spec.gate == gate)

    def lend(self, gate: int, floating: int) -> None:
        """Set the number of buffers that a gate lends; call this before its partitions are requested."""
        self._pools[gate].resize(floating)

    def preload(self, channel: int, bodies: Iterable[bytes]) -> None:
        """Restore the buffers that a channel had received when the checkpoint was taken, without credit."""
        self._restored.extend((channel, body) for body in bodies)

    def record(self, checkpoint_id: int, channels: Collection[int], current: tuple[int, list[bytes]]) -> InputRecording:
        """Record the data of channels in front of a barrier until it comes; only the newest recording goes on.

        Args:
            current: the channel of the buffer in work, and the encoded rest of that buffer.
        """
        recording = self._recording = InputRecording(checkpoint_id, channels)
        for body in current[1]:
            recording.note(current[0], body)
        for channel, body in self._restored:
            recording.note(channel, body)
        for index in channels:
            for item in self.channels[index].queue:
                recording.note(index, item)
        return recording

    def request_partitions(self) -> list[tuple[TaskAddress, Frame]]:
        """Request a subpartition from every producer; only the first call does so."""
        requests: list[tuple[TaskAddress, Frame]] = []
        for channel in self.channels:
            if channel.state is ChannelState.CREATED:
                channel.state = ChannelState.REQUESTED
                requests.append((channel.spec.producer, channel.request()))
        return requests

    def unknown_partition(self, index: int, now_ms: int) -> None:
        """Schedule another request to a producer that does not know the partition of a channel.

        Raises:
            PartitionNotFound: it was asked often enough.
        """
        channel = self.channels[index]
        wait = channel.backoff.next_ms()
        if wait is None:
            raise PartitionNotFound(channel.spec.partition, channel.spec.subpartition)
        self._retries.append((now_ms + wait, index))

    def repeated_requests(self, now_ms: int) -> list[tuple[TaskAddress, Frame]]:
        """Return the requests whose wait is over."""
        if not self._retries:
            return []
        due = [index for when, index in self._retries if when <= now_ms]
        self._retries = [(when, index) for when, index in self._retries if when > now_ms]
        channels = [self.channels[index] for index in due]
        return [(c.spec.producer, c.request()) for c in channels if c.state is ChannelState.REQUESTED]

    def retry_ms(self) -> int | None:
        """Return the time at which the next request is due again, or None."""
        return min((when for when, _ in self._retries), default=None)

    def reading_from(self, producer: TaskAddress, receiver: int | None) -> list[int]:
        """Return the channels that still expect data of `producer`: all of them, or only `receiver` if it is one."""
        return [
            channel.index
            for channel in self.channels
            if channel.state is ChannelState.REQUESTED
            and channel.spec.producer == producer
            and receiver in (None, channel.index)
        ]

    def task_events(self, event: object) -> list[tuple[TaskAddress, Frame]]:
        """Return an event for the producers of all channels.

        Raises:
            ExchangeError: a channel was not asked for yet, or is released.
        """
        for channel in self.channels:
            if channel.state in (ChannelState.CREATED, ChannelState.RELEASED):
                raise ExchangeError(
                    f"Error while publishing event {event!r} to producer. The producer could not be found. "
                    f"(channel {channel.index} is {channel.state.value})"
                )
        return [
            (c.spec.producer, TaskEventRequest(c.spec.partition, event, c.index))
            for c in self.channels
            if c.state is ChannelState.REQUESTED
        ]

    def receive(
        self, frame: BufferResponse, sender: TaskAddress | None = None, now_ms: int = 0
    ) -> CancelPartitionRequest | None:
        """Receive a buffer or event; for a released or unknown channel, return the request to stop sending.

        What a `sender` says that is not the channel's producer, another attempt of it say, is refused in the same way.
        Watermarks that wait behind one another are one: the newest.

        Raises:
            BufferReordering: it is not the next one of its channel.
            ExchangeError: a data buffer came without credit.
        """
        if not 0 <= frame.receiver < len(self.channels):
            return CancelPartitionRequest(frame.receiver)
        channel = self.channels[frame.receiver]
        if channel.state in (ChannelState.RELEASED, ChannelState.FINISHED):
            return CancelPartitionRequest(frame.receiver)
        if sender is not None and sender != channel.spec.producer:
            return CancelPartitionRequest(frame.receiver)
        if frame.sequence != channel.next_sequence:
            raise BufferReordering(channel.index, channel.next_sequence, frame.sequence)
        channel.next_sequence += 1
        if frame.body is not None:
            if not channel.credit.take():
                raise ExchangeError(
                    f"no buffer available in channel {channel.index} for sequence number {frame.sequence}: "
                    "the sender has spent credit it was not given"
                )
            channel.buffers_in += 1
            channel.bytes_in += len(frame.body)
            channel.queue.append(frame.body)
            if self._recording is not None:
                self._recording.note(channel.index, frame.body)
        else:
            assert frame.event is not None
            if self._recording is not None:
                self._recording.note(channel.index, frame.event)
            if isinstance(frame.event, CheckpointBarrier):
                self.arrivals.note(frame.event.checkpoint_id, now_ms)
                if frame.event.overtakes_at_ms is not None:
                    self.overtaking.append(frame.event)
            if isinstance(frame.event, Watermark) and channel.queue and isinstance(channel.queue[-1], Watermark):
                channel.queue.pop()
            channel.queue.append(frame.event)
        channel.credit.backlog(frame.backlog)
        self._enqueue(channel)
        return None

    def next(self) -> GateItem | None:
        """Return the next batch or event of a channel that is not blocked, channels taking turns; None when there is
        none.

        Raises:
            ExchangeError: the gate was released.
        """
        if self._released:
            raise ExchangeError("the input gate was asked for data after it was released; the task has ended")
        if self._restored:
            index, body = self._restored.popleft()
            self._works_restored = True
            return GateItem(index, self.channels[index].spec.input_index, body, None)
        while self._ready:
            index = self._ready.popleft()
            self._queued[index] = False
            channel = self.channels[index]
            if channel.blocked or not channel.queue:
                continue
            item = channel.queue.popleft()
            self._enqueue(channel)
            if isinstance(item, bytes):
                return GateItem(index, channel.spec.input_index, item, None)
            if isinstance(item, EndOfPartition):
                channel.state = ChannelState.FINISHED
                channel.credit.release()
                self._unfinished -= 1
            return GateItem(index, channel.spec.input_index, None, item)
        return None

    def next_data(self, input_index: int) -> GateItem | None:
        """Return the next batch of a channel of this input that has a batch in front; None where there is none."""
        if self._restored or self._works_restored:
            return None
        passed_over: list[int] = []
        gate_item = None
        while self._ready and gate_item is None:
            channel = self.channels[self._ready[0]]
            if channel.blocked or not channel.queue:
                self._queued[self._ready.popleft()] = False
            elif isinstance(channel.queue[0], bytes) and channel.spec.input_index == input_index:
                gate_item = self.next()
            else:
                passed_over.append(self._ready.popleft())
        self._ready.extendleft(reversed(passed_over))
        return gate_item

    def recycle(self, channel: int) -> None:
        """Free the buffer of the oldest batch taken from `channel`, which has been processed."""
        if self._works_restored:
            self._works_restored = False
        else:
            self.channels[channel].credit.recycle()

    def count_taken(self, channel: int, rows: int) -> None:
        """Count `rows` records of the current batch that the chain takes: they are no longer in flight."""
        if self.debloater is None or self._works_restored:
            return
        self.debloater.count_taken(channel, rows)
        if self.debloater.windows[channel].is_due:
            self._windows_due.add(channel)

    def end_step(self, is_idle: bool, is_back_pressured: bool) -> None:
        """Note the end of a step: idle with nothing in work, back-pressured while outputs have no room."""
        if self.debloater is not None:
            self._windows_due.update(self.debloater.step(is_idle and not self.has_input, is_back_pressured))

    def block(self, channel: int) -> None:
        """Block a channel: the data that it delivers stays queued."""
        self.channels[channel].blocked = True

    def unblock(self) -> None:
        """Unblock all channels; those that were blocked come first."""
        for channel in self.channels:
            if channel.blocked:
                channel.blocked = False
                self._enqueue(channel)

    def announcements(self) -> list[tuple[TaskAddress, Frame]]:
        """Return the credit, and the windows in records, that senders do not know of yet."""
        frames: list[tuple[TaskAddress, Frame]] = []
        for index in self._credit_due:
            channel = self.channels[index]
            credit = channel.credit.announce()
            if credit and channel.state is ChannelState.REQUESTED:
                frames.append((channel.spec.producer, AddCredit(index, credit)))
        self._credit_due.clear()
        if self.debloater is not None and self._windows_due:
            for index in sorted(self._windows_due):
                channel = self.channels[index]
                if channel.state is ChannelState.REQUESTED:
                    update = WindowUpdate(index, *self.debloater.windows[index].announce())
                    frames.append((channel.spec.producer, update))
            self._windows_due.clear()
        return frames

    def release(self) -> list[tuple[TaskAddress, Frame]]:
        """Release all channels, and return the requests that inform the producers."""
        self._released = True
        frames: list[tuple[TaskAddress, Frame]] = []
        for channel in self.channels:
            if channel.state is ChannelState.REQUESTED:
                frames.append((channel.spec.producer, CancelPartitionRequest(channel.index)))
            if channel.state is not ChannelState.FINISHED:
                channel.state = ChannelState.RELEASED
            channel.queue.clear()
            channel.credit.release()
        self._ready.clear()
        self._restored.clear()
        self._retries.clear()
        self._windows_due.clear()
        return frames

    def statistics(self) -> GateStatistics:
        """Return the present counts of all channels and pools."""
        pools = {gate: pool.statistics() for gate, pool in self._pools.items()}
        channels = tuple(channel.statistics() for channel in self.channels)
        return GateStatistics(channels, pools, len(self._restored), self.window_rows)

    @property
    def window_rows(self) -> int:
        """Return the records that may be in flight to the task, over all channels; 0 where nothing bounds them."""
        return 0 if self.debloater is None else sum(window.rows for window in self.debloater.windows)

    @property
    def has_input(self) -> bool:
        """Return whether `next` would return something."""
        return bool(self._restored) or any(
            self.channels[index].queue and not self.channels[index].blocked for index in self._ready
        )

    @property
    def queued(self) -> int:
        """Return the number of batches and events received and not yet taken."""
        return len(self._restored) + sum(len(channel.queue) for channel in self.channels)

    def _enqueue(self, channel: InputChannel) -> None:
        if channel.queue and not channel.blocked and not self._queued[channel.index]:
            self._queued[channel.index] = True
            self._ready.append(channel.index)
