"""A producer's queue for one consumer: data against credit, events at once. Pure: frames out, no transport.

Source: apache/flink PipelinedSubpartition and CreditBasedSequenceNumberingViewReader.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rayflink.common.records.batches import CheckpointBarrier, EndOfPartition, Event, Watermark

from .exchange_statistics import SubpartitionStatistics
from .frames import BufferResponse, ErrorResponse, Frame, TaskAddress


class ExchangeError(Exception):
    """The protocol between two tasks was broken: a defect or a lost message, never the user's mistake."""


class SubpartitionState(Enum):
    """Life of a subpartition: no consumer yet, being read, all sent, given up."""

    UNREQUESTED = "unrequested"
    READING = "reading"
    CONSUMED = "consumed"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Buffer:
    """An encoded batch of `rows` records."""

    body: bytes
    rows: int


class EntryQueue(Protocol):
    """The storage of a subpartition's waiting entries; a deque is one. Only the first and last entry are looked at."""

    def append(self, entry: Buffer | Event, /) -> None: ...
    def appendleft(self, entry: Buffer | Event, /) -> None: ...
    def popleft(self) -> Buffer | Event: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, place: int, /) -> Buffer | Event: ...
    def __setitem__(self, place: int, entry: Buffer | Event, /) -> None: ...


class Subpartition:
    """Queue of one consumer.

    Sequence numbers start at 0 and grow by one a buffer or event. At most one watermark stands between two batches: a
    later one replaces it.

    Args:
        index: which of its partition's.
        entries: where to keep what waits; by default in memory.
        window: records that may be in flight until the consumer says how many; None: any number.
    """

    def __init__(self, index: int, entries: EntryQueue | None = None, window: int | None = None) -> None:
        self.index = index
        self.state = SubpartitionState.UNREQUESTED
        self.consumer: TaskAddress | None = None
        self.receiver = -1
        self.backlog = 0
        self.queued_bytes = 0
        self.credit = 0
        self.sequence = -1
        self.buffers_sent = 0
        self.bytes_sent = 0
        self.window = window
        self.buffer_rows = 1
        self.rows_written = 0
        self.rows_worked = 0
        self._entries: EntryQueue = deque() if entries is None else entries
        self._finished = False

    def add(self, entry: Buffer | Event) -> bool:
        """Queue a buffer or an event; return False when no consumer wants it any more."""
        if self.state in (SubpartitionState.RELEASED, SubpartitionState.CONSUMED) or self._finished:
            return False
        if isinstance(entry, Buffer):
            self.backlog += 1
            self.queued_bytes += len(entry.body)
        elif isinstance(entry, Watermark) and len(self._entries) and isinstance(self._entries[-1], Watermark):
            self._entries[-1] = entry
            return True
        elif isinstance(entry, EndOfPartition):
            self._finished = True
        self._entries.append(entry)
        return True

    def overtake(self, barrier: CheckpointBarrier) -> tuple[Buffer, ...]:
        """Put an unaligned barrier in front of all that waits; return the overtaken buffers, which belong to the
        snapshot.

        Does nothing when the subpartition is released.
        """
        if self.state in (SubpartitionState.RELEASED, SubpartitionState.CONSUMED):
            return ()
        waiting = (self._entries[place] for place in range(len(self._entries)))
        overtaken = tuple(entry for entry in waiting if isinstance(entry, Buffer))
        self._entries.appendleft(barrier)
        return overtaken

    def awaits_turn(self, checkpoint_id: int) -> bool:
        """Return whether the barrier of a checkpoint waits here behind other entries."""
        return self._place_of(checkpoint_id) is not None

    def overtake_late(self, barrier: CheckpointBarrier) -> tuple[Buffer, ...]:
        """Move the barrier that waits here to the front, as an unaligned one; return the buffers it overtakes."""
        place = self._place_of(barrier.checkpoint_id)
        if place is None:
            return ()
        entries = [self._entries[index] for index in range(len(self._entries))]
        self._entries.clear()
        for entry in (barrier, *entries[:place], *entries[place + 1 :]):
            self._entries.append(entry)
        return tuple(entry for entry in entries[:place] if isinstance(entry, Buffer))

    def _place_of(self, checkpoint_id: int) -> int | None:
        for place in range(len(self._entries)):
            entry = self._entries[place]
            if isinstance(entry, CheckpointBarrier) and entry.checkpoint_id == checkpoint_id:
                return place
        return None

    def request(self, consumer: TaskAddress, receiver: int, credit: int) -> None:
        """Begin serving a consumer that requests this subpartition and brings its initial credit.

        Raises:
            ExchangeError: somebody else reads it already.
        """
        if self.state is not SubpartitionState.UNREQUESTED:
            raise ExchangeError(
                f"subpartition {self.index} is {self.state.value}, asked for by {consumer}; "
                "a pipelined subpartition is read once, by one consumer"
            )
        self.state = SubpartitionState.READING
        self.consumer, self.receiver, self.credit = consumer, receiver, credit

    def add_credit(self, credit: int) -> None:
        """Add `credit` more free buffers of the consumer, at least one."""
        assert credit > 0, f"found an announcement of {credit} credit"
        self.credit += credit

    def update_window(self, worked: int, window: int, buffer_rows: int) -> None:
        """Note that the consumer has processed `worked` records in all, and may have `window` more in flight."""
        if self.window is not None:
            self.rows_worked, self.window, self.buffer_rows = worked, window, buffer_rows

    @property
    def room(self) -> int | None:
        """Return the records that may still be written, 0 or less where the window is used up; None: any number."""
        if self.window is None or self.state in (SubpartitionState.RELEASED, SubpartitionState.CONSUMED):
            return None
        return self.window - self.rows_written + self.rows_worked

    @property
    def is_windowed(self) -> bool:
        """Return whether the consumer bounds the records in flight, and is not gone."""
        return self.window is not None and self.state not in (SubpartitionState.RELEASED, SubpartitionState.CONSUMED)

    @property
    def is_used_up(self) -> bool:
        """Return whether the window has no room."""
        window = self.window
        return window is not None and window + self.rows_worked <= self.rows_written and self.is_windowed

    @property
    def rows_in_flight(self) -> int:
        """Return the records written but not known to be processed; 0 where they are not counted."""
        return 0 if self.room is None else self.rows_written - self.rows_worked

    @property
    def available(self) -> bool:
        """Return whether `poll` would return something: an event in front, or a buffer and credit for it."""
        if self.state is not SubpartitionState.READING or not len(self._entries):
            return False
        return self.credit > 0 or not isinstance(self._entries[0], Buffer)

    def poll(self) -> Frame | None:
        """Return the next buffer or event to send, or None when there is none or no credit for it."""
        if not self.available:
            return None
        entry = self._entries.popleft()
        self.sequence += 1
        if isinstance(entry, Buffer):
            self.credit -= 1
            self.backlog -= 1
            self.queued_bytes -= len(entry.body)
            self.buffers_sent += 1
            self.bytes_sent += len(entry.body)
            return BufferResponse(self.receiver, self.sequence, self.backlog, entry.body)
        if isinstance(entry, EndOfPartition):
            self.state = SubpartitionState.CONSUMED
        return BufferResponse(self.receiver, self.sequence, self.backlog, None, entry)

    def release(self, cause: str | None = None) -> ErrorResponse | None:
        """Release the queue; with a `cause`, return the message that reports it to the consumer."""
        must_report = self.state is SubpartitionState.READING and cause is not None
        if self.state is not SubpartitionState.CONSUMED:
            self.state = SubpartitionState.RELEASED
        self._entries.clear()
        self.backlog = self.queued_bytes = 0
        return ErrorResponse(self.receiver, cause or "") if must_report else None

    def statistics(self) -> SubpartitionStatistics:
        """Return the present counts."""
        return SubpartitionStatistics(
            self.backlog, self.queued_bytes, self.credit, self.buffers_sent, self.bytes_sent, self.state.value
        )
