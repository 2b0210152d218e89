"""The operator that follows the last row of each key."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Element

from ..groups.table_state import TableOperator
from .last_rows import LastRows, LastRowSpec

UNKNOWN_DELETES = "numUnknownDeletesDropped"
"""Metric: deletions of keys that have no row, which are dropped."""


class LastRowOperator(TableOperator):
    """Emits the changes of the last row of each key, as each row of the input makes them.

    Args:
        spec: the rows.
        schema: of the result.
    """

    def __init__(self, spec: LastRowSpec, schema: pa.Schema) -> None:
        self._rows = LastRows(spec, schema)
        super().__init__(self._rows.state)

    def add(self, rows: pa.RecordBatch) -> Iterable[Element]:
        changes, dropped = self._rows.add(rows)
        if dropped and self.ctx.metrics is not None:
            self.ctx.metrics.counter(UNKNOWN_DELETES).inc(dropped)
        return [ArrowBatch(changes)] if changes.num_rows else []


__all__ = ["UNKNOWN_DELETES", "LastRowOperator"]
