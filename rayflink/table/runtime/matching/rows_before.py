"""The fields of rows, and of rows before them in their partition, as PREV reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.matching import RowField
from .raw_values import raw_column, raw_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

Key = tuple[Any, ...]


class RowsBefore:
    """Computes the fields of rows that are in the order of their keys, and remembers the last rows of each key.

    Nothing is remembered where no field is of a row before.

    Args:
        fields: what is read of rows.
    """

    def __init__(self, fields: Sequence[RowField]) -> None:
        self._fields = tuple(fields)
        self._columns = sorted({field.column for field in fields if field.back})
        self._most = max((field.back for field in fields), default=0)
        self._last: dict[Key, list[tuple[Any, ...]]] = {}
        """The last rows of each key, the newest last, with their values of `_columns`."""

    def fields(self, columns: Sequence[pa.Array], starts: NDArray[np.intp], keys: list[Key]) -> list[pa.Array]:
        """Return the fields of rows.

        Args:
            columns: of the rows, in the order of keys.
            starts: places of the first row of each key.
            keys: of these rows.
        """
        result = [columns[field.column] if not field.back else self._shifted(columns, field, starts, keys)
                 for field in self._fields]  # fmt: skip
        if self._most:
            self._remember(columns, starts, keys)
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
            last = self._last.get(key, ())
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

    def _remember(self, columns: Sequence[pa.Array], starts: NDArray[np.intp], keys: list[Key]) -> None:
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
            self._last[key] = (
                [*self._last.get(key, ())[count - self._most :], *newest] if count < self._most else newest
            )

    def snapshot(self) -> dict[Key, list[tuple[Any, ...]]]:
        """Return the remembered rows as they are now."""
        return dict(self._last)

    def restore(self, key: Key, rows: list[tuple[Any, ...]] | None) -> None:
        """Remember the rows of a key that `snapshot` returned."""
        if rows is not None and self._most:
            self._last[key] = rows


__all__ = ["RowsBefore"]
