"""The state of a window aggregation: for each slice, pieces of partial rows that are joined when they have doubled.

What exceeds the managed memory goes to files, the largest slices first; they are worked in parts by key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import PartialRows, concatenated
from ..keyed_state.frame_memory import Columns, FrameMemory, divided, size_of

LEAST_WEIGHT = 32_768
"""A slice of a lesser weight is left as it is; see `PartialRows.weight`."""


class Joined(list[pa.Array]):
    """Columns of partial rows that are joined: no more rows of a key than it needs."""


@dataclass
class Slice:
    """Partial rows, in the order in which they came.

    Args:
        filed: pieces in files.
        pieces: those in memory, which came later.
        size: bytes of those.
        weight: of all.
        joined_weight: what it was when they were last joined.
        is_joined: whether all of them are.
    """

    filed: list[Columns] = field(default_factory=list)
    pieces: list[Columns] = field(default_factory=list)
    size: int = 0
    weight: int = 0
    joined_weight: int = 0
    is_joined: bool = False

    @property
    def all(self) -> list[Columns]:
        """Return all pieces."""
        return [*self.filed, *self.pieces]


class SliceStore:
    """Slices by their ends.

    Args:
        partials: says how partial rows are joined.
        is_shared: whether several windows have a slice.
    """

    def __init__(self, partials: PartialRows, is_shared: bool) -> None:
        self._partials, self._is_shared = partials, is_shared
        self._memory: FrameMemory | None = None
        self._size = 0
        self.slices: dict[int, Slice] = {}

    def open(self, memory: FrameMemory) -> None:
        """Keep to this memory."""
        self._memory = memory

    def __bool__(self) -> bool:
        return bool(self.slices)

    @property
    def ends(self) -> list[int]:
        """Ends of the slices, ascending."""
        return sorted(self.slices)

    @property
    def is_short_of_memory(self) -> bool:
        """Return whether more memory was refused."""
        return self._memory is not None and self._memory.limit is not None

    def add(self, end: int, columns: Columns) -> None:
        """Add partial rows to the slice with this end."""
        held = self.slices.setdefault(end, Slice())
        held.is_joined = False  # an exchange puts batches together, so that a piece may have a key twice
        held.pieces.append(columns)
        held.weight += self._partials.weight(columns)
        self._grow(held, size_of(columns))
        if held.weight > LEAST_WEIGHT and held.weight >= 2 * held.joined_weight:
            self.join(held)

    def _grow(self, held: Slice, size: int) -> None:
        held.size += size
        self._size += size

    def keep_to_memory(self) -> None:
        """Write what exceeds the memory to a file: the largest slices, half of all."""
        if self._memory is None or self._memory.hold(self._size):
            return
        chosen: list[Slice] = []
        left = self._size
        for held in sorted(self.slices.values(), key=lambda one: -one.size):
            if left <= self._size // 2 or not held.size:
                break
            chosen.append(held)
            left -= held.size
        pieces = [self.merge(held.pieces) for held in chosen]
        for held, piece in zip(chosen, self._memory.written(pieces), strict=True):
            held.filed.append(piece)
            held.pieces = []
            self._grow(held, -held.size)
        self._memory.hold(self._size)

    def join(self, held: Slice) -> None:
        """Join all pieces of a slice."""
        if not held.is_joined:
            parts = self._parts(held.all)
            if parts == 1:
                whole = self.merge(held.all)
                held.filed, held.pieces = [], [whole]
                self._grow(held, size_of(whole) - held.size)
            else:
                assert self._memory is not None
                held.filed = self._memory.written(self.merge(part) for part in self._divided(held.all, parts))
                held.pieces = []
                self._grow(held, -held.size)
            held.weight = sum(map(self._partials.weight, held.all))
            held.is_joined = True
        held.joined_weight = held.weight

    def weight(self, piece: Columns) -> int:
        """See `PartialRows.weight`."""
        return self._partials.weight(piece)

    def merge(self, pieces: Sequence[Columns]) -> Columns:
        """Pieces as one."""
        if len(pieces) == 1 and isinstance(pieces[0], Joined):
            return pieces[0]
        columns = concatenated(pieces)
        return Joined(self._partials.merge(columns, grouped(columns[: self._partials.width], len(columns[0]))))

    def in_parts(self, pieces: list[Columns]) -> Iterator[list[Columns]]:
        """Pieces in parts that fit into memory, each with all rows of its keys; most often it is one."""
        parts = self._parts(pieces)
        yield from [pieces] if parts == 1 else self._divided(pieces, parts)

    def _parts(self, pieces: list[Columns]) -> int:
        if self._memory is None or self._memory.limit is None or not self._partials.width:
            return 1
        return self._memory.parts(sum(map(size_of, pieces)))

    def _divided(self, pieces: list[Columns], parts: int) -> Iterator[list[Columns]]:
        for part in divided(pieces, self._partials.width, parts):
            there = [piece for piece in part if len(piece[0])]
            if there:
                yield there

    def pieces(self, end: int) -> list[Columns]:
        """Return the pieces of a slice; one that several windows share is merged first, for all of them."""
        held = self.slices[end]
        if self._is_shared:
            self.join(held)
        return held.all

    def drop(self, end: int) -> None:
        """Forget a slice."""
        self._size -= self.slices.pop(end).size

    def __iter__(self) -> Iterator[tuple[int, list[Columns]]]:
        return ((end, held.all) for end, held in self.slices.items())


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


__all__ = ["LEAST_WEIGHT", "Joined", "Slice", "SliceStore", "split_by"]
