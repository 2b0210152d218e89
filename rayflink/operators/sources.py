"""The operator at the head of a stream: it polls a source's reader and keeps the splits in its state."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from itertools import chain
from typing import Any

from rayflink.common.connector_base.source import END, PENDING, ReaderContext, Source, SourceReader
from rayflink.common.functions.checkpointed_function import checkpointed_of
from rayflink.common.records.batches import Element, Tagged, Watermark, WatermarkStatus
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.user_types import SourceSplit

from .base import OperatorContext, OperatorSnapshot, SourceOperator
from .capabilities import CheckpointListener, ProcessingTimers, SplitReceiver
from .event_time.source_watermarks import SourceWatermarks
from .event_time.watermark_operator import is_progressive
from .function_state import FunctionState
from .latency import LatencyMarks
from .user_function import UserCode

SPLITS_STATE = "source-splits"


class ReaderSourceOperator(SourceOperator, ProcessingTimers, SplitReceiver, CheckpointListener):
    """Runs the reader of a `Source`.

    It asks the coordinator for a split when it opens and whenever its reader has used up those it had. Latency markers
    it sends by itself, whatever its reader does.

    Args:
        source: what to read.
        watermark_strategy: gives the records timestamps and makes the watermarks; None emits what the source gives.
    """

    def __init__(self, source: Source, watermark_strategy: WatermarkStrategy | None = None) -> None:
        self._source = source
        self._timestamps = None if watermark_strategy is None else SourceWatermarks(watermark_strategy)
        self._reader: SourceReader | None = None
        self._restored: list[Any] = []
        self._asked = False
        self._no_more = False
        self._listens = False
        self._snapshots: dict[int, list[SourceSplit]] = {}

    @property
    def source(self) -> Source:
        """Return the source to read; the coordinator creates its enumerator."""
        return self._source

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._marks = LatencyMarks(ctx)
        self._is_batch = not is_progressive(ctx.config)
        if self._timestamps is not None:
            self._timestamps.setup(ctx)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        for snapshot in snapshots:
            _, entries = snapshot.lists.get(SPLITS_STATE, ("split", ()))
            self._restored.extend(map(pickle.loads, entries))
        self._function_state = FunctionState(self.ctx, snapshots, checkpointed_of(self._source))
        self._function_state.initialize()
        if self._timestamps is not None:
            self._timestamps.initialize_state(snapshots)

    def open(self) -> None:
        if self._timestamps is not None:
            self._timestamps.open()
        ctx = self.ctx
        reader_ctx = ReaderContext(
            ctx.subtask, ctx.parallelism, ctx.clock, ctx.metrics, ctx.config, ctx.send_source_event, ctx.checkpointing
        )
        with UserCode(self.ctx, "open"):
            self._reader = self._source.configured(ctx.config).create_reader(reader_ctx)
            self._reader.start()
            if self._restored:
                self._reader.add_splits(self._restored)
        self._restored = []
        self._listens = type(self._reader).notify_checkpoint_complete is not SourceReader.notify_checkpoint_complete
        self._splits_changed()
        self._ask_if_needed()

    def poll(self, max_records: int) -> Iterable[Element] | None:
        reader = self._open_reader()
        if self._timestamps is not None and self._timestamps.waits_for_others:
            return ()
        with UserCode(self.ctx, "poll"):
            answer = reader.poll(max_records)
        self._splits_changed()
        if answer is END:
            return None
        self._ask_if_needed()
        if answer is PENDING:
            return ()
        element: Any = answer
        if self._is_batch and isinstance(element, Watermark | WatermarkStatus):
            return ()
        if self._timestamps is None or isinstance(element, Tagged):
            return (element,)
        if hasattr(element, "slice"):
            return self._timestamps.work(element, reader)
        if isinstance(element, WatermarkStatus):
            return self._timestamps.process_status(element)
        return self._timestamps.process_watermark(element)

    def next_poll_ms(self) -> int | None:
        if self._timestamps is not None and self._timestamps.waits_for_others:
            return None
        return None if self._reader is None else self._reader.next_poll_ms()

    def watermark_announced(self, max_allowed: int) -> None:
        if self._timestamps is not None:
            self._timestamps.announced(max_allowed, self._open_reader())

    def _splits_changed(self) -> None:
        if self._timestamps is not None:
            self._timestamps.follow(self._open_reader())

    def add_splits(self, splits: list[Any]) -> None:
        self._asked = False
        with UserCode(self.ctx, "add_splits"):
            self._open_reader().add_splits(splits)
        self._splits_changed()

    def no_more_splits(self) -> None:
        self._no_more = True
        with UserCode(self.ctx, "notify_no_more_splits"):
            self._open_reader().notify_no_more_splits()

    def next_processing_time(self) -> int | None:
        times = (self._marks.next_ms, None if self._timestamps is None else self._timestamps.next_processing_time())
        return min((due for due in times if due is not None), default=None)

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        marks = self._marks.due(now_ms)
        return marks if self._timestamps is None else chain(marks, self._timestamps.on_processing_time(now_ms))

    def finish(self) -> Iterable[Element]:
        return () if self._timestamps is None else self._timestamps.finish()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        functions = self._function_state.snapshot(checkpoint_id)
        inner = None if self._timestamps is None else self._timestamps.snapshot_state(checkpoint_id)
        with UserCode(self.ctx, "snapshot_state"):
            splits = self._open_reader().snapshot_state()
        if self._listens:
            self._snapshots[checkpoint_id] = splits
        entries = tuple(map(to_bytes, splits))
        lists = {SPLITS_STATE: ("split", entries)}
        for part in (inner, functions):
            lists |= {} if part is None else part.lists
        states = () if functions is None else functions.states
        return OperatorSnapshot({} if inner is None else inner.keyed, lists, states=states)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        splits = self._snapshots.pop(checkpoint_id, None)
        self._snapshots = {number: snapshot for number, snapshot in self._snapshots.items() if number > checkpoint_id}
        if splits is not None and self._reader is not None:
            with UserCode(self.ctx, "notify_checkpoint_complete"):
                self._reader.notify_checkpoint_complete(checkpoint_id, splits)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._snapshots.pop(checkpoint_id, None)

    def close(self) -> None:
        reader, self._reader = self._reader, None
        try:
            if reader is not None:
                with UserCode(self.ctx, "close"):
                    reader.close()
        finally:
            if self._timestamps is not None:
                self._timestamps.close()

    def _ask_if_needed(self) -> None:
        if self._asked or self._no_more or not self._open_reader().needs_split():
            return
        if self.ctx.request_split is None:
            raise RuntimeError(f"source {self.ctx.operator_name!r} has no coordinator to ask for splits")
        self._asked = True
        self.ctx.request_split()

    def _open_reader(self) -> SourceReader:
        assert self._reader is not None, "the source operator is not open"
        return self._reader
