"""The first phase of a window aggregation: rows become partial rows before they are partitioned by key."""

from __future__ import annotations

import pyarrow as pa

from ..aggregates.partial_aggregates import Partials
from ..aggregates.reductions import to_arrow
from ..aggregates.window_spec import WindowAggregation
from .local_phase import LocalPhase
from .sliced_rows import SlicedRows
from .slicing import Slicing
from .zone_shift import is_utc

SLICE_END = "slice_end"


def partial_schema(partials: Partials) -> pa.Schema:
    """Return columns of the rows between the two phases."""
    return partials.schema.append(pa.field(SLICE_END, pa.int64()))


class LocalWindowAggregate(LocalPhase):
    """Gives a partial row for each key and slice of the rows it has at hand.

    Args:
        aggregation: what is computed, over windows of event time that are not sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        super().__init__(aggregation.input)
        partials = Partials(aggregation)
        self._slicing = Slicing(aggregation.window)
        self._rows = SlicedRows(aggregation, partials, self._slicing)
        self._schema = partial_schema(partials)
        self._is_even = is_utc(aggregation.window.shift_zone) and aggregation.window.end_column is None
        """Whether windows end at whole slices of instants."""
        self._next_end: int | None = None

    def partial(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        ends, columns = self._rows.partial(rows, 0)
        return pa.RecordBatch.from_arrays([*columns, to_arrow(ends, pa.int64())], schema=self._schema)

    def ends_a_window(self, watermark: int) -> bool:
        if not self._is_even:
            return True
        next_end = self._slicing.slice_end(watermark + 1)
        before, self._next_end = self._next_end, next_end
        return next_end != before


__all__ = ["SLICE_END", "LocalWindowAggregate", "partial_schema"]
