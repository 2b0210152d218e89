"""Joins of whole tables where every subtask has all rows of the small one; those of the other stay where they are.

A batch query starts anew when it fails, so the rows are no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rayflink.common.records.batches import MAX_TIMESTAMP, Batch, Element, Watermark
from rayflink.operators.capabilities import BoundedMultiInput

from ..aggregates.partial_aggregates import concatenated
from ..keyed_state.frame_memory import Columns, size_of
from .join_operator import OfRows, rows_of_columns
from .join_pairs import matches
from .join_rows import JoinSpec

BLOCK_ROWS = 1 << 16
"""Rows of the other side that are joined at once at least; more where the small one has more."""


class BroadcastJoinOperator(OfRows, BoundedMultiInput):
    """Joins each row of a side with all of the small one, once that is whole.

    Args:
        spec: of the join; rows of the small side that match none are in no result.
        small: the number of the small side.
    """

    def __init__(self, spec: JoinSpec, small: int) -> None:
        super().__init__(spec)
        self._small = small
        self._pieces: list[Columns] = []
        """Of the small side."""
        self._whole: Columns | None = None
        """All of it, when it has ended."""
        self._filed: list[Columns] = []
        self._waiting: list[Columns] = []
        """Of the other side: pieces in files, and those in memory, which came later."""
        self._rows = self._size = 0

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not len(batch):
            return ()
        columns = self.held_columns(batch, input_index)
        if input_index == self._small:
            self._pieces.append(columns)
            return ()
        self._waiting.append(columns)
        self._rows += len(batch)
        self._size += size_of(columns)
        if self._whole is not None:
            return self._joined() if self._rows >= self._block else ()
        if self.memory is not None and not self.memory.hold(self._size):
            self._filed += self.memory.written(iter(self._waiting))
            self._waiting, self._size = [], 0
            self.memory.hold(0)
        return ()

    def end_input(self, input_index: int) -> Iterable[Element]:
        if input_index == self._small:
            self._build()
            yield from self._joined()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return ()  # rows come behind the last one, which is given then

    def finish(self) -> Iterable[Element]:
        if self._whole is None:
            self._build()
        yield from self._joined()
        yield Watermark(MAX_TIMESTAMP)

    def _build(self) -> None:
        side = self.spec.sides[self._small]
        nothing = side.in_order([pa.array([], kind) for kind in side.schema.types])
        self._whole, self._pieces = concatenated(self._pieces) if self._pieces else nothing, []

    @property
    def _block(self) -> int:
        assert self._whole is not None
        return max(BLOCK_ROWS, rows_of_columns(self._whole))

    def _joined(self) -> Iterator[Element]:
        """Yield the rows of all that waits, which is then forgotten."""
        waiting = [*self._filed, *self._waiting]
        self._filed, self._waiting, self._rows, self._size = [], [], 0, 0
        while waiting:
            rows, block = 0, list[Columns]()
            while waiting and rows < self._block:
                block.append(waiting.pop(0))
                rows += rows_of_columns(block[-1])
            yield from self._of(concatenated(block))
        if self.memory is not None:
            self.memory.hold(0)

    def _of(self, other: Columns) -> Iterator[Element]:
        assert self._whole is not None
        held = (self._whole, other) if self._small == 0 else (other, self._whole)
        sides = [side.as_they_are(own) for side, own in zip(self.spec.sides, held, strict=True)]
        counts = rows_of_columns(sides[0]), rows_of_columns(sides[1])
        keys = [[own[key] for key in side.keys] for own, side in zip(sides, self.spec.sides, strict=True)]
        found = matches(keys[0], keys[1], self.spec.nulls_match, *counts)
        yield from self.rows.joined(sides[0], sides[1], counts, found.pairs())


__all__ = ["BLOCK_ROWS", "BroadcastJoinOperator"]
