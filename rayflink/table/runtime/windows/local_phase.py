"""The first phase of an operator over windows: rows become fewer before they are partitioned by key. It has no state.

Rows of small batches are held until there are many, and given before whatever could tell the difference: a watermark
with which a window ends, a barrier, the end of the data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element, Watermark, WatermarkStatus
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import EventHandler, PreBarrier

from ...types import DataType
from ..keyed_state.frame_snapshots import one_batch
from .sliced_rows import rows_in

MOST_HELD = 32_768
"""Rows that are held at most before they are worked together."""


class LocalPhase(Operator, EventHandler, PreBarrier):
    """Gives partial rows of the rows it has at hand.

    Args:
        input: type of the rows that come in.
    """

    def __init__(self, input: DataType) -> None:
        self._input = input
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0

    @abstractmethod
    def partial(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Partial rows of some rows, of which there is one at least."""

    def ends_a_window(self, watermark: int) -> bool:
        """Return whether rows may be asked for behind this watermark that came before it."""
        return True

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        if rows.num_rows:
            self._held.append(rows)
            self._held_rows += rows.num_rows
        return self._given() if self._held_rows >= MOST_HELD else ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self.ends_a_window(watermark.timestamp):
            yield from self._given()
        yield watermark

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        yield from self._given()
        yield status

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        return self._given()

    def finish(self) -> Iterable[Element]:
        return self._given()

    def _given(self) -> Iterator[Element]:
        if not self._held:
            return
        rows = one_batch(self._held)
        self._held, self._held_rows = [], 0
        yield ArrowBatch(self.partial(rows))


__all__ = ["MOST_HELD", "LocalPhase"]
