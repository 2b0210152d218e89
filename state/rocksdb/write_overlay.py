"""An overlay of writes that stay in memory while checkpoint files are made of the rows before them."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

NOT_OVERLAID: Any = object()
"""Result of `WriteOverlay.get` for a row that was not written."""
_ROW_BYTES = 200
"""Memory of a row beside its bytes."""
_RANGE_BYTES = 4096
"""Cost of a deleted range: not for its memory, but for the time it takes later."""
Row = tuple[bytes, bytes]


class WriteOverlay:
    """The rows written since the links began, and the ranges that were deleted before those writes.

    >>> overlay = WriteOverlay()
    >>> overlay.put(b"b", b"2")
    >>> overlay.delete_range(b"a", b"c")
    >>> overlay.put(b"a", b"1")
    >>> overlay.get(b"a"), overlay.get(b"b"), overlay.get(b"c") is NOT_OVERLAID
    (b'1', None, True)
    >>> list(overlay.merge(iter([(b"a", b"0"), (b"b", b"0"), (b"c", b"3")]), b"", None))
    [(b'a', b'1'), (b'c', b'3')]
    """

    def __init__(self) -> None:
        self.bytes = 0
        """Cost of all entries."""
        self._rows: dict[bytes, bytes | None] = {}
        self._sorted: list[bytes] | None = None  # made when it is asked for; then those taken out may still be in it
        self._starts: list[bytes] = []  # of the deleted ranges, which do not meet
        self._stops: list[bytes] = []
        self._undrained: list[bytes] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: bytes, value: bytes | None) -> None:
        """Set a row; None: delete it."""
        old = self._rows.get(row, NOT_OVERLAID)
        if old is NOT_OVERLAID:
            self.bytes += _ROW_BYTES + len(row)
            if self._sorted is not None:
                insort(self._sorted, row)
        elif old is not None:
            self.bytes -= len(old)
        if value is not None:
            self.bytes += len(value)
        self._rows[row] = value

    def replace_if_present(self, row: bytes, value: bytes | None) -> bool:
        """Set a row if it is in the overlay; return whether it is."""
        is_here = row in self._rows
        if is_here:
            self.put(row, value)
        return is_here

    def get(self, row: bytes) -> bytes | None:
        """Return the value of the row, None where it is deleted, or NOT_OVERLAID."""
        value: bytes | None = self._rows.get(row, NOT_OVERLAID)
        return None if value is NOT_OVERLAID and self._is_in_range(row) else value

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Delete all rows from `start` on and before `stop`, wherever they are."""
        self.discard_range(start, stop)
        first, end = bisect_left(self._stops, start), bisect_right(self._starts, stop)
        if first < end:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[end - 1])
        self.bytes += _RANGE_BYTES * (1 - end + first)
        self._starts[first:end], self._stops[first:end] = [start], [stop]

    def discard_range(self, start: bytes, stop: bytes) -> None:
        """Discard the overlaid rows from `start` on and before `stop`."""
        names = self._in_order()
        first, end = bisect_left(names, start), bisect_left(names, stop)
        for row in names[first:end]:
            self._rows.pop(row, None)
        del names[first:end]

    def merge(self, stored: Iterator[Row], start: bytes, stop: bytes | None) -> Iterator[Row]:
        """Yield the stored rows with these writes applied, as of now, in order, from `start` on and before `stop`."""
        first = next(stored, None)  # now, so that both are of one moment
        names = self._in_order()
        end = len(names) if stop is None else bisect_left(names, stop)
        here = {row: self._rows[row] for row in names[bisect_left(names, start) : end] if row in self._rows}
        starts, stops = list(self._starts), list(self._stops)
        beneath = (
            pair
            for pair in (() if first is None else chain((first,), stored))
            if pair[0] not in here and not _is_between(pair[0], starts, stops)
        )
        above = ((row, value) for row, value in here.items() if value is not None)
        return heapq.merge(above, beneath, key=itemgetter(0))

    def pop_ranges(self) -> list[tuple[bytes, bytes]]:
        """Remove and return the deleted ranges, which come before the rows."""
        ranges = list(zip(self._starts, self._stops, strict=True))
        self._starts, self._stops = [], []
        return ranges

    def pop_rows(self, most: int) -> Iterator[tuple[bytes, bytes | None]]:
        """Remove and yield at most `most` rows; after the first call only rows that are here may be set."""
        if self._undrained is None:
            self._undrained = list(self._rows)
        while self._undrained and most > 0:
            row = self._undrained.pop()
            value = self._rows.pop(row, NOT_OVERLAID)
            if value is not NOT_OVERLAID:
                most -= 1
                yield row, value

    def _in_order(self) -> list[bytes]:
        if self._sorted is None:
            self._sorted = sorted(self._rows)
        return self._sorted

    def _is_in_range(self, row: bytes) -> bool:
        return bool(self._starts) and _is_between(row, self._starts, self._stops)


def _is_between(row: bytes, starts: list[bytes], stops: list[bytes]) -> bool:
    index = bisect_right(starts, row) - 1
    return index >= 0 and row < stops[index]


__all__ = ["NOT_OVERLAID", "WriteOverlay"]
