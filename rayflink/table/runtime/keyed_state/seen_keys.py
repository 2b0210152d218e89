"""The set of keys seen so far: columnar state that grows with the keys, and drops expired ones.

Their columns are kept in blocks (`key_rows.py`), and found by an index (`key_index.py`). Where keys expire, the time of
each one's last access is kept beside them; what is over counts as not there at once, and a sweep goes through the
pages of the index and takes it out. What exceeds the managed memory goes to files, first the columns, then the index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from .comparable_keys import KeyForms, prints_of
from .frame_memory import Columns, FrameMemory
from .key_index import KeyIndex
from .key_rows import KeyRows, taken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Truths = NDArray[np.bool_]

ACCESSED = pa.field("$accessed", pa.int64())
"""When a key was accessed last, in epoch milliseconds."""
SWEEP_MS = 100
"""So long between two slices of the sweep."""
FRAME_ROWS = 1 << 20
"""Keys of a frame of a snapshot, about."""
_GONE = np.iinfo(np.int64).min
_MOST_TTL_MS = 1 << 62
"""More than any clock reaches; with the time of an access it is within 64 bits."""
_RESTORED_ROWS = 1 << 18


class SeenKeys:
    """Keys that were there before.

    Args:
        kinds: types of their columns.
        ttl_ms: how long a key is known that is not accessed; 0: for ever.
        refreshes: every row of a key is an access; else only the one with which it came is.
    """

    def __init__(self, kinds: Sequence[pa.DataType], ttl_ms: int, refreshes: bool) -> None:
        self._forms = KeyForms(kinds)
        self._ttl_ms, self._refreshes = min(ttl_ms, _MOST_TTL_MS), refreshes
        self._index, self._rows = KeyIndex(), KeyRows()
        self._accessed = self._room = np.zeros(0, dtype=np.int64)
        """By the numbers of rows; `_GONE` where there is none any more. It is the front part of its room."""
        self._memory: FrameMemory | None = None
        self._page, self._round_began_ms = 0, 0
        self.sweep_at: int | None = None
        """When the next slice of the sweep is due, epoch ms; None: there is nothing that could expire."""
        self.beside = 0
        """Bytes that the operator holds in addition."""
        self.expired: Callable[[int], None] = lambda count: None
        """Report the number of keys that were removed since their time was over."""

    def __len__(self) -> int:
        return len(self._rows)

    def open(self, memory: FrameMemory) -> None:
        """Keep to this memory."""
        self._memory = memory

    def kept(self, keys: Sequence[pa.Array]) -> Columns:
        """Return columns of keys in the form in which they are compared."""
        return self._forms.of(keys)

    def knows(self, kept: Columns, now_ms: int) -> Truths:
        """Return which of some keys are present: bool[n]."""
        found = self._find(kept, prints_of(kept))
        known = found >= 0
        if self._ttl_ms:
            known[known] = ~self._is_over(found[known], now_ms)
        return known

    def first(self, kept: Columns, now_ms: int) -> Truths:
        """Add keys, no two of them equal, and return which of them are new: bool[n]."""
        prints = prints_of(kept)
        found = self._find(kept, prints)
        is_first = found < 0
        if self._ttl_ms:
            known = np.flatnonzero(~is_first)
            at = found[known]
            over = self._is_over(at, now_ms)
            is_first[known[over]] = True
            self._accessed[at if self._refreshes else at[over]] = now_ms
            self.expired(int(over.sum()))
        new = np.flatnonzero(found < 0)
        if len(new):
            self._add(kept if len(new) == len(prints) else taken(kept, new), prints[new], now_ms)
            self.keep_to_memory()
        return is_first

    def _find(self, kept: Columns, prints: NDArray[np.uint32]) -> Rows:
        return self._index.find(prints, partial(self._are, kept))

    def _are(self, kept: Columns, which: NDArray[np.int64], rows: Rows) -> Truths:
        """Return whether keys are those of rows."""
        stored, order = self._rows.gathered(rows)
        own = taken(kept, which[order])
        found = np.ones(len(rows), dtype=np.bool_)
        for one, other in zip(own, stored, strict=True):
            found &= _equal(one, other)
        same = np.empty(len(rows), dtype=np.bool_)
        same[order] = found
        return same

    def _is_over(self, rows: Rows, now_ms: int) -> Truths:
        over: Truths = self._accessed[rows] + self._ttl_ms <= now_ms
        return over

    def _add(self, kept: Columns, prints: NDArray[np.uint32], accessed: Any) -> Rows:
        rows = self._rows.append(kept, len(prints))
        self._index.add(prints, rows)
        if self._ttl_ms:
            self._grow()
            self._accessed[rows] = accessed
            if self.sweep_at is None:
                self._round_began_ms = int(np.max(accessed))
                self.sweep_at = int(np.min(accessed)) + self._ttl_ms
        return rows

    def _grow(self) -> None:
        """Have a time for each number of a row."""
        known, wanted = len(self._accessed), self._rows.numbers
        if wanted > len(self._room):
            self._move_times(2 * wanted)
        if wanted > known:
            self._accessed = self._room[:wanted]
            self._accessed[known:] = _GONE

    def _move_times(self, numbers: int) -> None:
        if self._memory is not None and not self._index.size:
            self._room = self._memory.mapped((numbers,), np.int64)
        else:
            self._room = np.empty(numbers, dtype=np.int64)
        self._room[: len(self._accessed)] = self._accessed
        self._accessed = self._room[: len(self._accessed)]

    def keep_to_memory(self) -> None:
        """Write what exceeds the memory to files."""
        if self._memory is None or self._memory.hold(self._size):
            return
        self._rows.file(self._memory)
        if not self._memory.hold(self._size) and self._index.size:
            self._index.file(self._memory.mapped)
            self._move_times(len(self._room))
            self._memory.hold(self._size)

    @property
    def _size(self) -> int:
        own = self._rows.size + self._index.size + (self._accessed.nbytes if self._index.size else 0)
        return own + self.beside

    # what expires

    def sweep(self, now_ms: int) -> None:
        """Sweep a slice, and set when the next is due: a round takes half of the time to live."""
        slices = max(self._ttl_ms // (2 * SWEEP_MS), 1)
        stop = min(self._page + -(-self._index.pages // slices), self._index.pages)
        forgotten = 0
        for page in range(self._page, stop):
            over = self._index.sweep(page, lambda rows: self._is_over(rows, now_ms))
            self._accessed[over] = _GONE
            self._rows.forget(over)
            forgotten += len(over)
        self._page = stop
        self.expired(forgotten)
        self._tidy()
        self.sweep_at = now_ms + SWEEP_MS
        if self._page >= self._index.pages:
            self._page = 0
            self._index.shrink()
            pause = self._ttl_ms // 2
            self.sweep_at = max(self._round_began_ms + pause, self.sweep_at) if len(self) else None
            self._round_began_ms = max(now_ms, self._round_began_ms)

    def _tidy(self) -> None:
        """Free the numbers of blocks of which nothing is left, and of one of which little is."""
        has_moved = False
        for sparse in self._rows.sparse():
            rows = sparse.start + np.flatnonzero(self._accessed[sparse] != _GONE)
            if len(rows):
                if has_moved:
                    break
                has_moved = True
                self._move(rows)
            self._rows.drop(sparse.start)
        self.keep_to_memory()

    def _move(self, rows: Rows) -> None:
        """Give rows other numbers."""
        kept, order = self._rows.gathered(rows)
        rows = rows[order]
        others = self._rows.append(kept, len(rows))
        self._grow()
        self._index.replace(prints_of(kept), rows, others)
        self._accessed[others], self._accessed[rows] = self._accessed[rows], _GONE

    # snapshots

    def frames(self, schema: pa.Schema, now_ms: int) -> list[Callable[[], pa.RecordBatch]]:
        """Return functions that give the present keys when they are called later.

        Args:
            schema: of the keys' columns, and of `ACCESSED` behind them where keys expire.
        """
        given: list[Callable[[], pa.RecordBatch]] = []
        pieces: list[tuple[int, int, Columns]] = []
        accessed = self._accessed.copy() if self._ttl_ms else None
        for piece in self._rows.pieces():
            pieces.append(piece)
            if sum(count for _, count, _ in pieces) >= FRAME_ROWS:
                given.append(partial(self._frame, schema, pieces, accessed, now_ms))
                pieces = []
        return [*given, partial(self._frame, schema, pieces, accessed, now_ms)] if pieces else given

    def _frame(
        self, schema: pa.Schema, pieces: list[tuple[int, int, Columns]], accessed: Rows | None, now_ms: int
    ) -> pa.RecordBatch:
        columns = self._forms.back(concatenated([columns for _, _, columns in pieces]))
        if accessed is None:
            return _batch(columns, schema)
        times = np.concatenate([accessed[first : first + count] for first, count, _ in pieces])
        there = np.flatnonzero((times != _GONE) & (times + self._ttl_ms > now_ms))
        return _batch([*taken(columns, there), to_arrow(times[there], pa.int64())], schema)

    def restore(self, frame: pa.RecordBatch, width: int, now_ms: int) -> None:
        """Add the keys of a frame; those without the time of their last access were accessed now."""
        if not len(self):
            self._index.expect(frame.num_rows)
        for first in range(0, frame.num_rows, _RESTORED_ROWS):
            part = frame.slice(first, _RESTORED_ROWS)
            accessed = np.full(part.num_rows, now_ms)
            if self._ttl_ms and part.num_columns > width:
                accessed = to_numpy(part.column(width))
                part = part.filter(pa.array(accessed + self._ttl_ms > now_ms))
                accessed = accessed[accessed + self._ttl_ms > now_ms]
            if part.num_rows:
                kept = self._forms.of(part.columns[:width])
                self._add(kept, prints_of(kept), accessed)
                self.keep_to_memory()


def _batch(columns: Columns, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _equal(one: pa.Array, other: pa.Array) -> Truths:
    same = pc.equal(one, other)
    if one.null_count or other.null_count:
        same = pc.or_(pc.fill_null(same, False), pc.and_(one.is_null(), other.is_null()))
    found: Truths = same.to_numpy(zero_copy_only=False)
    return found


__all__ = ["ACCESSED", "SWEEP_MS", "SeenKeys"]
