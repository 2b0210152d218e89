"""Collects what a task emits and hands it over, encoded, in buffers of the result partition.

Records become bytes 8,192 at a time, while they are still in the processor's cache; a buffer is filled with as many of
these batches as fit into `max_bytes` and `max_rows` (an Arrow batch of `max_arrow_bytes` is a buffer by itself), so
that few calls carry much. A buffer also goes when it holds as many records as its consumer asks for, when the window
of its consumer is used up, when the buffer timeout has passed since its first record, or when an event must follow it.
While an earlier buffer of its channel still waits to be sent, a timeout would only make two small ones of it: it goes
on filling, and the delay shows in `effective_timeout_ms`. A batch that turns out larger than its bound is split, so a
buffer exceeds it only when a single record does. Where all channels get the same records, they share one open batch,
encoded once.

Source: apache/flink RecordWriter; timeout -1 sends full buffers only, 0 sends after every write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.records.batches import (
    ArrowBatch,
    Batch,
    CheckpointBarrier,
    Element,
    EndOfPartition,
    EndOfSuperstep,
    Event,
    RowBatch,
    Tagged,
)
from rayflink.common.records.row_columns import RowColumns
from rayflink.operators.base import OperatorContext, UserCodeError

from .codec import CodecError, Pieces, encode_pieces, join_batches, joint_bytes
from .exchange_statistics import WriterStatistics
from .open_batch import OpenBatch, bytes_per_row
from .partition import ResultPartition
from .selectors import Broadcast, ChannelSelector, RoundRobin
from .subpartition import Buffer

_FIRST_ROWS = 1024
_ENCODED_ROWS = 8192
"""Rows that are encoded together at most."""
_ARROW_HEADER = 64
"""The divisor of an Arrow buffer that gives the share left for headers."""
_ARROW_BYTES = 1 << 20
"""The bytes of Arrow columns encoded together, where they did not come in larger pieces."""
_OPEN_ARROW_BYTES = 64 << 20
"""The bytes of open Arrow buffers over all channels; many channels have smaller ones, down to 1 MB."""
_COLUMN_ROWS = 4
"""Rows held as columns are small: this factor more of them are encoded together."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits of a channel's batch: when it is full, and how long it may wait.

    Args:
        max_rows: records of a buffer, >= 1.
        max_bytes: encoded bytes that a batch of rows does not exceed, >= 1; one larger record still goes, alone.
        max_arrow_bytes: the same for an Arrow batch.
        timeout_ms: -1 never, 0 after every write, else milliseconds.
    Raises: ValueError: an argument is out of its range.
    """

    max_rows: int = 1 << 20
    max_bytes: int = 1 << 20
    timeout_ms: int = 100
    max_arrow_bytes: int = 8 << 20

    def __post_init__(self) -> None:
        least = min(self.max_bytes, self.max_arrow_bytes)
        if self.max_rows < 1 or least < 1:
            raise ValueError(f"a batch holds at least 1 row and 1 byte, found {self.max_rows} and {least}")
        if self.timeout_ms < -1:
            raise ValueError(f"buffer timeout must be -1 (only full buffers), 0 or more ms, found {self.timeout_ms}")


class RecordWriter:
    """Writes one operator's output to one result partition.

    Args:
        partition: where full batches go.
        selector: which channel gets which record; None: in turn.
        limits: when a batch is full.
        iteration: number of the loop the consumers stand in; the ends of its supersteps alone are sent on.
        in_order: no barrier overtakes its records.
    Raises: ValueError: the selector is for another number of channels.
    """

    def __init__(
        self,
        partition: ResultPartition,
        selector: ChannelSelector | None = None,
        limits: BatchLimits | None = None,
        iteration: int | None = None,
        in_order: bool = False,
    ) -> None:
        width = len(partition.subpartitions)
        self.partition, self._iteration, self.in_order = partition, iteration, in_order
        self._selector = RoundRobin(width) if selector is None else selector
        limits = BatchLimits() if limits is None else limits
        shared = max(_ARROW_BYTES, _OPEN_ARROW_BYTES // width)
        self._limits = replace(limits, max_arrow_bytes=min(limits.max_arrow_bytes, shared))
        if self._selector.channels != width:
            raise ValueError(
                f"the selector is for {self._selector.channels} channels, the partition has {width} subpartitions"
            )
        self._to_all = isinstance(self._selector, Broadcast)
        self._receivers: list[Sequence[int]] = [range(width)] if self._to_all else [(i,) for i in range(width)]
        self._open = [OpenBatch() for _ in self._receivers]
        self._pending = 0
        self._oldest_ms: int | None = None
        self._overdue = False
        self._now_ms: int | None = None
        self._encoded_rows = min(self._limits.max_rows, _ENCODED_ROWS)
        self._target_rows = min(self._encoded_rows, _FIRST_ROWS)
        self.rows_written = 0
        self.effective_timeout_ms = 0.0
        self._ctx: OperatorContext | None = None
        self._windowed = any(sub.window is not None for sub in partition.subpartitions)

    @property
    def key_sample(self) -> dict[str, Any] | None:
        """Return a sample of the keys of what was written; None where there are none."""
        sample = self._selector.sample
        return None if sample is None else sample.report()

    def open(self, ctx: OperatorContext) -> None:
        """Open the user's functions that partition the records."""
        self._ctx = ctx
        self._selector.open(ctx)

    def close(self) -> None:
        """Close the selector's functions."""
        self._selector.close()

    def write(self, element: Element) -> None:
        """Take a batch, or an event, which goes to every channel behind the records before it."""
        if not isinstance(element, (RowBatch, ArrowBatch)):
            assert not isinstance(element, Tagged), "a side output is taken off its tag before it is written"
            if not isinstance(element, EndOfSuperstep) or element.iteration == self._iteration:
                self.broadcast(element)
            return
        if not len(element):
            return
        self.rows_written += len(element)
        if isinstance(element, RowColumns):
            element = element.unkeyed()
        if self._to_all:
            self._append(0, element)
        else:
            for channel, part in self._selector.split(element):
                self._append(channel, part)
        if self._limits.timeout_ms == 0:
            self.flush()

    def broadcast(self, event: Event) -> None:
        """Send an event on every channel, after closing the channel's batch."""
        self.flush()
        for sub in self.partition.subpartitions:
            sub.add(event)

    def overtake(self, barrier: CheckpointBarrier) -> list[tuple[Buffer, ...]]:
        """Send an unaligned barrier in front of all that waits; return the overtaken buffers, one entry a channel."""
        self.flush()
        return [sub.overtake(barrier) for sub in self.partition.subpartitions]

    def finish(self) -> None:
        """Close all batches and say that nothing follows."""
        self.broadcast(EndOfPartition())

    def flush(self) -> None:
        """Close all batches now."""
        if self._pending:
            for lane in range(len(self._open)):
                self._close(lane)
        self._oldest_ms = None

    def tick(self, now_ms: int) -> None:
        """Close the batches whose time or window is up; called once a step with the processing time."""
        if self._pending and self._windowed:
            for lane, open_batch in enumerate(self._open):
                if open_batch.holds and self._is_used_up(lane):
                    self._close(lane)
        if self._now_ms is None or now_ms < self._now_ms:
            self._restart_waiting(now_ms)
        self._now_ms = now_ms
        timeout, oldest = self._limits.timeout_ms, self._oldest_ms
        if timeout <= 0 or not (self._overdue or (oldest is not None and now_ms - oldest >= timeout)):
            return
        self._overdue = False
        next_oldest: int | None = None
        for lane, open_batch in enumerate(self._open):
            if not open_batch.holds:
                continue
            waited = now_ms - open_batch.since_ms
            if waited < timeout:
                next_oldest = open_batch.since_ms if next_oldest is None else min(next_oldest, open_batch.since_ms)
            elif self._all_wait(lane):
                self._overdue = True  # looked at again in every step: a mail with credit makes one
            else:
                self.effective_timeout_ms += (waited - self.effective_timeout_ms) / 16
                self._close(lane)
        self._oldest_ms = next_oldest

    def deadline_ms(self) -> int | None:
        """Return when `tick` has something to do, or None."""
        if self._oldest_ms is None or self._limits.timeout_ms <= 0:
            return None
        return self._oldest_ms + self._limits.timeout_ms

    def _all_wait(self, lane: int) -> bool:
        """Return whether every receiver still has an earlier buffer to be sent."""
        return all(self.partition.subpartitions[channel].backlog for channel in self._receivers[lane])

    def _restart_waiting(self, now_ms: int) -> None:
        """Restart the wait of open batches: the time was not known yet, or the clock was set back."""
        for open_batch in self._open:
            open_batch.since_ms = now_ms
        if self._oldest_ms is not None:
            self._oldest_ms = now_ms

    def _buffer_rows(self, lane: int) -> int:
        """Return the most records of one buffer now."""
        most = self._limits.max_rows
        if self._windowed:
            subs = self.partition.subpartitions
            for channel in self._receivers[lane]:
                if subs[channel].is_windowed:
                    most = min(most, subs[channel].buffer_rows)
        return most

    def _is_used_up(self, lane: int) -> bool:
        """Return whether a receiver's window has no room, so that the open batch should go now."""
        subs = self.partition.subpartitions
        return any(subs[channel].is_used_up for channel in self._receivers[lane])

    def _append(self, lane: int, part: Batch) -> None:
        open_batch = self._open[lane]
        if not open_batch.fits(part):
            self._seal(lane)
        most = self._buffer_rows(lane)
        was_used_up = self._windowed and self._is_used_up(lane)
        for channel in self._receivers[lane]:
            self.partition.subpartitions[channel].rows_written += len(part)
        row_limit, enough = self._row_limits(part)
        if open_batch.rows + len(part) > min(open_batch.row_limit, row_limit) and type(part) is not RowBatch:
            self._seal(lane)  # dividing columns would copy them once more
        now = self._now_ms or 0
        open_batch.add(part, row_limit, now)
        self._pending += len(part)
        if open_batch.rows >= min(enough, open_batch.row_limit):
            self._seal(lane)
        if open_batch.rows + open_batch.sealed_rows >= most:
            self._close(lane)
        elif self._windowed and open_batch.holds and not was_used_up and self._is_used_up(lane):
            self._close(lane)  # what follows in the same step goes with the next one
        if self._oldest_ms is None and open_batch.holds:
            self._oldest_ms = now

    def _row_limits(self, part: Batch) -> tuple[int, int]:
        """Return how many rows like these may be encoded together at most, and how many are enough."""
        limits, width = self._limits, max(1, bytes_per_row(part))
        if isinstance(part, ArrowBatch):
            most = max(1, (limits.max_arrow_bytes - limits.max_arrow_bytes // _ARROW_HEADER) // width)
            most = min(most, limits.max_rows)
            return most, max(1, min(most, _ARROW_BYTES // width))
        rows = _COLUMN_ROWS * self._encoded_rows if isinstance(part, RowColumns) else self._target_rows
        most = min(rows, limits.max_rows, max(1, limits.max_bytes // width))
        return most, most

    def _close(self, lane: int) -> None:
        """Encode what is still to be encoded, and hand everything over."""
        self._seal(lane)
        self._ship(lane)

    def _seal(self, lane: int) -> None:
        open_batch = self._open[lane]
        if open_batch.rows:
            row_limit = open_batch.row_limit
            self._encode(lane, open_batch.take(), row_limit)

    def _encode(self, lane: int, batch: Batch, row_limit: int) -> None:
        open_batch, rows = self._open[lane], len(batch)
        for start in range(0, rows, row_limit):
            piece = batch if rows <= row_limit else batch.slice(start, min(start + row_limit, rows))
            encoded = self._encode_piece(piece)
            size, count, arrow = sum(map(len, encoded)), len(piece), isinstance(piece, ArrowBatch)
            most = self._limits.max_arrow_bytes if arrow else self._limits.max_bytes
            if type(piece) is RowBatch:
                self._learn(size, count)
            if size > most and count > 1:
                self._encode(lane, piece, max(1, count * most // size))
                continue
            joint = open_batch.sealed_bytes + size + joint_bytes(len(open_batch.sealed) + 1)
            if (
                joint > most
                or open_batch.sealed_arrow is not arrow
                or open_batch.sealed_rows + count > self._limits.max_rows
            ):
                self._ship(lane)
            open_batch.seal(encoded, size, count, arrow)
            if open_batch.sealed_bytes + size > most or open_batch.sealed_rows + count > self._limits.max_rows:
                self._ship(lane)

    def _encode_piece(self, piece: Batch) -> Pieces:
        """Encode the piece; a record that cannot be encoded is the failure of the operator that emitted it."""
        try:
            return encode_pieces(piece)
        except CodecError as error:
            if self._ctx is None:
                raise
            failure = UserCodeError(self._ctx.operator_name, self._ctx.call_site, error.record, "the output")
            raise failure from error

    def _ship(self, lane: int) -> None:
        open_batch = self._open[lane]
        if not open_batch.sealed:
            return
        buffer = Buffer(join_batches(open_batch.sealed), open_batch.sealed_rows)
        self._pending -= open_batch.sealed_rows
        open_batch.sealed, open_batch.sealed_bytes, open_batch.sealed_rows = [], 0, 0
        if not self._pending:
            self._oldest_ms = None
        for channel in self._receivers[lane]:
            self.partition.add(channel, buffer)

    def statistics(self) -> WriterStatistics:
        """Return the present counts of open batches and of the partition."""
        open_batches = tuple(batch.statistics() for batch in self._open)
        counts = self.rows_written, self._pending, self._target_rows
        return WriterStatistics(*counts, open_batches, self.partition.statistics())

    def _learn(self, size: int, rows: int) -> None:
        """Aim at batches of at most `max_bytes`, from the bytes a row took lately; grow at most twofold at a time."""
        fitting = max(1, rows * self._limits.max_bytes // size)
        self._target_rows = min(self._encoded_rows, 2 * self._target_rows, fitting)
