"""Group windows that show results before their end, and again when rows come late: changes of rows.

With a delay of zero every row changes the result; with another one a window shows what has changed when so much time
has gone by since its first row, and then again by the same interval. All keys of a window are shown together.

Source: apache/flink WindowEmitStrategy, AggregateWindowOperator; there the intervals of each key are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import OperatorSnapshot

from ...plan.logical import Emission
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import Partials, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..aggregates.window_spec import WindowAggregation
from ..changes import changed, changelog
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import restored_frames
from ..progress import restored_progress
from .open_windows import OpenWindow, OpenWindows
from .retracting_window import RowByRow, replaced
from .slice_store import split_by
from .sliced_rows import SlicedRows, rows_in
from .slicing import Slicing
from .table_window_operator import TableWindowOperator
from .window_results import WindowResults

if TYPE_CHECKING:
    from numpy.typing import NDArray


class EmittingWindowAggregate(TableWindowOperator):
    """Aggregates rows that are partitioned by the key; state stays in memory.

    Args:
        aggregation: what is computed, over windows that are not sessions.
        emission: when results are shown in addition to the end of a window.
    """

    def __init__(self, aggregation: WindowAggregation, emission: Emission) -> None:
        partials = Partials(aggregation)
        self._schema = aggregation.result_schema
        first, stop = partials.partition_width, partials.partition_width + len(aggregation.aggregates)
        self._windows = OpenWindows(partials, [self._schema.field(at) for at in range(first, stop)])
        self._span = slice(first, stop)
        super().__init__(aggregation.window, partials, self._windows.fields)
        self._partials, self._emission, self._input = partials, emission, aggregation.input
        self._results = WindowResults(aggregation, partials)
        self._slicing = Slicing(aggregation.window)
        self._rows = SlicedRows(aggregation, partials, self._slicing)
        self._by_row = RowByRow(self._windows, partials, self._results_of, self._span)

    # state

    def begin(self, memory: FrameMemory) -> None:
        """State is not written to files."""

    def frame(self) -> Callable[[], pa.RecordBatch]:
        return self._windows.framed(self._state_schema)

    def open_pieces(self) -> Iterator[Columns]:
        held = (window for _, window in self._windows if not window.is_over)
        return (piece for one in held for piece in ([] if one.rows is None else [one.rows]) + one.pieces)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.progress = restored_progress(snapshots, self.ctx)
        for _, frame in restored_frames(snapshots, self._state_schema, self.ctx):
            self.take_frame(frame)

    def take_frame(self, frame: pa.RecordBatch) -> None:
        if not frame.num_rows:
            return
        self._windows.take(frame)
        now_ms = self._clock_ms
        for end, window in self._windows:
            assert window.rows is not None
            window.is_over = self._fires_at(end) <= self.progress or bool(self._windows.was_over(window.rows).any())
            delay = self._delay(window)
            if window.since is not None and delay:
                window.ask(now_ms, delay)

    # rows

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        return self._taken(rows, self._clock_ms) if rows.num_rows else ()

    def _taken(self, rows: pa.RecordBatch, now_ms: int) -> Iterator[Element]:
        numbers, ends = self._windows_of(self._rows.slice_ends(rows, now_ms))
        distinct, which = np.unique(ends, return_inverse=True)
        alive = np.array([self._forgotten_at(end) > self.progress for end in distinct.tolist()], dtype=np.bool_)[which]
        if not alive.all():
            self.count_late(rows.num_rows - len(np.unique(numbers[alive])))
            numbers, ends = numbers[alive], ends[alive]
        if not len(numbers):
            return
        if not np.array_equal(numbers, np.arange(rows.num_rows)):
            rows = rows.take(pa.array(numbers))
        at_once = self._shown_at_once(rows, ends)
        if not at_once.all():
            self._keep(*self._some(rows, ends, ~at_once), now_ms)
        if at_once.any():
            changes = self._by_row.add(*self._some(rows, ends, at_once))
            if changes.num_rows:
                yield ArrowBatch(changes)

    @staticmethod
    def _some(rows: pa.RecordBatch, ends: Any, which: NDArray[np.bool_]) -> tuple[pa.RecordBatch, Any]:
        return (rows, ends) if which.all() else (rows.filter(pa.array(which)), ends[which])

    def _windows_of(self, slice_ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return row numbers and the ends of their windows, with a row once for each of its windows."""
        each = self._slicing.slices_of_a_window
        steps = np.arange(each) * self._slicing.slice_ms
        return np.repeat(np.arange(len(slice_ends)), each), (slice_ends[:, None] + steps[None, :]).ravel()

    def _shown_at_once(self, rows: pa.RecordBatch, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows change a result that is emitted row by row."""
        found = np.zeros(len(ends), dtype=np.bool_)
        for end in np.unique(ends).tolist():
            is_over = self._window.is_event_time and self._fires_at(end) <= self.progress
            window = self._windows.of(end)
            window.is_over = window.is_over or is_over
            if not window.is_over:
                found[ends == end] = self._emission.early_ms == 0
            elif not self._emission.late_ms:
                found[ends == end] = True
            else:  # what was not there at the end is shown at once
                here = ends == end
                found[here] = ~self._was_there(window, rows.filter(pa.array(here)))
        return found

    def _was_there(self, window: OpenWindow, rows: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return for which rows the key was in the window when its end came."""
        held = self._windows.merge(window)
        if held is None:
            return np.zeros(rows.num_rows, dtype=np.bool_)
        keys = self._partials.keys_of(rows)
        if not keys:
            return np.full(rows.num_rows, bool(self._windows.was_over(held)[0]))
        codes = grouped(concatenated([held[: len(keys)], keys]), len(held[0]) + rows.num_rows).codes
        count = len(held[0])
        return np.isin(codes[count:], codes[:count][self._windows.was_over(held)])

    def _keep(self, rows: pa.RecordBatch, ends: NDArray[np.int64], now_ms: int) -> None:
        """Add rows to their windows, which show them later."""
        groups = grouped([to_arrow(ends, pa.int64()), *self._partials.keys_of(rows)], rows.num_rows)
        own = to_numpy(groups.keys.pop(0))
        for end, piece in split_by(own, self._partials.from_rows(rows, groups)):
            window = self._windows.of(end)
            window.pieces.append(piece)
            delay = self._delay(window)
            if delay:
                window.ask(now_ms, delay)

    def _delay(self, window: OpenWindow) -> int | None:
        return self._emission.late_ms if window.is_over else self._emission.early_ms

    # time

    def next_firing(self) -> int | None:
        ends = (self._fires_at(end) for end, window in self._windows if not window.is_over)
        return min(ends, default=None)

    def advance(self, after: int, until: int) -> Iterator[Element]:
        for end, window in self._windows:
            if self._fires_at(end) > until:
                return
            if not window.is_over:
                yield from self._shown(end, window)
                window.end(self._windows)
            if self._forgotten_at(end) <= until:
                if window.due is not None:  # what came since the last interval
                    yield from self._shown(end, window)
                self._windows.drop(end)

    def next_processing_time(self) -> int | None:
        dues = [window.due for _, window in self._windows if window.due is not None]
        own = super().next_processing_time()
        return min([*dues, *([] if own is None else [own])], default=None)

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        for end, window in self._windows:
            if window.due is not None and window.due <= now_ms:
                yield from self._shown(end, window)
        yield from super().on_processing_time(now_ms)

    @property
    def _clock_ms(self) -> int:
        return int(self.ctx.clock.now_ms()) if self._window.is_event_time else self.now_ms

    def _fires_at(self, end: int) -> int:
        return self._slicing.fires_at(end)

    def _forgotten_at(self, end: int) -> int:
        """Return the progress of time from which on a window takes no rows."""
        return self._fires_at(end) + (self._emission.lateness_ms if self._window.is_event_time else 0)

    # results

    def _results_of(self, columns: Columns, ends: NDArray[np.int64]) -> pa.RecordBatch:
        starts = np.array([self._slicing.window_start(end) for end in np.unique(ends).tolist()], dtype=np.int64)
        return self._results.of(columns, starts[np.unique(ends, return_inverse=True)[1]], ends).data

    def _shown(self, end: int, window: OpenWindow) -> Iterator[ArrowBatch]:
        """Yield the changes of a window since it was emitted last."""
        windows, window.due = self._windows, None
        rows = windows.merge(window)
        if rows is None:
            return
        results = self._results_of(windows.partial(rows), np.full(len(rows[0]), end, dtype=np.int64))
        fresh, shown, has_shown = results.columns[self._span], windows.shown(rows), windows.has_shown(rows)
        which = changed(fresh, shown, has_shown)
        window.rows = windows.with_shown(windows.partial(rows), fresh, windows.was_over(rows))
        if which.any():
            mask = pa.array(which)
            now = results.filter(mask)
            before = replaced(now, self._span, [one.filter(mask) for one in shown])
            yield ArrowBatch(changelog(now, before, has_shown[which]))


__all__ = ["EmittingWindowAggregate"]
