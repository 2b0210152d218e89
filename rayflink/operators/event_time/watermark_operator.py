"""Gives records their timestamps and a stream its watermarks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from rayflink.common.metrics.metric_names import IS_IDLE
from rayflink.common.options.registry import AUTO_WATERMARK_INTERVAL, RUNTIME_MODE
from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    ArrowBatch,
    Batch,
    Element,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.common.watermarks import Idleness, NoWatermarks, WatermarkGenerator, WatermarkStrategy

from ..base import Operator, UserCodeError, shortened
from ..capabilities import EventHandler, ProcessingTimers
from ..user_function import UserCode, list_of
from .partial_watermarks import WHOLE, Part, PartialWatermarks
from .timestamp_assignment import BatchTimestampAssigner


def is_progressive(config: Mapping[str, Any]) -> bool:
    """Return whether event time advances while records come; in batch mode it does so at the end of all input alone."""
    return RUNTIME_MODE.read(config.get(RUNTIME_MODE.key, RUNTIME_MODE.default)).name != "BATCH"


class TimestampsAndWatermarksOperator(Operator, ProcessingTimers, EventHandler):
    """Assigns timestamps and emits the watermarks of a strategy.

    When a watermark is emitted:
    - within a batch where the generator's `on_event` sends one, directly behind the record it was sent for, and where
      the strategy's number of records is full; the batch is divided there;
    - else between batches, when processing time reaches a multiple of `pipeline.auto-watermark-interval` milliseconds
      after `open` (0: never), in `on_processing_time`; the built-in strategies emit only so;
    - once more in `finish`.
    In batch mode there is none but the last of all.
    So any division of the input into batches gives the same sequence, and what depends on time depends on the clock
    alone. A watermark not above the last one is dropped. Watermarks from upstream are replaced by the strategy's, all
    but the one that ends the stream; statuses from upstream likewise.

    A source may distinguish the splits whose records it gives (`hold`, `reading`): each has a generator, and the
    watermark is the minimum over them.

    Args:
        strategy: of timestamps and watermarks.
        interval_ms: overrides the job's option when not None.
    """

    def __init__(self, strategy: WatermarkStrategy, interval_ms: int | None = None) -> None:
        self._strategy = strategy
        self._interval_ms = interval_ms

    def open(self) -> None:
        strategy, every = self._strategy, self._strategy.emit_every
        if self._interval_ms is None and every is not None:
            self._interval_ms = every.interval_ms
        if self._interval_ms is None:
            option = AUTO_WATERMARK_INTERVAL
            self._interval_ms = option.read(self.ctx.config.get(option.key, option.default)).to_millis()
        self._assigner = BatchTimestampAssigner(self.ctx, strategy)
        self._passes = strategy.timestamp_assigner is None and strategy.create_generator is NoWatermarks
        self.watermarks = PartialWatermarks(self._new_generator, self._new_idleness)
        self.watermarks.hold((WHOLE,))
        self._reading = WHOLE
        self._is_progressive = is_progressive(self.ctx.config)
        self._left = self._per_emission = every.records if every is not None and self._is_progressive else 0
        ticks = self._interval_ms > 0 and self._is_progressive
        self._next_ms = self.ctx.clock.now_ms() + self._interval_ms if ticks else None
        if self.ctx.metrics is not None and strategy.create_generator is not NoWatermarks:
            self.ctx.metrics.gauge(IS_IDLE, lambda: self.watermarks.is_idle)

    def _new_generator(self) -> WatermarkGenerator:
        with UserCode(self.ctx, "create_watermark_generator"):
            generator = self._strategy.create_generator()
            if not isinstance(generator, WatermarkGenerator):
                what = f"{generator!r} of type {type(generator).__name__}"
                raise TypeError(f"for_generator wants a function that makes a WatermarkGenerator, it made {what}")
        return generator

    def _new_idleness(self) -> Idleness | None:
        timeout_ms = self._strategy.idle_timeout_ms
        if timeout_ms is None:
            return None
        return Idleness(timeout_ms, 2 * self._interval_ms if self._interval_ms else None)

    # what a source reports

    @property
    def distinguishes_splits(self) -> bool:
        """Return whether watermarks depend on the split of a record: not in ingestion time, nor without watermarks."""
        makes_none = self._assigner.by_clock or self._strategy.create_generator is NoWatermarks
        return self._is_progressive and not makes_none

    def hold(self, splits: Collection[str]) -> list[str]:
        """Replace the set of splits and return those that have ended."""
        with UserCode(self.ctx, "on_periodic_emit"):
            return [name for name in self.watermarks.hold(splits) if name != WHOLE]

    def reading(self, split: str) -> None:
        """Note the split of the next records."""
        self._reading = split

    # records and events

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if self._passes:
            return self._passed(batch)
        batch = self._assigner.assign(batch)
        if not self._is_progressive:
            return (batch,)
        part = self.watermarks.seen(self._reading) if len(batch) else None
        if part is None:
            return ()
        if self._per_emission:
            return self._counted(batch, part)
        return self._given(batch, part)

    def _passed(self, batch: Batch) -> Iterable[Element]:
        """Pass records on without timestamps or watermarks; they only count as a sign of activity."""
        if len(batch):
            self.watermarks.seen(self._reading)
        if isinstance(batch, ArrowBatch):
            return (batch,)
        return (self._assigner.assign(batch),)

    def _given(self, batch: Batch, part: Part) -> Iterable[Element]:
        if part.on_batch is None:
            return self._event_by_event(batch, part)
        with UserCode(self.ctx, "on_batch"):
            part.on_batch(batch.timestamps)
        return (batch,)

    def _counted(self, batch: Batch, part: Part) -> Iterator[Element]:
        """Emit behind each record that makes the strategy's number full."""
        start = 0
        while start < len(batch):
            stop = min(len(batch), start + self._left)
            yield from self._given(batch.slice(start, stop), part)
            self._left -= stop - start
            start = stop
            if not self._left:
                self._begin_anew(self.ctx.clock.now_ms())
                yield from self._periodic(None)

    def _begin_anew(self, now_ms: int) -> None:
        self._left = self._per_emission
        if self._next_ms is not None:
            assert self._interval_ms
            self._next_ms = now_ms + self._interval_ms

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if watermark.timestamp != MAX_TIMESTAMP:
            return ()
        self.watermarks.emit(watermark)
        return self.watermarks.take()

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        return ()

    def next_processing_time(self) -> int | None:
        return self._next_ms

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        if self._next_ms is None or now_ms < self._next_ms:
            return ()
        assert self._interval_ms
        due = self._next_ms
        if self._per_emission:
            self._begin_anew(now_ms)
        else:
            self._next_ms += (now_ms - due) // self._interval_ms * self._interval_ms + self._interval_ms
        return self._periodic(now_ms)

    def finish(self) -> Iterable[Element]:
        return self._periodic(None) if self._is_progressive else ()

    def _periodic(self, now_ms: int | None) -> list[Element]:
        if self._assigner.by_clock:
            self._follow_clock()
        with UserCode(self.ctx, "on_periodic_emit"):
            self.watermarks.periodic(now_ms)
        return self.watermarks.take()

    def _follow_clock(self) -> None:
        """Advance the watermark by the clock in ingestion time, whether records come or not."""
        part = self.watermarks.parts[WHOLE]
        assert part.on_batch is not None
        part.on_batch([self._assigner.tick()])

    def _event_by_event(self, batch: Batch, part: Part) -> Iterator[Element]:
        values, stamps = list_of(batch), batch.timestamps
        stamps = stamps if isinstance(batch, RowBatch) else stamps.tolist()  # type: ignore[union-attr]
        on_event, start, joined = part.generator.on_event, 0, self.watermarks
        for position, (value, stamp) in enumerate(zip(values, stamps, strict=True), 1):  # type: ignore[arg-type]
            try:
                on_event(value, stamp, part)
            except Exception as error:
                name, site = self.ctx.operator_name, self.ctx.call_site
                raise UserCodeError(name, site, shortened(value), "on_event") from error
            if joined.pending:
                yield batch.slice(start, position)
                yield from joined.take()
                start = position
        if start < len(values):
            yield batch if start == 0 else batch.slice(start, len(values))
