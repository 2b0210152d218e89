"""The operator of all windows in SQL: it leads time to the windows, and their state to snapshots and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_OPEN_WINDOWS_DROPPED
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.capabilities import ProcessingTimers

from ..aggregates.own_aggregates import OwnAggregates
from ..aggregates.reductions import to_numpy
from ..aggregates.window_spec import WindowSpec
from ..keyed_state.frame_memory import Columns
from ..keyed_state.frame_snapshots import ABOUT, FrozenFrames, frame_of, restored_frames
from ..progress import progress_entry, restored_progress
from .window_contents import WindowContents
from .window_time import WindowTime


class TableWindowOperator(Operator, ProcessingTimers):
    """Collects rows in windows, and emits the results of the windows when they are over.

    Args:
        window: which windows.
        contents: the windows with their rows.
        functions: the user's own, which `contents` calls.
    """

    def __init__(
        self, window: WindowSpec, contents: WindowContents, functions: OwnAggregates | None = None
    ) -> None:
        self._window, self.contents, self._functions = window, contents, functions or OwnAggregates(())
        self._time = WindowTime(window.is_event_time)
        about = f"{window.describe()} of {contents.partials.describe()}"
        fields = [*contents.partials.schema, *contents.state_fields]
        self._state_schema: pa.Schema = pa.schema(fields, {ABOUT: about.encode()})
        self._ahead: list[tuple[int, pa.RecordBatch]] = []
        """Restored rows of subtasks for which time had come further: until then none of their windows may fire."""
        self._may_be_over = not window.is_event_time and window.end_column is not None
        """True if rows may come for windows that are over by the clock: those of an operator before this one."""

    # life

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._time.setup(ctx)
        self._functions.open_in(ctx)
        counts_open = ctx.metrics is not None and not self._window.is_event_time
        self._open = ctx.metrics.counter(NUM_RECORDS_IN_OPEN_WINDOWS_DROPPED) if counts_open else None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._time.progress = restored_progress(snapshots, self.ctx)
        self.contents.open(self.ctx, self._time)
        self.contents.add_lists(snapshots)
        for progress, frame in restored_frames(snapshots, self._state_schema, self.ctx):
            if progress <= self._time.progress or self.contents.restores_ahead:
                self.contents.add_frame(frame)
            elif progress < MAX_TIMESTAMP:  # at the end of all data every window has fired
                self._ahead.append((progress, frame))

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        progress = self._time.progress
        rows = partial(_frame, self.contents.frame(), self._state_schema)
        frames: list[tuple[int, Callable[[], pa.RecordBatch]]] = [(progress, rows)]
        frames += ((until, partial(_itself, frame)) for until, frame in self._ahead)
        groups = FrozenFrames(frames, self.contents.partials.partition_width, self.ctx.max_parallelism)
        return OperatorSnapshot(lists={**progress_entry(progress, self.ctx), **self.contents.lists()}, raw_keyed=groups)

    def finish(self) -> Iterable[Element]:
        """Drop windows of processing time that are open at the end, as Flink does, and count their rows."""
        if self._open is not None:
            pieces: list[Columns] = [*self.contents.pieces(), *(frame.columns for _, frame in self._ahead)]
            counts = self.contents.partials.rows_column
            self._open.inc(sum(int(to_numpy(piece[counts]).sum()) for piece in pieces))
        return ()

    def close(self) -> None:
        self.contents.close()
        self._functions.close()

    # rows

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return self.contents.add(batch)

    # time

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._window.is_event_time and watermark.timestamp > self._time.progress:
            yield from self._advance(watermark.timestamp)
        yield watermark

    def next_processing_time(self) -> int | None:
        """Return the millisecond after a window's last one, or that at which a window emits results before its end."""
        firing = None if self._window.is_event_time else self.contents.next_firing(self._fired_until)
        refresh = self.contents.next_refresh_ms()
        if firing is None:
            return refresh
        return firing + 1 if refresh is None else min(firing + 1, refresh)

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        yield from self.contents.refresh(now_ms)
        progress = self._time.progress
        if not self._window.is_event_time and (now_ms - 1 > progress or self._may_be_over):
            yield from self._advance(max(now_ms - 1, progress))

    @property
    def _fired_until(self) -> int:
        """Return the progress of time up to which no window can fire any more."""
        return MIN_TIMESTAMP if self._may_be_over else self._time.progress

    def _advance(self, until: int) -> Iterator[Element]:
        after, self._time.progress = self._fired_until, until
        while self._ahead and self._ahead[0][0] <= until:
            progress, frame = self._ahead.pop(0)
            yield from self.contents.advance(after, progress)
            self.contents.add_frame(frame)
            after = progress
        yield from self.contents.advance(after, until)


def _frame(rows: Callable[[], Columns | None], schema: pa.Schema) -> pa.RecordBatch:
    return frame_of(rows(), schema)


def _itself(frame: pa.RecordBatch) -> pa.RecordBatch:
    return frame


__all__ = ["TableWindowOperator"]
