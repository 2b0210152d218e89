"""Numbers of rows in bounded queries: the first rows of each key, or all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow
from ..keyed_state.frame_memory import FrameMemory
from ..windows.slice_store import SliceStore
from .bounded_operator import BoundedOperator
from .ordering import OrderKey, order_numbers, places_in_groups
from .ranking import RankedRows, Ranking
from .sorted_rows import SortedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALL = 0
"""The slice of all rows, in place of the end of a window."""


class FirstRanks:
    """Numbers the first rows of each key; a `BoundedRows`.

    Args:
        ranking: which rows are wanted, in no windows.
        schema: of the result: the columns that came in, and the number.
    """

    def __init__(self, ranking: Ranking, schema: pa.Schema) -> None:
        self._ranked, self._schema = RankedRows(ranking), schema
        self._store = SliceStore(self._ranked, False)

    def open(self, memory: FrameMemory) -> None:
        self._store.open(memory)

    def add(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._store.add(_ALL, list(rows.columns))
            self._store.keep_to_memory()

    def results(self) -> Iterator[pa.RecordBatch]:
        for _, pieces in list(self._store):
            for part in self._store.in_parts(pieces):
                columns = concatenated(part)
                groups = grouped(columns[: self._ranked.width], len(columns[0]))
                numbered = self._ranked.numbered(columns, groups)
                yield pa.RecordBatch.from_arrays(numbered, schema=self._schema)


class RowNumbers:
    """Numbers all rows of each key: sorts them all, in files where memory is short; a `BoundedRows`.

    Args:
        keys: numbers of the columns that are the key.
        order: by which rows are numbered.
        schema: of the result: the columns that came in, and the number.
    """

    def __init__(self, keys: Sequence[int], order: Sequence[OrderKey], schema: pa.Schema) -> None:
        self._keys, self._schema = tuple(keys), schema
        self._sorted = SortedRows([*((key, False, True) for key in keys), *order])

    def open(self, memory: FrameMemory) -> None:
        self._sorted.open(memory)

    def add(self, rows: pa.RecordBatch) -> None:
        self._sorted.add(rows)

    def results(self) -> Iterator[pa.RecordBatch]:
        previous: list[pa.Array] = []
        """The key of the last row of the block before."""
        count = 0
        """Number of the rows of that key."""
        for block in self._sorted:
            keys = [block.column(key) for key in self._keys]
            codes = _runs(concatenated([previous, keys]) if previous else keys, block.num_rows + bool(previous))
            numbers = places_in_groups(codes[1:] if previous else codes) + 1
            numbers[: np.searchsorted(codes, 0, side="right") - bool(previous)] += count
            previous = [key.slice(len(key) - 1) for key in keys]
            count = int(numbers[-1])
            columns = [*block.columns, to_arrow(numbers, pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _runs(keys: Sequence[pa.Array], rows: int) -> NDArray[np.int64]:
    """Return the number of each row's run of equal keys: int64[rows]; they are equal as the sort compares them."""
    steps = np.zeros(max(rows - 1, 0), dtype=np.bool_)
    for numbers in order_numbers(keys, [(index, False, True) for index in range(len(keys))]):
        steps |= np.diff(numbers) != 0
    runs: NDArray[np.int64] = np.concatenate([[0], np.cumsum(steps)])
    return runs


def bounded_rank(ranking: Ranking, schema: pa.Schema) -> BoundedOperator:
    """Return an operator that numbers the first rows of each key, of the rows of `local_rank`, partitioned by the key.

    Args:
        ranking: which rows are wanted, in no windows.
        schema: of the result: the columns that came in, and the number.
    """
    return BoundedOperator(FirstRanks(ranking, schema))


def row_numbers(keys: Sequence[int], order: Sequence[OrderKey], schema: pa.Schema) -> BoundedOperator:
    """Return an operator that numbers all rows of each key, partitioned by the key.

    Args:
        keys: numbers of the columns that are the key.
        order: by which rows are numbered.
        schema: of the result: the columns that came in, and the number.
    """
    return BoundedOperator(RowNumbers(keys, order, schema))


__all__ = ["FirstRanks", "RowNumbers", "bounded_rank", "row_numbers"]
