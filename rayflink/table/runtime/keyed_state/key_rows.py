"""Columns of keys by the numbers of their rows, in blocks that are freed and used again.

Rows are appended to the open block; its pieces are merged when they are of similar length and small. When most rows of
a block were removed, the others are added anew, and the block is freed; the open one, too, where it is large.
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
"""A block has the row numbers whose upper bits are its own number; these are the lower bits."""
LARGE_BYTES = 1 << 22
"""A piece of this size is copied to no longer one before its block is sealed; rows may be long lists."""


class _Block:
    """Rows with numbers that follow one another.

    Args:
        first: number of its first row.
    """

    def __init__(self, first: int) -> None:
        self.first, self.count, self.removed, self.is_filed, self.is_closed = first, 0, 0, False, False
        self.pieces: list[tuple[int, Columns]] = []
        """(number of rows, their columns)."""

    @property
    def is_sealed(self) -> bool:
        """Return whether no row is added to it any more."""
        return self.is_closed or self.count == BLOCK_ROWS

    @property
    def is_last_large(self) -> bool:
        """Return whether the last piece is large."""
        return size_of(self.pieces[-1][1]) >= LARGE_BYTES

    def add(self, columns: Columns, count: int) -> None:
        self.pieces.append((count, columns))
        self.count += count
        while len(self.pieces) > 1 and (
            self.is_sealed or (self.pieces[-2][0] <= 2 * self.pieces[-1][0] and not self.is_last_large)
        ):
            last, before = self.pieces.pop(), self.pieces.pop()
            self.pieces.append((before[0] + last[0], concatenated([before[1], last[1]])))

    @property
    def size(self) -> int:
        return 0 if self.is_filed else sum(size_of(columns) for _, columns in self.pieces)


class KeyRows:
    """Stores rows of key columns."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._open: _Block | None = None
        self._sealed_size = 0
        self._firsts: Rows | None = None
        """First rows of all pieces, ascending; None: they have changed."""
        self._pieces: list[Columns] = []

    def __len__(self) -> int:
        return sum(block.count - block.removed for block in self._blocks.values())

    @property
    def numbers(self) -> int:
        """Return a number above those of all rows."""
        return (max(self._blocks, default=-1) + 1) << BLOCK_BITS

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return self._sealed_size + (0 if self._open is None else self._open.size)

    def append(self, columns: Columns, count: int) -> Rows:
        """Add rows, and return their numbers: int64[count]."""
        numbers: list[Rows] = []
        done = 0
        while done < count:
            block = self._open_block()
            rows = min(count - done, BLOCK_ROWS - block.count)
            numbers.append(np.arange(block.first + block.count, block.first + block.count + rows))
            block.add([column.slice(done, rows) for column in columns], rows)
            if block.is_sealed:
                self._sealed_size += block.size
                self._open = None
            done += rows
        self._firsts = None
        return np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.int64)

    def _open_block(self) -> _Block:
        if self._open is None:
            number = next(number for number in range(len(self._blocks) + 1) if number not in self._blocks)
            self._open = self._blocks[number] = _Block(number << BLOCK_BITS)
        return self._open

    def gather(self, rows: Rows, width: int | None = None) -> tuple[Columns, NDArray[np.intp]]:
        """Return the columns of some rows, at least one, in another order: (columns, places in `rows`).

        Args:
            width: number of the columns that are wanted, the first ones; None: all.
        """
        firsts, pieces = self.indexed_pieces()
        pieces = [piece[:width] for piece in pieces]
        if len(pieces) == 1:
            return take_rows(pieces[0], rows - firsts[0]), np.arange(len(rows))
        numbers = (np.searchsorted(firsts, rows, side="right") - 1).astype(np.uint32)  # of pieces
        order = np.argsort(numbers.astype(np.uint16) if len(pieces) < 1 << 16 else numbers, kind="stable")
        numbers = numbers[order]
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
        parts: list[Columns] = []
        for start, stop in zip(bounds, bounds[1:], strict=False):
            number = int(numbers[start])
            parts.append(take_rows(pieces[number], rows[order[start:stop]] - firsts[number]))
        return concatenated(parts), order

    def indexed_pieces(self) -> tuple[Rows, list[Columns]]:
        """Return the number of the first row of each piece, ascending, and their columns; neither is ever changed."""
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

    def remove(self, rows: Rows) -> None:
        """Count rows as removed; their blocks are freed by `drop`."""
        for number, count in enumerate(np.bincount(rows >> BLOCK_BITS).tolist()):
            if count:
                self._blocks[number].removed += count

    def close_sparse(self) -> None:
        """Let no further rows into the open block where it is large and most of its rows were removed."""
        block = self._open
        if block is not None and 4 * block.removed >= 3 * block.count and block.size >= LARGE_BYTES:
            block.is_closed, self._open = True, None
            self._sealed_size += block.size

    def sparse(self) -> list[slice]:
        """Return the row numbers of each block of which half was removed, the block with the fewest rows first."""
        blocks = [block for block in self._blocks.values() if block.is_sealed and 2 * block.removed >= block.count]
        blocks.sort(key=lambda block: block.count - block.removed)
        return [slice(block.first, block.first + block.count) for block in blocks]

    def drop(self, first: int) -> None:
        """Free the block that begins with this row; all its rows were removed."""
        block = self._blocks.pop(first >> BLOCK_BITS)
        self._sealed_size -= block.size
        self._firsts = None

    def file(self, memory: FrameMemory) -> None:
        """Write all rows but those of the open block to a file."""
        blocks = [block for block in self._blocks.values() if block.is_sealed and not block.is_filed]
        blocks = [block for block in blocks if block.pieces[0][1]]
        written = memory.written(block.pieces[0][1] for block in blocks) if blocks else ()
        for block, columns in zip(blocks, written, strict=True):
            block.pieces, block.is_filed = [(block.count, columns)], True
        self._sealed_size = 0
        self._firsts = None

    def pieces(self) -> Iterator[tuple[int, int, Columns]]:
        """Yield (number of the first row, number of rows, columns) of all pieces."""
        for block in self._blocks.values():
            first = block.first
            for count, columns in block.pieces:
                yield first, count, columns
                first += count


def take_rows(columns: Sequence[pa.Array], rows: NDArray[np.intp]) -> Columns:
    """Return some rows of columns."""
    chosen = pa.array(rows)
    return [column.take(chosen) for column in columns]


__all__ = ["BLOCK_BITS", "BLOCK_ROWS", "KeyRows", "take_rows"]
