"""The first phase of aggregations and rankings: it reduces rows before they are partitioned by key. It has no state.

Rows of small batches are buffered until there are many. They are emitted before anything that could reveal the delay:
a watermark with which a window ends, a barrier, the end of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element, Watermark, WatermarkStatus
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.capabilities import EventHandler, PreBarrier

from ...types import DataType
from ..aggregates.own_aggregates import OwnAggregates
from ..keyed_state.frame_snapshots import one_batch
from .input_rows import rows_in

MOST_BUFFERED = 32_768
"""Rows that are buffered at most before they are reduced together."""


class Reduction(Protocol):
    """The way from rows to fewer partial rows: `SliceReduction`, `GroupReduction`, `RankReduction`."""

    def reduce(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Called with one row at least. Return the partial rows."""
        ...

    def needs_rows_before(self, watermark: int) -> bool:
        """Called once for each watermark, in order. Return whether the rows that came before it have to precede it."""
        ...


class LocalPhaseOperator(Operator, EventHandler, PreBarrier):
    """Emits partial rows in place of the rows that come in.

    Args:
        input: type of the rows that come in.
        reduction: makes partial rows.
        functions: the user's own, which `reduction` calls.
    """

    def __init__(self, input: DataType, reduction: Reduction, functions: OwnAggregates | None = None) -> None:
        self._input, self._reduction, self._functions = input, reduction, functions or OwnAggregates(())
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_rows = 0

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._functions.open_in(ctx)

    def close(self) -> None:
        self._functions.close()

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        if rows.num_rows:
            self._buffered.append(rows)
            self._buffered_rows += rows.num_rows
        return self._reduced() if self._buffered_rows >= MOST_BUFFERED else ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._reduction.needs_rows_before(watermark.timestamp):
            yield from self._reduced()
        yield watermark

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        yield from self._reduced()
        yield status

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        return self._reduced()

    def finish(self) -> Iterable[Element]:
        return self._reduced()

    def _reduced(self) -> Iterator[Element]:
        if not self._buffered:
            return
        rows = one_batch(self._buffered)
        self._buffered, self._buffered_rows = [], 0
        yield ArrowBatch(self._reduction.reduce(rows))


__all__ = ["MOST_BUFFERED", "LocalPhaseOperator", "Reduction"]
