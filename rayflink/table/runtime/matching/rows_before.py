"""The fields of rows, and of rows before them in their partition, as PREV reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rayflink.cep.nfa.raw_values import raw_column, raw_values

from ...plan.matching import RowField

if TYPE_CHECKING:
    from numpy.typing import NDArray

Key = tuple[Any, ...]
UNKNOWN_MS = -1
"""The time of the last row of a key where rows do not expire."""


class LastRows(NamedTuple):
    """The last rows of a key.

    Args:
        rows: the newest last, with their values of the columns that are read; None: nothing is remembered.
        accessed_ms: when the newest came, in epoch milliseconds of processing time, or `UNKNOWN_MS`.
    """

    rows: list[tuple[Any, ...]] | None
    accessed_ms: int


NO_ROWS = LastRows(None, UNKNOWN_MS)


class RowsBefore:
    """Computes the fields of rows that are in the order of their keys, and remembers the last rows of each key.

    Nothing is remembered where no field is of a row before.

    Args:
        fields: what is read of rows.
        ttl_ms: how long rows of a key are remembered after its last one; 0: for ever.
    """

    def __init__(self, fields: Sequence[RowField], ttl_ms: int = 0) -> None:
        self._fields = tuple(fields)
        self._columns = sorted({field.column for field in fields if field.back})
        self._most = max((field.back for field in fields), default=0)
        self._ttl_ms = ttl_ms if self._most else 0
        self._last: dict[Key, LastRows] = {}
        """Keys in the order of their last access, where rows expire."""
        self.expired: Callable[[int], None] = lambda count: None
        """Report the number of keys whose rows were dropped since their time was over."""

    @property
    def expires(self) -> bool:
        """Return whether rows expire."""
        return self._ttl_ms > 0

    @property
    def over_at(self) -> int | None:
        """Return the epoch milliseconds at which the next rows expire; None: none do."""
        first = next(iter(self._last.values()), None) if self._ttl_ms else None
        return None if first is None else first.accessed_ms + self._ttl_ms

    def expire(self, now_ms: int, most: int | None = None) -> None:
        """Drop the rows of keys whose time is over.

        Args:
            most: the number of keys; None: all.
        """
        over = []
        for key, last in islice(self._last.items(), most) if self._ttl_ms else ():
            if last.accessed_ms + self._ttl_ms > now_ms:
                break
            over.append(key)
        for key in over:
            del self._last[key]
        if over:
            self.expired(len(over))

    def fields(
        self, columns: Sequence[pa.Array], starts: NDArray[np.intp], keys: list[Key], now_ms: int
    ) -> list[pa.Array]:
        """Return the fields of rows.

        Args:
            columns: of the rows, in the order of keys.
            starts: places of the first row of each key.
            keys: of these rows.
            now_ms: processing time, by which remembered rows expire; `UNKNOWN_MS` where they do not.
        """
        self.expire(now_ms)
        result = [columns[field.column] if not field.back else self._shifted(columns, field, starts, keys)
                 for field in self._fields]  # fmt: skip
        if self._most:
            self._remember(columns, starts, keys, now_ms)
        return result

    def _shifted(
        self, columns: Sequence[pa.Array], field: RowField, starts: NDArray[np.intp], keys: list[Key]
    ) -> pa.Array:
        """Return a column of the rows before: those of this batch, and the remembered ones."""
        column, back = columns[field.column], field.back
        rows = len(column)
        sizes = np.diff(np.append(starts, rows))
        places = np.arange(rows) - back
        is_here = places >= np.repeat(starts, sizes)
        shifted = column.take(pa.array(np.where(is_here, places, 0), mask=~is_here))
        index = self._columns.index(field.column)
        values: list[Any] = []
        filled: list[int] = []
        for start, size, key in zip(starts.tolist(), sizes.tolist(), keys, strict=True):
            last = self._last.get(key, NO_ROWS).rows or ()
            for number in range(min(back, size)):
                behind = back - number
                if behind <= len(last):
                    values.append(last[-behind][index])
                    filled.append(start + number)
        if not filled:
            return shifted
        mask = np.zeros(rows, dtype=np.bool_)
        mask[filled] = True
        return pc.replace_with_mask(shifted, pa.array(mask), raw_column(values, column.type))

    def _remember(self, columns: Sequence[pa.Array], starts: NDArray[np.intp], keys: list[Key], now_ms: int) -> None:
        rows = len(columns[0])
        stops = np.append(starts, rows)[1:]
        firsts = np.maximum(starts, stops - self._most)
        counts = stops - firsts
        places = np.repeat(stops - np.cumsum(counts), counts) + np.arange(int(counts.sum()))
        taken = pa.array(places)
        values = list(zip(*(raw_values(columns[index].take(taken)) for index in self._columns), strict=True))
        first = 0
        for key, count in zip(keys, counts.tolist(), strict=True):
            newest = values[first : first + count]
            first += count
            before = (self._last.pop(key, NO_ROWS) if self._ttl_ms else self._last.get(key, NO_ROWS)).rows
            last = [*before[count - self._most :], *newest] if before and count < self._most else newest
            self._last[key] = LastRows(last, now_ms)

    def snapshot(self) -> dict[Key, LastRows]:
        """Return the remembered rows as they are now."""
        return dict(self._last)

    def restore(self, key: Key, last: LastRows) -> None:
        """Remember the rows of a key that `snapshot` returned; `sort` follows the last one."""
        if last.rows is not None and self._most:
            self._last[key] = last

    def sort(self) -> None:
        """Put restored keys into the order of their last access."""
        if self._ttl_ms:
            self._last = dict(sorted(self._last.items(), key=lambda item: item[1].accessed_ms))


__all__ = ["NO_ROWS", "UNKNOWN_MS", "LastRows", "RowsBefore"]
