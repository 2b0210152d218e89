"""Windows to which rows are added one after the other, and that show each change of a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.grouping import Groups, grouped
from ..aggregates.partial_aggregates import Partials, concatenated
from ..aggregates.reductions import to_arrow
from ..changes import changed, changelog
from ..keyed_state.frame_memory import Columns
from .open_windows import OpenWindows
from .prefix_merge import prefixes
from .slice_store import split_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

Results = Callable[[Columns, "NDArray[np.int64]"], pa.RecordBatch]
"""Partial rows and the ends of their windows -> rows of the result."""


class RowByRow:
    """Adds rows and gives the changes.

    Args:
        windows: to which they belong.
        partials: what a key is made of.
        results: makes rows of the result.
        span: where in these the results of aggregates are.
    """

    def __init__(self, windows: OpenWindows, partials: Partials, results: Results, span: slice) -> None:
        self._windows, self._partials, self._results, self._span = windows, partials, results, span

    def add(self, rows: pa.RecordBatch, ends: NDArray[np.int64]) -> pa.RecordBatch:
        """Return the changes that rows make, in their order; `ends` are of their windows, int64[n]."""
        windows, partials = self._windows, self._partials
        known = [(end, windows.merge(windows.of(end))) for end in np.unique(ends).tolist()]
        held = [(end, one) for end, one in known if one is not None]
        ones = Groups(np.arange(rows.num_rows), rows.num_rows, partials.keys_of(rows))
        columns = concatenated([*(one for _, one in held), windows.fresh(partials.from_rows(rows, ones))])
        of = np.concatenate([*(np.full(len(one[0]), end) for end, one in held), ends]).astype(np.int64)
        before = len(of) - rows.num_rows
        codes = grouped([to_arrow(of, pa.int64()), *columns[: partials.width]], len(of)).codes
        is_touched = np.isin(codes, codes[before:])
        order = np.argsort(codes, kind="stable")
        order = order[is_touched[order]]  # what is held of a key, then its rows
        taken = pa.array(order)
        segments = codes[order]
        is_first = np.concatenate([[True], segments[1:] != segments[:-1]])
        changes, updated = self._changes(
            [one.take(taken) for one in columns], of[order], order, order < before, is_first
        )
        left = np.flatnonzero(~is_touched[:before])
        whole = concatenated([[one.take(pa.array(left)) for one in columns], updated])
        places = np.concatenate([left, order[is_first]])  # where a key first came
        self._keep(whole, places, of)
        return changes

    def _changes(
        self, columns: Columns, ends: NDArray[np.int64], order: Any, is_held: Any, is_first: NDArray[np.bool_]
    ) -> tuple[pa.RecordBatch, Columns]:
        """(changes, what is held of the keys afterwards)."""
        windows = self._windows
        sums = prefixes(self._partials, windows.partial(columns), is_first)
        results = self._results(sums, ends)
        fresh = results.columns[self._span]
        held = pa.array(is_held)
        after = [pc.if_else(held, old, new) for old, new in zip(windows.shown(columns), fresh, strict=True)]
        has_after = ~is_held | windows.has_shown(columns)
        previous = np.maximum(np.arange(len(order)) - 1, 0)
        shown = [one.take(pa.array(previous)) for one in after]
        has_shown = has_after[previous] & ~is_first
        which = np.flatnonzero(~is_held & changed(fresh, shown, has_shown))
        which = which[np.argsort(order[which], kind="stable")]
        given = pa.array(which)
        now = results.take(given)
        changes = changelog(now, replaced(now, self._span, [one.take(given) for one in shown]), has_shown[which])
        last = np.flatnonzero(np.concatenate([is_first[1:], [True]]))
        kept = pa.array(last)
        was_over = windows.was_over(columns)[is_first]
        updated = windows.with_shown([one.take(kept) for one in sums], [one.take(kept) for one in fresh], was_over)
        return changes, updated

    def _keep(self, rows: Columns, places: Any, ends: NDArray[np.int64]) -> None:
        """Hold rows in the order of their places, in the windows that end as these say."""
        order = np.argsort(places)
        taken = pa.array(order)
        for end, piece in split_by(ends[places[order]], [one.take(taken) for one in rows]):
            self._windows.of(end).rows = piece


def replaced(rows: pa.RecordBatch, span: slice, columns: Columns) -> pa.RecordBatch:
    """Return the same rows with other columns in a place."""
    made = list(rows.columns)
    made[span] = columns
    return pa.RecordBatch.from_arrays(made, schema=rows.schema)


__all__ = ["RowByRow", "replaced"]
