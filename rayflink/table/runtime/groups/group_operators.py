"""The operators of GROUP BY over a stream: each row by itself, or the rows of a mini-batch in one phase or two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.operators.base import OperatorContext

from ...plan.groups import MiniBatch
from ..aggregates.own_aggregates import OwnAggregates
from ..mini_batch import MiniBatchOperator
from .group_changes import GroupChanges, GroupSpec
from .group_phases import GroupParts, MergedGroups
from .table_state import TableOperator


class StreamGroupOperator(TableOperator):
    """Emits the changes of the results of groups, as each row of the input makes them.

    Args:
        spec: the groups.
        schema: of the result.
        is_folded: the changes of a group in a batch are one.
    """

    def __init__(self, spec: GroupSpec, schema: pa.Schema, is_folded: bool = False) -> None:
        self._changes = GroupChanges(spec, schema, is_folded)
        self._functions = OwnAggregates(spec.aggregates)
        super().__init__(self._changes.state)

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._functions.open_in(ctx)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._functions.close()

    def add(self, rows: pa.RecordBatch) -> Iterator[Element]:
        for changes in self._changes.add(rows):
            yield ArrowBatch(changes)


class MiniBatchGroupOperator(MiniBatchOperator, StreamGroupOperator):
    """Emits one change of the result of a group for all rows of a mini-batch.

    Args:
        spec: the groups.
        schema: of the result.
        limits: of a mini-batch.
    """

    def __init__(self, spec: GroupSpec, schema: pa.Schema, limits: MiniBatch) -> None:
        StreamGroupOperator.__init__(self, spec, schema, True)
        MiniBatchOperator.__init__(self, limits)

    def fold(self, rows: pa.RecordBatch) -> Iterable[Element]:
        return self.add(rows)


class LocalGroupOperator(MiniBatchOperator):
    """Emits one part of a group for all rows of a mini-batch, before rows are partitioned by group.

    Args:
        spec: the groups.
        limits: of a mini-batch.
    """

    def __init__(self, spec: GroupSpec, limits: MiniBatch) -> None:
        super().__init__(limits)
        self._parts = GroupParts(spec)

    def fold(self, rows: pa.RecordBatch) -> Iterable[Element]:
        yield ArrowBatch(self._parts.of(rows))


class GlobalGroupOperator(MiniBatchOperator, TableOperator):
    """Emits one change of the result of a group for all its parts of a mini-batch.

    Args:
        spec: the groups.
        schema: of the result.
        limits: of a mini-batch.
    """

    def __init__(self, spec: GroupSpec, schema: pa.Schema, limits: MiniBatch) -> None:
        self._merged = MergedGroups(spec, schema)
        TableOperator.__init__(self, self._merged.state)
        MiniBatchOperator.__init__(self, limits)

    def fold(self, rows: pa.RecordBatch) -> Iterable[Element]:
        changes = self._merged.add(rows)
        if changes.num_rows:
            yield ArrowBatch(changes)


__all__ = ["GlobalGroupOperator", "LocalGroupOperator", "MiniBatchGroupOperator", "StreamGroupOperator"]
