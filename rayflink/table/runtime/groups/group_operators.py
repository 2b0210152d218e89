"""The operators of GROUP BY over a stream: each row by itself, or the rows of a mini-batch together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    ArrowBatch,
    Batch,
    Element,
    Watermark,
    WatermarkStatus,
)
from rayflink.operators.capabilities import EventHandler, PreBarrier, ProcessingTimers

from ...plan.groups import MiniBatch
from .group_changes import GroupChanges, GroupSpec
from .mini_batch import MiniBatchRows
from .table_state import TableOperator


class StreamGroupOperator(TableOperator):
    """Emits the changes of the results of groups, as each row of the input makes them.

    Args:
        spec: the groups.
        schema: of the result.
        is_folded: the changes of a group in a batch are one.
    """

    def __init__(self, spec: GroupSpec, schema: pa.Schema, is_folded: bool = False) -> None:
        self._changes = GroupChanges(spec, schema, is_folded)
        super().__init__(self._changes.state)

    def add(self, rows: pa.RecordBatch) -> Iterator[Element]:
        for changes in self._changes.add(rows):
            yield ArrowBatch(changes)


class MiniBatchGroupOperator(StreamGroupOperator, ProcessingTimers, EventHandler, PreBarrier):
    """Emits one change of the result of a group for all rows of a mini-batch.

    Rows are worked before a barrier, so they are no state. A watermark waits for the rows before it.

    Args:
        spec: the groups.
        schema: of the result.
        limits: of a mini-batch.
    """

    def __init__(self, spec: GroupSpec, schema: pa.Schema, limits: MiniBatch) -> None:
        super().__init__(spec, schema, True)
        self._waiting = MiniBatchRows(limits)
        self._watermark = MIN_TIMESTAMP

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        is_full = len(batch) > 0 and self._waiting.add(batch.data, self._state.now_ms)
        return self._fold() if is_full else ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._waiting and watermark.timestamp < MAX_TIMESTAMP:
            self._watermark = watermark.timestamp
            return
        yield from self._fold()
        yield watermark

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        yield from self._fold()
        yield status

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        return self._fold()

    def finish(self) -> Iterable[Element]:
        return self._fold()

    def next_processing_time(self) -> int | None:
        return self._waiting.due_ms

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return self._fold()

    def _fold(self) -> Iterator[Element]:
        if self._waiting:
            yield from self.add(self._waiting.take())
        if self._watermark > MIN_TIMESTAMP:
            watermark, self._watermark = Watermark(self._watermark), MIN_TIMESTAMP
            yield watermark


__all__ = ["MiniBatchGroupOperator", "StreamGroupOperator"]
