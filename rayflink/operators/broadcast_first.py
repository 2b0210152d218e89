"""In batch mode a broadcast input is read to its end before the other: all rules are known to all records.

The records of the other input wait meanwhile, in memory as far as the job's managed memory grants it, else on disk.

Source: apache/flink BatchCoBroadcastWithKeyedOperator, BatchCoBroadcastWithNonKeyedOperator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Batch,
    Element,
    RowBatch,
    Watermark,
)

from .base import Operator
from .capabilities import BoundedMultiInput, BroadcastInput, ProcessingTimers
from .sorted_operator import SortedOperator
from .user_function import list_of, timestamps_of

CHUNK_ROWS = 1024
"""Records that are processed together once the broadcast input has ended."""


class BroadcastFirst:
    """Makes another factory's operator; one with a broadcast input gets that input first. Travels in a program.

    Args:
        factory: makes an operator of two inputs.
    """

    def __init__(self, factory: Callable[[], Operator]) -> None:
        self._factory = factory

    def __call__(self) -> Operator:
        operator = self._factory()
        return BroadcastFirstOperator(operator) if isinstance(operator, BroadcastInput) else operator


class BroadcastFirstOperator(SortedOperator[Any], ProcessingTimers, BoundedMultiInput):
    """Gives an operator the records of its broadcast input at once, those of the other when that has ended.

    Args:
        inner: a `BroadcastInput`.
    """

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if input_index == self._inner.broadcast_input or self._is_drained:
            return self._inner.process(batch, input_index)  # type: ignore[no-any-return]
        values, stamps = list_of(batch), timestamps_of(batch)
        times = repeat(MIN_TIMESTAMP) if stamps is None else stamps
        self._sort.add(repeat(b""), repeat(0), list(zip(values, times, strict=False)))
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if watermark.timestamp == MAX_TIMESTAMP:
            yield from self.drain()
        yield from self._inner.process_watermark(watermark)

    def next_processing_time(self) -> int | None:
        return self._inner.next_processing_time() if isinstance(self._inner, ProcessingTimers) else None

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return self._inner.on_processing_time(now_ms) if isinstance(self._inner, ProcessingTimers) else ()

    def end_input(self, input_index: int) -> Iterable[Element]:
        if input_index == self._inner.broadcast_input:
            yield from self.drain()
        if isinstance(self._inner, BoundedMultiInput):
            yield from self._inner.end_input(input_index)

    def process_sorted(self) -> Iterator[Element]:
        chunk: list[tuple[Any, int]] = []
        for *_, record in self._sort.sorted():
            chunk.append(record)
            if len(chunk) == CHUNK_ROWS:
                yield from self._process_chunk(chunk)
                chunk = []
        if chunk:
            yield from self._process_chunk(chunk)

    def _process_chunk(self, chunk: list[tuple[Any, int]]) -> Iterable[Element]:
        times = [time for _, time in chunk]
        has_times = any(time != MIN_TIMESTAMP for time in times)
        batch = RowBatch([value for value, _ in chunk], times if has_times else None)
        return self._inner.process(batch, 1 - self._inner.broadcast_input)  # type: ignore[no-any-return]


__all__ = ["BroadcastFirst", "BroadcastFirstOperator"]
