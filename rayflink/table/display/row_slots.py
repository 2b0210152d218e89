"""A table that follows the changes of a query."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from rayflink.common.types import RowKind

__all__ = ["RowSlots"]

Shown = TypeVar("Shown")


class RowSlots(Generic[Shown]):
    """The rows of a changelog as they are now. An updated row stays in the place of the row before.

    >>> slots = RowSlots[tuple[str, str]](100)
    >>> for kind, row in [("INSERT", ("a", "1")), ("INSERT", ("b", "1")), ("UPDATE_BEFORE", ("a", "1")),
    ...                   ("UPDATE_AFTER", ("a", "2"))]:
    ...     slots.change(RowKind[kind], row, row)
    >>> slots.rows()
    [('a', '2'), ('b', '1')]

    Args:
        limit: rows that are held; the oldest are forgotten first, and counted in `dropped`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: dict[int, tuple[Hashable, Shown]] = {}
        self._places: dict[Hashable, deque[int]] = {}
        self._order = deque[int]()
        """The places in use and some that are free again, in their order."""
        self._freed: int | None = None
        self._next = 0
        self.dropped = 0
        """Number of rows that were forgotten because there were more than `limit`."""

    def change(self, kind: RowKind, values: Hashable, row: Shown) -> None:
        """Apply one change.

        Args:
            values: those of the row, equal for equal rows.
            row: what `rows` returns for it.
        """
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            place = self._freed if kind is RowKind.UPDATE_AFTER else None
            self._freed = None
            if place is None:
                place = self._next
                self._next += 1
                self._order.append(place)
            self._put(place, values, row)
        elif places := self._places.get(values):
            place = places.pop()
            if not places:
                del self._places[values]
            del self._rows[place]
            self._freed = place if kind is RowKind.UPDATE_BEFORE else None

    def rows(self) -> list[Shown]:
        """Return the rows, the first that came first."""
        return [self._rows[place][1] for place in sorted(self._rows)]

    def __len__(self) -> int:
        return len(self._rows)

    def _put(self, place: int, values: Hashable, row: Shown) -> None:
        self._rows[place] = values, row
        self._places.setdefault(values, deque()).append(place)
        if len(self._rows) > self._limit:
            while (oldest := self._order.popleft()) not in self._rows:
                pass
            forgotten, _ = self._rows.pop(oldest)
            places = self._places[forgotten]
            places.remove(oldest)
            if not places:
                del self._places[forgotten]
            self.dropped += 1
        if len(self._order) > 2 * len(self._rows) + 1000:
            self._order = deque(sorted(self._rows))
