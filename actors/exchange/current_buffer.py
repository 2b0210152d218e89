"""The buffer a task is processing: its batches, decoded one at a time and handed out slice by slice.

Small batches cost an operator as much as large ones, so a slice goes on with the buffers that wait behind, also those
of other channels: until it has its records, up to 1,024, or an event is next.
"""

from __future__ import annotations

from collections import deque

from rayflink.common.records.batches import Batch, RowBatch

from .codec import decode_batch, encode_batch, split_batches
from .exchange_statistics import CurrentBufferStatistics
from .gate import InputGate
from .open_batch import are_alike, merge_batches

MERGED_ROWS = 1024
"""Batches with fewer records are processed together with those behind them."""


class CurrentBuffer:
    """The buffer in work, at most one, and at most one decoded batch of it.

    Args:
        gate: the input gate that provides the buffers, and takes them back when they have been handed out.
    """

    def __init__(self, gate: InputGate) -> None:
        self._gate = gate
        self.channel = self.input_index = 0
        self._batch: Batch | None = None
        self._done = self._ahead = 0
        self._encoded: deque[bytes | memoryview] = deque()

    @property
    def empty(self) -> bool:
        """Return whether all records have been handed out."""
        return self._batch is None

    @property
    def rows(self) -> int:
        """Return the number of records of the current batch that were not handed out yet."""
        return 0 if self._batch is None else len(self._batch) - self._done

    @property
    def rows_at_hand(self) -> int:
        """Return the number of records that `take_slice` may be asked for."""
        return self.rows_ahead or max(self.rows, MERGED_ROWS)

    def load(self, body: bytes, channel: int, input_index: int) -> None:
        """Load a buffer of a channel; the previous one must have been handed out."""
        assert self.empty, f"channel {self.channel} still has {self.rows} records to be processed"
        self.channel, self.input_index = channel, input_index
        self._encoded.extend(split_batches(body))
        self._decode_next()

    def take_slice(self, rows: int) -> Batch:
        """Take the next records of the current input, at least one and at most `rows`.

        A batch that is large enough, or that was read ahead, is not joined with the next.
        """
        may_merge = not self.rows_ahead
        parts = [self._take(min(rows, self.rows_ahead or self.rows))]
        rows = min(rows, MERGED_ROWS) - len(parts[0])
        while may_merge and rows > 0 and self._can_extend(parts[0]):
            parts.append(self._take(min(rows, self.rows)))
            rows -= len(parts[-1])
        return _merge(parts)

    def look_ahead(self, rows: int) -> Batch | None:
        """Return the next `rows` records at most ahead of their turn, once those read ahead are taken; else None.

        Too few records, which are merged with those of other buffers, are not read ahead: None.
        """
        if self._batch is None or self._done < self._ahead or self.rows < MERGED_ROWS:
            return None
        self._ahead = min(len(self._batch), self._done + rows)
        return self._batch.slice(self._done, self._ahead)

    @property
    def rows_ahead(self) -> int:
        """Return the number of records that `look_ahead` returned and that were not taken yet."""
        return max(0, self._ahead - self._done)

    def remainder(self) -> list[bytes]:
        """Return the rest that was not handed out yet, encoded anew."""
        if self._batch is None:
            return []
        left = encode_batch(self._batch.slice(self._done, len(self._batch)))
        return [left, *map(bytes, self._encoded)]

    def drop(self) -> None:
        """Drop the rest that was not handed out."""
        self._batch = None
        self._encoded.clear()

    def statistics(self) -> CurrentBufferStatistics:
        """Return the present counts."""
        return CurrentBufferStatistics(self.rows, self.rows_ahead, len(self._encoded))

    def _can_extend(self, first: Batch) -> bool:
        """Return whether the next records fit into one batch with `first`; loads the next buffer if necessary."""
        if self._batch is None:
            item = self._gate.next_data(self.input_index)
            if item is None or item.body is None:
                return False
            self.load(item.body, item.channel, item.input_index)
        return self._batch is not None and _can_merge(first, self._batch)

    def _take(self, rows: int) -> Batch:
        batch, start = self._batch, self._done
        assert batch is not None, "a buffer was asked for records it does not have"
        self._done += rows
        piece = batch if rows == len(batch) else batch.slice(start, self._done)
        self._gate.count_taken(self.channel, rows)
        if self._done == len(batch):
            self._decode_next()
            if self._batch is None:
                self._gate.recycle(self.channel)
        return piece

    def _decode_next(self) -> None:
        self._batch = decode_batch(self._encoded.popleft()) if self._encoded else None
        self._done = self._ahead = 0


def _can_merge(first: Batch, other: Batch) -> bool:
    """Return whether two batches can be processed as one: both rows, stamped or not alike; or Arrow of one schema."""
    if isinstance(first, RowBatch) and isinstance(other, RowBatch):
        return (first.timestamps is None) == (other.timestamps is None)
    return are_alike(first, other)


def _merge(parts: list[Batch]) -> Batch:
    """Merge batches that fit together; columns stay columns where all of them are alike."""
    first = parts[0]
    if len(parts) == 1 or all(are_alike(first, part) for part in parts[1:]):
        return merge_batches(parts)
    rows = [part for part in parts if isinstance(part, RowBatch)]
    values = [value for part in rows for value in part.values]
    stamps = None if first.timestamps is None else [stamp for part in rows for stamp in part.timestamps or ()]
    return RowBatch(values, stamps)
