"""Rows that wait to be worked together, as Flink's mini-batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
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
from rayflink.common.records.row_kinds import has_kinds, with_kinds
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import EventHandler, PreBarrier, ProcessingTimers

from ..plan.groups import MiniBatch
from .keyed_state.frame_snapshots import one_batch


class MiniBatchRows:
    """Rows that wait until there are many, or have waited long enough.

    Args:
        limits: when that is.
    """

    def __init__(self, limits: MiniBatch) -> None:
        self._limits = limits
        self._batches: dict[int, list[pa.RecordBatch]] = {}
        self._rows = 0
        self.due_ms: int | None = None
        """Epoch milliseconds at which they have waited long enough; None: no row waits."""

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, rows: pa.RecordBatch, now_ms: int, input_index: int = 0) -> bool:
        """Add rows, at least one, and return whether there are enough."""
        if self.due_ms is None:
            self.due_ms = now_ms - now_ms % self._limits.latency_ms + self._limits.latency_ms
        self._batches.setdefault(input_index, []).append(rows)
        self._rows += rows.num_rows
        return self._rows >= self._limits.rows

    def take(self) -> pa.RecordBatch:
        """Return all rows of the only input; none waits behind that."""
        return self.take_each()[0]

    def take_each(self) -> dict[int, pa.RecordBatch]:
        """Return all rows by the number of their input; none waits behind that."""
        batches, self._batches, self._rows, self.due_ms = self._batches, {}, 0, None
        return {number: merged_rows(parts) for number, parts in batches.items()}


def merged_rows(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches as one; rows are insertions where other batches have the kinds of rows."""
    if any(has_kinds(batch.schema) for batch in batches):
        batches = [batch if has_kinds(batch.schema) else with_kinds(batch, np.zeros(batch.num_rows, dtype=np.int8))
                   for batch in batches]  # fmt: skip
    return one_batch(batches)


class WaitingOperator(Operator, ProcessingTimers, EventHandler, PreBarrier):
    """An operator that works the rows of a mini-batch together, of one input or of several.

    Rows are worked before a barrier, so they are no state. A watermark waits for the rows before it.

    Args:
        limits: of a mini-batch.
    """

    def __init__(self, limits: MiniBatch) -> None:
        self.waiting = MiniBatchRows(limits)
        """The rows that wait."""
        self._watermark = MIN_TIMESTAMP

    @abstractmethod
    def fold_waiting(self) -> Iterable[Element]:
        """Called to take the rows that wait, at least one. Return what they emit."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        is_full = len(batch) > 0 and self.waiting.add(batch.data, self.ctx.clock.now_ms(), input_index)
        return self._fold() if is_full else ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self.waiting and watermark.timestamp < MAX_TIMESTAMP:
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
        return self.waiting.due_ms

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return self._fold()

    def _fold(self) -> Iterator[Element]:
        if self.waiting:
            yield from self.fold_waiting()
        if self._watermark > MIN_TIMESTAMP:
            watermark, self._watermark = Watermark(self._watermark), MIN_TIMESTAMP
            yield watermark


class MiniBatchOperator(WaitingOperator):
    """An operator of one input that works the rows of a mini-batch together.

    Args:
        limits: of a mini-batch.
    """

    @abstractmethod
    def fold(self, rows: pa.RecordBatch) -> Iterable[Element]:
        """Called with the rows of a mini-batch. Return what they emit."""

    def fold_waiting(self) -> Iterable[Element]:
        return self.fold(self.waiting.take())


__all__ = ["MiniBatchOperator", "MiniBatchRows", "WaitingOperator", "merged_rows"]
