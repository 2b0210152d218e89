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
"""Rows of this many bytes are sorted together at most."""
BLOCK_ROWS = 1 << 16
"""Rows that are given at a time at most."""
LEAST_PRUNED = 1 << 15
"""Fewer rows are left as they are, although some of them cannot be among the first ones."""


class SortedRows:
    """Takes rows, and gives them sorted; equal ones in the order in which they came.

    Args:
        keys: the order.
        most: how many of the first ones are wanted; None: all.
    """

    def __init__(self, keys: Sequence[OrderKey], most: int | None = None) -> None:
        self._keys, self._most = tuple(keys), most
        self._memory: FrameMemory | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_rows = self._held_size = 0
        self._runs: list[Columns] = []
        """Sorted ones in memory, which came later than those in files."""
        self._runs_size = 0
        self._filed: list[Columns] = []
        self._schema: pa.Schema | None = None

    def open(self, memory: FrameMemory) -> None:
        """Keep to this memory."""
        self._memory = memory

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows."""
        if not batch.num_rows or self._most == 0:
            return
        self._schema = batch.schema
        self._hold(batch)
        if self._most is not None and self._held_rows >= 2 * self._most:
            if self._held_rows >= LEAST_PRUNED or not self._fits():
                self._hold(self._sorted_held())
        if self._held_size >= RUN_BYTES:
            self._end_run()
        if self._memory is not None and not self._fits():
            self._end_run()
            self._filed += self._memory.written(self._runs)
            self._runs, self._runs_size = [], 0
            self._memory.hold(0)

    def _fits(self) -> bool:
        """Return whether what there is may stay in memory; to sort rows takes as much again."""
        return self._memory is None or self._memory.hold(2 * self._held_size + self._runs_size)

    def _hold(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_size += batch.nbytes

    def _sorted_held(self) -> pa.RecordBatch:
        """Return the rows that are held in order, or those of them that are wanted; then there are none."""
        batch = one_batch(self._held)
        self._held, self._held_rows, self._held_size = [], 0, 0
        order = order_of(order_numbers(batch.columns, self._keys), batch.num_rows)
        return batch.take(pa.array(order[: self._most]))

    def _end_run(self) -> None:
        if self._held:
            run = list(self._sorted_held().columns)
            self._runs.append(run)
            self._runs_size += size_of(run)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; then there are none."""
        if self._schema is None:
            return
        if not self._runs and not self._filed:
            batch = self._sorted_held()
            for first in range(0, batch.num_rows, BLOCK_ROWS):
                yield batch.slice(first, BLOCK_ROWS)
            return
        self._end_run()
        runs, self._runs, self._filed = [*self._filed, *self._runs], [], []
        left = self._most
        for columns in merged(runs, self._keys, self._block_rows(runs)):
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema).slice(0, left)
            left = None if left is None else left - len(columns[0])
            if left is not None and left <= 0:
                return

    def _block_rows(self, runs: Sequence[Columns]) -> int:
        """Return the number of rows of each run that are merged at a time."""
        limit = RUN_BYTES if self._memory is None or self._memory.limit is None else self._memory.limit
        width = max(1, sum(map(size_of, runs)) // max(1, sum(len(run[0]) for run in runs)))
        return min(max(limit // (2 * width * len(runs)), 1), BLOCK_ROWS)


def merged(runs: Sequence[Columns], keys: Sequence[OrderKey], block_rows: int) -> Iterator[Columns]:
    """Yield the rows of sorted runs as one, a part after the other; of equal rows those of earlier runs are first.

    Of each run the next rows are looked at. What is not behind the last of them, of any run that has more, is next.
    """
    places = [0] * len(runs)
    lengths = [len(run[0]) for run in runs]
    while True:
        live = [at for at, place in enumerate(places) if place < lengths[at]]
        if not live:
            return
        blocks = [[column.slice(places[at], block_rows) for column in runs[at]] for at in live]
        sizes = np.array([len(block[0]) for block in blocks])
        columns = concatenated(blocks)
        order = order_of(order_numbers(columns, keys), len(columns[0]))
        stop = len(order)
        lasts = [last for at, size, last in zip(live, sizes, np.cumsum(sizes) - 1, strict=True)
                 if places[at] + size < lengths[at]]  # fmt: skip
        if lasts:
            where = np.empty(len(order), dtype=np.int64)
            where[order] = np.arange(len(order))
            stop = int(where[lasts].min()) + 1
        taken = order[:stop]
        yield [column.take(pa.array(taken)) for column in columns]
        of = np.bincount(np.repeat(np.arange(len(live)), sizes)[taken], minlength=len(live))
        for at, count in zip(live, of.tolist(), strict=True):
            places[at] += count


__all__ = ["BLOCK_ROWS", "LEAST_PRUNED", "RUN_BYTES", "SortedRows", "merged"]
