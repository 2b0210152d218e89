"""The sizes of the exchange's queues, pools, buffers and caches, as values for people, metrics and tests.

Each queue, pool, buffer and cache has a `statistics()` that returns one of these; `StreamTask.statistics` returns
those of a whole task. They are counted when they are asked for, so nothing here costs a record anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from .frames import TaskAddress


@dataclass(frozen=True, slots=True)
class CreditStatistics:
    """The buffers of one input channel, and the credit that its producer does not know of."""

    exclusive: int
    """Free buffers of the channel's own."""
    floating: int
    """Free buffers borrowed from the gate's pool."""
    taken: int
    """Buffers with data that the task has not processed yet."""
    required: int
    """Free buffers that the channel should have, for the backlog of its producer."""
    unannounced: int
    """Free buffers that were not announced to the producer as credit yet."""


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """The floating buffers of one gate."""

    size: int
    """Buffers of the pool, borrowed ones included."""
    available: int
    """Buffers that no channel has borrowed."""
    waiting: int
    """Requests of channels for a buffer that comes back."""


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """One input channel."""

    state: str
    """Name of its `ChannelState`."""
    is_blocked: bool
    """True if its data waits for the barriers of other channels."""
    queued: int
    """Batches and events received and not taken yet."""
    buffers_received: int
    """Buffers received in all."""
    bytes_received: int
    """Bytes of data received in all."""
    credit: CreditStatistics
    """Its buffers."""


@dataclass(frozen=True, slots=True)
class GateStatistics:
    """All input channels of a task."""

    channels: tuple[ChannelStatistics, ...]
    """The channels, by their index."""
    pools: dict[int, PoolStatistics]
    """Number of a gate (job edge) -> its floating buffers."""
    restored: int
    """Buffers of the restored checkpoint that were not taken yet."""
    window_rows: int
    """Records that may be in flight to the task; 0 where nothing bounds them."""


@dataclass(frozen=True, slots=True)
class CurrentBufferStatistics:
    """The buffer that a task is processing."""

    rows: int
    """Records of the decoded batch that were not handed out yet; 0 without a batch."""
    rows_ahead: int
    """Those of them that an operator has seen ahead of their turn."""
    encoded: int
    """Further batches of the buffer, not decoded yet."""


@dataclass(frozen=True, slots=True)
class OpenBatchStatistics:
    """The batch of one channel that is still being filled."""

    rows: int
    """Records that are not encoded yet."""
    sealed_batches: int
    """Batches that are encoded and go with the next buffer."""
    sealed_rows: int
    """Records of those."""
    sealed_bytes: int
    """Bytes of those."""


@dataclass(frozen=True, slots=True)
class SpillStatistics:
    """The entries of a blocking subpartition."""

    entries: int
    """Buffers and events that wait."""
    memory_bytes: int
    """Bytes in memory, the newest entry not counted."""
    in_file: int
    """Those of the entries that are in the file."""
    spilled_bytes: int
    """Bytes written to the file in all."""


@dataclass(frozen=True, slots=True)
class SubpartitionStatistics:
    """A producer's queue for one consumer."""

    backlog: int
    """Buffers that wait."""
    queued_bytes: int
    """Bytes of those."""
    credit: int
    """Buffers that the consumer has free."""
    buffers_sent: int
    """Buffers sent in all."""
    bytes_sent: int
    """Bytes of data sent in all."""
    state: str
    """Value of its `SubpartitionState`."""


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """The output of a task for one consuming vertex."""

    is_full: bool
    """True if the producer has to stop."""
    is_blocking: bool
    """True if consumers read it only when it is complete."""
    max_buffers: int
    """Buffers over all subpartitions at which it is full; no bound where it is blocking."""
    subpartitions: tuple[SubpartitionStatistics, ...]
    """The queues of the consumers, by their index."""


@dataclass(frozen=True, slots=True)
class WriterStatistics:
    """A writer of one output."""

    rows_written: int
    """Records written in all."""
    pending_rows: int
    """Records in open batches."""
    target_rows: int
    """Records at which a batch of rows is encoded, as learned from their size."""
    open_batches: tuple[OpenBatchStatistics, ...]
    """The open batch of each channel; one for all where every record goes to every channel."""
    partition: PartitionStatistics
    """The queues that full batches go to."""


@dataclass(frozen=True, slots=True)
class OutgoingStatistics:
    """The messages of a task to one peer."""

    waiting: int
    """Frames that wait for the next envelope; data that waits for credit is not counted."""
    subpartitions: int
    """Subpartitions that are being served to the peer."""
    in_flight: int
    """Calls that have not returned."""
    calls: int
    """Envelopes sent in all."""


@dataclass(frozen=True, slots=True)
class IncomingStatistics:
    """The messages of one peer to a task."""

    expected: int
    """Sequence number of the next envelope."""
    early: int
    """Envelopes that wait for one before them."""
    repeated: int
    """Envelopes received twice, and dropped."""


@dataclass(frozen=True, slots=True)
class EndpointStatistics:
    """A task's end of the exchange with all its peers."""

    outgoing: dict[TaskAddress, OutgoingStatistics]
    """Peer -> messages to it."""
    incoming: dict[TaskAddress, IncomingStatistics]
    """Peer -> messages from it."""
    stale: int
    """Envelopes for another attempt, which were dropped."""


@dataclass(frozen=True, slots=True)
class KeyCacheStatistics:
    """The cache of keys whose channel is known."""

    keys: int
    """Keys in the cache."""
    max_keys: int
    """Bound of those; with more the cache is emptied."""


__all__ = [
    "ChannelStatistics",
    "CreditStatistics",
    "CurrentBufferStatistics",
    "EndpointStatistics",
    "GateStatistics",
    "IncomingStatistics",
    "KeyCacheStatistics",
    "OpenBatchStatistics",
    "OutgoingStatistics",
    "PartitionStatistics",
    "PoolStatistics",
    "SpillStatistics",
    "SubpartitionStatistics",
    "WriterStatistics",
]
