"""In batch mode a broadcast input is read to its end before the other: all rules are known to all records.

The records of the other input wait meanwhile, in memory as far as the job's managed memory grants it, else on disk.

Source: apache/flink BatchCoBroadcastWithKeyedOperator, BatchCoBroadcastWithNonKeyedOperator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from ..common.batches import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Batch,
    Element,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from .base import Operator, OperatorContext, OperatorSnapshot
from .external_sort import input_sort
from .user_code import list_of, timestamps_of

HELD_ROWS = 1024
"""Records that are worked together once the broadcast input has ended."""


class BroadcastFirst:
    """Makes another factory's operator; one with a broadcast input gets that input first. Travels in a program.

    Args:
        factory: makes an operator of two inputs.
    """

    def __init__(self, factory: Callable[[], Any]) -> None:
        self._factory = factory

    def __call__(self) -> Operator:
        made: Operator = self._factory()
        return BroadcastFirstOperator(made) if hasattr(made, "broadcast_input") else made


class BroadcastFirstOperator(Operator):
    """Gives an operator the records of its broadcast input at once, those of the other when that has ended.

    Args:
        operator: has `broadcast_input`.
    """

    def __init__(self, operator: Any) -> None:
        self._operator = operator
        self._holds = True

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._operator.setup(ctx)
        self._held = input_sort(ctx)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._operator.initialize_state(())

    def open(self) -> None:
        self._operator.open()

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if input_index == self._operator.broadcast_input or not self._holds:
            return self._operator.process(batch, input_index)  # type: ignore[no-any-return]
        values, stamps = list_of(batch), timestamps_of(batch)
        times = repeat(MIN_TIMESTAMP) if stamps is None else stamps
        self._held.add(repeat(b""), repeat(0), list(zip(values, times, strict=False)))
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if watermark.timestamp == MAX_TIMESTAMP:
            yield from self._released()
        yield from self._operator.process_watermark(watermark)

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        return self._operator.process_status(status)  # type: ignore[no-any-return]

    def process_latency_marker(self, marker: LatencyMarker) -> Iterable[Element]:
        return self._operator.process_latency_marker(marker)  # type: ignore[no-any-return]

    def next_processing_time(self) -> int | None:
        return self._operator.next_processing_time()  # type: ignore[no-any-return]

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return self._operator.on_processing_time(now_ms)  # type: ignore[no-any-return]

    def end_input(self, input_index: int) -> Iterable[Element]:
        if input_index == self._operator.broadcast_input:
            yield from self._released()
        yield from self._operator.end_input(input_index)

    def finish(self) -> Iterable[Element]:
        yield from self._released()
        yield from self._operator.finish()

    def close(self) -> None:
        try:
            self._operator.close()
        finally:
            self._held.close()

    def _released(self) -> Iterator[Element]:
        """Work what was held, in the order in which it came; the next call finds nothing."""
        if not self._holds:
            return
        self._holds = False
        held: list[tuple[Any, int]] = []
        for *_, record in self._held.sorted():
            held.append(record)
            if len(held) == HELD_ROWS:
                yield from self._worked(held)
                held = []
        if held:
            yield from self._worked(held)

    def _worked(self, held: list[tuple[Any, int]]) -> Iterable[Element]:
        times = [time for _, time in held]
        has_times = any(time != MIN_TIMESTAMP for time in times)
        batch = RowBatch([value for value, _ in held], times if has_times else None)
        return self._operator.process(batch, 1 - self._operator.broadcast_input)  # type: ignore[no-any-return]


__all__ = ["BroadcastFirst", "BroadcastFirstOperator"]
