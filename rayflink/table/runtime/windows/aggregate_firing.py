"""Results of window aggregates: from partial rows of windows that are over to rows of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import PartialAggregates, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..aggregates.window_spec import WindowAggregation
from ..keyed_state.frame_memory import Columns
from .zone_shift import instants_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .slice_store import SliceStore
    from .sliced_windows import FiredWindow
    from .slicing import SliceAssigner


class WindowProjection:
    """Computes rows of the result: keys, aggregates, window_start, window_end and window_time.

    Args:
        aggregation: what is computed.
        partials: its partial rows.
    """

    def __init__(self, aggregation: WindowAggregation, partials: PartialAggregates) -> None:
        self._window, self._partials, self.schema = aggregation.window, partials, aggregation.result_schema

    def project(self, columns: Columns, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> ArrowBatch:
        """Return partial rows as rows of the result, each with the start and the end of its window, int64[n]."""
        results = self._partials.results(columns)
        times = instants_of(ends - 1, self._window.shift_zone)
        local, time_type = pa.timestamp("ms"), self.schema.types[-1]
        results += [to_arrow(starts, local), to_arrow(ends, local)]
        results.append(to_arrow(times, pa.timestamp("ms", time_type.tz)).cast(time_type))
        batch = pa.RecordBatch.from_arrays(results, schema=self.schema)
        return ArrowBatch(batch, times if self._window.is_event_time else None)


class AggregateFiring:
    """Merges the partial rows of windows by key, and projects them; a `WindowFiring`.

    Args:
        aggregation: what is computed.
        partials: its partial rows.
        assigner: knows the starts of windows.
    """

    def __init__(self, aggregation: WindowAggregation, partials: PartialAggregates, assigner: SliceAssigner) -> None:
        self._partials, self._assigner = partials, assigner
        self._projection = WindowProjection(aggregation, partials)
        self._has_starts = aggregation.window.start_column is not None
        """True if rows bring the starts of their windows."""

    def fire(self, windows: Sequence[FiredWindow], store: SliceStore) -> Iterator[ArrowBatch]:
        ends = np.array([window.end for window in windows], dtype=np.int64)
        starts = np.array([self._assigner.window_start(window.end) for window in windows], dtype=np.int64)
        if len(windows) == 1:
            for part in store.in_parts(windows[0].pieces):
                columns = store.merge(part)
                window_of_row = np.zeros(len(columns[0]), dtype=np.int64)
                yield self._project(columns, starts[window_of_row], ends[window_of_row])
            return
        columns = concatenated([piece for window in windows for piece in window.pieces])
        rows = [sum(len(piece[0]) for piece in window.pieces) for window in windows]
        window_of_row = np.repeat(np.arange(len(windows)), rows)
        keys = [to_arrow(window_of_row, pa.int64()), *columns[: self._partials.width]]
        groups = grouped(keys, len(window_of_row))
        window_of_group = to_numpy(groups.keys.pop(0))
        merged = self._partials.merge(columns, groups)
        yield self._project(merged, starts[window_of_group], ends[window_of_group])

    def _project(self, columns: Columns, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> ArrowBatch:
        if self._has_starts:
            starts = to_numpy(columns[self._partials.partition_width].cast(pa.timestamp("ms")))
        return self._projection.project(columns, starts, ends)


__all__ = ["AggregateFiring", "WindowProjection"]
