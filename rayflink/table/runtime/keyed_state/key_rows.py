"""Columns of keys by the numbers of their rows, in blocks that are freed and used again.

Rows come to the end of the open block; its pieces are joined when they are of like length. A block whose rows were
mostly forgotten gives the others up, to be added anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from .frame_memory import Columns, FrameMemory, size_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

BLOCK_BITS = 17
BLOCK_ROWS = 1 << BLOCK_BITS
"""A block has the row numbers that have its own number in front of this many bits."""


class _Block:
    """Rows with numbers that follow one another.

    Args:
        first: number of its first row.
    """

    def __init__(self, first: int) -> None:
        self.first, self.count, self.forgotten, self.is_filed = first, 0, 0, False
        self.pieces: list[tuple[int, Columns]] = []
        """(how many rows, their columns)."""

    @property
    def is_sealed(self) -> bool:
        """Return whether no row is added to it any more."""
        return self.count == BLOCK_ROWS

    def add(self, columns: Columns, count: int) -> None:
        self.pieces.append((count, columns))
        self.count += count
        while len(self.pieces) > 1 and (self.is_sealed or self.pieces[-2][0] <= 2 * self.pieces[-1][0]):
            last, before = self.pieces.pop(), self.pieces.pop()
            self.pieces.append((before[0] + last[0], concatenated([before[1], last[1]])))

    @property
    def size(self) -> int:
        return 0 if self.is_filed else sum(size_of(columns) for _, columns in self.pieces)


class KeyRows:
    """Rows of key columns."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._open: _Block | None = None
        self._sealed_size = 0
        self._firsts: Rows | None = None
        """First rows of all pieces, ascending; None: they have changed."""
        self._pieces: list[Columns] = []

    def __len__(self) -> int:
        return sum(block.count - block.forgotten for block in self._blocks.values())

    @property
    def numbers(self) -> int:
        """Return a number above those of all rows."""
        return (max(self._blocks, default=-1) + 1) << BLOCK_BITS

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self._sealed_size + (0 if self._open is None else self._open.size)

    def append(self, columns: Columns, count: int) -> Rows:
        """Add rows; their numbers: int64[count]."""
        given: list[Rows] = []
        done = 0
        while done < count:
            block = self._open_block()
            taken = min(count - done, BLOCK_ROWS - block.count)
            given.append(np.arange(block.first + block.count, block.first + block.count + taken))
            block.add([one.slice(done, taken) for one in columns], taken)
            if block.is_sealed:
                self._sealed_size += block.size
                self._open = None
            done += taken
        self._firsts = None
        return np.concatenate(given) if given else np.zeros(0, dtype=np.int64)

    def _open_block(self) -> _Block:
        if self._open is None:
            number = next(at for at in range(len(self._blocks) + 1) if at not in self._blocks)
            self._open = self._blocks[number] = _Block(number << BLOCK_BITS)
        return self._open

    def gathered(self, rows: Rows) -> tuple[Columns, NDArray[np.intp]]:
        """Return the columns of some rows, at least one, in another order: (columns, places in `rows`)."""
        firsts, pieces = self._known()
        if len(pieces) == 1:
            taken = pa.array(rows - firsts[0])
            return [one.take(taken) for one in pieces[0]], np.arange(len(rows))
        of = (np.searchsorted(firsts, rows, side="right") - 1).astype(np.uint32)
        order = np.argsort(of.astype(np.uint16) if len(pieces) < 1 << 16 else of, kind="stable")
        sorted_ = of[order]
        bounds = [0, *(np.flatnonzero(np.diff(sorted_)) + 1).tolist(), len(rows)]
        parts: list[Columns] = []
        for start, stop in zip(bounds, bounds[1:], strict=False):
            at = int(sorted_[start])
            taken = pa.array(rows[order[start:stop]] - firsts[at])
            parts.append([one.take(taken) for one in pieces[at]])
        return concatenated(parts), order

    def _known(self) -> tuple[Rows, list[Columns]]:
        if self._firsts is None:
            firsts: list[int] = []
            self._pieces = []
            for number in sorted(self._blocks):
                first = self._blocks[number].first
                for count, columns in self._blocks[number].pieces:
                    firsts.append(first)
                    self._pieces.append(columns)
                    first += count
            self._firsts = np.array(firsts, dtype=np.int64)
        return self._firsts, self._pieces

    def forget(self, rows: Rows) -> None:
        """Reduce the number of live rows of each block."""
        for number, count in enumerate(np.bincount(rows >> BLOCK_BITS).tolist()):
            if count:
                self._blocks[number].forgotten += count

    def sparse(self) -> list[slice]:
        """Return numbers of the rows of each block of which half is wanted no more; those with the fewest first."""
        blocks = [one for one in self._blocks.values() if one.is_sealed and 2 * one.forgotten >= one.count]
        blocks.sort(key=lambda one: one.count - one.forgotten)
        return [slice(one.first, one.first + one.count) for one in blocks]

    def drop(self, first: int) -> None:
        """Give up the block that begins with this row, none of whose rows is wanted any more."""
        block = self._blocks.pop(first >> BLOCK_BITS)
        self._sealed_size -= block.size
        self._firsts = None

    def file(self, memory: FrameMemory) -> None:
        """Have all rows but those of the open block in a file."""
        blocks = [one for one in self._blocks.values() if one.is_sealed and not one.is_filed and one.pieces[0][1]]
        for block, columns in zip(blocks, memory.written(one.pieces[0][1] for one in blocks) if blocks else (),
                                  strict=True):  # fmt: skip
            block.pieces, block.is_filed = [(block.count, columns)], True
        self._sealed_size = 0
        self._firsts = None

    def pieces(self) -> Iterator[tuple[int, int, Columns]]:
        """(number of the first row, how many, columns) of all pieces."""
        for block in self._blocks.values():
            first = block.first
            for count, columns in block.pieces:
                yield first, count, columns
                first += count


def taken(columns: Sequence[pa.Array], rows: NDArray[np.intp]) -> Columns:
    """Return some rows of columns."""
    wanted = pa.array(rows)
    return [one.take(wanted) for one in columns]


__all__ = ["BLOCK_BITS", "BLOCK_ROWS", "KeyRows", "taken"]
