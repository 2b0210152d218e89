"""The first phase of a window aggregation: rows become partial rows before they are dealt by key. It has no state.

Rows of small batches are held until there are many, and given before whatever could tell the difference: a watermark
with which a slice ends, a barrier, the end of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rayflink.common.batches import ArrowBatch, Batch, Element, Watermark, WatermarkStatus
from rayflink.operators.base import Operator

from .frame_snapshots import one_batch
from .partials import Partials
from .reductions import column
from .sliced_rows import SlicedRows, rows_in
from .slicing import Slicing
from .window_spec import WindowAggregation
from .zones import is_utc

MOST_HELD = 32_768
"""Rows that are held at most before they are worked together."""
SLICE_END = "slice_end"


def partial_schema(partials: Partials) -> pa.Schema:
    """Columns of the rows between the two phases."""
    return partials.schema.append(pa.field(SLICE_END, pa.int64()))


class LocalWindowAggregate(Operator):
    """Gives a partial row for each key and slice of the rows it has at hand.

    Args:
        aggregation: what is computed, over windows of event time that are not sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        self._partials = Partials(aggregation)
        self._slicing = Slicing(aggregation.window)
        self._input = aggregation.input
        self._rows = SlicedRows(aggregation, self._partials, self._slicing)
        self._schema = partial_schema(self._partials)
        self._is_even = is_utc(aggregation.window.shift_zone) and aggregation.window.end_column is None
        """Whether windows end at whole slices of instants."""
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._next_end: int | None = None

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        if rows.num_rows:
            self._held.append(rows)
            self._held_rows += rows.num_rows
        return self._given() if self._held_rows >= MOST_HELD else ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._ends_a_slice(watermark.timestamp):
            yield from self._given()
        yield watermark

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        yield from self._given()
        yield status

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        return self._given()

    def finish(self) -> Iterable[Element]:
        return self._given()

    def _ends_a_slice(self, watermark: int) -> bool:
        if not self._is_even:
            return True
        next_end = self._slicing.slice_end(watermark + 1)
        before, self._next_end = self._next_end, next_end
        return next_end != before

    def _given(self) -> Iterator[Element]:
        if not self._held:
            return
        rows = one_batch(self._held)
        self._held, self._held_rows = [], 0
        ends, columns = self._rows.partial(rows, 0)
        yield ArrowBatch(pa.RecordBatch.from_arrays([*columns, column(ends, pa.int64())], schema=self._schema))


__all__ = ["MOST_HELD", "SLICE_END", "LocalWindowAggregate", "partial_schema"]
