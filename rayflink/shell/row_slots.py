"""A table that follows the changes of a query."""

from __future__ import annotations

from collections import deque

from rayflink.common.types import RowKind

__all__ = ["RowSlots"]

RowStrings = tuple[str, ...]
"""The values of a row, as they are shown."""


class RowSlots:
    """The rows of a changelog as they are now. An updated row stays in the place of the row before.

    >>> slots = RowSlots(100)
    >>> for kind, row in [("INSERT", ("a", "1")), ("INSERT", ("b", "1")), ("UPDATE_BEFORE", ("a", "1")),
    ...                   ("UPDATE_AFTER", ("a", "2"))]:
    ...     slots.change(RowKind[kind], row)
    >>> slots.rows()
    [('a', '2'), ('b', '1')]

    Args:
        limit: rows that are held; the oldest are forgotten first, and counted in `dropped`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: dict[int, RowStrings] = {}
        self._places: dict[RowStrings, deque[int]] = {}
        self._freed: int | None = None
        self._next = 0
        self.dropped = 0
        """Number of rows that were forgotten because there were more than `limit`."""

    def change(self, kind: RowKind, row: RowStrings) -> None:
        """Apply one change."""
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            place = self._freed if kind is RowKind.UPDATE_AFTER and self._freed is not None else self._next
            self._next += place == self._next
            self._freed = None
            self._put(place, row)
        elif places := self._places.get(row):
            place = places.pop()
            if not places:
                del self._places[row]
            del self._rows[place]
            self._freed = place if kind is RowKind.UPDATE_BEFORE else None

    def rows(self) -> list[RowStrings]:
        """Return the rows, the first that came first."""
        return [self._rows[place] for place in sorted(self._rows)]

    def __len__(self) -> int:
        return len(self._rows)

    def _put(self, place: int, row: RowStrings) -> None:
        self._rows[place] = row
        self._places.setdefault(row, deque()).append(place)
        if len(self._rows) > self._limit:
            oldest = min(self._rows)
            forgotten = self._rows.pop(oldest)
            places = self._places[forgotten]
            places.remove(oldest)
            if not places:
                del self._places[forgotten]
            self.dropped += 1
