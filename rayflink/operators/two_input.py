"""Operators on two connected streams: one function object works both, so that one stream can steer the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any

from rayflink.common.functions.function_classes import as_co_flat_map, as_co_map
from rayflink.common.records.batches import Batch, Element, RowBatch
from rayflink.common.records.purity import holds_nothing

from .list_loops import record_at
from .process import CoProcessOperator
from .stateless import CHUNK_RECORDS, flat_map_values, map_values
from .user_function import FunctionOperator, list_of, timestamps_of


class CoMapOperator(FunctionOperator):
    """Replaces each record by `map1` or `map2` of it, by its stream; a None is no record. Timestamps stay.

    Args:
        function: a CoMapFunction or a pair of callables.
    """

    def __init__(self, function: Any) -> None:
        self._function = as_co_map(function)
        super().__init__(self._function)

    def open(self) -> None:
        super().open()
        self._trusted = holds_nothing(self._function.call1), holds_nothing(self._function.call2)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        values, stamps = list_of(batch), timestamps_of(batch)
        call = self._function.call2 if input_index else self._function.call1
        iterator = iter(values)
        try:
            results = map_values(call, iterator, self._trusted[input_index])
        except Exception as error:
            raise self.failure(f"map{input_index + 1}", record_at(values, iterator)) from error
        passes = [result is not None for result in results]
        if all(passes):
            return (RowBatch(results, stamps),)
        return (RowBatch(list(compress(results, passes)), None if stamps is None else list(compress(stamps, passes))),)


class CoFlatMapOperator(FunctionOperator):
    """Replaces each record by the elements of `flat_map1` or `flat_map2` of it, by its stream.

    Args:
        function: a CoFlatMapFunction or a pair of callables.
        chunk_records: results after which a batch is handed on.
    """

    def __init__(self, function: Any, chunk_records: int = CHUNK_RECORDS) -> None:
        self._function = as_co_flat_map(function)
        self._chunk_records = chunk_records
        super().__init__(self._function)

    def open(self) -> None:
        super().open()
        self._trusted = holds_nothing(self._function.call1), holds_nothing(self._function.call2)

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        values, stamps = list_of(batch), timestamps_of(batch)
        call = self._function.call2 if input_index else self._function.call1
        iterator = iter(values)
        try:
            yield from flat_map_values(call, iterator, stamps, self._trusted[input_index], self._chunk_records)
        except Exception as error:
            raise self.failure(f"flat_map{input_index + 1}", record_at(values, iterator)) from error


__all__ = ["CoFlatMapOperator", "CoMapOperator", "CoProcessOperator"]
