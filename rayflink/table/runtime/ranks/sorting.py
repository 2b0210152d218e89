"""ORDER BY over all rows of a bounded query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..keyed_state.frame_memory import FrameMemory
from .bounded_operator import BoundedOperator
from .ordering import OrderKey
from .sorted_rows import SortedRows


class OrderedRows:
    """Sorts all rows, and passes on a range of them; a `BoundedRows`.

    Args:
        keys: the order.
        offset: rows to leave out first.
        limit: rows to emit at most; None: all.
    """

    def __init__(self, keys: Sequence[OrderKey], offset: int, limit: int | None) -> None:
        self._sorted = SortedRows(keys, None if limit is None else offset + limit)
        self._offset = offset

    def open(self, memory: FrameMemory) -> None:
        self._sorted.open(memory)

    def add(self, rows: pa.RecordBatch) -> None:
        self._sorted.add(rows)

    def results(self) -> Iterator[pa.RecordBatch]:
        to_skip = self._offset
        for block in self._sorted:
            skipped = min(to_skip, block.num_rows)
            to_skip -= skipped
            if skipped < block.num_rows:
                yield block.slice(skipped)


def sort(keys: Sequence[OrderKey], offset: int, limit: int | None) -> BoundedOperator:
    """Return an operator that emits all rows at their end in an order, or a range of them.

    Args:
        keys: the order.
        offset: rows to leave out first.
        limit: rows to emit at most; None: all.
    """
    return BoundedOperator(OrderedRows(keys, offset, limit))


__all__ = ["OrderedRows", "sort"]
