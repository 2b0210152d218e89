"""A batch that is still being filled."""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch
from rayflink.common.records.row_columns import Coded, Column, RowColumns, concatenated
from rayflink.user_types import UserRecord

from .codec import Pieces
from .exchange_statistics import OpenBatchStatistics


class OpenBatch:
    """The records written to a channel since its last buffer went: encoded batches, and records still to be encoded.

    The records are all rows, all rows held as columns of one form, or all Arrow of one schema; `row_limit` says at how
    many they should be encoded. `since_ms` is when the first record came.
    """

    __slots__ = (
        "arrow", "columns", "row_limit", "rows", "sealed", "sealed_arrow", "sealed_bytes", "sealed_rows", "since_ms",
        "stamps", "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.sealed: list[Pieces] = []
        self.sealed_arrow = False
        self.sealed_bytes = self.sealed_rows = 0
        self.since_ms = 0
        self._empty()

    def _empty(self) -> None:
        self.values: list[UserRecord] = []
        self.stamps: list[int] | None = None
        self.arrow: list[ArrowBatch] = []
        self.columns: list[RowColumns] = []
        self.rows = 0
        self.row_limit = 0

    @property
    def holds(self) -> bool:
        """Return whether there is anything to send."""
        return bool(self.rows or self.sealed)

    def fits(self, part: Batch) -> bool:
        """Return whether `part` can be in one batch with the records here."""
        if not self.rows:
            return True
        if self.columns:
            return are_alike(self.columns[0], part)
        if self.arrow:
            return are_alike(self.arrow[0], part)
        return type(part) is RowBatch and (self.stamps is None) == (part.timestamps is None)

    def add(self, part: Batch, row_limit: int, now_ms: int) -> None:
        """Append records that fit; together with them the batch should close at `row_limit` rows."""
        if not self.holds:
            self.since_ms = now_ms
        if not self.rows:
            self.row_limit = row_limit
            if type(part) is RowBatch and part.timestamps is not None:
                self.stamps = []
        if isinstance(part, RowColumns):
            self.columns.append(part)
        elif isinstance(part, ArrowBatch):
            self.arrow.append(part)
        else:
            self.values += part.values
            if self.stamps is not None:
                assert part.timestamps is not None, "only what fits is added"
                self.stamps += part.timestamps
        self.rows += len(part)
        self.row_limit = min(self.row_limit, row_limit)

    def take(self) -> Batch:
        """Take the records still to be encoded, as one batch."""
        batch = self._batch()
        self._empty()
        return batch

    def seal(self, encoded: Pieces, size: int, rows: int, arrow: bool) -> None:
        """Add an encoded batch of `size` bytes behind those that are here, which are all Arrow or none."""
        self.sealed.append(encoded)
        self.sealed_bytes += size
        self.sealed_rows += rows
        self.sealed_arrow = arrow

    def statistics(self) -> OpenBatchStatistics:
        """Return the present counts."""
        return OpenBatchStatistics(self.rows, len(self.sealed), self.sealed_rows, self.sealed_bytes)

    def _batch(self) -> Batch:
        if self.columns:
            return concatenated(self.columns)
        if not self.arrow:
            return RowBatch(self.values, self.stamps)
        if len(self.arrow) == 1:
            return self.arrow[0]
        import numpy as np
        import pyarrow as pa

        data = pa.concat_batches([part.data for part in self.arrow])
        if self.arrow[0].timestamps is None:
            return ArrowBatch(data)
        return ArrowBatch(data, np.concatenate([part.timestamps for part in self.arrow]))


def are_alike(first: Batch, other: Batch) -> bool:
    """Return whether two batches can be merged: rows, rows as columns of one form, or Arrow of one schema; stamped or
    not.
    """
    if isinstance(first, RowColumns):
        return isinstance(other, RowColumns) and first.is_like(other)
    if type(first) is not type(other) or (first.timestamps is None) != (other.timestamps is None):
        return False
    if isinstance(first, ArrowBatch) and isinstance(other, ArrowBatch):
        return bool(first.data.schema.equals(other.data.schema, check_metadata=True))
    return type(first) is RowBatch


def merge_batches(parts: Sequence[Batch]) -> Batch:
    """Merge at least one batch, all alike, into one in their order."""
    if len(parts) == 1:
        return parts[0]
    whole = OpenBatch()
    for part in parts:
        whole.add(part, 0, 0)
    return whole.take()


def bytes_per_row(part: Batch) -> int:
    """Estimate the bytes per row of a non-empty batch: exact for Arrow; for Python rows, by the last one."""
    if isinstance(part, RowColumns):
        return sum(map(_bytes_per_value, part.columns))
    if isinstance(part, ArrowBatch):
        return int(part.data.nbytes) // len(part)
    value = part.values[-1]
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, (tuple, list)):
        return sum(len(item) for item in value if isinstance(item, (str, bytes, bytearray)))
    if isinstance(value, dict):
        return sum(len(item) for item in value.values() if isinstance(item, (str, bytes, bytearray)))
    return int(getattr(value, "nbytes", 0))


def _bytes_per_value(column: Column) -> int:
    if isinstance(column, list):
        return len(column[-1])
    return 2 if isinstance(column, Coded) else 8
