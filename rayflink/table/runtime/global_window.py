"""Window aggregation of rows dealt by key, where windows are made of slices: the state is partial rows of slices.

A row is late when all windows of its slice have fired; it is then counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element

from .frame_memory import Columns, FrameMemory
from .grouping import grouped
from .partials import Partials, concatenated
from .reductions import column, plain
from .running_windows import RunningWindows
from .slice_frames import SLICE_FIELDS, frame_of, frames_into
from .slice_store import SliceStore, split_by
from .sliced_rows import SlicedRows, rows_in
from .slicing import Slicing
from .window_operator import WindowOperator
from .window_spec import WindowAggregation

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRING_ROWS = 65_536
"""Partial rows that are worked at once at least, where more than one window fires."""


class SlicedWindowAggregate(WindowOperator):
    """What both ways to aggregate windows that are made of slices share.

    Args:
        aggregation: what is computed, over windows that are not sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        super().__init__(aggregation, Partials(aggregation), SLICE_FIELDS)
        self._slicing = Slicing(aggregation.window)
        self._store = SliceStore(self._partials, not self._slicing.is_alone)
        self._running = RunningWindows(self._store, self._slicing)

    def begin(self, memory: FrameMemory) -> None:
        self._store.open(memory)

    def frame(self) -> Callable[[], pa.RecordBatch]:
        return frame_of(self._store, self._state_schema)

    def take_frame(self, frame: pa.RecordBatch) -> None:
        frames_into(self._store, frame)
        self._running.forget()
        self._store.keep_to_memory()

    def next_firing(self) -> int | None:
        after = MIN_TIMESTAMP if self._may_be_over else self.progress
        return self._slicing.next_firing(self._store.ends, after) if self._store else None

    def add(self, ends: NDArray[np.int64], columns: Columns) -> None:
        """Add partial rows to the slices with these ends; late ones are counted and dropped."""
        slicing, is_event_time = self._slicing, self._window.is_event_time
        for end, piece in split_by(ends, columns):
            if is_event_time and slicing.fires_at(slicing.last_window(end)) <= self.progress:
                self.count_late(int(plain(piece[self._partials.rows_column]).sum()))
            else:
                self._store.add(end, piece)
                self._running.changed(end)
        self._store.keep_to_memory()

    def advance(self, after: int, until: int) -> Iterator[Element]:
        ends = self._store.ends
        windows: list[tuple[int, list[Columns]]] = []
        rows = 0
        for window, first, stop in self._slicing.windows_due(ends, after, until):
            pieces = self._running.pieces(window, ends[first:stop])
            windows.append((window, pieces))
            rows += sum(len(piece[0]) for piece in pieces)
            if rows >= FIRING_ROWS:
                yield from self._fired(windows)
                windows, rows = [], 0
        if windows:
            yield from self._fired(windows)
        for end in ends:
            if self._slicing.fires_at(self._slicing.last_window(end)) > until:
                break
            self._store.drop(end)

    def _fired(self, windows: list[tuple[int, list[Columns]]]) -> Iterator[ArrowBatch]:
        """The results of windows, given as (end, pieces of partial rows)."""
        ends = np.array([end for end, _ in windows], dtype=np.int64)
        starts = np.array([self._slicing.window_start(end) for end, _ in windows], dtype=np.int64)
        if len(windows) == 1:
            for part in self._store.in_parts(windows[0][1]):
                columns = self._store.joined(part)
                own = np.zeros(len(columns[0]), dtype=np.int64)
                yield self._given(columns, starts[own], ends[own])
            return
        width = self._partials.width
        columns = concatenated([piece for _, some in windows for piece in some])
        of = np.repeat(np.arange(len(windows)), [sum(len(piece[0]) for piece in some) for _, some in windows])
        groups = grouped([column(of, pa.int64()), *columns[:width]], len(of))
        own = plain(groups.keys.pop(0))
        yield self._given(self._partials.joined(columns, groups), starts[own], ends[own])

    def _given(self, columns: Columns, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> ArrowBatch:
        """Rows of the result; where rows brought the starts of their windows, these count."""
        if self._window.start_column is not None:
            starts = plain(columns[self._partials.dealt_width].cast(pa.timestamp("ms")))
        return self.result(columns, starts, ends)


class GlobalWindowAggregate(SlicedWindowAggregate):
    """The second phase: takes the partial rows that `LocalWindowAggregate` gives, dealt by their `key_names`.

    Args:
        aggregation: as for the first phase.
    """

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; partial rows are columns"
        if len(batch):
            *columns, ends = batch.data.columns
            self.add(plain(ends), columns)
        return ()


class WindowAggregate(SlicedWindowAggregate):
    """Both phases in one: takes rows that are dealt by the key.

    Args:
        aggregation: what is computed, over windows that are not sessions, of event or processing time.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        super().__init__(aggregation)
        self._input = aggregation.input
        self._rows = SlicedRows(aggregation, self._partials, self._slicing)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        if rows.num_rows:
            self.add(*self._rows.partial(rows, self.now_ms))
        return ()


__all__ = ["FIRING_ROWS", "GlobalWindowAggregate", "SlicedWindowAggregate", "WindowAggregate"]
