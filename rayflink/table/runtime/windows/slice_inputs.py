"""Input of sliced windows: raw rows, which become partial rows of a key and a slice, or partial rows that arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import PartialAggregates
from ..aggregates.reductions import to_arrow, to_numpy
from ..aggregates.window_spec import WindowAggregation
from ..keyed_state.frame_memory import Columns
from .input_rows import local_ms, rows_in
from .slicing import Slicing
from .window_time import WindowTime
from .zone_shift import local_time

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RawRows:
    """Turns rows into partial rows, each of one key and slice; a `SliceInput`.

    Args:
        aggregation: what is computed.
        partials: its partial rows.
        slicing: its windows.
    """

    def __init__(self, aggregation: WindowAggregation, partials: PartialAggregates, slicing: Slicing) -> None:
        self._window, self._row = aggregation.window, aggregation.input
        self._partials, self._slicing = partials, slicing

    def read(self, batch: Batch, time: WindowTime) -> tuple[NDArray[np.int64], Columns] | None:
        rows = rows_in(batch, self._row)
        return self.partial_rows(rows, time.now_ms) if rows.num_rows else None

    def partial_rows(self, rows: pa.RecordBatch, now_ms: int) -> tuple[NDArray[np.int64], Columns]:
        """Return (ends of their slices, columns) of partial rows, by the first of the rows that each stands for.

        Args:
            rows: at least one.
            now_ms: processing time, an instant.
        """
        ends = self.slice_ends(rows, now_ms)
        keys = self._partials.keys_of(rows)
        if len(ends) == 1 or (int(ends.min()) == int(ends.max())):
            groups = grouped(keys, rows.num_rows)
            return np.full(groups.count, int(ends[0]), dtype=np.int64), self._partials.from_rows(rows, groups)
        groups = grouped([to_arrow(ends, pa.int64()), *keys], rows.num_rows)
        ends_of_groups: NDArray[np.int64] = to_numpy(groups.keys.pop(0))
        return ends_of_groups, self._partials.from_rows(rows, groups)

    def slice_ends(self, rows: pa.RecordBatch, now_ms: int) -> NDArray[np.int64]:
        """Return the ends of the slices in which the rows lie: int64[n].

        Raises:
            NoTimeError: a row has no time.
        """
        window = self._window
        if window.end_column is not None:
            return self._times(rows, window.end_column)
        if window.time_column is None or not window.is_event_time:
            end = self._slicing.slice_end(local_time(now_ms, window.shift_zone))
            return np.full(rows.num_rows, end, dtype=np.int64)
        times = self._times(rows, window.time_column)
        least, most = self._slicing.slice_end(int(times.min())), self._slicing.slice_end(int(times.max()))
        return np.full(len(times), least, dtype=np.int64) if least == most else self._slicing.slice_ends(times)

    def _times(self, rows: pa.RecordBatch, index: int) -> NDArray[Any]:
        return local_ms(rows.column(index), self._window.shift_zone, rows.schema.names[index])


class ArrivingPartialRows:
    """Reads the partial rows that a local phase has sent, with the ends of their slices last; a `SliceInput`."""

    def read(self, batch: Batch, time: WindowTime) -> tuple[NDArray[np.int64], Columns] | None:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; partial rows are columns"
        if not len(batch):
            return None
        *columns, ends = batch.data.columns
        return to_numpy(ends), columns


__all__ = ["ArrivingPartialRows", "RawRows"]
