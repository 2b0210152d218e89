"""The operators that follow the first rows of each key of a stream: of each batch, or of a mini-batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ...plan.groups import MiniBatch
from ..keyed_state.stored_table import StoredTable
from ..keyed_state.table_operator import KeyedTableOperator
from ..mini_batch import MiniBatchOperator
from .top_rows import TopRows, TopSpec


class TopRowsOperator(KeyedTableOperator):
    """Emits the changes of the first rows of keys, those of a batch as one.

    Args:
        spec: the rows.
        schema: of the result.
    """

    def __init__(self, spec: TopSpec, schema: pa.Schema) -> None:
        self._top = TopRows(spec, schema)

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._stored = self._top.open(ctx)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        self._top.has_restored()

    def close(self) -> None:
        self._top.close()

    @property
    def stored(self) -> StoredTable:
        return self._stored

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        return self.add(batch.data) if len(batch) else ()

    def add(self, rows: pa.RecordBatch) -> Iterator[Element]:
        """Yield the changes that rows make, at least one."""
        changes = self._top.add(rows)
        if changes.num_rows:
            yield ArrowBatch(changes)


class MiniBatchTopRowsOperator(MiniBatchOperator, TopRowsOperator):
    """Emits the changes of the first rows of keys, those of a mini-batch as one.

    Args:
        spec: the rows.
        schema: of the result.
        limits: of a mini-batch.
    """

    def __init__(self, spec: TopSpec, schema: pa.Schema, limits: MiniBatch) -> None:
        TopRowsOperator.__init__(self, spec, schema)
        MiniBatchOperator.__init__(self, limits)

    def fold(self, rows: pa.RecordBatch) -> Iterable[Element]:
        return self.add(rows)


__all__ = ["MiniBatchTopRowsOperator", "TopRowsOperator"]
