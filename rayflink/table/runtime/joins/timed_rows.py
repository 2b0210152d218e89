"""The rows of one side of an interval join, in segments of time, each of a few pieces.

A segment whose last time is over is dropped as a whole. In a piece, rows of a key are looked up by hash and time in an
index of sorted numbers, which is built at the first lookup; where few keys are looked up, rows are scanned instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
"""Bytes of a row beside its columns: time, arrival, whether it has a partner, and its place in the index."""
MOST_LOOSE = 8
"""Pieces that a segment has before they are merged."""
SPARSE = 16
"""Rows are scanned where there are this many times as many as hashes to look up."""


class _Index:
    """Rows sorted by hash and time.

    Args:
        hashes, times: of the rows.
        rows: their numbers; None: in their own order.
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
        hits = np.flatnonzero(self._keys[codes] == hashes)
        base = codes[hits].astype(np.int64) * self._span
        low = np.clip(least[hits], self._least, self._least + self._span) - self._least
        high = np.clip(most[hits], self._least - 1, self._least + self._span - 1) - self._least
        first[hits] = np.searchsorted(self._places, base + low, side="left")
        count[hits] = np.maximum(np.searchsorted(self._places, base + high, side="right") - first[hits], 0)
        return first, count


class Piece:
    """Rows of a segment.

    Args:
        columns: of the state; the first `width` are those of the key.
        times: of the rows, in milliseconds.
        arrivals: numbers of the rows in the order in which they came.
        has_partner: whether each was joined; it is changed in place.
    """

    def __init__(
        self, columns: Columns, times: Times, arrivals: Rows, has_partner: NDArray[np.bool_], width: int
    ) -> None:
        self.columns, self.times, self.arrivals, self.has_partner, self._width = (
            columns, times, arrivals, has_partner, width
        )  # fmt: skip
        self.size = size_of(columns) + ROW_BYTES * len(times)
        self.is_filed = False
        self._hashes: NDArray[np.uint32] | None = None
        self._index: _Index | None = None
        self._by_time: Rows | None = None

    def __len__(self) -> int:
        return len(self.times)

    def file(self, columns: Columns) -> None:
        """Replace the columns by those of a file."""
        self.columns, self.size, self.is_filed = columns, 0, True
        self._hashes = self._index = None

    def index(self, hashes: NDArray[np.uint32]) -> _Index:
        """Return an index of the rows by hash."""
        if self._index is not None:
            return self._index
        key_hashes = self._key_hashes()
        if self.is_filed or len(hashes) * SPARSE < len(self):
            rows = np.flatnonzero(np.isin(key_hashes, np.unique(hashes)))
            return _Index(key_hashes[rows], self.times[rows], rows)
        self._index = _Index(key_hashes, self.times)
        return self._index

    def _key_hashes(self) -> NDArray[np.uint32]:
        if self._hashes is not None:
            return self._hashes
        hashes = hashes_of(self.columns[: self._width], len(self))
        if not self.is_filed:
            self._hashes = hashes
        return hashes

    def between(self, after: int, until: int) -> Rows:
        """Return numbers of the rows with after < time <= until."""
        if self._by_time is None:
            self._by_time = np.argsort(self.times, kind="stable")
        times = self.times[self._by_time]
        first, stop = np.searchsorted(times, [after, until], side="right")
        return self._by_time[first:stop]


def hashes_of(keys: Sequence[pa.Array], rows: int) -> NDArray[np.uint32]:
    """Return the hash of each key; without a key all are equal."""
    return hash_columns(keys) if keys else np.zeros(rows, dtype=np.uint32)


class TimedRows:
    """Stores the rows of a side.

    Args:
        width: number of the columns of the key, the first ones.
        segment_ms: length of a segment.
    """

    def __init__(self, width: int, segment_ms: int) -> None:
        self._width, self._segment_ms = width, segment_ms
        self._segments: dict[int, list[Piece]] = {}
        self.dropped_until = MIN_TIMESTAMP
        """Rows with this time or an earlier one are dropped."""
        self.size = 0
        """Bytes in memory."""

    def add(self, columns: Columns, times: Times, arrivals: Rows, has_partner: NDArray[np.bool_]) -> None:
        """Add rows, all of them later than `dropped_until`."""
        rows = pa.array(np.arange(len(times)))
        for segment, (numbers,) in split_by(times // self._segment_ms, [rows]):
            if len(numbers) == len(times):
                piece = Piece(columns, times, arrivals, has_partner, self._width)
            else:
                taken, chosen = [column.take(numbers) for column in columns], numbers.to_numpy()
                piece = Piece(taken, times[chosen], arrivals[chosen], has_partner[chosen], self._width)
            self._segments.setdefault(segment, []).append(piece)
            self.size += piece.size

    def pieces(self, least: int, most: int) -> list[Piece]:
        """Return the pieces that may have rows with such times."""
        chosen: list[Piece] = []
        for segment in self._segments_between(max(least, self.dropped_until + 1), most):
            pieces = self._segments[segment]
            if len(pieces) > MOST_LOOSE:
                self._merge_small(pieces)
            chosen += pieces
        return chosen

    def _segments_between(self, least: int, most: int) -> list[int]:
        first, last = least // self._segment_ms, most // self._segment_ms
        return sorted(segment for segment in self._segments if first <= segment <= last)

    def _merge_small(self, pieces: list[Piece]) -> None:
        """Merge pieces in memory that follow one another, unless one is much larger."""
        merged: list[Piece] = []
        for piece in pieces:
            merged.append(piece)
            while len(merged) > 1 and len(merged[-2]) <= 2 * len(merged[-1]) and not merged[-2].is_filed:
                if merged[-1].is_filed:
                    break
                last, before = merged.pop(), merged.pop()
                merged.append(self._merge(before, last))
        pieces[:] = merged

    def _merge(self, first: Piece, second: Piece) -> Piece:
        times = np.concatenate([first.times, second.times])
        arrivals = np.concatenate([first.arrivals, second.arrivals])
        has_partner = np.concatenate([first.has_partner, second.has_partner])
        merged = Piece(concatenated([first.columns, second.columns]), times, arrivals, has_partner, self._width)
        self.size += merged.size - first.size - second.size
        return merged

    @property
    def least(self) -> int | None:
        """Return the least time of a row; None: there is none."""
        for segment in sorted(self._segments):
            stored = [piece.times[piece.times > self.dropped_until] for piece in self._segments[segment]]
            least = [int(times.min()) for times in stored if len(times)]
            if least:
                return min(least)
        return None

    def drop(self, until: int, wants_unmatched: bool) -> list[tuple[Piece, Rows]]:
        """Drop rows with this time or an earlier one.

        Args:
            wants_unmatched: whether to return rows without a partner: (piece, numbers of its rows).
        """
        if until <= self.dropped_until:
            return []
        after, self.dropped_until = self.dropped_until, until
        last = until // self._segment_ms
        unmatched: list[tuple[Piece, Rows]] = []
        for segment in sorted(segment for segment in self._segments if segment <= last):
            for piece in self._segments[segment] if wants_unmatched else ():
                rows = piece.between(after, until)
                rows = rows[~piece.has_partner[rows]]
                if len(rows):
                    unmatched.append((piece, rows))
            if (segment + 1) * self._segment_ms - 1 <= until:
                self.size -= sum(piece.size for piece in self._segments.pop(segment))
        return unmatched

    def __iter__(self) -> Iterator[Piece]:
        return (piece for segment in sorted(self._segments) for piece in self._segments[segment])

    def file(self, memory: FrameMemory) -> None:
        """Write the columns of all rows to a file."""
        pieces = [piece for piece in self if not piece.is_filed]
        if pieces:
            for piece, columns in zip(pieces, memory.written(piece.columns for piece in pieces), strict=True):
                piece.file(columns)
        self.size = 0


def gather(pieces: Sequence[Piece], numbers: NDArray[np.intp], rows: Rows) -> list[pa.Array]:
    """Return the columns of some rows, in their order.

    Args:
        numbers: the piece of each row.
        rows: the number of the row in its piece.
    """
    chosen = np.unique(numbers)
    if len(chosen) == 1:
        taken = pa.array(rows)
        return [column.take(taken) for column in pieces[int(chosen[0])].columns]
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(pieces) + 1))
    parts = [
        [column.take(pa.array(rows[order[bounds[number] : bounds[number + 1]]])) for column in pieces[number].columns]
        for number in chosen.tolist()
    ]
    places = np.empty(len(numbers), dtype=np.int64)
    places[order] = np.arange(len(numbers))
    return [column.take(pa.array(places)) for column in concatenated(parts)]


__all__ = ["Piece", "TimedRows", "gather", "hashes_of"]
