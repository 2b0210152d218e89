"""The state of a window aggregation: for each slice, pieces of partial rows that are joined when they have doubled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from .grouping import grouped
from .partials import Partials, concatenated

LEAST_ROWS = 16_384
"""A slice of fewer partial rows is left as it is."""

Columns = list[pa.Array]


@dataclass
class Slice:
    """Pieces of partial rows, in the order in which they came.

    Args:
        rows: of all pieces.
        joined_rows: how many there were when they were last joined.
    """

    pieces: list[Columns] = field(default_factory=list)
    rows: int = 0
    joined_rows: int = 0

    @property
    def size_bytes(self) -> int:
        """Memory of its columns, those in files as well."""
        return sum(column.nbytes for piece in self.pieces for column in piece)


class SliceStore:
    """Slices by their ends.

    Args:
        partials: says how partial rows are joined.
        is_shared: whether several windows have a slice.
    """

    def __init__(self, partials: Partials, is_shared: bool) -> None:
        self._partials, self._is_shared = partials, is_shared
        self.slices: dict[int, Slice] = {}

    def __bool__(self) -> bool:
        return bool(self.slices)

    @property
    def ends(self) -> list[int]:
        """Ends of the slices, ascending."""
        return sorted(self.slices)

    def add(self, end: int, columns: Columns) -> None:
        """Add partial rows to the slice with this end."""
        held = self.slices.get(end)
        if held is None:
            held = self.slices[end] = Slice()
        held.pieces.append(columns)
        held.rows += len(columns[0])
        if held.rows > LEAST_ROWS and held.rows >= 2 * held.joined_rows:
            self.join(held)

    def join(self, held: Slice) -> None:
        """Make one piece of a slice, with a row for each key."""
        if len(held.pieces) > 1:
            held.pieces = [self.joined(held.pieces)]
            held.rows = len(held.pieces[0][0])
        held.joined_rows = held.rows

    def joined(self, pieces: Sequence[Columns]) -> Columns:
        """Pieces as one, with a row for each key."""
        columns = concatenated(pieces)
        return self._partials.joined(columns, grouped(columns[: self._partials.width], len(columns[0])))

    def pieces(self, end: int) -> list[Columns]:
        """The pieces of a slice; those of one that more than one window has are joined first, for all of them."""
        held = self.slices[end]
        if self._is_shared:
            self.join(held)
        return held.pieces

    def drop(self, end: int) -> None:
        """Forget a slice."""
        del self.slices[end]

    def __iter__(self) -> Iterator[tuple[int, Slice]]:
        return iter(self.slices.items())


def split_by(ends: Any, columns: Sequence[pa.Array]) -> Iterator[tuple[int, Columns]]:
    """Rows by a number each has, int64[n]: (the number, their columns), by the number, in the order of rows."""
    import numpy as np

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


__all__ = ["LEAST_ROWS", "Slice", "SliceStore", "split_by"]
