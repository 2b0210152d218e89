"""Rows that are sorted in bounded memory: sorted runs, in files where the managed memory is short, and merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from ..keyed_state.frame_memory import Columns, FrameMemory, size_of
from ..keyed_state.frame_snapshots import one_batch
from .ordering import OrderKey, order_numbers, order_of

RUN_BYTES = 64 << 20
"""Bytes of rows that are sorted together at most."""
BLOCK_ROWS = 1 << 16
"""Rows in a block of results at most."""
LEAST_PRUNED = 1 << 15
"""Fewer rows are not pruned, although some of them cannot be among the first ones."""


class SortedRows:
    """Sorts rows in runs, and merges the runs; equal rows stay in the order in which they came.

    Args:
        keys: the order.
        most: the number of first rows that are wanted; None: all.
    """

    def __init__(self, keys: Sequence[OrderKey], most: int | None = None) -> None:
        self._keys, self._most = tuple(keys), most
        self._memory: FrameMemory | None = None
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_rows = self._buffered_size = 0
        self._runs: list[Columns] = []
        """Sorted runs in memory, which came later than those in files."""
        self._runs_size = 0
        self._filed: list[Columns] = []
        self._schema: pa.Schema | None = None

    def open(self, memory: FrameMemory) -> None:
        """Use this memory; it is not bounded before."""
        self._memory = memory

    def add(self, batch: pa.RecordBatch) -> None:
        """Add some rows."""
        if not batch.num_rows or self._most == 0:
            return
        self._schema = batch.schema
        self._buffer(batch)
        if self._most is not None and self._buffered_rows >= 2 * self._most:
            if self._buffered_rows >= LEAST_PRUNED or not self._fits():
                self._buffer(self._sorted_buffer())
        if self._buffered_size >= RUN_BYTES:
            self._end_run()
        if self._memory is not None and not self._fits():
            self._end_run()
            self._filed += self._memory.written(self._runs)
            self._runs, self._runs_size = [], 0
            self._memory.reserve(0)

    def _fits(self) -> bool:
        """Return whether all rows may stay in memory; sorting buffered ones takes as much again."""
        return self._memory is None or self._memory.reserve(2 * self._buffered_size + self._runs_size)

    def _buffer(self, batch: pa.RecordBatch) -> None:
        self._buffered.append(batch)
        self._buffered_rows += batch.num_rows
        self._buffered_size += batch.nbytes

    def _sorted_buffer(self) -> pa.RecordBatch:
        """Empty the buffer, and return its rows in order, or those of them that are wanted."""
        batch = one_batch(self._buffered)
        self._buffered, self._buffered_rows, self._buffered_size = [], 0, 0
        order = order_of(order_numbers(batch.columns, self._keys), batch.num_rows)
        return batch.take(pa.array(order[: self._most]))

    def _end_run(self) -> None:
        if self._buffered:
            run = list(self._sorted_buffer().columns)
            self._runs.append(run)
            self._runs_size += size_of(run)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, once."""
        if self._schema is None:
            return
        if not self._runs and not self._filed:
            batch = self._sorted_buffer()
            for first in range(0, batch.num_rows, BLOCK_ROWS):
                yield batch.slice(first, BLOCK_ROWS)
            return
        self._end_run()
        runs, self._runs, self._filed = [*self._filed, *self._runs], [], []
        left = self._most
        for columns in merge_runs(runs, self._keys, self._block_rows(runs)):
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema).slice(0, left)
            left = None if left is None else left - len(columns[0])
            if left is not None and left <= 0:
                return

    def _block_rows(self, runs: Sequence[Columns]) -> int:
        """Return the number of rows of each run that are merged at a time."""
        limit = RUN_BYTES if self._memory is None or self._memory.limit is None else self._memory.limit
        width = max(1, sum(map(size_of, runs)) // max(1, sum(len(run[0]) for run in runs)))
        return min(max(limit // (2 * width * len(runs)), 1), BLOCK_ROWS)


def merge_runs(runs: Sequence[Columns], keys: Sequence[OrderKey], block_rows: int) -> Iterator[Columns]:
    """Merge sorted runs, and yield their rows in blocks; of equal rows those of earlier runs are first.

    Each step sorts the next block of each run. Rows up to the least of the last rows of these blocks can be emitted,
    where runs that end with their block do not count.
    """
    places = [0] * len(runs)
    lengths = [len(run[0]) for run in runs]
    while True:
        live = [run for run, place in enumerate(places) if place < lengths[run]]
        if not live:
            return
        blocks = [[column.slice(places[run], block_rows) for column in runs[run]] for run in live]
        sizes = np.array([len(block[0]) for block in blocks])
        columns = concatenated(blocks)
        order = order_of(order_numbers(columns, keys), len(columns[0]))
        stop = len(order)
        lasts = [last for run, size, last in zip(live, sizes, np.cumsum(sizes) - 1, strict=True)
                 if places[run] + size < lengths[run]]  # fmt: skip
        if lasts:
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            stop = int(ranks[lasts].min()) + 1
        taken = order[:stop]
        yield [column.take(pa.array(taken)) for column in columns]
        counts = np.bincount(np.repeat(np.arange(len(live)), sizes)[taken], minlength=len(live))
        for run, count in zip(live, counts.tolist(), strict=True):
            places[run] += count


__all__ = ["BLOCK_ROWS", "LEAST_PRUNED", "RUN_BYTES", "SortedRows", "merge_runs"]
