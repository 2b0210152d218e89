"""Window aggregation of rows dealt by key: the state of slices, and the firing of windows by watermark or clock.

A row is late when all windows of its slice have fired; it is then counted and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.common.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot

from .frame_snapshots import FrozenFrame, restored_frames
from .grouping import grouped
from .partials import Partials, concatenated
from .progress import progress_entry, restored_progress
from .reductions import column, plain
from .slice_frames import SLICE_FIELDS, frame_of, frames_into
from .slice_store import Columns, SliceStore, split_by
from .sliced_rows import SlicedRows
from .slicing import Slicing
from .window_spec import WindowAggregation
from .zones import instant_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRING_ROWS = 65_536
"""Partial rows that are worked at once at least, where more than one window fires."""


class SlicedWindowAggregate(Operator):
    """What both ways to aggregate windows that are made of slices share.

    Args:
        aggregation: what is computed, over windows that are not sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        self._window = aggregation.window
        self._partials = Partials(aggregation)
        self._slicing = Slicing(aggregation.window)
        self._store = SliceStore(self._partials, not self._slicing.is_alone)
        self._schema = aggregation.result_schema
        self.progress = MIN_TIMESTAMP
        """The watermark, or the last millisecond of processing time that is over."""

    # life

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.progress = restored_progress(snapshots, self.ctx)
        schema = self._state_schema
        for _, frame in restored_frames(snapshots, schema, self.ctx):
            frames_into(self._store, frame)

    @property
    def _state_schema(self) -> pa.Schema:
        return pa.schema([*self._partials.schema, *SLICE_FIELDS])

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        frame = frame_of(self._store, self._state_schema)
        groups = FrozenFrame(frame, self._partials.width, self.ctx.max_parallelism, self.progress)
        return OperatorSnapshot(lists=progress_entry(self.progress, self.ctx), raw_keyed=groups)

    # rows

    def add(self, ends: NDArray[np.int64], columns: Columns) -> None:
        """Add partial rows to the slices with these ends; late ones are counted and dropped."""
        slicing, is_event_time = self._slicing, self._window.is_event_time
        for end, piece in split_by(ends, columns):
            if is_event_time and slicing.fires_at(slicing.last_window(end)) <= self.progress:
                if self._late is not None:
                    self._late.inc(int(plain(piece[self._partials.rows_column]).sum()))
            else:
                self._store.add(end, piece)

    # time

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._window.is_event_time and watermark.timestamp > self.progress:
            yield from self._advance(watermark.timestamp)
        yield watermark

    def next_processing_time(self) -> int | None:
        if self._window.is_event_time or not self._store:
            return None
        due = self._slicing.next_firing(self._store.ends, self.progress)
        return None if due is None else due + 1

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return () if self._window.is_event_time or now_ms <= self.progress else self._advance(now_ms - 1)

    def _advance(self, until: int) -> Iterator[Element]:
        """Fire the windows that are over at this progress, and forget slices that have no other."""
        after, self.progress = self.progress, until
        ends = self._store.ends
        windows: list[tuple[int, list[Columns]]] = []
        rows = 0
        for window, first, stop in self._slicing.windows_due(ends, after, until):
            pieces = [piece for end in ends[first:stop] for piece in self._store.pieces(end)]
            windows.append((window, pieces))
            rows += sum(len(piece[0]) for piece in pieces)
            if rows >= FIRING_ROWS:
                yield self._fired(windows)
                windows, rows = [], 0
        if windows:
            yield self._fired(windows)
        for end in ends:
            if self._slicing.fires_at(self._slicing.last_window(end)) > until:
                break
            self._store.drop(end)

    def _fired(self, windows: list[tuple[int, list[Columns]]]) -> ArrowBatch:
        """The results of windows."""
        pieces = [piece for _, some in windows for piece in some]
        width = self._partials.width
        columns = concatenated(pieces)
        own: Any
        if len(windows) == 1:
            if len(pieces) > 1:
                columns = self._partials.joined(columns, grouped(columns[:width], len(columns[0])))
            own = np.zeros(len(columns[0]), dtype=np.int64)
        else:
            of = np.repeat(np.arange(len(windows)), [sum(len(piece[0]) for piece in some) for _, some in windows])
            groups = grouped([column(of, pa.int64()), *columns[:width]], len(of))
            own = plain(groups.keys.pop(0))
            columns = self._partials.joined(columns, groups)
        return self._result(columns, [window for window, _ in windows], own)

    def _result(self, columns: Columns, ends: list[int], own: NDArray[np.int64]) -> ArrowBatch:
        zone, start = self._window.shift_zone, self._slicing.window_start
        starts = np.array([start(end) for end in ends], dtype=np.int64)[own]
        times = np.array([instant_of(end - 1, zone) for end in ends], dtype=np.int64)[own]
        made = self._partials.results(columns)
        local = pa.timestamp("ms")
        made += [column(starts, local), column(np.array(ends, dtype=np.int64)[own], local)]
        made.append(column(times, pa.timestamp("ms", self._schema.types[-1].tz)).cast(self._schema.types[-1]))
        batch = pa.RecordBatch.from_arrays(made, schema=self._schema)
        return ArrowBatch(batch, times if self._window.is_event_time else None)


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
        self._rows = SlicedRows(aggregation, self._partials, self._slicing)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = self._rows.rows(batch)
        if rows.num_rows:
            self.add(*self._rows.partial(rows, max(self.ctx.clock.now_ms(), self.progress + 1)))
        return ()


__all__ = ["FIRING_ROWS", "GlobalWindowAggregate", "SlicedWindowAggregate", "WindowAggregate"]
