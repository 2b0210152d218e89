"""Records by their numbers, some of them free; who reads all of them sees them as they were at one moment.

A snapshot is read while records change. Before a record changes, each open `RecordsView` saves what it was.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .record_layout import FLAGS, IN_USE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .record_layout import Records, Truths

    Rows = NDArray[np.int64]

SLICE_ROWS = 1 << 18
"""Records that a view reads at once."""
_LEAST_ROOM = 1024
_MOST_AT_ONCE = 1 << 22
_MOST_MOVED = 1 << 16
"""A table of more records is not moved when it grows, but has addresses for as many as memory could have."""
_NO_RESERVE = 0x4000
"""Linux: addresses that take no memory, nor a promise of it, before they are used; Python names it from 3.13 on."""


class TableRecords:
    """An array of records that grows, with those that are free and those that have changed.

    Args:
        dtype: of a record.
    """

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._allocate: Callable[[tuple[int, ...], Any], NDArray[Any]] = np.zeros
        self.room: Records = np.zeros(0, dtype=dtype)
        self.is_filed = False
        self.top = 0
        """A number above those of all records in use."""
        self.count = 0
        """Records in use."""
        self._free: list[Rows] = []
        self._changed: Truths = np.zeros(0, dtype=np.bool_)
        self._views: list[RecordsView] = []

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return 0 if self.is_filed else self.top * int(self.room.dtype.itemsize)

    def take(self, rows: Rows) -> Records:
        """Return a copy of some records."""
        taken: Records = self.room.take(rows)
        return taken

    def field(self, name: str, first: int, stop: int) -> NDArray[Any]:
        """Return a field of neighbouring records, which is not to be changed."""
        field: NDArray[Any] = self.room[name][first:stop]
        return field

    def add(self, records: Records, rows: Rows | None = None) -> Rows:
        """Store records in places that are free, these if not None, and return their numbers."""
        if rows is None:
            rows = self._free_rows(len(records))
        elif len(rows):
            self.reach(int(rows.max()) + 1)
        self.replace(rows, records)
        self.count += len(rows)
        return rows

    def _free_rows(self, wanted: int) -> Rows:
        parts: list[Rows] = []
        while wanted and self._free:
            free = self._free.pop()
            if len(free) > wanted:
                self._free.append(free[:-wanted])
                free = free[-wanted:]
            parts.append(free)
            wanted -= len(free)
        if wanted or not parts:
            parts.append(np.arange(self.top, self.top + wanted))
            self.reach(self.top + wanted)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def reach(self, top: int) -> None:
        """Make room for records with numbers below `top`."""
        if top > len(self.room):
            self._move(max(2 * len(self.room), top, _LEAST_ROOM))
        if top > len(self._changed):
            changed = np.zeros(max(2 * len(self._changed), top, _LEAST_ROOM), dtype=np.bool_)
            changed[: self.top] = self._changed[: self.top]
            self._changed = changed
        self.top = max(self.top, top)

    def _move(self, wanted: int) -> None:
        """Move to an array for at least a number of records."""
        room = _reserved(wanted, self.room.dtype) if wanted > _MOST_MOVED and not self.is_filed else None
        if room is None:
            room = self._allocate((wanted,), self.room.dtype)
        whole = f"V{self.room.dtype.itemsize}"
        room[: self.top].view(whole)[:] = self.room[: self.top].view(whole)
        self.room = room

    def file(self, allocate: Callable[[tuple[int, ...], Any], NDArray[Any]]) -> None:
        """Move the records to a file; `allocate` returns arrays of zeros in one."""
        self._allocate, self.is_filed = allocate, True
        self._move(max(self.top, 1))

    def replace(self, rows: Rows, records: Records) -> None:
        """Replace records."""
        self.save(rows)
        np.put(self.room, rows, records)
        self._changed[rows] = True

    def change(self, field: str, rows: Rows, values: Rows | int) -> None:
        """Change a field of records, which is no change of the row."""
        self.save(rows)
        self.room[field][rows] = values

    def remove(self, rows: Rows) -> None:
        """Free records, which have the numbers of rows."""
        self.save(rows)
        self.room[FLAGS][rows] = 0
        self._free.append(rows)
        self.count -= len(rows)

    def free_the_rest(self) -> None:
        """Free the places of which no record is in use."""
        self._free = [np.flatnonzero((self.room[FLAGS][: self.top] & IN_USE) == 0)[::-1].copy()]

    def in_use(self) -> Iterator[Rows]:
        """Yield the numbers of the records that are in use, some millions at a time."""
        for first in range(0, self.top, _MOST_AT_ONCE):
            stop = min(first + _MOST_AT_ONCE, self.top)
            yield first + np.flatnonzero(self.field(FLAGS, first, stop) & IN_USE)

    # views

    def save(self, rows: Rows) -> None:
        """Save records, which are about to change, for all views."""
        if self._views:
            self._views = [view for view in self._views if not view.is_closed]
            for view in self._views:
                view.save(rows, self.room)

    def view(self) -> RecordsView:
        """Return a view of the records as they are now."""
        view = RecordsView(self.room, self.top)
        self._views.append(view)
        return view

    def take_changed(self) -> Truths:
        """Return which records were stored or changed since the last call: bool[top]."""
        changed, self._changed = self._changed[: self.top], np.zeros(len(self._changed), dtype=np.bool_)
        return changed

    def forget_changes(self) -> None:
        """Let all records count as unchanged."""
        self._changed[:] = False


def _reserved(wanted: int, dtype: np.dtype[np.void]) -> Records | None:
    """Return an array for as many records as this machine's memory has room for; None where that is no good."""
    if sys.platform != "linux":
        return None
    most = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // dtype.itemsize, 1 << 32)
    if most < wanted:
        return None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    try:
        return np.frombuffer(mmap.mmap(-1, most * dtype.itemsize, flags=flags), dtype=dtype)
    except OSError:  # the system bounds the addresses of a process, or all that is promised
        return None


class RecordsView:
    """The records of a table as they were when it was made; it is read by one thread, once, while another changes them.

    A record is saved before it is changed, and a slice is read before what was saved: so a record that the slice has
    too new or by halves is among the saved ones.

    Args:
        room: the records; only those that are saved first are changed.
        top: how many they are.
    """

    def __init__(self, room: Records, top: int) -> None:
        self._room, self.top = room, top
        self._wanted: Truths | None = None
        self._done = 0
        self._is_saved: Truths = np.zeros(top, dtype=np.bool_)
        self._saved: list[tuple[Rows, Records]] = []
        self.is_closed = False

    def save(self, rows: Rows, room: Records) -> None:
        """Save records of the table's array that are about to change; called by the table's thread."""
        rows = rows[(rows < self.top) & (rows >= self._done)]
        rows = rows[~self._is_saved[rows]]
        wanted = self._wanted
        if wanted is not None:
            rows = rows[wanted[rows]]
        if len(rows):
            self._saved.append((rows, room.take(rows)))
            self._is_saved[rows] = True

    def slices(self, wanted: Truths | None) -> Iterator[tuple[Rows, Records]]:
        """Yield (numbers, records) of the records that are wanted, all if None, in the order of their numbers.

        Args:
            wanted: bool[n]; records behind it are not wanted.
        """
        if wanted is not None and len(wanted) < self.top:
            wanted = np.concatenate([wanted, np.zeros(self.top - len(wanted), dtype=np.bool_)])
        self._wanted = wanted
        saved: list[tuple[Rows, Records]] = []
        for start in range(0, self.top, SLICE_ROWS):
            stop = min(start + SLICE_ROWS, self.top)
            rows = np.arange(start, stop) if wanted is None else start + np.flatnonzero(wanted[start:stop])
            records = self._room.take(rows)
            while self._saved:
                changed, before = self._saved.pop(0)
                order = np.argsort(changed)
                saved.append((changed[order], before[order] if len(order) < 2 else before.take(order)))
            for changed, before in saved:
                first, end = np.searchsorted(changed, (start, stop))
                places = np.searchsorted(rows, changed[first:end])
                places[places == len(rows)] = 0
                is_there = rows[places] == changed[first:end] if len(rows) else np.zeros(end - first, dtype=np.bool_)
                np.put(records, places[is_there], before[first:end][is_there])
            self._done = stop
            if len(rows):
                yield rows, records
        self.close()

    def close(self) -> None:
        """Save no more records for it."""
        self.is_closed = True
        self._saved.clear()


__all__ = ["RecordsView", "TableRecords"]
