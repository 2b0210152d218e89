"""Two streams grouped by key and window: records are tagged with their side, and a window operator works both as one.

A tagged record is a pair (side, record), with side 0 for the first stream and 1 for the second. Custom assigners,
triggers and evictors see these pairs; the user's function does not.

Source: apache/flink CoGroupedStreams and JoinedStreams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from operator import itemgetter
from typing import Any

from rayflink.common.functions.function_classes import KeyBy, KeySelector, RuntimeContext, as_key_selector
from rayflink.common.functions.join_functions import as_co_group, as_join
from rayflink.common.records.batches import Batch, Element, RowBatch
from rayflink.common.user_code.iterate_results import iterate_results

from ..base import Operator, shortened
from ..key_failures import KeyExtractionError, extraction_cause
from ..user_function import list_of, timestamps_of
from .assigners import WindowAssigner
from .window_factory import window_operator_of
from .window_functions import WindowContents
from .window_operator import BaseWindowOperator


class TagOperator(Operator):
    """Replaces each record by (side, record).

    Args:
        side: 0 or 1.
    """

    def __init__(self, side: int) -> None:
        self._side = side

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (RowBatch(list(zip(repeat(self._side), list_of(batch), strict=False)), timestamps_of(batch)),)


class SideKeySelector(KeySelector):
    """The key selector of tagged records: that of the record's side.

    Args:
        first, second: the key selectors of the two streams, each with its line of the program.
    """

    def __init__(self, first: KeyBy, second: KeyBy) -> None:
        self._given = first, second
        self._selectors = as_key_selector(first), as_key_selector(second)

    def open(self, runtime_context: RuntimeContext) -> None:
        for selector in self._selectors:
            selector.open(runtime_context)

    def close(self) -> None:
        for selector in self._selectors:
            selector.close()

    def get_key(self, value: Any) -> Any:
        """Return the key of a tagged record.

        Raises:
            KeyExtractionError: a selector failed; it names that one.
        """
        side, record = value
        try:
            return self._selectors[side].call(record)
        except Exception as error:
            key_by = self._given[side]
            raise KeyExtractionError.of(key_by, shortened(record)) from extraction_cause(key_by, error)


class CoGroupedRecords:
    """A CoGroupFunction, or a callable of two lists, as a window function on tagged records."""

    def __init__(self, function: Any) -> None:
        self._co_group, self.open, self.close, self.wrapped_functions = as_co_group(function)
        self.__name__ = _name_of(function)

    def apply(self, key: Any, window: Any, inputs: Iterable[tuple[int, Any]]) -> Any:
        """Return the results of one key and window."""
        sides: tuple[list[Any], list[Any]] = [], []
        for side, record in inputs:
            sides[side].append(record)
        return self._co_group(*sides)


class JoinedRecords:
    """A JoinFunction, a FlatJoinFunction or a callable of two records as a CoGroupFunction: each pair, in order.

    The first stream's records are the outer loop, as in Flink.
    """

    def __init__(self, function: Any) -> None:
        (self._join, self.open, self.close, self.wrapped_functions), self._is_flat = as_join(function)
        self.__name__ = _name_of(function)

    def co_group(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        """Yield the results of all pairs."""
        join = self._join
        if not self._is_flat:
            for left in first:
                for right in second:
                    yield join(left, right)
            return
        for left in first:
            for right in second:
                results = join(left, right)
                if results is not None:
                    yield from iterate_results(results)


def co_group_window_operator(
    key_selector: Any,
    contents: Callable[[], WindowContents],
    function: Any,
    assigner: WindowAssigner[Any, Any],
    *rules: Any,
) -> BaseWindowOperator:
    """Return `window_operator_of` the same arguments, which emits late records without their tags."""
    operator = window_operator_of(key_selector, contents, function, assigner, *rules)
    operator.late_record = itemgetter(1)
    return operator


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


__all__ = ["CoGroupedRecords", "JoinedRecords", "SideKeySelector", "TagOperator", "co_group_window_operator"]
