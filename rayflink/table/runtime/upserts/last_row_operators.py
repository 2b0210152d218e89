"""The operators that follow the last row of each key: each row by itself, or the rows of a mini-batch together."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Element

from ...plan.groups import MiniBatch
from ..groups.table_state import TableOperator
from ..mini_batch import MiniBatchOperator
from ..ranks.first_of_key import DUPLICATES
from .last_rows import LastRows, LastRowSpec

UNKNOWN_DELETES = "numUnknownDeletesDropped"
"""Metric: deletions of keys that have no row, which are dropped."""


class LastRowOperator(TableOperator):
    """Emits the changes of the last row of each key, as each row of the input makes them.

    Args:
        spec: the rows.
        schema: of the result.
        is_folded: the changes of a key in a batch are one.
    """

    def __init__(self, spec: LastRowSpec, schema: pa.Schema, is_folded: bool = False) -> None:
        self._rows = LastRows(spec, schema, is_folded)
        super().__init__(self._rows.state)

    def add(self, rows: pa.RecordBatch) -> Iterable[Element]:
        changes = self._rows.add(rows)
        if self.ctx.metrics is not None:
            self.ctx.metrics.counter(UNKNOWN_DELETES).inc(changes.unknown)
            self.ctx.metrics.counter(DUPLICATES).inc(changes.earlier)
        return [ArrowBatch(changes.rows)] if changes.rows.num_rows else []


class MiniBatchLastRowOperator(MiniBatchOperator, LastRowOperator):
    """Emits one change of the last row of a key for all rows of a mini-batch.

    Args:
        spec: the rows.
        schema: of the result.
        limits: of a mini-batch.
    """

    def __init__(self, spec: LastRowSpec, schema: pa.Schema, limits: MiniBatch) -> None:
        LastRowOperator.__init__(self, spec, schema, True)
        MiniBatchOperator.__init__(self, limits)

    def fold(self, rows: pa.RecordBatch) -> Iterable[Element]:
        return self.add(rows)


__all__ = ["UNKNOWN_DELETES", "LastRowOperator", "MiniBatchLastRowOperator"]
