"""The buffer before an `upsert-kafka` sink: of the changes of a key only the last is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.common.records.row_kinds import has_kinds, with_kinds
from rayflink.common.types import RowKind
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import PreBarrier, ProcessingTimers

from .upsert_rows import as_upserts, last_of_each_key

if TYPE_CHECKING:
    import pyarrow


class UpsertBuffer(Operator, ProcessingTimers, PreBarrier):
    """Collects changes and emits the last of each key: after a number of rows, an interval, or at a checkpoint.

    It has no state, as a checkpoint finds it empty.

    Args:
        key: names of the columns of the key.
        most_rows: changes that are collected at most.
        interval_ms: time after the first of them at which they are emitted.
    """

    def __init__(self, key: Sequence[str], most_rows: int, interval_ms: int) -> None:
        self._key, self._most_rows, self._interval_ms = tuple(key), most_rows, interval_ms
        self._batches: list[pyarrow.RecordBatch] = []
        self._rows = 0
        self._due_ms: int | None = None

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        changes = as_upserts(batch.data, self._key)
        if not changes.num_rows:
            return
        if self._due_ms is None:
            self._due_ms = self.ctx.clock.now_ms() + self._interval_ms
        self._batches.append(changes)
        self._rows += changes.num_rows
        if self._rows >= self._most_rows:
            yield from self._flush()

    def next_processing_time(self) -> int | None:
        return self._due_ms

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return self._flush()

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        return self._flush()

    def finish(self) -> Iterable[Element]:
        return self._flush()

    def _flush(self) -> list[Element]:
        import pyarrow

        batches, self._batches = self._batches, []
        self._rows, self._due_ms = 0, None
        if not batches:
            return []
        if any(has_kinds(batch.schema) for batch in batches):
            batches = [batch if has_kinds(batch.schema) else with_kinds(batch, RowKind.INSERT) for batch in batches]
        merged = pyarrow.Table.from_batches(batches).combine_chunks().to_batches()[0]
        return [ArrowBatch(last_of_each_key(merged, self._key))]


__all__ = ["UpsertBuffer"]
