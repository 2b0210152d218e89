"""The common part of operators of batch mode that buffer input before another operator processes it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from rayflink.common.records.batches import Element

from .base import Operator, OperatorContext, OperatorSnapshot
from .external_sort import input_sort

Inner = TypeVar("Inner", bound=Operator)


class SortedOperator(Operator, Generic[Inner]):
    """Sorts the input of another operator, which processes it at the end of input at the latest.

    Args:
        inner: the operator.
    """

    def __init__(self, inner: Inner) -> None:
        self._inner = inner
        self._is_drained = False

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._inner.setup(ctx)
        self._sort = input_sort(ctx)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._inner.initialize_state(())

    def open(self) -> None:
        self._inner.open()

    def finish(self) -> Iterable[Element]:
        yield from self.drain()
        yield from self._inner.finish()

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._sort.close()

    def drain(self) -> Iterator[Element]:
        """Process everything that is buffered; the next call finds nothing."""
        if not self._is_drained:
            self._is_drained = True
            yield from self.process_sorted()

    @abstractmethod
    def process_sorted(self) -> Iterator[Element]:
        """Have the operator process the sorted records."""


__all__ = ["SortedOperator"]
