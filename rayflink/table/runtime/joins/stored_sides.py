"""Joins that store the rows of all their inputs: what their operators have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import OperatorContext

from ..keyed_state.frame_memory import FrameMemory
from ..keyed_state.stored_table import StoredTables
from ..keyed_state.table_operator import KeyedTableOperator
from .stored_side import StoredSide


class _Rows(Protocol):
    """Rows of the result and the conditions on them."""

    def setup(self, ctx: OperatorContext) -> None: ...

    def open(self) -> None: ...

    def close(self) -> None: ...


class StoredSidesOperator(KeyedTableOperator):
    """Base of the joins of changing inputs, which are partitioned by key.

    Args:
        rows: of the result.
        sides: the stored rows of each input.
        names: of the inputs, in the state and in metrics.
    """

    def __init__(self, rows: _Rows, sides: Sequence[StoredSide], names: Sequence[str]) -> None:
        self._result_rows, self.sides, self._names = rows, sides, names

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._result_rows.setup(ctx)
        self._memory = FrameMemory(ctx)
        self._stored = StoredTables(
            [side.open(ctx, self._memory, name) for side, name in zip(self.sides, self._names, strict=True)]
        )

    def open(self) -> None:
        self._result_rows.open()

    def close(self) -> None:
        self._memory.release()
        self._result_rows.close()

    @property
    def stored(self) -> StoredTables:
        return self._stored

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        return self.join(batch, input_index) if len(batch) else ()

    @abstractmethod
    def join(self, batch: ArrowBatch, index: int) -> Iterator[Element]:
        """Yield the changes of the result that the changes of an input make, and store these.

        Args:
            batch: one or more changes.
            index: number of the input.
        """


__all__ = ["StoredSidesOperator"]
