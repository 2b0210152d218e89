"""Joins of streams that work the changes of a mini-batch together.

The changes of each input become those that are left of them before they touch the state, and so do the changes of the
result before they are emitted: a result that holds only in between is never seen.

Source: apache/flink MiniBatchStreamingJoinOperator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.operators.base import OperatorContext

from ...plan.groups import MiniBatch
from ...plan.joins import JoinKind
from ..keyed_state.stored_table import StoredTables
from ..keyed_state.table_operator import KeyedTableOperator
from ..mini_batch import WaitingOperator, merged_rows
from .folded_changes import folded_equal
from .multi_join import MultiJoinOperator
from .multi_join_rows import MultiJoinSpec
from .stream_join import StreamJoinOperator, StreamJoinSpec

_MOST_ROWS = 1 << 18
"""Changes of the result that are folded together at most."""


class MiniBatchJoinOperator(WaitingOperator, KeyedTableOperator):
    """Joins rows of changing inputs, those of a mini-batch together.

    Args:
        spec: of the join.
        limits: of a mini-batch; its rows are those of all inputs.
    """

    def __init__(self, spec: StreamJoinSpec | MultiJoinSpec, limits: MiniBatch) -> None:
        WaitingOperator.__init__(self, limits)
        self._join: StreamJoinOperator | MultiJoinOperator
        if isinstance(spec, StreamJoinSpec):
            self._join = StreamJoinOperator(spec)
            is_right = spec.join.kind is JoinKind.RIGHT
            self._order: Sequence[int] = (0, 1) if is_right else (1, 0)  # rows that others wait for come first
        else:
            self._join = MultiJoinOperator(spec)
            self._order = range(len(spec.sides))[::-1]

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._join.setup(ctx)

    def open(self) -> None:
        self._join.open()

    def close(self) -> None:
        self._join.close()

    @property
    def stored(self) -> StoredTables:
        return self._join.stored

    def fold_waiting(self) -> Iterator[Element]:
        """Yield the changes of the result that are left of a mini-batch."""
        changes: list[pa.RecordBatch] = []
        waiting = self.waiting.take_each()
        for number in self._order:
            rows = waiting.get(number)
            rows = None if rows is None else self._join.sides[number].folded(rows)
            for batch in () if rows is None or not rows.num_rows else self._join.process(ArrowBatch(rows), number):
                assert isinstance(batch, ArrowBatch), "joins emit rows alone"
                changes.append(batch.data)
                if sum(part.num_rows for part in changes) >= _MOST_ROWS:
                    yield from _folded(changes)
                    changes = []
        yield from _folded(changes)


def _folded(changes: Sequence[pa.RecordBatch]) -> Iterator[Element]:
    rows = folded_equal(merged_rows(changes)) if changes else None
    if rows is not None and rows.num_rows:
        yield ArrowBatch(rows)


__all__ = ["MiniBatchJoinOperator"]
