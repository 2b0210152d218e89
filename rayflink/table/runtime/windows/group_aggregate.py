"""Aggregates of whole tables, at their ends: partial rows of each subtask, partitioned by key, merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import Operator, OperatorSnapshot

from ..aggregates.grouping import Groups, grouped
from ..aggregates.own_aggregates import OwnAggregates
from ..aggregates.partial_aggregates import PartialAggregates
from ..aggregates.window_spec import WindowAggregation
from ..keyed_state.frame_memory import Columns, FrameMemory
from .local_phase import LocalPhaseOperator
from .slice_store import SliceStore

if TYPE_CHECKING:
    import pyarrow

BLOCK_ROWS = 1 << 16
_WHOLE = 0
"""The slice of all rows, in place of the end of a window."""


class GroupReduction:
    """Makes a partial row for each key of the rows; a `Reduction`.

    Args:
        aggregation: what is computed; its windows do not count.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        self._partials = PartialAggregates(aggregation)

    def reduce(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        groups = grouped(self._partials.keys_of(rows), rows.num_rows)
        return pa.RecordBatch.from_arrays(self._partials.from_rows(rows, groups), schema=self._partials.schema)

    def needs_rows_before(self, watermark: int) -> bool:
        return False


def local_group_aggregate(aggregation: WindowAggregation) -> LocalPhaseOperator:
    """Return the first phase: it makes a partial row for each key of the rows at hand."""
    functions = OwnAggregates(aggregation.aggregates)
    return LocalPhaseOperator(aggregation.input, GroupReduction(aggregation), functions)


class GroupAggregateOperator(Operator):
    """Merges partial rows that are partitioned by the key, and emits the results at their end.

    A batch query starts anew when it fails, so the rows are no state.

    Args:
        aggregation: what is computed, as in `local_group_aggregate`.
        schema: of the result.
    """

    def __init__(self, aggregation: WindowAggregation, schema: pyarrow.Schema) -> None:
        self._partials, self._schema = PartialAggregates(aggregation), schema
        self._input = pa.schema([field.type.to_arrow_field(field.name) for field in aggregation.input.fields])
        self._store = SliceStore(self._partials, False)
        self._functions = OwnAggregates(aggregation.aggregates)
        self._memory: FrameMemory | None = None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._memory = FrameMemory(self.ctx)
        self._store.open(self._memory)
        self._functions.open_in(self.ctx)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; partial rows are columns"
        if len(batch):
            self._store.add(_WHOLE, list(batch.data.columns))
            self._store.keep_to_memory()
        return ()

    def finish(self) -> Iterator[Element]:
        if not self._store and not self._partials.width:  # the aggregate of no rows at all
            nothing = pa.RecordBatch.from_pylist([], schema=self._input)
            groups = Groups(np.zeros(0, dtype=np.intp), 1, [])
            yield from self._results(self._partials.from_rows(nothing, groups))
        for _, pieces in list(self._store):
            for part in self._store.in_parts(pieces):
                yield from self._results(self._store.merge(part))

    def _results(self, columns: Columns) -> Iterator[Element]:
        results = pa.RecordBatch.from_arrays(self._partials.results(columns), schema=self._schema)
        for first in range(0, results.num_rows, BLOCK_ROWS):
            yield ArrowBatch(results.slice(first, BLOCK_ROWS))

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()
        self._functions.close()


__all__ = ["GroupAggregateOperator", "GroupReduction", "local_group_aggregate"]
