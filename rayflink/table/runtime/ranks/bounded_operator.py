"""The operator of whole tables that need all rows before they can emit the first: sorts and ranks of batch queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa

from rayflink.common.records.batches import MAX_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorSnapshot

from ..aggregates.own_aggregates import OwnAggregates
from ..keyed_state.frame_memory import FrameMemory


class BoundedRows(Protocol):
    """The rows of a `BoundedOperator`: `OrderedRows`, `FirstRanks`, `RowNumbers`."""

    def open(self, memory: FrameMemory) -> None:
        """Called once, before the first batch. Use this memory."""
        ...

    def add(self, rows: pa.RecordBatch) -> None:
        """Called for each batch, which may be empty."""
        ...

    def results(self) -> Iterator[pa.RecordBatch]:
        """Called once, at the end of all rows. Yield the results."""
        ...


class BoundedOperator(Operator):
    """Collects all rows, and emits the results at their end.

    A batch query starts anew when it fails, so the rows are no state.

    Args:
        rows: stores the rows, and computes the results.
        functions: the user's own, which `rows` calls.
    """

    def __init__(self, rows: BoundedRows, functions: OwnAggregates | None = None) -> None:
        self._rows, self._functions = rows, functions or OwnAggregates(())
        self._memory: FrameMemory | None = None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._memory = FrameMemory(self.ctx)
        self._rows.open(self._memory)
        self._functions.open_in(self.ctx)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        self._rows.add(batch.data)
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return ()  # results follow; the last watermark is emitted behind them

    def finish(self) -> Iterator[Element]:
        for rows in self._rows.results():
            yield ArrowBatch(rows)
        yield Watermark(MAX_TIMESTAMP)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()
        self._functions.close()


__all__ = ["BoundedOperator", "BoundedRows"]
