"""Rows that come in: as columns, and with their times as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, Batch

from ...types import DataType
from ..aggregates.reductions import to_numpy
from .zone_shift import local_times

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class NoTimeError(ValueError):
    """A row has NULL in the column of the time that its windows follow.

    Args:
        name: of the column.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"column {self.name!r} is NULL in a row, and windows go by it; filter such rows out, or give it a value"


def rows_in(batch: Batch, row: DataType) -> pa.RecordBatch:
    """Return the rows of a batch as columns; `row` is the type of a row."""
    if isinstance(batch, ArrowBatch):
        return batch.data
    return rows_to_arrow(batch.values, pa.schema([field.type.to_arrow_field(field.name) for field in row.fields]))


def local_ms(times: pa.Array, zone: str, name: str) -> NDArray[np.int64]:
    """Return a column of times as milliseconds of local time, int64[n]; instants have a local time in the zone.

    Args:
        name: of the column, for the error.
    Raises:
        NoTimeError: a time is null.
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
    numbers: NDArray[np.int64] = to_numpy(times)
    return numbers


__all__ = ["NoTimeError", "local_ms", "rows_in"]
