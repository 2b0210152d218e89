"""Rows that change the results of their windows one after the other, each change emitted by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.grouping import Groups, grouped
from ..aggregates.partial_aggregates import PartialAggregates, concatenated
from ..aggregates.reductions import to_arrow
from ..changes import changed, changelog
from ..keyed_state.frame_memory import Columns
from .open_windows import OpenWindows
from .prefix_merge import prefixes
from .slice_store import split_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

Projection = Callable[[Columns, "NDArray[np.int64]"], pa.RecordBatch]
"""Partial rows and the ends of their windows -> rows of the result."""


class RowByRow:
    """Adds rows to windows, and computes the changes of results that each of them makes.

    Args:
        windows: to which the rows belong.
        partials: the partial row of a key.
        project: makes rows of the result.
        span: the columns of the result that are aggregates.
    """

    def __init__(self, windows: OpenWindows, partials: PartialAggregates, project: Projection, span: slice) -> None:
        self._windows, self._partials, self._project, self._span = windows, partials, project, span

    def add(self, rows: pa.RecordBatch, ends: NDArray[np.int64]) -> pa.RecordBatch:
        """Return the changes that rows make, in their order; `ends` are those of their windows, int64[n]."""
        windows, partials = self._windows, self._partials
        merged = [(end, windows.merge(windows.window(end))) for end in np.unique(ends).tolist()]
        stored = [(end, columns) for end, columns in merged if columns is not None]
        each_row = Groups(np.arange(rows.num_rows), rows.num_rows, partials.keys_of(rows))
        fresh = windows.without_results(partials.from_rows(rows, each_row))
        columns = concatenated([*(columns for _, columns in stored), fresh])
        stored_ends = (np.full(len(columns[0]), end) for end, columns in stored)
        ends = np.concatenate([*stored_ends, ends]).astype(np.int64)
        stored_rows = len(ends) - rows.num_rows
        codes = grouped([to_arrow(ends, pa.int64()), *columns[: partials.width]], len(ends)).codes
        is_touched = np.isin(codes, codes[stored_rows:])
        order = np.argsort(codes, kind="stable")
        order = order[is_touched[order]]  # the stored row of a key, then its new rows
        taken = pa.array(order)
        segments = codes[order]
        is_first = np.concatenate([[True], segments[1:] != segments[:-1]])
        touched = [column.take(taken) for column in columns]
        changes, updated = self._changes(touched, ends[order], order, order < stored_rows, is_first)
        untouched = np.flatnonzero(~is_touched[:stored_rows])
        rest = [column.take(pa.array(untouched)) for column in columns]
        places = np.concatenate([untouched, order[is_first]])  # where a key first came
        self._store(concatenated([rest, updated]), places, ends)
        return changes

    def _changes(
        self,
        columns: Columns,
        ends: NDArray[np.int64],
        order: NDArray[np.intp],
        is_stored: NDArray[np.bool_],
        is_first: NDArray[np.bool_],
    ) -> tuple[pa.RecordBatch, Columns]:
        """Return the changes, and the rows of the keys afterwards.

        Args:
            columns: rows by key: the stored row first, if there is one, then the new ones.
            ends: of their windows.
            order: the places of the rows as they came.
            is_stored: which are stored rows.
            is_first: which are the first of their keys.
        """
        windows = self._windows
        sums = prefixes(self._partials, windows.partial_rows(columns), is_first)
        results = self._project(sums, ends)
        fresh = results.columns[self._span]
        stored = pa.array(is_stored)
        after = [pc.if_else(stored, old, new) for old, new in zip(windows.results(columns), fresh, strict=True)]
        has_after = ~is_stored | windows.has_results(columns)
        previous = np.maximum(np.arange(len(order)) - 1, 0)
        before = [column.take(pa.array(previous)) for column in after]
        has_before = has_after[previous] & ~is_first
        which = np.flatnonzero(~is_stored & changed(fresh, before, has_before))
        which = which[np.argsort(order[which], kind="stable")]
        taken = pa.array(which)
        now = results.take(taken)
        earlier = with_columns(now, self._span, [column.take(taken) for column in before])
        changes = changelog(now, earlier, has_before[which])
        lasts = pa.array(np.flatnonzero(np.concatenate([is_first[1:], [True]])))
        last_sums, last_results = ([column.take(lasts) for column in part] for part in (sums, fresh))
        return changes, windows.with_results(last_sums, last_results, windows.was_over(columns)[is_first])

    def _store(self, rows: Columns, places: NDArray[np.intp], ends: NDArray[np.int64]) -> None:
        """Store rows in the order of their places in their windows, whose ends are `ends[places]`."""
        order = np.argsort(places)
        taken = pa.array(order)
        for end, piece in split_by(ends[places[order]], [column.take(taken) for column in rows]):
            self._windows.window(end).rows = piece


def with_columns(rows: pa.RecordBatch, span: slice, columns: Columns) -> pa.RecordBatch:
    """Return the same rows with other columns in the places of a span."""
    all_columns = list(rows.columns)
    all_columns[span] = columns
    return pa.RecordBatch.from_arrays(all_columns, schema=rows.schema)


__all__ = ["RowByRow", "with_columns"]
