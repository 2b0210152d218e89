"""Rows that wait to be worked together, as Flink's mini-batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import has_kinds, with_kinds

from ...plan.groups import MiniBatch
from ..keyed_state.frame_snapshots import one_batch


class MiniBatchRows:
    """Rows that wait until there are many, or have waited long enough.

    Args:
        limits: when that is.
    """

    def __init__(self, limits: MiniBatch) -> None:
        self._limits = limits
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self.due_ms: int | None = None
        """Epoch milliseconds at which they have waited long enough; None: no row waits."""

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, rows: pa.RecordBatch, now_ms: int) -> bool:
        """Add rows, at least one, and return whether there are enough."""
        if self.due_ms is None:
            self.due_ms = now_ms - now_ms % self._limits.latency_ms + self._limits.latency_ms
        self._batches.append(rows)
        self._rows += rows.num_rows
        return self._rows >= self._limits.rows

    def take(self) -> pa.RecordBatch:
        """Return all rows; none waits behind that."""
        batches, self._batches, self._rows, self.due_ms = self._batches, [], 0, None
        return merged_rows(batches)


def merged_rows(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches as one; rows are insertions where other batches have the kinds of rows."""
    if any(has_kinds(batch.schema) for batch in batches):
        batches = [batch if has_kinds(batch.schema) else with_kinds(batch, np.zeros(batch.num_rows, dtype=np.int8))
                   for batch in batches]  # fmt: skip
    return one_batch(batches)


__all__ = ["MiniBatchRows", "merged_rows"]
