"""Window aggregation of rows partitioned by key, where windows are made of slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import Partials, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..aggregates.window_spec import WindowAggregation
from ..keyed_state.frame_memory import Columns
from .sliced_rows import SlicedRows, rows_in
from .sliced_windows import SlicedWindows
from .window_results import WindowResults

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SlicedWindowAggregate(SlicedWindows):
    """The common part of both ways to aggregate windows that are made of slices.

    Args:
        aggregation: what is computed, over windows that are not sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        self._partials = Partials(aggregation)
        super().__init__(aggregation.window, self._partials)
        self._results = WindowResults(aggregation, self._partials)

    def fired(self, windows: list[tuple[int, list[Columns]]]) -> Iterator[ArrowBatch]:
        ends = np.array([end for end, _ in windows], dtype=np.int64)
        starts = np.array([self._slicing.window_start(end) for end, _ in windows], dtype=np.int64)
        if len(windows) == 1:
            for part in self._store.in_parts(windows[0][1]):
                columns = self._store.merge(part)
                own = np.zeros(len(columns[0]), dtype=np.int64)
                yield self._given(columns, starts[own], ends[own])
            return
        width = self._partials.width
        columns = concatenated([piece for _, some in windows for piece in some])
        of = np.repeat(np.arange(len(windows)), [sum(len(piece[0]) for piece in some) for _, some in windows])
        groups = grouped([to_arrow(of, pa.int64()), *columns[:width]], len(of))
        own = to_numpy(groups.keys.pop(0))
        yield self._given(self._partials.merge(columns, groups), starts[own], ends[own])

    def _given(self, columns: Columns, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> ArrowBatch:
        """Return rows of the result; where rows brought the starts of their windows, these count."""
        if self._window.start_column is not None:
            starts = to_numpy(columns[self._partials.partition_width].cast(pa.timestamp("ms")))
        return self._results.of(columns, starts, ends)


class GlobalWindowAggregate(SlicedWindowAggregate):
    """The second phase: takes the partial rows that `LocalWindowAggregate` gives, partitioned by their `key_names`.

    Args:
        aggregation: as for the first phase.
    """

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; partial rows are columns"
        if len(batch):
            *columns, ends = batch.data.columns
            self.add(to_numpy(ends), columns)
        return ()


class OnePhaseWindowAggregate(SlicedWindowAggregate):
    """Both phases in one: takes rows that are partitioned by the key.

    Args:
        aggregation: what is computed, over windows that are not sessions, of event or processing time.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        super().__init__(aggregation)
        self._input = aggregation.input
        self._rows = SlicedRows(aggregation, self._partials, self._slicing)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        if rows.num_rows:
            self.add(*self._rows.partial(rows, self.now_ms))
        return ()


__all__ = ["GlobalWindowAggregate", "SlicedWindowAggregate", "OnePhaseWindowAggregate"]
