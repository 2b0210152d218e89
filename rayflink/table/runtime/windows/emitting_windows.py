"""Group windows that emit results before their end, and again when rows come late: their results are changes of rows.

With a delay of zero every row changes the result. With a longer one a window emits the results that have changed when
the delay has passed since its first row, and then again by the same interval, for all keys of the window together.

Source: apache/flink WindowEmitStrategy, AggregateWindowOperator; there the intervals of each key are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import OperatorContext

from ...plan.logical import Emission
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import PartialAggregates, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..aggregates.window_spec import WindowAggregation
from ..changes import changed, changelog
from ..keyed_state.frame_memory import Columns
from .aggregate_firing import WindowProjection
from .input_rows import rows_in
from .open_windows import OpenWindow, OpenWindows
from .row_by_row import RowByRow, with_columns
from .slice_inputs import RawRows
from .slice_store import split_by
from .slicing import Slicing
from .window_contents import WindowContents
from .window_time import WindowTime

if TYPE_CHECKING:
    from numpy.typing import NDArray


class EmittingWindows(WindowContents):
    """Windows of rows that are partitioned by the key; their state stays in memory.

    Args:
        aggregation: what is computed, over windows that are not sessions.
        emission: when results are emitted in addition to the end of a window.
    """

    restores_ahead = True

    def __init__(self, aggregation: WindowAggregation, emission: Emission) -> None:
        self.partials = self._partials = PartialAggregates(aggregation)
        self._emission, self._row = emission, aggregation.input
        self._projection = WindowProjection(aggregation, self._partials)
        first = self._partials.partition_width
        self._span = slice(first, first + len(aggregation.aggregates))
        self._windows = OpenWindows(self._partials, list(self._projection.schema)[self._span])
        self.state_fields = self._windows.state_fields
        self._slicing = Slicing(aggregation.window)
        self._rows = RawRows(aggregation, self._partials, self._slicing)
        self._by_row = RowByRow(self._windows, self._partials, self._project, self._span)

    def open(self, ctx: OperatorContext, time: WindowTime) -> None:
        self._time = time

    def close(self) -> None:
        """Release nothing: the state is not in managed memory."""

    # rows

    def add(self, batch: Batch) -> Iterable[Element]:
        rows = rows_in(batch, self._row)
        return self._add_rows(rows, self._now_ms) if rows.num_rows else ()

    def _add_rows(self, rows: pa.RecordBatch, now_ms: int) -> Iterator[Element]:
        numbers, ends = self._windows_of(self._rows.slice_ends(rows, now_ms))
        distinct, index = np.unique(ends, return_inverse=True)
        progress = self._time.progress
        is_open = np.array([self._expires_at(end) > progress for end in distinct.tolist()], dtype=np.bool_)[index]
        if not is_open.all():
            self._time.count_late(rows.num_rows - len(np.unique(numbers[is_open])))
            numbers, ends = numbers[is_open], ends[is_open]
        if not len(numbers):
            return
        if not np.array_equal(numbers, np.arange(rows.num_rows)):
            rows = rows.take(pa.array(numbers))
        at_once = self._emits_at_once(rows, ends)
        if not at_once.all():
            self._add_pieces(*_chosen(rows, ends, ~at_once), now_ms)
        if at_once.any():
            changes = self._by_row.add(*_chosen(rows, ends, at_once))
            if changes.num_rows:
                yield ArrowBatch(changes)

    def _windows_of(self, slice_ends: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return row numbers and the ends of their windows, with a row once for each of its windows."""
        assigner = self._slicing.assigner
        distinct, index = np.unique(slice_ends, return_inverse=True)
        windows = [
            np.arange(assigner.first_window(end), assigner.last_window(end) + 1, assigner.step_ms, dtype=np.int64)
            for end in distinct.tolist()
        ]
        counts = np.array([len(ends) for ends in windows], dtype=np.int64)
        per_row = counts[index]
        numbers = np.repeat(np.arange(len(slice_ends)), per_row)
        if not len(numbers):
            return numbers, np.empty(0, dtype=np.int64)
        starts = np.cumsum(counts) - counts
        within = np.arange(len(numbers)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
        return numbers, np.concatenate(windows)[np.repeat(starts[index], per_row) + within]

    def _emits_at_once(self, rows: pa.RecordBatch, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows change a result that is emitted row by row: bool[n]."""
        at_once = np.zeros(len(ends), dtype=np.bool_)
        for end in np.unique(ends).tolist():
            window = self._windows.window(end)
            window.is_over |= self._time.is_event_time and self._slicing.fires_at(end) <= self._time.progress
            is_in_window = ends == end
            if not window.is_over:
                at_once[is_in_window] = self._emission.early_ms == 0
            elif not self._emission.late_ms:
                at_once[is_in_window] = True
            else:  # a key that was not in the window at its end is emitted at once
                at_once[is_in_window] = ~self._was_in(window, rows.filter(pa.array(is_in_window)))
        return at_once

    def _was_in(self, window: OpenWindow, rows: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return for which rows the key was in the window when its end came: bool[n]."""
        stored = self._windows.merge(window)
        if stored is None:
            return np.zeros(rows.num_rows, dtype=np.bool_)
        keys, was_over = self._partials.keys_of(rows), self._windows.was_over(stored)
        if not keys:
            return np.full(rows.num_rows, bool(was_over[0]))
        count = len(stored[0])
        codes = grouped(concatenated([stored[: len(keys)], keys]), count + rows.num_rows).codes
        return np.isin(codes[count:], codes[:count][was_over])

    def _add_pieces(self, rows: pa.RecordBatch, ends: NDArray[np.int64], now_ms: int) -> None:
        """Add rows to their windows, which emit them later."""
        groups = grouped([to_arrow(ends, pa.int64()), *self._partials.keys_of(rows)], rows.num_rows)
        ends_of_groups = to_numpy(groups.keys.pop(0))
        for end, piece in split_by(ends_of_groups, self._partials.from_rows(rows, groups)):
            window = self._windows.window(end)
            window.pieces.append(piece)
            delay = self._delay(window)
            if delay:
                window.request_refresh(now_ms, delay)

    def _delay(self, window: OpenWindow) -> int | None:
        return self._emission.late_ms if window.is_over else self._emission.early_ms

    # time

    def next_firing(self, after: int) -> int | None:
        return min((self._slicing.fires_at(end) for end, window in self._windows if not window.is_over), default=None)

    def advance(self, after: int, until: int) -> Iterator[Element]:
        for end, window in self._windows:
            if self._slicing.fires_at(end) > until:
                return
            if not window.is_over:
                yield from self._changes(end, window)
                window.end(self._windows)
            if self._expires_at(end) <= until:
                if window.due is not None:  # rows came since the last interval
                    yield from self._changes(end, window)
                self._windows.drop(end)

    def next_refresh_ms(self) -> int | None:
        return min((window.due for _, window in self._windows if window.due is not None), default=None)

    def refresh(self, now_ms: int) -> Iterator[Element]:
        for end, window in self._windows:
            if window.due is not None and window.due <= now_ms:
                yield from self._changes(end, window)

    @property
    def _now_ms(self) -> int:
        """Return the time from which delays count."""
        return self._time.clock_ms if self._time.is_event_time else self._time.now_ms

    def _expires_at(self, end: int) -> int:
        """Return the progress of time from which on a window accepts no rows."""
        return self._slicing.fires_at(end) + (self._emission.lateness_ms if self._time.is_event_time else 0)

    # results

    def _project(self, columns: Columns, ends: NDArray[np.int64]) -> pa.RecordBatch:
        distinct, index = np.unique(ends, return_inverse=True)
        starts = np.array([self._slicing.assigner.window_start(end) for end in distinct.tolist()], dtype=np.int64)
        return self._projection.project(columns, starts[index], ends).data

    def _changes(self, end: int, window: OpenWindow) -> Iterator[ArrowBatch]:
        """Yield the changes of a window since it last emitted results."""
        windows, window.due = self._windows, None
        rows = windows.merge(window)
        if rows is None:
            return
        results = self._project(windows.partial_rows(rows), np.full(len(rows[0]), end, dtype=np.int64))
        fresh, emitted, has_emitted = results.columns[self._span], windows.results(rows), windows.has_results(rows)
        has_changed = changed(fresh, emitted, has_emitted)
        window.rows = windows.with_results(windows.partial_rows(rows), fresh, windows.was_over(rows))
        if has_changed.any():
            mask = pa.array(has_changed)
            now = results.filter(mask)
            before = with_columns(now, self._span, [column.filter(mask) for column in emitted])
            yield ArrowBatch(changelog(now, before, has_emitted[has_changed]))

    # snapshots

    def pieces(self) -> Iterator[Columns]:
        for _, window in self._windows:
            if not window.is_over:
                yield from ([] if window.rows is None else [window.rows]) + window.pieces

    def frame(self) -> Callable[[], Columns | None]:
        return self._windows.frame()

    def add_frame(self, frame: pa.RecordBatch) -> None:
        if not frame.num_rows:
            return
        self._windows.add_frame(frame)
        now_ms, progress = self._now_ms, self._time.progress
        for end, window in self._windows:
            assert window.rows is not None
            was_over = bool(self._windows.was_over(window.rows).any())
            window.is_over = self._slicing.fires_at(end) <= progress or was_over
            delay = self._delay(window)
            if window.since is not None and delay:
                window.request_refresh(now_ms, delay)


def _chosen(
    rows: pa.RecordBatch, ends: NDArray[np.int64], mask: NDArray[np.bool_]
) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
    return (rows, ends) if mask.all() else (rows.filter(pa.array(mask)), ends[mask])


__all__ = ["EmittingWindows"]
