"""ORDER BY over all rows of a bounded query, and LIMIT over those of any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rayflink.common.records.batches import MAX_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorSnapshot
from rayflink.operators.capabilities import Satisfiable
from rayflink.state.descriptors import ListStateDescriptor
from rayflink.state.operator_state import OperatorStateStore

from ..keyed_state.frame_memory import FrameMemory
from .ordering import OrderKey
from .sorted_rows import SortedRows

COUNTS = "rows left out and given"
"""Name of the state of a LIMIT."""


class SortOperator(Operator):
    """Gives all rows at their end in an order, or the first of them.

    A batch query starts anew when it fails, so the rows are no state.

    Args:
        keys: the order.
        offset: rows to leave out first.
        limit: rows to give at most; None: all.
    """

    def __init__(self, keys: Sequence[OrderKey], offset: int, limit: int | None) -> None:
        self._sorted = SortedRows(keys, None if limit is None else offset + limit)
        self._offset = offset
        self._memory: FrameMemory | None = None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._memory = FrameMemory(self.ctx)
        self._sorted.open(self._memory)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        self._sorted.add(batch.data)
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return ()  # rows come behind the last one, which is given then

    def finish(self) -> Iterator[Element]:
        left_out = self._offset
        for block in self._sorted:
            skipped = min(left_out, block.num_rows)
            left_out -= skipped
            if skipped < block.num_rows:
                yield ArrowBatch(block.slice(skipped))
        yield Watermark(MAX_TIMESTAMP)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()


class LocalLimitOperator(Operator, Satisfiable):
    """Gives rows as they come, without the first ones, and no more than a limit; what it counts is no state.

    Args:
        offset: rows to leave out first.
        limit: rows to give at most; None: all others.
    """

    def __init__(self, offset: int, limit: int | None) -> None:
        self._offset, self._limit = offset, limit
        self._skipped = self._given = 0


    @property
    def is_satisfied(self) -> bool:
        return self._limit is not None and self._given >= self._limit

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = len(batch)
        first = min(self._offset - self._skipped, rows)
        stop = rows if self._limit is None else min(first + self._limit - self._given, rows)
        self._skipped += first
        self._given += stop - first
        return (batch.slice(first, stop),) if first < stop else ()


class LimitOperator(LocalLimitOperator):
    """The same for all rows of a stream, in one subtask: the rows that were given are counted in checkpoints."""

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._store = OperatorStateStore([snapshot.lists for snapshot in snapshots], self.ctx.operator_id)
        self._counts = self._store.get_list_state(ListStateDescriptor(COUNTS))
        for skipped, given in self._counts.get():
            self._skipped, self._given = min(skipped, self._offset), given
        if self._limit is not None:
            self._given = min(self._given, self._limit)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        self._counts.update([(self._skipped, self._given)])
        return OperatorSnapshot(lists=self._store.snapshot())


__all__ = ["LimitOperator", "LocalLimitOperator", "SortOperator"]
