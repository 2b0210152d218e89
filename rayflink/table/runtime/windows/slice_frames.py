"""Slices as one frame of rows for a snapshot, and back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns
from .slice_store import SliceStore, split_by

SLICE_FIELDS = (pa.field("slice_end", pa.int64()), pa.field("arrival", pa.int64()))
"""The slice of a partial row, and its place among those of the slice."""


def frame_of(store: SliceStore, schema: pa.Schema) -> Callable[[], pa.RecordBatch]:
    """Gives the rows that the slices have now, when it is called later.

    Args:
        schema: partial rows and `SLICE_FIELDS`.
    """
    held = list(store)

    def frame() -> pa.RecordBatch:
        parts: list[Columns] = []
        for end, pieces in held:
            columns = store.merge(pieces)
            rows = len(columns[0])
            ends, arrival = np.full(rows, end, dtype=np.int64), np.arange(rows, dtype=np.int64)
            parts.append([*columns, to_arrow(ends, pa.int64()), to_arrow(arrival, pa.int64())])
        if not parts:
            return pa.RecordBatch.from_pylist([], schema=schema)
        return pa.RecordBatch.from_arrays(concatenated(parts), schema=schema)

    return frame


def frames_into(store: SliceStore, frame: pa.RecordBatch) -> None:
    """Add the rows of a frame to their slices."""
    *columns, ends, arrival = frame.columns
    order = pa.array(np.lexsort((to_numpy(arrival), to_numpy(ends))))
    for end, piece in split_by(to_numpy(ends.take(order)), [one.take(order) for one in columns]):
        store.add(end, piece)


__all__ = ["SLICE_FIELDS", "frame_of", "frames_into"]
