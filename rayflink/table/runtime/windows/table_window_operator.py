"""The common part of operators over windows: time, late rows, and snapshots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED, NUM_RECORDS_IN_OPEN_WINDOWS_DROPPED
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Element, Watermark
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.capabilities import ProcessingTimers

from ..aggregates.partial_aggregates import PartialRows
from ..aggregates.reductions import to_numpy
from ..aggregates.window_spec import WindowSpec
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import ABOUT, FrozenFrames, restored_frames
from ..progress import progress_entry, restored_progress


class TableWindowOperator(Operator, ProcessingTimers):
    """Keeps partial rows of windows that are not over, and gives their results when they are.

    Args:
        window: which windows.
        partials: what is kept of their rows.
        fields: columns of the state behind those of partial rows.
    """

    def __init__(self, window: WindowSpec, partials: PartialRows, fields: Iterable[pa.Field]) -> None:
        self._window, self._kept = window, partials
        about = f"{window.describe()} of {partials.describe()}"
        self._state_schema: pa.Schema = pa.schema([*partials.schema, *fields], {ABOUT: about.encode()})
        self.memory: FrameMemory | None = None
        self._ahead: list[tuple[int, pa.RecordBatch]] = []
        """Restored rows of subtasks for which time had come further: until then none of their windows may fire."""
        self.progress = MIN_TIMESTAMP
        """The watermark, or the last millisecond of processing time that is over."""

    def begin(self, memory: FrameMemory) -> None:
        """Keep the state to this memory from now on."""

    @abstractmethod
    def frame(self) -> Callable[[], pa.RecordBatch]:
        """Gives the rows of the state as they are now, when it is called later."""

    @abstractmethod
    def take_frame(self, frame: pa.RecordBatch) -> None:
        """Add rows of a snapshot to the state."""

    @abstractmethod
    def advance(self, after: int, until: int) -> Iterator[Element]:
        """Yield the results of windows that end after `after` and up to the progress `until`; then forget these."""

    @abstractmethod
    def next_firing(self) -> int | None:
        """Return the progress at which the next window may be over."""

    @abstractmethod
    def open_pieces(self) -> Iterable[Columns]:
        """Return the partial rows of windows that are not over."""

    # life

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)
        counts_open = ctx.metrics is not None and not self._window.is_event_time
        self._open = ctx.metrics.counter(NUM_RECORDS_IN_OPEN_WINDOWS_DROPPED) if ctx.metrics and counts_open else None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.progress = restored_progress(snapshots, self.ctx)
        self.memory = FrameMemory(self.ctx)
        self.begin(self.memory)
        for progress, frame in restored_frames(snapshots, self._state_schema, self.ctx):
            if progress <= self.progress:
                self.take_frame(frame)
            elif progress < MAX_TIMESTAMP:  # at the end of all data every window has fired
                self._ahead.append((progress, frame))

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        frames: list[tuple[int, Callable[[], pa.RecordBatch]]] = [(self.progress, self.frame())]
        frames += ((at, partial(_itself, frame)) for at, frame in self._ahead)
        groups = FrozenFrames(frames, self._kept.partition_width, self.ctx.max_parallelism)
        return OperatorSnapshot(lists=progress_entry(self.progress, self.ctx), raw_keyed=groups)

    def finish(self) -> Iterable[Element]:
        """Drop windows of processing time that are open at the end, as Flink does, and count their rows."""
        if self._open is not None:
            pieces: list[Columns] = [*self.open_pieces(), *(frame.columns for _, frame in self._ahead)]
            self._open.inc(sum(int(to_numpy(one[self._kept.rows_column]).sum()) for one in pieces))
        return ()

    def close(self) -> None:
        if self.memory is not None:
            self.memory.release()

    def count_late(self, rows: int) -> None:
        """Count rows that are dropped because their windows are over."""
        if self._late is not None and rows:
            self._late.inc(rows)

    # time

    @property
    def now_ms(self) -> int:
        """Processing time; never one whose windows have fired."""
        return max(int(self.ctx.clock.now_ms()), self.progress + 1)

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._window.is_event_time and watermark.timestamp > self.progress:
            yield from self._advance(watermark.timestamp)
        yield watermark

    def next_processing_time(self) -> int | None:
        """Return the millisecond after a window's last one."""
        due = None if self._window.is_event_time else self.next_firing()
        return None if due is None else due + 1

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        if self._window.is_event_time or (now_ms - 1 <= self.progress and not self._may_be_over):
            return ()
        return self._advance(max(now_ms - 1, self.progress))

    @property
    def _may_be_over(self) -> bool:
        """Return whether rows may come for windows that are over by the clock: those of an operator before this one."""
        return not self._window.is_event_time and self._window.end_column is not None

    def _advance(self, until: int) -> Iterator[Element]:
        after, self.progress = MIN_TIMESTAMP if self._may_be_over else self.progress, until
        while self._ahead and self._ahead[0][0] <= until:
            at, frame = self._ahead.pop(0)
            yield from self.advance(after, at)
            self.take_frame(frame)
            after = at
        yield from self.advance(after, until)


def _itself(frame: pa.RecordBatch) -> pa.RecordBatch:
    return frame


__all__ = ["TableWindowOperator"]
