"""Joins of whole tables where every subtask has all rows of the small one; those of the other stay where they are.

A batch query starts anew when it fails, so the rows are no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rayflink.common.records.batches import MAX_TIMESTAMP, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.capabilities import BoundedMultiInput

from ..aggregates.partial_aggregates import concatenated
from ..keyed_state.frame_memory import Columns, FrameMemory, size_of
from .join_pairs import match_keys
from .join_rows import JoinRows, JoinSpec

BLOCK_ROWS = 1 << 16
"""Rows of the other side that are joined at once at least; more where the small one has more."""


class BroadcastJoinOperator(Operator, BoundedMultiInput):
    """Joins each row of a side with all of the small one, once that is complete.

    Args:
        spec: of the join; rows of the small side without a partner are in no result.
        small: the number of the small side.
    """

    def __init__(self, spec: JoinSpec, small: int) -> None:
        self._spec, self._small = spec, small
        self._rows = JoinRows(spec)
        self._memory: FrameMemory | None = None
        self._small_pieces: list[Columns] = []
        self._small_table: Columns | None = None
        """All rows of the small side, in the order of the side, once it has ended."""
        self._filed: list[Columns] = []
        self._waiting: list[Columns] = []
        """Rows of the other side: pieces in files, and those in memory, which came later."""
        self._waiting_rows = self._waiting_size = 0

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._memory = FrameMemory(ctx)
        self._rows.setup(ctx)

    def open(self) -> None:
        self._rows.open()

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not len(batch):
            return ()
        columns = self._spec.sides[input_index].state_columns(batch)
        if input_index == self._small:
            self._small_pieces.append(columns)
            return ()
        self._waiting.append(columns)
        self._waiting_rows += len(batch)
        self._waiting_size += size_of(columns)
        if self._small_table is not None:
            return self._join_waiting(self._small_table) if self._waiting_rows >= _block(self._small_table) else ()
        if self._memory is not None and not self._memory.reserve(self._waiting_size):
            self._filed += self._memory.written(iter(self._waiting))
            self._waiting, self._waiting_size = [], 0
            self._memory.reserve(0)
        return ()

    def end_input(self, input_index: int) -> Iterable[Element]:
        if input_index == self._small:
            yield from self._join_waiting(self._build())

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return ()  # results follow; the last watermark is emitted behind them

    def finish(self) -> Iterable[Element]:
        yield from self._join_waiting(self._build() if self._small_table is None else self._small_table)
        yield Watermark(MAX_TIMESTAMP)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()
        self._rows.close()

    def _build(self) -> Columns:
        """Make the small table of the rows that came."""
        side, pieces = self._spec.sides[self._small], self._small_pieces
        self._small_table = side.from_state(concatenated(pieces)) if pieces else side.no_rows()
        self._small_pieces = []
        return self._small_table

    def _join_waiting(self, small_table: Columns) -> Iterator[Element]:
        """Yield the results of all rows that wait, which are then forgotten."""
        waiting = [*self._filed, *self._waiting]
        self._filed, self._waiting, self._waiting_rows, self._waiting_size = [], [], 0, 0
        while waiting:
            rows, block = 0, list[Columns]()
            while waiting and rows < _block(small_table):
                block.append(waiting.pop(0))
                rows += len(block[-1][0])
            yield from self._join(small_table, concatenated(block))
        if self._memory is not None:
            self._memory.reserve(0)

    def _join(self, small_table: Columns, block: Columns) -> Iterator[Element]:
        other = self._spec.sides[1 - self._small].from_state(block)
        sides = (small_table, other) if self._small == 0 else (other, small_table)
        rows = len(sides[0][0]), len(sides[1][0])
        keys = [[columns[key] for key in side.keys] for columns, side in zip(sides, self._spec.sides, strict=True)]
        matches = match_keys(keys[0], keys[1], self._spec.nulls_match, *rows)
        yield from self._rows.join(sides[0], sides[1], rows, matches.pairs())


def _block(small_table: Columns) -> int:
    """Return the number of rows of the other side that are joined at once."""
    return max(BLOCK_ROWS, len(small_table[0]))


__all__ = ["BLOCK_ROWS", "BroadcastJoinOperator"]
