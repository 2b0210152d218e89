"""A secondary index: the rows of each partition key of a keyed table, of which a key may have millions.

A key has a slot, and a slot has an extent of a pool of row numbers. A row is appended to the extent of its key; a full
extent moves to one of twice the size. A row knows its place in the extent, so that the last one takes the place of one
that is removed. So a change costs the same whether its key has one row or a million. The index is derived from the
table: no snapshot has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .comparable_keys import distinct_keys, fingerprints
from .extents import ExtentPool, GrowingArray
from .frame_memory import Columns
from .key_index import KeyIndex
from .key_rows import take_rows
from .runs import first_of_runs, ranges, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Truths = NDArray[np.bool_]

_SHRINKS_BELOW = 4
"""An extent of which less than this part is in use moves to a smaller one."""


@dataclass(frozen=True, slots=True)
class RowsOfKeys:
    """The rows of some keys: key i has the `count[i]` rows order[first[i]], order[first[i] + 1]...

    Args:
        order: row numbers, uint32; it is valid until the table changes.
        first, count: int64[n].
    """

    order: NDArray[np.uint32]
    first: Rows
    count: Rows


class SecondaryIndex:
    """The rows of each key.

    Args:
        is_key: called with (what `prepare` returned, numbers of keys, rows): whether the rows have these keys.
        prepare: called with keys, in the form in which they are compared, once for each lookup.
    """

    def __init__(self, is_key: Callable[[Any, Rows, Rows], Truths], prepare: Callable[[Columns], Any]) -> None:
        self._is_key, self._prepare = is_key, prepare
        self._index = KeyIndex()
        self._pool = ExtentPool()
        self._prints, self._starts = GrowingArray(np.uint32), GrowingArray(np.int64)
        self._lengths, self._sizes = GrowingArray(np.int64), GrowingArray(np.uint8)
        """Of each slot: the print of its key, where its extent begins, rows in it, and the size class of the extent."""
        self._free: list[Rows] = []
        self._slots, self._places = GrowingArray(np.uint32), GrowingArray(np.uint32)
        """Of each row: the slot of its key, and its place in the extent."""

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return self._index.size + self._pool.size + sum(array.size for array in self._arrays)

    @property
    def _arrays(self) -> tuple[GrowingArray, ...]:
        return self._prints, self._starts, self._lengths, self._sizes, self._slots, self._places

    @property
    def keys(self) -> int:
        """Return the number of keys."""
        return len(self._index)

    def file(self, allocate: Callable[[tuple[int, ...], Any], NDArray[Any]]) -> None:
        """Move everything to files; `allocate` returns arrays of zeros in them."""
        for array in (*self._arrays, self._pool.rows):
            array.file(allocate)
        self._index.file(allocate)

    def find(self, keys: Columns) -> RowsOfKeys:
        """Return the rows of each key; the same key may be there several times."""
        slots = self._find(keys, fingerprints(keys))
        first, count = np.zeros(len(slots), dtype=np.int64), np.zeros(len(slots), dtype=np.int64)
        known = np.flatnonzero(slots >= 0)
        if len(known) == len(slots):
            return RowsOfKeys(self._pool.rows.values, self._starts.values[slots], self._lengths.values[slots])
        first[known], count[known] = self._starts.values[slots[known]], self._lengths.values[slots[known]]
        return RowsOfKeys(self._pool.rows.values, first, count)

    def _find(self, keys: Columns, prints: NDArray[np.uint32]) -> Rows:
        """Return the slot of each key, -1 where there is none."""
        wanted = self._prepare(keys)
        starts, pool = self._starts.values, self._pool.rows.values

        def is_key(which: Rows, slots: Rows) -> Truths:
            return self._is_key(wanted, which, pool[starts[slots]].astype(np.int64))

        return self._index.find(prints, is_key)

    def add(self, keys: Columns, rows: Rows) -> None:
        """Add rows, each with its key; those of a key follow one another in this order."""
        if not len(rows):
            return
        slots = self._slots_of(keys)
        by_slot = stable_order(slots)
        sorted_slots = slots[by_slot]
        firsts = np.flatnonzero(first_of_runs(sorted_slots))
        changed, added = sorted_slots[firsts], np.diff(np.append(firsts, len(rows)))
        lengths = self._lengths.values[changed]
        self._make_room(changed, lengths, lengths + added)
        places = np.arange(len(rows)) + np.repeat(lengths - firsts, added)
        self._lengths.values[changed] = lengths + added
        self._put(sorted_slots, places, rows[by_slot])

    def _slots_of(self, keys: Columns) -> Rows:
        """Return the slot of each key, new ones where there is none."""
        prints = fingerprints(keys)
        slots = self._find(keys, prints)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            new_keys = keys if len(missing) == len(slots) else take_rows(keys, missing)
            codes, firsts = distinct_keys(new_keys, prints[missing])
            new_prints, fresh = prints[missing[firsts]], self._new_slots(len(firsts))
            self._prints.values[fresh], self._lengths.values[fresh] = new_prints, 0
            self._index.add(new_prints, fresh)
            slots[missing] = fresh[codes]
        return slots

    def _new_slots(self, wanted: int) -> Rows:
        parts: list[Rows] = []
        while wanted and self._free:
            free = self._free.pop()
            if len(free) > wanted:
                self._free.append(free[:-wanted])
                free = free[-wanted:]
            parts.append(free)
            wanted -= len(free)
        top = self._prints.top
        for array in (self._prints, self._starts, self._lengths, self._sizes):
            array.reach(top + wanted)
        return np.concatenate([*parts, np.arange(top, top + wanted)])

    def _put(self, slots: Rows, places: Rows, rows: Rows) -> None:
        top = int(rows.max()) + 1
        self._slots.reach(top)
        self._places.reach(top)
        self._pool.rows.values[self._starts.values[slots] + places] = rows
        self._slots.values[rows], self._places.values[rows] = slots, places

    def _make_room(self, slots: Rows, lengths: Rows, wanted: Rows) -> None:
        """Let the extents of slots, each once, have room for a number of rows."""
        is_full = (lengths == 0) | (wanted > (1 << self._sizes.values[slots].astype(np.int64)))
        if is_full.any():
            self._move(slots[is_full], lengths[is_full], _size_class(wanted[is_full]))

    def _move(self, slots: Rows, lengths: Rows, sizes: NDArray[np.uint8]) -> None:
        """Move the rows of slots to extents of other sizes; those without rows have no extent yet."""
        fresh = self._pool.take(sizes)
        had = np.flatnonzero(lengths)
        if len(had):
            old, counts = self._starts.values[slots[had]], lengths[had]
            pool = self._pool.rows.values
            pool[ranges(fresh[had], counts)] = pool[ranges(old, counts)]
            self._pool.free(old, self._sizes.values[slots[had]])
        self._starts.values[slots], self._sizes.values[slots] = fresh, sizes

    def remove(self, rows: Rows) -> None:
        """Remove rows, each once, before the table does."""
        if not len(rows):
            return
        slots = self._slots.values[rows].astype(np.int64)
        by_slot = stable_order(slots)
        rows, slots = rows[by_slot], slots[by_slot]
        places = self._places.values[rows].astype(np.int64)
        firsts = np.flatnonzero(first_of_runs(slots))
        changed, counts = slots[firsts], np.diff(np.append(firsts, len(rows)))
        left = self._lengths.values[changed] - counts
        self._fill_holes(slots, places, np.repeat(left, counts), ranges(self._starts.values[changed] + left, counts))
        self._lengths.values[changed] = left
        self._release(changed[left == 0])
        self._shrink(changed[left > 0], left[left > 0])

    def _fill_holes(self, slots: Rows, places: Rows, left: Rows, tail: Rows) -> None:
        """Move the rows at the ends of extents to the places of rows that are removed.

        Args:
            slots, places: of the rows that are removed, slot by slot.
            left: rows that each one's slot has then.
            tail: the places in the pool that fall free, slot by slot: for each slot as many as rows are removed.
        """
        pool = self._pool.rows.values
        is_hole = places < left
        if not is_hole.any():
            return
        offsets = np.arange(len(slots)) - _ranks(slots)
        is_left = np.ones(len(slots), dtype=np.bool_)
        ends = np.flatnonzero(~is_hole)
        is_left[offsets[ends] + places[ends] - left[ends]] = False
        moved = pool[tail[is_left]]
        holes = np.flatnonzero(is_hole)
        pool[self._starts.values[slots[holes]] + places[holes]] = moved
        self._places.values[moved] = places[holes]

    def _release(self, slots: Rows) -> None:
        """Free slots without rows."""
        if len(slots):
            self._index.remove(self._prints.values[slots], slots)
            self._index.shrink()
            self._pool.free(self._starts.values[slots], self._sizes.values[slots])
            self._free.append(slots)

    def _shrink(self, slots: Rows, lengths: Rows) -> None:
        is_sparse = _SHRINKS_BELOW * lengths < (1 << self._sizes.values[slots].astype(np.int64))
        if is_sparse.any():
            self._move(slots[is_sparse], lengths[is_sparse], _size_class(2 * lengths[is_sparse]))
        if self._pool.is_sparse:
            self._repack()

    def _repack(self) -> None:
        """Move all extents to a new pool without gaps."""
        slots = np.flatnonzero(self._lengths.values[: self._lengths.top])
        lengths, sizes = self._lengths.values[slots], self._sizes.values[slots]
        rows = self._pool.rows.values[ranges(self._starts.values[slots], lengths)]
        self._pool.clear()
        starts = self._pool.take(sizes)
        self._pool.rows.values[ranges(starts, lengths)] = rows
        self._starts.values[slots] = starts


def _ranks(sorted_slots: Rows) -> Rows:
    """Return the number of each row among those of its slot."""
    numbers = np.arange(len(sorted_slots))
    ranks: Rows = numbers - np.maximum.accumulate(np.where(first_of_runs(sorted_slots), numbers, 0))
    return ranks


def _size_class(rows: Rows) -> NDArray[np.uint8]:
    """Return the size class of the smallest extents for numbers of rows: an extent of class c has room for 2**c."""
    return np.frexp(np.maximum(rows - 1, 0))[1].astype(np.uint8)


__all__ = ["RowsOfKeys", "SecondaryIndex"]
