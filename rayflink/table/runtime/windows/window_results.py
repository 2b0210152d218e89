"""The rows that a window aggregation gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch

from ..aggregates.partial_aggregates import Partials
from ..aggregates.reductions import to_arrow
from ..aggregates.window_spec import WindowAggregation
from .zone_shift import instants_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class WindowResults:
    """Makes them of partial rows.

    Args:
        aggregation: what is computed.
        partials: its partial rows.
    """

    def __init__(self, aggregation: WindowAggregation, partials: Partials) -> None:
        self._window, self._partials, self._schema = aggregation.window, partials, aggregation.result_schema

    def of(self, columns: list[pa.Array], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> ArrowBatch:
        """Partial rows as rows of the result, each with the start and the end of its window."""
        made = self._partials.results(columns)
        times = instants_of(ends - 1, self._window.shift_zone)
        local, kind = pa.timestamp("ms"), self._schema.types[-1]
        made += [to_arrow(starts, local), to_arrow(ends, local)]
        made.append(to_arrow(times, pa.timestamp("ms", kind.tz)).cast(kind))
        batch = pa.RecordBatch.from_arrays(made, schema=self._schema)
        return ArrowBatch(batch, times if self._window.is_event_time else None)


__all__ = ["WindowResults"]
