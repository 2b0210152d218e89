"""ORDER BY and LIMIT over all rows of a bounded query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rayflink.common.batches import MAX_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorSnapshot

from .frame_memory import FrameMemory
from .ordering import OrderKey
from .sorted_rows import SortedRows


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


class LimitOperator(Operator):
    """Gives rows as they come, without the first ones, and no more than so many.

    Args:
        offset: rows to leave out first.
        limit: rows to give at most; None: all others.
    """

    def __init__(self, offset: int, limit: int | None) -> None:
        self._left_out, self._left = offset, limit

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = len(batch)
        first = min(self._left_out, rows)
        stop = rows if self._left is None else min(first + self._left, rows)
        self._left_out -= first
        if self._left is not None:
            self._left -= stop - first
        return (batch.slice(first, stop),) if first < stop else ()


__all__ = ["LimitOperator", "SortOperator"]
