"""The state of sliced windows: for each slice, pieces of partial rows that are merged when they have doubled.

Rows beyond the managed memory go to files, the largest slices first; they are processed in parts by key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import PartialRows, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns, FrameMemory, divided, size_of

LEAST_WEIGHT = 32_768
"""A slice of a lesser weight is left as it is; see `PartialRows.weight`."""
SLICE_FIELDS = (pa.field("slice_end", pa.int64()), pa.field("arrival", pa.int64()))
"""In a snapshot, the slice of a partial row, and its place among those of the slice."""


class MergedRows(list[pa.Array]):
    """Columns of partial rows that are merged: no more rows of a key than it needs."""


@dataclass
class Slice:
    """The partial rows of a slice, in the order in which they came.

    Args:
        filed: pieces in files.
        pieces: pieces in memory, which came later.
        size: bytes of the pieces in memory.
        weight: of all pieces.
        merged_weight: the weight when they were last merged.
        is_merged: whether all of them are.
    """

    filed: list[Columns] = field(default_factory=list)
    pieces: list[Columns] = field(default_factory=list)
    size: int = 0
    weight: int = 0
    merged_weight: int = 0
    is_merged: bool = False

    @property
    def all(self) -> list[Columns]:
        """Return all pieces."""
        return [*self.filed, *self.pieces]


class SliceStore:
    """Collects partial rows by slice; a slice is identified by its end.

    Args:
        partials: merges partial rows.
        is_shared: whether several windows have a slice.
    """

    def __init__(self, partials: PartialRows, is_shared: bool) -> None:
        self._partials, self._is_shared = partials, is_shared
        self._memory: FrameMemory | None = None
        self._size = 0
        self.slices: dict[int, Slice] = {}

    def open(self, memory: FrameMemory) -> None:
        """Use this memory; it is not bounded before."""
        self._memory = memory

    def __bool__(self) -> bool:
        return bool(self.slices)

    @property
    def ends(self) -> list[int]:
        """Return the ends of the slices, ascending."""
        return sorted(self.slices)

    @property
    def is_short_of_memory(self) -> bool:
        """Return whether more memory was refused."""
        return self._memory is not None and self._memory.limit is not None

    def add(self, end: int, columns: Columns) -> None:
        """Add partial rows to the slice with this end."""
        slice_ = self.slices.setdefault(end, Slice())
        slice_.is_merged = False  # an exchange puts batches together, so that a piece may have a key twice
        slice_.pieces.append(columns)
        slice_.weight += self._partials.weight(columns)
        self._grow(slice_, size_of(columns))
        if slice_.weight > LEAST_WEIGHT and slice_.weight >= 2 * slice_.merged_weight:
            self._merge_slice(slice_)

    def _grow(self, slice_: Slice, size: int) -> None:
        slice_.size += size
        self._size += size

    def keep_to_memory(self) -> None:
        """Write slices to a file if they exceed the memory: the largest ones, half of all bytes."""
        if self._memory is None or self._memory.reserve(self._size):
            return
        chosen: list[Slice] = []
        left = self._size
        for slice_ in sorted(self.slices.values(), key=lambda candidate: -candidate.size):
            if left <= self._size // 2 or not slice_.size:
                break
            chosen.append(slice_)
            left -= slice_.size
        pieces = [self.merge(slice_.pieces) for slice_ in chosen]
        for slice_, piece in zip(chosen, self._memory.written(pieces), strict=True):
            slice_.filed.append(piece)
            slice_.pieces = []
            self._grow(slice_, -slice_.size)
        self._memory.reserve(self._size)

    def _merge_slice(self, slice_: Slice) -> None:
        """Merge all pieces of a slice."""
        if not slice_.is_merged:
            parts = self._parts(slice_.all)
            if parts == 1:
                merged = self.merge(slice_.all)
                slice_.filed, slice_.pieces = [], [merged]
                self._grow(slice_, size_of(merged) - slice_.size)
            else:
                assert self._memory is not None
                slice_.filed = self._memory.written(self.merge(part) for part in self._divided(slice_.all, parts))
                slice_.pieces = []
                self._grow(slice_, -slice_.size)
            slice_.weight = sum(map(self._partials.weight, slice_.all))
            slice_.is_merged = True
        slice_.merged_weight = slice_.weight

    def weight(self, piece: Columns) -> int:
        """Return the weight of partial rows; see `PartialRows.weight`."""
        return self._partials.weight(piece)

    def merge(self, pieces: Sequence[Columns]) -> Columns:
        """Merge pieces to one."""
        if len(pieces) == 1 and isinstance(pieces[0], MergedRows):
            return pieces[0]
        columns = concatenated(pieces)
        return MergedRows(self._partials.merge(columns, grouped(columns[: self._partials.width], len(columns[0]))))

    def in_parts(self, pieces: list[Columns]) -> Iterator[list[Columns]]:
        """Yield pieces in parts that fit into memory, each with all rows of its keys; most often it is one."""
        parts = self._parts(pieces)
        yield from [pieces] if parts == 1 else self._divided(pieces, parts)

    def _parts(self, pieces: list[Columns]) -> int:
        if self._memory is None or self._memory.limit is None or not self._partials.width:
            return 1
        return self._memory.parts(sum(map(size_of, pieces)))

    def _divided(self, pieces: list[Columns], parts: int) -> Iterator[list[Columns]]:
        for part in divided(pieces, self._partials.width, parts):
            filled = [piece for piece in part if len(piece[0])]
            if filled:
                yield filled

    def pieces(self, end: int) -> list[Columns]:
        """Return the pieces of a slice; one that several windows share is merged first, for all of them."""
        slice_ = self.slices[end]
        if self._is_shared:
            self._merge_slice(slice_)
        return slice_.all

    def drop(self, end: int) -> None:
        """Forget a slice."""
        self._size -= self.slices.pop(end).size

    def __iter__(self) -> Iterator[tuple[int, list[Columns]]]:
        return ((end, slice_.all) for end, slice_ in self.slices.items())

    # snapshots

    def frame(self) -> Callable[[], Columns | None]:
        """Return a function that returns the rows of all slices as they are now, with `SLICE_FIELDS`; None: none."""
        slices = list(self)

        def frame() -> Columns | None:
            parts: list[Columns] = []
            for end, pieces in slices:
                columns = self.merge(pieces)
                rows = len(columns[0])
                ends, arrival = np.full(rows, end, dtype=np.int64), np.arange(rows, dtype=np.int64)
                parts.append([*columns, to_arrow(ends, pa.int64()), to_arrow(arrival, pa.int64())])
            return concatenated(parts) if parts else None

        return frame

    def add_frame(self, frame: pa.RecordBatch) -> None:
        """Add the rows of a frame to their slices."""
        *columns, ends, arrival = frame.columns
        order = pa.array(np.lexsort((to_numpy(arrival), to_numpy(ends))))
        for end, piece in split_by(to_numpy(ends.take(order)), [column.take(order) for column in columns]):
            self.add(end, piece)


def split_by(ends: Any, columns: Sequence[pa.Array]) -> Iterator[tuple[int, Columns]]:
    """Yield (number, columns) of the rows with each number of int64[n], in ascending order of the numbers."""
    if not len(ends):
        return
    least, most = int(ends.min()), int(ends.max())
    if least == most:
        yield least, list(columns)
        return
    steps = np.diff(ends)
    if (steps < 0).any():
        order = np.argsort(ends, kind="stable")
        taken = pa.array(order)
        ends, columns = ends[order], [column.take(taken) for column in columns]
        steps = np.diff(ends)
    bounds = [0, *(np.flatnonzero(steps) + 1).tolist(), len(ends)]
    for first, stop in zip(bounds, bounds[1:], strict=False):
        yield int(ends[first]), [column.slice(first, stop - first) for column in columns]


__all__ = ["LEAST_WEIGHT", "SLICE_FIELDS", "MergedRows", "Slice", "SliceStore", "split_by"]
