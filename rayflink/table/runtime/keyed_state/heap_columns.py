"""Columns of any type beside records: rows are added and removed, and never changed.

Each row has the number of its record, so that a block of which most rows were removed can be emptied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from .frame_memory import Columns, FrameMemory
from .key_rows import KeyRows, take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]


class HeapView:
    """The rows of a heap as they were when the view was made.

    Args:
        firsts: number of the first row of each piece, ascending.
        pieces: columns of the pieces, which never change.
    """

    def __init__(self, firsts: Rows, pieces: list[Columns]) -> None:
        self._firsts, self._pieces = firsts, pieces

    def take(self, rows: Rows, width: int | None = None) -> Columns:
        """Return the columns of some rows, at least one, in their order; the first `width` of them."""
        end = None if width is None else width + 1
        if len(self._pieces) == 1:
            return take_rows(self._pieces[0][1:end], rows - self._firsts[0])
        numbers = np.searchsorted(self._firsts, rows, side="right") - 1
        order = np.argsort(numbers, kind="stable")
        sorted_ = numbers[order]
        bounds = [0, *(np.flatnonzero(np.diff(sorted_)) + 1).tolist(), len(rows)]
        parts: list[Columns] = []
        for start, stop in zip(bounds, bounds[1:], strict=False):
            number = int(sorted_[start])
            parts.append(take_rows(self._pieces[number][1:end], rows[order[start:stop]] - self._firsts[number]))
        places = np.empty(len(rows), dtype=np.intp)
        places[order] = np.arange(len(rows))
        return take_rows(concatenated(parts), places)


class HeapColumns:
    """The rows of a heap by their numbers, below 2**32."""

    def __init__(self) -> None:
        self._rows = KeyRows()

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return self._rows.size

    def add(self, records: Rows, columns: Columns) -> Rows:
        """Add rows for these records, and return the numbers of the rows."""
        return self._rows.append([to_arrow(records, pa.int64()), *columns], len(records))

    def remove(self, rows: Rows) -> None:
        """Remove rows, each once."""
        self._rows.remove(rows)

    def view(self) -> HeapView:
        """Return the rows as they are now."""
        return HeapView(*self._rows.indexed_pieces())

    def take(self, rows: Rows, width: int | None = None) -> Columns:
        """Return the columns of some rows, at least one, in their order; the first `width` of them."""
        return self.view().take(rows, width)

    def sparse(self) -> tuple[Rows, Rows] | None:
        """Return the rows of a block of which half or more were removed, and their records; None: there is none.

        The caller drops the block.
        """
        self._rows.close_sparse()
        for block in self._rows.sparse():
            rows = np.arange(block.start, block.stop)
            columns, order = self._rows.gather(rows, 1)
            return rows[order], to_numpy(columns[0])
        return None

    def drop(self, row: int) -> None:
        """Free the block that has this row; none of its rows is in use."""
        self._rows.drop(row)

    def file(self, memory: FrameMemory) -> None:
        """Write the rows to files, but for those of the open block."""
        self._rows.file(memory)


__all__ = ["HeapColumns", "HeapView"]
