"""LIMIT over the rows of any query: rows pass as they come, until there are enough."""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.common.records.batches import Batch, Element
from rayflink.operators.base import Operator, OperatorSnapshot
from rayflink.operators.capabilities import Satisfiable
from rayflink.state.descriptors import ListStateDescriptor
from rayflink.state.operator_state import OperatorStateStore

COUNTS = "rows left out and given"
"""Name of the state of a LIMIT."""


class LocalLimitOperator(Operator, Satisfiable):
    """Passes rows as they come, without the first ones, and no more than a limit; its counts are no state.

    Args:
        offset: rows to leave out first.
        limit: rows to pass at most; None: all others.
    """

    def __init__(self, offset: int, limit: int | None) -> None:
        self._offset, self._limit = offset, limit
        self._skipped = self._passed = 0

    @property
    def is_satisfied(self) -> bool:
        return self._limit is not None and self._passed >= self._limit

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = len(batch)
        first = min(self._offset - self._skipped, rows)
        stop = rows if self._limit is None else min(first + self._limit - self._passed, rows)
        self._skipped += first
        self._passed += stop - first
        return (batch.slice(first, stop),) if first < stop else ()


class LimitOperator(LocalLimitOperator):
    """Limits all rows of a stream, in one subtask: checkpoints contain the number of rows that were passed."""

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._store = OperatorStateStore([snapshot.lists for snapshot in snapshots], self.ctx.operator_id)
        self._counts = self._store.get_list_state(ListStateDescriptor(COUNTS))
        for skipped, passed in self._counts.get():
            self._skipped, self._passed = min(skipped, self._offset), passed
        if self._limit is not None:
            self._passed = min(self._passed, self._limit)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        self._counts.update([(self._skipped, self._passed)])
        return OperatorSnapshot(lists=self._store.snapshot())


__all__ = ["COUNTS", "LimitOperator", "LocalLimitOperator"]
