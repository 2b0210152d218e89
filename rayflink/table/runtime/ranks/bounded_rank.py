"""Numbers of rows in bounded queries: the first rows of each key, or all of them.

A batch query starts anew when it fails, so the rows are no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MAX_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorSnapshot

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow
from ..keyed_state.frame_memory import FrameMemory
from ..windows.slice_store import SliceStore
from .ordering import OrderKey, order_numbers, places_in_groups
from .ranking import RankedRows, Ranking
from .sorted_rows import SortedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALL = 0
"""The slice of all rows."""


class BoundedRank(Operator):
    """The first rows of each key, at their end: takes the rows of `local_rank`, partitioned by the key.

    Args:
        ranking: which rows are wanted, in no windows.
        schema: of the result: the columns that came in, and the number.
    """

    def __init__(self, ranking: Ranking, schema: pa.Schema) -> None:
        self._ranked, self._schema = RankedRows(ranking), schema
        self._store = SliceStore(self._ranked, False)
        self._memory: FrameMemory | None = None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._memory = FrameMemory(self.ctx)
        self._store.open(self._memory)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if len(batch):
            self._store.add(_ALL, list(batch.data.columns))
            self._store.keep_to_memory()
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return ()  # rows come behind the last one, which is given then

    def finish(self) -> Iterator[Element]:
        for _, pieces in list(self._store):
            for part in self._store.in_parts(pieces):
                columns = concatenated(part)
                groups = grouped(columns[: self._ranked.width], len(columns[0]))
                numbered = self._ranked.numbered(columns, groups)
                yield ArrowBatch(pa.RecordBatch.from_arrays(numbered, schema=self._schema))
        yield Watermark(MAX_TIMESTAMP)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()


class RowNumbers(Operator):
    """All rows of each key in an order, with their numbers: sorts all, in files where memory is short.

    Args:
        keys: numbers of the columns that are the key.
        order: by what rows are numbered.
        schema: of the result: the columns that came in, and the number.
    """

    def __init__(self, keys: Sequence[int], order: Sequence[OrderKey], schema: pa.Schema) -> None:
        self._keys, self._schema = tuple(keys), schema
        self._sorted = SortedRows([*((key, False, True) for key in keys), *order])
        self._memory: FrameMemory | None = None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._memory = FrameMemory(self.ctx)
        self._sorted.open(self._memory)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        self._sorted.add(batch.data)
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return ()  # rows come behind the last one, which is given then

    def finish(self) -> Iterator[Element]:
        before: list[pa.Array] = []
        """The key of the last row of the block before."""
        given = 0
        """How many rows of that key there were."""
        for block in self._sorted:
            keys = [block.column(key) for key in self._keys]
            codes = _runs(concatenated([before, keys]) if before else keys, block.num_rows + bool(before))
            numbers = places_in_groups(codes[1:] if before else codes) + 1
            numbers[: np.searchsorted(codes, 0, side="right") - bool(before)] += given
            before = [key.slice(len(key) - 1) for key in keys]
            given = int(numbers[-1])
            made = [*block.columns, to_arrow(numbers, pa.int64())]
            yield ArrowBatch(pa.RecordBatch.from_arrays(made, schema=self._schema))
        yield Watermark(MAX_TIMESTAMP)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()


def _runs(keys: Sequence[pa.Array], rows: int) -> NDArray[np.int64]:
    """Return the number of each row's run of equal keys: int64[rows]; they are equal as the sort says."""
    steps = np.zeros(max(rows - 1, 0), dtype=np.bool_)
    for numbers in order_numbers(keys, [(at, False, True) for at in range(len(keys))]):
        steps |= np.diff(numbers) != 0
    found: NDArray[np.int64] = np.concatenate([[0], np.cumsum(steps)])
    return found


__all__ = ["BoundedRank", "RowNumbers"]
