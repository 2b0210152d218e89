"""The messages that two tasks exchange about their channels: values without behaviour.

Everything one task has for another travels in one `Envelope`. Message numbers are those of Flink's wire protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType, TypeAlias

from rayflink.common.records.batches import Event

TaskAddress = NewType("TaskAddress", str)
"""The id of one execution attempt; an envelope for a dead attempt finds no receiver."""


class MessageType(IntEnum):
    """Numbers of the messages between a producer and a consumer."""

    BUFFER_RESPONSE = 0
    ERROR_RESPONSE = 1
    PARTITION_REQUEST = 2
    TASK_EVENT_REQUEST = 3
    CANCEL_PARTITION_REQUEST = 4
    CLOSE_REQUEST = 5
    ADD_CREDIT = 6
    WINDOW_UPDATE = 10


@dataclass(frozen=True, slots=True)
class PartitionId:
    """One producer's share of an intermediate data set: `dataset` is its 32 hex digits, `producer` a subtask."""

    dataset: str
    producer: int


@dataclass(frozen=True, slots=True)
class BufferResponse:
    """A data buffer (`body`) or an event for channel `receiver`; `backlog` data buffers wait behind it."""

    receiver: int
    sequence: int
    backlog: int
    body: bytes | None = None
    event: Event | None = None
    type = MessageType.BUFFER_RESPONSE


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error of the producer, for channel `receiver` (None: for all channels between the two).

    `retryable`: it does not know the partition, which it may register later.
    """

    receiver: int | None
    cause: str
    retryable: bool = False
    type = MessageType.ERROR_RESPONSE


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """The consumer asks for a subpartition; `credit` buffers are ready for it in its channel `receiver`."""

    partition: PartitionId
    subpartition: int
    receiver: int
    credit: int
    type = MessageType.PARTITION_REQUEST


@dataclass(frozen=True, slots=True)
class TaskEventRequest:
    """An event that goes against the stream, from a consumer's channel `receiver` to the producer of `partition`."""

    partition: PartitionId
    event: object
    receiver: int
    type = MessageType.TASK_EVENT_REQUEST


@dataclass(frozen=True, slots=True)
class CancelPartitionRequest:
    """Channel `receiver` wants nothing more."""

    receiver: int
    type = MessageType.CANCEL_PARTITION_REQUEST


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """The consumer is gone with all its channels."""

    type = MessageType.CLOSE_REQUEST


@dataclass(frozen=True, slots=True)
class AddCredit:
    """`credit` more buffers are free for channel `receiver`."""

    receiver: int
    credit: int
    type = MessageType.ADD_CREDIT


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """Channel `receiver` has processed `worked` records in all; at most `window` beyond these may be in flight.

    A buffer has at most `buffer_rows` of them.

    It has the place of Flink's NewBufferSize. Numbers are totals, so of several updates the last one counts.
    """

    receiver: int
    worked: int
    window: int
    buffer_rows: int
    type = MessageType.WINDOW_UPDATE


Frame: TypeAlias = (
    BufferResponse
    | ErrorResponse
    | PartitionRequest
    | TaskEventRequest
    | CancelPartitionRequest
    | CloseRequest
    | AddCredit
    | WindowUpdate
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The frames that `sender` has for `receiver` now; `sequence` counts the envelopes of this pair from 0."""

    sender: TaskAddress
    receiver: TaskAddress
    sequence: int
    frames: tuple[Frame, ...]

    @property
    def body_bytes(self) -> int:
        """Return the bytes of data in the envelope, frames themselves not counted."""
        return sum(len(f.body) for f in self.frames if isinstance(f, BufferResponse) and f.body is not None)
