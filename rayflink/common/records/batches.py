"""The contents of a stream: batches of records, and events between them.

There is no object per record. A `RowBatch` holds a list of the user's values and, only where timestamps were assigned,
a parallel list of them; an `ArrowBatch` holds a `pyarrow.RecordBatch`. Everything else that travels in a channel
(watermarks, barriers, ...) is an event and stands between batches, never inside one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rayflink.state.clock import epoch_ms

from ..options.stop_mode import StopMode
from .arrow_rows import arrow_to_rows

MIN_TIMESTAMP = -(2**63)
"""Epoch milliseconds of the initial watermark, and of a record that carries no timestamp."""
MAX_TIMESTAMP = 2**63 - 1
"""Epoch milliseconds of the watermark that ends a bounded stream."""


class RowBatch:
    """Records as Python values.

    Args:
        values: the records, in order.
        timestamps: epoch milliseconds, one a record, or None where no timestamps were assigned. A record without one
            inside a batch that has them carries `MIN_TIMESTAMP`.
    """

    __slots__ = ("values", "timestamps")

    def __init__(self, values: list[Any], timestamps: list[int] | None = None) -> None:
        self.values = values
        self.timestamps = timestamps

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> RowBatch:
        """Return records [start, stop) as a new batch; the values themselves are shared."""
        stamps = self.timestamps
        return RowBatch(self.values[start:stop], None if stamps is None else stamps[start:stop])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowBatch) and self.values == other.values and self.timestamps == other.timestamps

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.timestamps is None:
            return f"RowBatch({self.values!r})"
        return f"RowBatch({self.values!r}, {self.timestamps!r})"


class ArrowBatch:
    """Records as columns.

    Args:
        data: a `pyarrow.RecordBatch` of n rows.
        timestamps: int64[n] numpy array of epoch milliseconds, or None where no timestamps were assigned.
    """

    __slots__ = ("data", "timestamps")

    def __init__(self, data: Any, timestamps: Any = None) -> None:
        self.data = data
        self.timestamps = timestamps

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def slice(self, start: int, stop: int) -> ArrowBatch:
        """Return rows [start, stop) as a view on the same buffers."""
        stamps = self.timestamps
        return ArrowBatch(self.data.slice(start, stop - start), None if stamps is None else stamps[start:stop])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrowBatch) or not self.data.equals(other.data):
            return False
        mine, theirs = self.timestamps, other.timestamps
        if mine is None or theirs is None:
            return mine is theirs
        return bool(len(mine) == len(theirs) and (mine == theirs).all())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ArrowBatch({self.data.num_rows} rows of {self.data.schema.names})"


@dataclass(frozen=True, slots=True)
class Watermark:
    """No later record is expected to carry a timestamp at or below `timestamp` (epoch milliseconds).

    Raises:
        TypeError, ValueError: the timestamp is no int of 64 bits.
    """

    timestamp: int

    def __post_init__(self) -> None:
        if type(self.timestamp) is not int or not MIN_TIMESTAMP <= self.timestamp <= MAX_TIMESTAMP:
            object.__setattr__(self, "timestamp", epoch_ms(self.timestamp, "a watermark"))


@dataclass(frozen=True, slots=True)
class WatermarkStatus:
    """The status of a channel: part of the watermark of its consumer (`idle` False) or left out of it (True).

    Args:
        relayed: a task says so because all its inputs are idle; who makes watermarks says it of himself.
    """

    idle: bool
    relayed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Divides the records of checkpoint `checkpoint_id` from those of the next.

    `timestamp` is the epoch milliseconds at which the coordinator triggered it. An `aligned` barrier waits in its
    consumer until all channels delivered theirs; an unaligned one overtakes the records before it. An aligned one
    becomes unaligned where it is still on its way at `aligned_until_ms`, epoch milliseconds; None: never. `savepoint`
    is the folder of a savepoint, "" for a checkpoint; with `stop` the job ends when the savepoint is complete.
    """

    checkpoint_id: int
    timestamp: int
    aligned: bool = True
    savepoint: str = ""
    stop: StopMode | None = None
    aligned_until_ms: int | None = None

    @property
    def overtakes_at_ms(self) -> int | None:
        """Return from when on it may overtake records, in epoch milliseconds; None: never."""
        return self.aligned_until_ms if self.aligned else MIN_TIMESTAMP


@dataclass(frozen=True, slots=True)
class CancelCheckpointMarker:
    """Checkpoint `checkpoint_id` will not complete: consumers stop waiting for its barrier."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Carries the epoch milliseconds `marked_time` at which a source (operator id, subtask) sent it."""

    marked_time: int
    operator_id: str
    subtask: int


@dataclass(frozen=True, slots=True)
class EndOfSuperstep:
    """Divides the records of a superstep of an iteration from those of the next.

    Args:
        iteration: its number in the job, from 1.
        superstep: number of the one that ends, from 1.
        active: whether a record was given to the loop again in it.
    """

    iteration: int
    superstep: int
    active: bool


@dataclass(frozen=True, slots=True)
class EndOfData:
    """The producer has no more records; what its consumers hold back they may now finish (`drain`) or keep."""

    drain: bool = True


@dataclass(frozen=True, slots=True)
class EndOfPartition:
    """The last thing in a channel: the producer has finished and the channel is released."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A batch for the side output `tag_id` instead of the main output."""

    tag_id: str
    batch: Batch


Batch = RowBatch | ArrowBatch
Event = (
    Watermark
    | WatermarkStatus
    | CheckpointBarrier
    | CancelCheckpointMarker
    | LatencyMarker
    | EndOfSuperstep
    | EndOfData
    | EndOfPartition
)
Element = RowBatch | ArrowBatch | Watermark | WatermarkStatus | LatencyMarker | EndOfSuperstep | EndOfData | Tagged


def rows_of(batch: Batch) -> Sequence[Any]:
    """Return the batch's records as Python values: an Arrow row becomes a `Row` with the schema's names."""
    if isinstance(batch, RowBatch):
        return batch.values
    return arrow_to_rows(batch.data)
