"""The first rows of each key in an order: how rows that may be among them merge, and how they are numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ...types import DataType
from ..aggregates.grouping import Groups
from ..aggregates.reductions import to_arrow, to_numpy
from ..aggregates.window_spec import WindowSpec
from .ordering import OrderKey, order_numbers, order_of, places_in_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = "rows"


@dataclass(frozen=True)
class Ranking:
    """A range of row numbers, `first` to `last` from 1, among rows with equal keys.

    Args:
        input: type of the rows that come in.
        keys: numbers of their columns that are the key, without the bounds of windows.
        order: by what they are numbered.
        window: they are in windows, whose bounds are columns; None: they are all together.
        newest_first: of rows that are equal in the order, the one that came last is the first.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """

    input: DataType
    keys: tuple[int, ...]
    order: tuple[OrderKey, ...]
    first: int
    last: int
    window: WindowSpec | None = None
    newest_first: bool = False
    state_identity: str = ""

    @property
    def key_names(self) -> tuple[str, ...]:
        """Return names of the key's columns in partial rows: by them rows are partitioned."""
        return tuple(f"k{index}" for index in range(len(self.keys)))


class RankedRows:
    """Rows that may be among the wanted ones, as partial rows.

    Their columns are the key, the start of their window, the others, and the number of rows that each represents:
    itself and those that were left out for it.

    Args:
        ranking: which rows are wanted.
    """

    def __init__(self, ranking: Ranking) -> None:
        window = ranking.window
        starts = () if window is None or window.start_column is None else (window.start_column,)
        key = (*ranking.keys, *starts)
        fields = ranking.input.fields
        self._columns = (*key, *(index for index in range(len(fields)) if index not in key))
        places = {index: number for number, index in enumerate(self._columns)}
        self._back = [places[index] for index in range(len(fields))]
        self._order = tuple((places[index], down, nulls_first) for index, down, nulls_first in ranking.order)
        self._state_identity = ranking.state_identity
        self._first, self._last, self._newest_first = ranking.first, ranking.last, ranking.newest_first
        self.partition_width = len(ranking.keys)
        self.width = len(key)
        self.rows_column = len(fields)
        self.end_column = None if window is None or window.end_column is None else places[window.end_column]
        """Number of the column with the end of the window."""
        names = [*ranking.key_names, *(["start"] if starts else [])]
        names += [f"v{index}" for index in range(len(fields) - len(key))]
        kinds = [fields[index].type.to_arrow() for index in self._columns]
        self.schema: pa.Schema = pa.schema([*zip(names, kinds, strict=True), (ROWS, pa.int64())])

    def describe(self) -> str:
        """Describe which rows are wanted."""
        keys = (f"{index} {'DESC' if down else 'ASC'} {nulls_first}" for index, down, nulls_first in self._order)
        order = ", ".join(keys)
        described = f"first {self._last} by {order}{' newest' if self._newest_first else ''}"
        return f"{described} of {self._state_identity}" if self._state_identity else described

    def from_rows(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Convert each row to a partial row."""
        ones = to_arrow(np.ones(rows.num_rows, dtype=np.int64), pa.int64())
        return [*(rows.column(index) for index in self._columns), ones]

    def weight(self, columns: Sequence[pa.Array]) -> int:
        """Return the number of partial rows."""
        return len(columns[0])

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        """Leave out rows that are not among the wanted ones; the rest are by key, those of a key as they came."""
        rows = len(columns[0])
        if rows <= self._last or groups.count == rows:
            return list(columns)
        order, places = self._ordered(columns, groups)
        keep = places < self._last
        if keep.all():
            return list(columns)
        counts: NDArray[np.int64] = to_numpy(columns[self.rows_column])
        dropped, wanted = order[~keep], order[keep]
        dropped_counts = np.bincount(groups.codes[dropped], counts[dropped], groups.count).astype(np.int64)
        counts = counts.copy()
        counts[order[places == 0]] += dropped_counts
        taken = pa.array(np.sort(groups.codes[wanted] * rows + wanted) % rows)
        return [*(column.take(taken) for column in columns[:-1]), to_arrow(counts, pa.int64()).take(taken)]

    def numbered(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        """Return the wanted rows, by their groups and numbers: the columns that came in, and the number."""
        order, places = self._ordered(columns, groups)
        wanted = (places < self._last) & (places >= self._first - 1)
        taken = pa.array(order[wanted])
        return [*(columns[index].take(taken) for index in self._back), to_arrow(places[wanted] + 1, pa.int64())]

    def _ordered(self, columns: Sequence[pa.Array], groups: Groups) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """(rows by group and order, the place of each in its group)."""
        rows = len(columns[0])
        numbers = [groups.codes.astype(np.int64, copy=False), *order_numbers(columns, self._order)]
        if self._newest_first:
            numbers.append(np.arange(rows, 0, -1))
        order = order_of(numbers, rows)
        return order, places_in_groups(groups.codes[order])


__all__ = ["Ranking", "RankedRows"]
