"""Gives records their timestamps and a stream its watermarks."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import repeat
from typing import Any

from ..common.batches import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    ArrowBatch,
    Batch,
    Element,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from ..common.options import AUTO_WATERMARK_INTERVAL, RUNTIME_MODE
from ..common.watermarks import Idleness, NoWatermarks, WatermarkOutput, WatermarkStrategy
from .base import Operator, UserCodeError, ensure_all_taken, record_at, shortened
from .user_code import UserCode, list_of, timestamps_of


def is_progressive(config: Mapping[str, Any]) -> bool:
    """Whether event time advances while records come; in batch mode it does so at the end of all input alone."""
    return RUNTIME_MODE.read(config.get(RUNTIME_MODE.key, RUNTIME_MODE.default)).name != "BATCH"


class TimestampsAndWatermarksOperator(Operator):
    """Assigns timestamps and emits the watermarks of a strategy.

    When a watermark is emitted:
    - within a batch only where the generator's `on_event` sends one: directly behind the record it was sent for, the
      batch is divided there;
    - else between batches, when processing time reaches a multiple of `pipeline.auto-watermark-interval` milliseconds
      after `open` (0: never), in `on_processing_time`; the built-in strategies emit only so;
    - once more in `finish`.
    In batch mode there is none but the last of all.
    So any division of the input into batches gives the same sequence, and what depends on time depends on the clock
    alone. A watermark not above the last one is dropped. Watermarks from upstream are replaced by the strategy's, all
    but the one that ends the stream; statuses from upstream likewise.

    Args:
        strategy: of timestamps and watermarks.
        interval_ms: overrides the job's option when not None.
    """

    def __init__(self, strategy: WatermarkStrategy, interval_ms: int | None = None) -> None:
        self._strategy = strategy
        self._interval_ms = interval_ms

    def open(self) -> None:
        strategy = self._strategy
        with UserCode(self.ctx, "create_watermark_generator"):
            self._generator = strategy.create_generator()
        self._on_batch = getattr(self._generator, "on_batch", None)
        self._extract = strategy.timestamp_assigner
        self._idleness = None if strategy.idle_timeout_ms is None else Idleness(strategy.idle_timeout_ms)
        self._output = _Output()
        if self._interval_ms is None:
            option = AUTO_WATERMARK_INTERVAL
            self._interval_ms = option.read(self.ctx.config.get(option.key, option.default)).to_millis()
        self._is_progressive = is_progressive(self.ctx.config)
        ticks = self._interval_ms > 0 and self._is_progressive
        self._next_ms = self.ctx.clock.now_ms() + self._interval_ms if ticks else None

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if isinstance(batch, ArrowBatch) and self._extract is None and isinstance(self._generator, NoWatermarks):
            if self._idleness is not None and len(batch):
                self._idleness.active()
            return (batch,)
        values = list_of(batch)
        stamps = self._timestamps(values, timestamps_of(batch))
        if self._idleness is not None and values:
            self._idleness.active()
        if not self._is_progressive:
            return (RowBatch(values, stamps),)
        if self._on_batch is None:
            return self._event_by_event(values, stamps)
        if values:
            self._on_batch(stamps)
        return (RowBatch(values, stamps),)

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if watermark.timestamp != MAX_TIMESTAMP:
            return ()
        self._output.emit_watermark(watermark)
        return self._output.taken()

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        return ()

    def next_processing_time(self) -> int | None:
        return self._next_ms

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        if self._next_ms is None or now_ms < self._next_ms:
            return ()
        assert self._interval_ms
        self._next_ms += (now_ms - self._next_ms) // self._interval_ms * self._interval_ms + self._interval_ms
        if self._idleness is not None and self._idleness.check(now_ms):
            self._output.mark_idle()
            return self._output.taken()
        return self._periodic()

    def finish(self) -> Iterable[Element]:
        return self._periodic() if self._is_progressive else ()

    def _periodic(self) -> list[Element]:
        with UserCode(self.ctx, "on_periodic_emit"):
            self._generator.on_periodic_emit(self._output)
        return self._output.taken()

    def _timestamps(self, values: list[Any], given: list[int] | None) -> list[int]:
        if self._extract is None:
            return [MIN_TIMESTAMP] * len(values) if given is None else given
        iterator: Iterator[Any] = iter(values)
        try:
            stamps = list(map(self._extract, iterator, repeat(MIN_TIMESTAMP) if given is None else given))
            ensure_all_taken(iterator)
        except Exception as error:
            where = "extract_timestamp"
            raise UserCodeError(
                self.ctx.operator_name, self.ctx.call_site, record_at(values, iterator), where
            ) from error
        if set(map(type, stamps)) <= {int}:
            try:
                array("q", stamps)
                return stamps
            except OverflowError:
                pass  # the record is named below
        return [self._checked(stamp, value) for stamp, value in zip(stamps, values, strict=True)]

    def _checked(self, stamp: Any, value: Any) -> int:
        where = "extract_timestamp"
        wrong: Exception
        if hasattr(stamp, "__index__") and not isinstance(stamp, bool):
            if MIN_TIMESTAMP <= stamp <= MAX_TIMESTAMP:
                return int(stamp)
            bits = int(stamp).bit_length()
            wrong = ValueError(f"a timestamp is in [-2^63, 2^63) epoch milliseconds, got a number of {bits} bits")
        else:
            kind = type(stamp).__name__
            remedy = "; give int(value.timestamp() * 1000)" if isinstance(stamp, datetime) else ""
            wrong = TypeError(f"a timestamp is an int of epoch milliseconds, got {stamp!r} of type {kind}{remedy}")
        raise UserCodeError(self.ctx.operator_name, self.ctx.call_site, shortened(value), where) from wrong

    def _event_by_event(self, values: list[Any], stamps: list[int]) -> Iterator[Element]:
        on_event, output, start = self._generator.on_event, self._output, 0
        for position, (value, stamp) in enumerate(zip(values, stamps, strict=True), 1):
            try:
                on_event(value, stamp, output)
            except Exception as error:
                name, site = self.ctx.operator_name, self.ctx.call_site
                raise UserCodeError(name, site, shortened(value), "on_event") from error
            if output.pending:
                yield RowBatch(values[start:position], stamps[start:position])
                yield from output.taken()
                start = position
        if start < len(values):
            yield RowBatch(values[start:], stamps[start:])


class _Output(WatermarkOutput):
    """Keeps what a generator sends until the operator hands it on."""

    def __init__(self) -> None:
        self.pending: list[Element] = []
        self._last = MIN_TIMESTAMP
        self._idle = False

    def emit_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp > self._last:
            self._last = watermark.timestamp
            self.mark_active()
            self.pending.append(watermark)

    def mark_idle(self) -> None:
        if not self._idle:
            self._idle = True
            self.pending.append(WatermarkStatus(True))

    def mark_active(self) -> None:
        if self._idle:
            self._idle = False
            self.pending.append(WatermarkStatus(False))

    def taken(self) -> list[Element]:
        """What was sent since the last call."""
        sent, self.pending = self.pending, []
        return sent
