"""The operator that stores all rows of each key of a table, and shows the last one."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.operators.base import OperatorSnapshot

from ..groups.table_state import TableOperator
from .last_row_operators import UNKNOWN_DELETES
from .materialized_rows import MaterializedRows, MaterializeSpec


class MaterializeOperator(TableOperator):
    """Emits the last row of each key of a table: insertions, updates without the row before, and deletions.

    Args:
        spec: the rows.
        schema: of the result.
    """

    def __init__(self, spec: MaterializeSpec, schema: pa.Schema) -> None:
        self._rows = MaterializedRows(spec, schema)
        super().__init__(self._rows.state)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        self._rows.has_restored()

    def add(self, rows: pa.RecordBatch) -> Iterable[Element]:
        changes, unknown = self._rows.add(rows)
        if self.ctx.metrics is not None:
            self.ctx.metrics.counter(UNKNOWN_DELETES).inc(unknown)
        return [ArrowBatch(changes)] if changes.num_rows else []


__all__ = ["MaterializeOperator"]
