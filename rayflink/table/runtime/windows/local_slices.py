"""The local phase of window aggregates: rows become partial rows of a key and a slice."""

from __future__ import annotations

import pyarrow as pa

from ..aggregates.partial_aggregates import PartialAggregates
from ..aggregates.reductions import to_arrow
from ..aggregates.window_spec import WindowAggregation
from .slice_inputs import RawRows
from .slicing import Slicing
from .zone_shift import is_utc

SLICE_END = "slice_end"


class SliceReduction:
    """Makes a partial row for each key and slice; a `Reduction`.

    Args:
        aggregation: what is computed, over windows of event time that are not sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        partials = PartialAggregates(aggregation)
        self._slicing = Slicing(aggregation.window)
        self._rows = RawRows(aggregation, partials, self._slicing)
        self._schema = partials.schema.append(pa.field(SLICE_END, pa.int64()))
        self._is_even = is_utc(aggregation.window.shift_zone) and aggregation.window.end_column is None
        """True if windows end at whole slices of instants."""
        self._next_end: int | None = None

    def reduce(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        ends, columns = self._rows.partial_rows(rows, 0)
        return pa.RecordBatch.from_arrays([*columns, to_arrow(ends, pa.int64())], schema=self._schema)

    def needs_rows_before(self, watermark: int) -> bool:
        if not self._is_even:
            return True
        next_end = self._slicing.slice_end(watermark + 1)
        before, self._next_end = self._next_end, next_end
        return next_end != before


__all__ = ["SLICE_END", "SliceReduction"]
