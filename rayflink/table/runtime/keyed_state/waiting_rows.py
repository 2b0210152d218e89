"""The rows that wait until time has reached them, as columns: in memory, and in files where memory is short."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_numpy
from .frame_memory import Columns, FrameMemory, divided, size_of
from .frame_snapshots import ABOUT
from .key_rows import take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.int64]


@dataclass(frozen=True)
class _Piece:
    """Rows that came together.

    Args:
        columns: of the rows, and their times behind these.
        least, most: the earliest and the latest of the times.
        size: bytes in memory; 0 where the columns are in a file.
    """

    columns: Columns
    least: int
    most: int
    size: int

    @property
    def times(self) -> Times:
        """Return the times of the rows: int64[n]."""
        times: Times = to_numpy(self.columns[-1])
        return times


def _piece(columns: Sequence[pa.Array], times: Times) -> _Piece:
    stored = [*columns, pa.array(times)]
    return _Piece(stored, int(times.min()), int(times.max()), size_of(stored))


_TIME, _ARRIVAL = pa.field("$time", pa.int64()), pa.field("$arrival", pa.int64())
"""In a snapshot, the times of rows, and the order in which they came."""


class WaitingRows:
    """Stores rows until they are due.

    Args:
        kinds: types of the columns.
        keys: numbers of the columns by which rows are partitioned; none: all rows have one key.
        about: which rows of the query they are; a snapshot of others is refused. Without it `schema` is not used.
    """

    def __init__(self, kinds: Sequence[pa.DataType], keys: Sequence[int], about: str = "") -> None:
        self._kinds = [*kinds, pa.int64()]
        others = [index for index in range(len(self._kinds)) if index not in keys]
        self._order = [*keys, *others]
        """Numbers of the columns where those of the key come first."""
        self._back = np.argsort(self._order).tolist()
        self._width = len(keys)
        self._pieces: list[_Piece] = []
        self._size = 0
        """Bytes in memory."""
        self._memory: FrameMemory | None = None
        in_order = [pa.field(f"c{place}", kinds[index]) for place, index in enumerate(self._order[:-1])]
        self.schema: pa.Schema = pa.schema([*in_order, _TIME, _ARRIVAL], {ABOUT: about.encode()})
        """The schema of the rows in a snapshot, where the columns of the key come first."""

    def open(self, memory: FrameMemory) -> None:
        """Use this memory; it is not bounded before."""
        self._memory = memory

    def add(self, columns: Sequence[pa.Array], times: Times) -> None:
        """Add rows, at least one; all are written to files where they exceed the memory."""
        piece = _piece(columns, times)
        self._pieces.append(piece)
        self._size += piece.size
        if self._memory is not None and not self._memory.reserve(self._size):
            self._file(self._memory)

    def _file(self, memory: FrameMemory) -> None:
        in_memory = [piece for piece in self._pieces if piece.size]
        written = iter(memory.written(self._typed(piece.columns) for piece in in_memory))
        self._pieces = [_Piece(next(written), piece.least, piece.most, 0) if piece.size else piece
                        for piece in self._pieces]  # fmt: skip
        self._size = 0
        memory.reserve(0)

    def _typed(self, columns: Columns) -> Columns:
        """Return columns in the types of the state: the pieces of a file have the same."""
        return [column if column.type == kind else column.cast(kind)
                for column, kind in zip(columns, self._kinds, strict=True)]  # fmt: skip

    def take_due(self, until: int) -> Iterator[tuple[Columns, Times]]:
        """Remove the rows up to a time, and yield them: at once, or by key in parts that fit into memory."""
        due: list[Columns] = []
        left: list[_Piece] = []
        for piece in self._pieces:
            if piece.most <= until:
                due.append(piece.columns)
            elif piece.least > until:
                left.append(piece)
            else:
                times = piece.times
                is_due = times <= until
                chosen, others = np.flatnonzero(is_due), np.flatnonzero(~is_due)
                due.append(take_rows(piece.columns, chosen))
                left.append(_piece(take_rows(piece.columns[:-1], others), times[others]))
        if not due:
            return
        self._pieces, self._size = left, sum(piece.size for piece in left)
        for pieces in self._parts(due):
            *columns, times = concatenated(pieces)
            yield columns, to_numpy(times)
        if self._memory is not None:
            self._memory.reserve(self._size)

    def _parts(self, due: list[Columns]) -> Iterator[list[Columns]]:
        parts = 1
        if self._memory is not None and self._width:
            parts = self._memory.parts(sum(map(size_of, due)))
        if parts == 1:
            yield due
            return
        ordered = [[columns[index] for index in self._order] for columns in map(self._typed, due)]
        for pieces in divided(ordered, self._width, parts):
            part = [[columns[place] for place in self._back] for columns in pieces if len(columns[0])]
            if part:
                yield part

    def pieces(self) -> list[Columns]:
        """Return the columns of all rows, in the order in which they came."""
        return [piece.columns[:-1] for piece in self._pieces]

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def frames(self, progress: int) -> list[tuple[int, Callable[[], pa.RecordBatch]]]:
        """Return the rows as they are now for a snapshot, see `FrozenFrames`; none where no row waits.

        Args:
            progress: how far time has come.
        """
        pieces = [piece.columns for piece in self._pieces]
        return [(progress, partial(self._frame, pieces))] if pieces else []

    def _frame(self, pieces: list[Columns]) -> pa.RecordBatch:
        columns = concatenated(pieces)
        arrival = pa.array(np.arange(len(columns[-1])))
        in_order = [columns[index] for index in self._order]
        return pa.RecordBatch.from_arrays([*in_order, arrival], schema=self.schema)

    def add_frame(self, frame: pa.RecordBatch) -> None:
        """Add rows of a snapshot, in the order in which they came."""
        frame = frame.take(pa.array(np.argsort(to_numpy(frame.column(_ARRIVAL.name)), kind="stable")))
        *columns, times = [frame.column(place) for place in self._back]
        if frame.num_rows:
            self.add(columns, to_numpy(times))


__all__ = ["WaitingRows"]
