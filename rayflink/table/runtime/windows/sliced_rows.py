"""Rows that come in as partial rows of slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, Batch

from ...types import DataType
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import Partials
from ..aggregates.reductions import to_arrow, to_numpy
from ..aggregates.window_spec import WindowAggregation
from .slicing import Slicing
from .zone_shift import local_time, local_times

if TYPE_CHECKING:
    from numpy.typing import NDArray


class NoTimeError(ValueError):
    """A row has no time where windows go by it.

    Args:
        name: of the column.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"column {self.name!r} is NULL in a row, and windows go by it; filter such rows out, or give it a value"


def rows_in(batch: Batch, kind: DataType) -> pa.RecordBatch:
    """Return the rows of a batch as columns; `kind` is the type of a row."""
    if isinstance(batch, ArrowBatch):
        return batch.data
    return rows_to_arrow(batch.values, pa.schema([field.type.to_arrow_field(field.name) for field in kind.fields]))


class SlicedRows:
    """Makes partial rows, each of one key and slice.

    Args:
        aggregation: what is computed.
        partials: its partial rows.
        slicing: its windows.
    """

    def __init__(self, aggregation: WindowAggregation, partials: Partials, slicing: Slicing) -> None:
        self._aggregation, self._partials, self._slicing = aggregation, partials, slicing

    def partial(self, rows: pa.RecordBatch, now_ms: int) -> tuple[NDArray[np.int64], list[pa.Array]]:
        """(ends of their slices, columns) of partial rows, ordered by the first of the rows that each stands for.

        Args:
            now_ms: processing time, an instant.
        """
        ends = self.slice_ends(rows, now_ms)
        keys = self._partials.keys_of(rows)
        least = int(ends[0])
        if len(ends) == 1 or (int(ends.min()) == int(ends.max())):
            groups = grouped(keys, rows.num_rows)
            return np.full(groups.count, least, dtype=np.int64), self._partials.from_rows(rows, groups)
        groups = grouped([to_arrow(ends, pa.int64()), *keys], rows.num_rows)
        made: NDArray[np.int64] = to_numpy(groups.keys.pop(0))
        return made, self._partials.from_rows(rows, groups)

    def slice_ends(self, rows: pa.RecordBatch, now_ms: int) -> NDArray[np.int64]:
        """Ends of the slices in which the rows lie: int64[n].

        Raises:
            NoTimeError: a row has no time.
        """
        window = self._aggregation.window
        if window.end_column is not None:
            return self._times(rows, window.end_column)
        if window.time_column is None or not window.is_event_time:
            end = self._slicing.slice_end(local_time(now_ms, window.shift_zone))
            return np.full(rows.num_rows, end, dtype=np.int64)
        times = self._times(rows, window.time_column)
        least, most = self._slicing.slice_end(int(times.min())), self._slicing.slice_end(int(times.max()))
        return np.full(len(times), least, dtype=np.int64) if least == most else self._slicing.slice_ends(times)

    def _times(self, rows: pa.RecordBatch, at: int) -> NDArray[Any]:
        return local_ms(rows.column(at), self._aggregation.window.shift_zone, rows.schema.names[at])


def local_ms(times: pa.Array, zone: str, name: str) -> NDArray[np.int64]:
    """Return a column of times as milliseconds of local time, int64[n]; instants have one in the zone.

    Raises:
        NoTimeError: there is a null.
    """
    if times.null_count:
        raise NoTimeError(name)
    kind = times.type
    if types.is_timestamp(kind):
        if kind.unit != "ms":
            times = pc.floor_temporal(times, unit="millisecond") if kind.unit in ("us", "ns") else times
            times = times.cast(pa.timestamp("ms", kind.tz), safe=False)
        if kind.tz is not None:
            times = local_times(times.cast(pa.timestamp("ms")), zone)
    found: NDArray[np.int64] = to_numpy(times)
    return found


__all__ = ["NoTimeError", "SlicedRows", "local_ms", "rows_in"]
