"""The set of keys seen so far: columnar state that grows with the keys, and drops expired ones.

Their columns are stored in blocks (`key_rows.py`), and looked up by an index (`key_index.py`). Where keys expire, the
time of each key's last access is stored beside them. A key whose time is over counts as absent at once, and a sweep
through the pages of the index removes it. State beyond the managed memory goes to files, first the columns, then the
index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from .comparable_keys import KeyForms, equal_keys, fingerprints
from .frame_memory import Columns, FrameMemory
from .key_index import KeyIndex
from .key_rows import KeyRows, take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Truths = NDArray[np.bool_]

ACCESSED = pa.field("$accessed", pa.int64())
"""The time of the last access to a key, in epoch milliseconds."""
SWEEP_MS = 100
"""Milliseconds between two slices of the sweep."""
FRAME_ROWS = 1 << 20
"""Keys of a frame of a snapshot, about."""
_GONE = np.iinfo(np.int64).min
_MOST_TTL_MS = 1 << 62
"""A longer time than any clock reaches; its sum with the time of an access is within 64 bits."""
_RESTORED_ROWS = 1 << 18


class SeenKeys:
    """Remembers keys.

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
        """Time of each row's last access; `_GONE` where the row was removed. It is the front part of `_room`."""
        self._memory: FrameMemory | None = None
        self._page, self._round_began_ms = 0, 0
        self.sweep_at: int | None = None
        """Epoch milliseconds at which the next slice of the sweep is due; None: no key could expire."""
        self.beside = 0
        """Bytes that the operator stores in addition."""
        self.expired: Callable[[int], None] = lambda count: None
        """Report the number of keys that were removed since their time was over."""

    def __len__(self) -> int:
        return len(self._rows)

    def open(self, memory: FrameMemory) -> None:
        """Use this memory; it is not bounded before."""
        self._memory = memory

    def comparable(self, columns: Sequence[pa.Array]) -> Columns:
        """Return columns of keys in the form in which they are compared, which the other methods take."""
        return self._forms.encode(columns)

    def knows(self, keys: Columns, now_ms: int) -> Truths:
        """Return which of some keys are present: bool[n]."""
        rows = self._find(keys, fingerprints(keys))
        is_known = rows >= 0
        if self._ttl_ms:
            is_known[is_known] = ~self._is_over(rows[is_known], now_ms)
        return is_known

    def first(self, keys: Columns, now_ms: int) -> Truths:
        """Add keys, no two of them equal, and return which of them are new: bool[n]."""
        prints = fingerprints(keys)
        rows = self._find(keys, prints)
        is_first = rows < 0
        if self._ttl_ms:
            known = np.flatnonzero(~is_first)
            known_rows = rows[known]
            is_over = self._is_over(known_rows, now_ms)
            is_first[known[is_over]] = True
            self._accessed[known_rows if self._refreshes else known_rows[is_over]] = now_ms
            self.expired(int(is_over.sum()))
        new = np.flatnonzero(rows < 0)
        if len(new):
            self._add(keys if len(new) == len(prints) else take_rows(keys, new), prints[new], now_ms)
            self.keep_to_memory()
        return is_first

    def _find(self, keys: Columns, prints: NDArray[np.uint32]) -> Rows:
        return self._index.find(prints, partial(self._is_equal, keys))

    def _is_equal(self, keys: Columns, which: NDArray[np.int64], rows: Rows) -> Truths:
        """Return whether some keys are those of rows."""
        stored, order = self._rows.gather(rows)
        is_equal = np.ones(len(rows), dtype=np.bool_)
        for column, other in zip(take_rows(keys, which[order]), stored, strict=True):
            is_equal &= equal_keys(column, other)
        unsorted = np.empty(len(rows), dtype=np.bool_)
        unsorted[order] = is_equal
        return unsorted

    def _is_over(self, rows: Rows, now_ms: int) -> Truths:
        over: Truths = self._accessed[rows] + self._ttl_ms <= now_ms
        return over

    def _add(self, keys: Columns, prints: NDArray[np.uint32], accessed: Any) -> Rows:
        rows = self._rows.append(keys, len(prints))
        self._index.add(prints, rows)
        if self._ttl_ms:
            self._grow()
            self._accessed[rows] = accessed
            if self.sweep_at is None:
                self._round_began_ms = int(np.max(accessed))
                self.sweep_at = int(np.min(accessed)) + self._ttl_ms
        return rows

    def _grow(self) -> None:
        """Make room for the time of each row."""
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
        """Write keys to files if they exceed the memory."""
        if self._memory is None or self._memory.reserve(self._size):
            return
        self._rows.file(self._memory)
        if not self._memory.reserve(self._size) and self._index.size:
            self._index.file(self._memory.mapped)
            self._move_times(len(self._room))
            self._memory.reserve(self._size)

    @property
    def _size(self) -> int:
        times = self._accessed.nbytes if self._index.size else 0
        return self._rows.size + self._index.size + times + self.beside

    # expiry

    def sweep(self, now_ms: int) -> None:
        """Sweep a slice, and set when the next is due: a round takes half of the time to live."""
        slices = max(self._ttl_ms // (2 * SWEEP_MS), 1)
        stop = min(self._page + -(-self._index.pages // slices), self._index.pages)
        removed = 0
        for page in range(self._page, stop):
            over = self._index.sweep(page, lambda rows: self._is_over(rows, now_ms))
            self._accessed[over] = _GONE
            self._rows.remove(over)
            removed += len(over)
        self._page = stop
        self.expired(removed)
        self._tidy()
        self.sweep_at = now_ms + SWEEP_MS
        if self._page >= self._index.pages:
            self._page = 0
            self._index.shrink()
            pause = self._ttl_ms // 2
            self.sweep_at = max(self._round_began_ms + pause, self.sweep_at) if len(self) else None
            self._round_began_ms = max(now_ms, self._round_began_ms)

    def _tidy(self) -> None:
        """Free blocks of which no row is left, and one of which few are left."""
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
        """Move rows to other blocks, which changes their numbers."""
        keys, order = self._rows.gather(rows)
        rows = rows[order]
        others = self._rows.append(keys, len(rows))
        self._grow()
        self._index.replace(fingerprints(keys), rows, others)
        self._accessed[others], self._accessed[rows] = self._accessed[rows], _GONE

    # snapshots

    def frames(self, schema: pa.Schema, now_ms: int) -> list[Callable[[], pa.RecordBatch]]:
        """Return functions that return the keys as they are now, whenever they are called.

        Args:
            schema: of the keys' columns, and of `ACCESSED` behind them where keys expire.
        """
        frames: list[Callable[[], pa.RecordBatch]] = []
        pieces: list[tuple[int, int, Columns]] = []
        accessed = self._accessed.copy() if self._ttl_ms else None
        for piece in self._rows.pieces():
            pieces.append(piece)
            if sum(count for _, count, _ in pieces) >= FRAME_ROWS:
                frames.append(partial(self._frame, schema, pieces, accessed, now_ms))
                pieces = []
        return [*frames, partial(self._frame, schema, pieces, accessed, now_ms)] if pieces else frames

    def _frame(
        self, schema: pa.Schema, pieces: list[tuple[int, int, Columns]], accessed: Rows | None, now_ms: int
    ) -> pa.RecordBatch:
        columns = self._forms.decode(concatenated([columns for _, _, columns in pieces]))
        if accessed is None:
            return _batch(columns, schema)
        times = np.concatenate([accessed[first : first + count] for first, count, _ in pieces])
        present = np.flatnonzero((times != _GONE) & (times + self._ttl_ms > now_ms))
        return _batch([*take_rows(columns, present), to_arrow(times[present], pa.int64())], schema)

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
                keys = self._forms.encode(part.columns[:width])
                self._add(keys, fingerprints(keys), accessed)
                self.keep_to_memory()


def _batch(columns: Columns, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, schema=schema)


__all__ = ["ACCESSED", "SWEEP_MS", "SeenKeys"]
