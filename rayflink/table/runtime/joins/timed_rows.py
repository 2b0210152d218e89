"""The rows of one side of an interval join, in segments of time, each of a few pieces.

A segment whose last time is over is dropped whole. In a piece, rows of a key are found by hash and time in sorted
numbers, made when there is something to look for; where little is looked for, rows are looked through instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MIN_TIMESTAMP
from rayflink.state.keys.key_columns import hash_columns

from ..aggregates.partial_aggregates import concatenated
from ..keyed_state.frame_memory import Columns, FrameMemory, size_of
from ..windows.slice_store import split_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.int64]
    Rows = NDArray[np.int64]

ROW_BYTES = 45
"""Of a row beside its columns: time, arrival, whether it was joined, and where it is found."""
MOST_LOOSE = 8
"""This many pieces a segment has before they are joined."""
SPARSE = 16
"""Rows are looked through where they are this many times as many as those looked for."""


class _Index:
    """Rows by hash and time.

    Args:
        hashes, times: of the rows.
        rows: their numbers; None: as they stand.
    """

    def __init__(self, hashes: NDArray[np.uint32], times: Times, rows: Rows | None = None) -> None:
        self._keys, codes = np.unique(hashes, return_inverse=True)
        self._least = int(times.min()) if len(times) else 0
        self._span = int(times.max()) - self._least + 1 if len(times) else 1
        places = codes.astype(np.int64) * self._span + (times - self._least)
        order = np.argsort(places, kind="stable")
        self._places = places[order]
        self.rows = order if rows is None else rows[order]

    def ranges(self, hashes: NDArray[np.uint32], least: Times, most: Times) -> tuple[Rows, Rows]:
        """Return, for each hash with a range of times, the first position in `rows` and the number of rows.

        Args:
            hashes: ascending, so that the searches stay in the processor's cache.
        """
        first, count = np.zeros(len(hashes), dtype=np.int64), np.zeros(len(hashes), dtype=np.int64)
        if not len(self._keys):
            return first, count
        codes = np.minimum(np.searchsorted(self._keys, hashes), len(self._keys) - 1)
        known = np.flatnonzero(self._keys[codes] == hashes)
        base = codes[known].astype(np.int64) * self._span
        low = np.clip(least[known], self._least, self._least + self._span) - self._least
        high = np.clip(most[known], self._least - 1, self._least + self._span - 1) - self._least
        first[known] = np.searchsorted(self._places, base + low, side="left")
        count[known] = np.maximum(np.searchsorted(self._places, base + high, side="right") - first[known], 0)
        return first, count


class Piece:
    """Rows of a segment.

    Args:
        columns: of the state; the first `width` are those of the key.
        arrived: numbers by which rows came.
        met: whether each was joined.
    """

    def __init__(self, columns: Columns, times: Times, arrived: Rows, met: NDArray[np.bool_], width: int) -> None:
        self.columns, self.times, self.arrived, self.met, self._width = columns, times, arrived, met, width
        self.size = size_of(columns) + ROW_BYTES * len(times)
        self.is_filed = False
        self._hashes: NDArray[np.uint32] | None = None
        self._index: _Index | None = None
        self._by_time: Rows | None = None

    def __len__(self) -> int:
        return len(self.times)

    def file(self, columns: Columns) -> None:
        """Take columns of a file for those in memory."""
        self.columns, self.size, self.is_filed = columns, 0, True
        self._hashes = self._index = None

    def index(self, hashes: NDArray[np.uint32]) -> _Index:
        """Return an index of the rows by hash."""
        if self._index is not None:
            return self._index
        own = self._own_hashes()
        if self.is_filed or len(hashes) * SPARSE < len(self):
            rows = np.flatnonzero(np.isin(own, np.unique(hashes)))
            return _Index(own[rows], self.times[rows], rows)
        self._index = _Index(own, self.times)
        return self._index

    def _own_hashes(self) -> NDArray[np.uint32]:
        if self._hashes is not None:
            return self._hashes
        found = hashes_of(self.columns[: self._width], len(self))
        if not self.is_filed:
            self._hashes = found
        return found

    def between(self, after: int, until: int) -> Rows:
        """Return numbers of the rows with after < time <= until."""
        if self._by_time is None:
            self._by_time = np.argsort(self.times, kind="stable")
        times = self.times[self._by_time]
        first, stop = np.searchsorted(times, [after, until], side="right")
        return self._by_time[first:stop]


def hashes_of(keys: Sequence[pa.Array], rows: int) -> NDArray[np.uint32]:
    """Hash of each key; without a key all are equal."""
    return hash_columns(keys) if keys else np.zeros(rows, dtype=np.uint32)


class TimedRows:
    """The rows of a side.

    Args:
        width: how many columns are the key, the first ones.
        segment_ms: length of a segment.
    """

    def __init__(self, width: int, segment_ms: int) -> None:
        self._width, self._segment_ms = width, segment_ms
        self._segments: dict[int, list[Piece]] = {}
        self.forgotten = MIN_TIMESTAMP
        """Rows with this time or an earlier one are not there any more."""
        self.size = 0

    def add(self, columns: Columns, times: Times, arrived: Rows, met: NDArray[np.bool_]) -> None:
        """Add rows, none of them forgotten."""
        rows = pa.array(np.arange(len(times)))
        for segment, (numbers,) in split_by(times // self._segment_ms, [rows]):
            if len(numbers) == len(times):
                piece = Piece(columns, times, arrived, met, self._width)
            else:
                at = numbers.to_numpy()
                piece = Piece([one.take(numbers) for one in columns], times[at], arrived[at], met[at], self._width)
            self._segments.setdefault(segment, []).append(piece)
            self.size += piece.size

    def pieces(self, least: int, most: int) -> list[Piece]:
        """Return the pieces that may have rows with such times."""
        found: list[Piece] = []
        for segment in self._of(max(least, self.forgotten + 1), most):
            pieces = self._segments[segment]
            if len(pieces) > MOST_LOOSE:
                self._join(pieces)
            found += pieces
        return found

    def _of(self, least: int, most: int) -> list[int]:
        first, last = least // self._segment_ms, most // self._segment_ms
        return sorted(one for one in self._segments if first <= one <= last)

    def _join(self, pieces: list[Piece]) -> None:
        """Have one piece of those in memory that follow one another, but for much larger ones."""
        joined: list[Piece] = []
        for piece in pieces:
            joined.append(piece)
            while len(joined) > 1 and len(joined[-2]) <= 2 * len(joined[-1]) and not joined[-2].is_filed:
                if joined[-1].is_filed:
                    break
                last, before = joined.pop(), joined.pop()
                joined.append(self._joined([before, last]))
        pieces[:] = joined

    def _joined(self, pieces: Sequence[Piece]) -> Piece:
        times, arrived, met = (
            np.concatenate([getattr(one, name) for one in pieces]) for name in ("times", "arrived", "met")
        )
        made = Piece(concatenated([one.columns for one in pieces]), times, arrived, met, self._width)
        self.size += made.size - sum(one.size for one in pieces)
        return made

    @property
    def least(self) -> int | None:
        """Return the least time of a row; None: there is none."""
        for segment in sorted(self._segments):
            known = [one.times[one.times > self.forgotten] for one in self._segments[segment]]
            times = [int(one.min()) for one in known if len(one)]
            if times:
                return min(times)
        return None

    def forget(self, until: int, wants_alone: bool) -> list[tuple[Piece, Rows]]:
        """Forget rows with this time or an earlier one.

        Args:
            wants_alone: those that were never joined are wanted: (piece, numbers of rows).
        """
        if until <= self.forgotten:
            return []
        after, self.forgotten = self.forgotten, until
        last = until // self._segment_ms
        alone: list[tuple[Piece, Rows]] = []
        for segment in sorted(one for one in self._segments if one <= last):
            for piece in self._segments[segment] if wants_alone else ():
                rows = piece.between(after, until)
                rows = rows[~piece.met[rows]]
                if len(rows):
                    alone.append((piece, rows))
            if (segment + 1) * self._segment_ms - 1 <= until:
                self.size -= sum(piece.size for piece in self._segments.pop(segment))
        return alone

    def __iter__(self) -> Iterator[Piece]:
        return (piece for segment in sorted(self._segments) for piece in self._segments[segment])

    def file(self, memory: FrameMemory) -> None:
        """Have the columns of all rows in a file."""
        pieces = [one for one in self if not one.is_filed]
        if pieces:
            for piece, columns in zip(pieces, memory.written(one.columns for one in pieces), strict=True):
                piece.file(columns)
        self.size = 0


def gathered(pieces: Sequence[Piece], of: NDArray[np.intp], rows: Rows) -> list[pa.Array]:
    """Return the columns of some rows, in their order.

    Args:
        of: the piece of each.
        rows: its number there.
    """
    chosen = np.unique(of)
    if len(chosen) == 1:
        taken = pa.array(rows)
        return [one.take(taken) for one in pieces[int(chosen[0])].columns]
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(len(pieces) + 1))
    parts = [
        [column.take(pa.array(rows[order[bounds[at] : bounds[at + 1]]])) for column in pieces[at].columns]
        for at in chosen.tolist()
    ]
    back = np.empty(len(of), dtype=np.int64)
    back[order] = np.arange(len(of))
    return [one.take(pa.array(back)) for one in concatenated(parts)]


__all__: list[Any] = ["Piece", "TimedRows", "gathered", "hashes_of"]
