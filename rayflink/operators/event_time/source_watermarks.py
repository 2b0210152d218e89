"""The watermarks of a source: by split where its reader distinguishes splits, and aligned with other sources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from rayflink.common.connector_base.source import SourceReader
from rayflink.common.metrics import metric_names as names
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Element
from rayflink.common.watermarks import WatermarkAlignment, WatermarkStrategy

from ..base import OperatorContext
from ..user_function import UserCode
from .partial_watermarks import WHOLE, Part
from .watermark_operator import TimestampsAndWatermarksOperator


class AlignedReading:
    """The reports of a source subtask's watermark, and the limit that its group allows.

    Args:
        alignment: group, drift and interval.
        now_ms: the first report is due at once.
    Source: apache/flink SourceOperator, FLIP-182.
    """

    def __init__(self, alignment: WatermarkAlignment, now_ms: int) -> None:
        self.alignment = alignment
        self.next_ms: int | None = now_ms
        self.max_allowed = MIN_TIMESTAMP
        """The greatest watermark with which it may read on; before the group has said it, none."""

    def is_due(self, now_ms: int) -> bool:
        """Return whether a report is due; the next one is then due an interval later."""
        if self.next_ms is None or now_ms < self.next_ms:
            return False
        self.next_ms = now_ms + self.alignment.update_ms
        return True

    def ended(self) -> None:
        """Stop reporting."""
        self.next_ms = None

    def must_wait(self, watermark: int) -> bool:
        """Return whether a watermark is too far ahead."""
        return watermark > self.max_allowed

    def drift(self, watermark: int) -> int | None:
        """Return the milliseconds by which a watermark is ahead of the slowest of the group; None where that is not
        known.
        """
        slowest = self.max_allowed - self.alignment.max_drift_ms
        is_known = MIN_TIMESTAMP < slowest and self.max_allowed < MAX_TIMESTAMP
        return watermark - slowest if is_known and MIN_TIMESTAMP < watermark < MAX_TIMESTAMP else None


class SourceWatermarks(TimestampsAndWatermarksOperator):
    """Assigns the timestamps of a source's records and makes its watermarks.

    Args:
        strategy: of timestamps and watermarks.
    """

    def __init__(self, strategy: WatermarkStrategy) -> None:
        super().__init__(strategy)
        self._splits: tuple[str, ...] | None = None
        self._groups: dict[str, Any] = {}
        self._aligned: AlignedReading | None = None
        self._paused: set[str] = set()
        self._pauses_splits = True

    def open(self) -> None:
        super().open()
        alignment = self._strategy.alignment
        if alignment is not None and self._is_progressive and self.ctx.report_watermark is not None:
            self._aligned = aligned = AlignedReading(alignment, self.ctx.clock.now_ms())
            if self.ctx.metrics is not None:
                drift = lambda: aligned.drift(self.watermarks.current)  # noqa: E731
                self.ctx.metrics.gauge(names.WATERMARK_ALIGNMENT_DRIFT, drift)

    # splits

    def follow(self, reader: SourceReader) -> None:
        """Record the splits that the reader has now."""
        if not self.distinguishes_splits:
            return
        split_ids = reader.split_ids()
        if split_ids is None or split_ids is self._splits:
            return
        splits = tuple(split_ids)
        if splits != self._splits:
            self._keep(splits)
        self._splits = splits

    def work(self, batch: Batch, reader: SourceReader) -> Iterable[Element]:
        """Process records that the reader polled just now."""
        if self._splits is not None:
            split = reader.current_split()
            if split not in self.watermarks.parts:  # it ended with these records
                self._splits = (*self._splits, split)
                self._keep(self._splits)
            self.reading(split)
            aligned = self._aligned
            if (
                aligned is not None
                and self._pauses_splits
                and split not in self._paused
                and aligned.must_wait(self.watermarks.parts[split].watermark)
            ):  # it went too far since the group last said how far it may go
                self.announced(aligned.max_allowed, reader)
        return self.process(batch, 0)

    def _keep(self, splits: Collection[str]) -> None:
        for gone in self.hold(splits):
            self._paused.discard(gone)
            group = self._groups.pop(gone, None)
            if group is not None:
                group.close()
        for split, part in self.watermarks.parts.items():
            if split not in self._groups and split != WHOLE and self.ctx.metrics is not None:
                self._groups[split] = _add_gauges(self.ctx, split, part)

    # alignment

    @property
    def waits_for_others(self) -> bool:
        """Return whether the source is so far ahead of its group that it must not read now."""
        return self._aligned is not None and self._aligned.must_wait(self.watermarks.current)

    def announced(self, max_allowed: int, reader: SourceReader) -> None:
        """Allow reading up to the group's watermark; splits that are beyond it wait, where the reader supports it."""
        if self._aligned is None:
            return
        self._aligned.max_allowed = max_allowed
        parts = self.watermarks.parts
        ahead = {split for split, part in parts.items() if part.watermark > max_allowed}
        if self._splits is not None and self._pauses_splits and (len(parts) > 1 or self._paused):
            with UserCode(self.ctx, "pause_or_resume_splits"):
                self._pauses_splits = _pause(reader.pause_or_resume_splits, ahead - self._paused, self._paused - ahead)
            self._paused = ahead if self._pauses_splits else set()
        self._mark_paused()

    def _mark_paused(self) -> None:
        """Exclude the time in which nothing may be read from the idle timeout."""
        waits = self.waits_for_others
        for split, part in self.watermarks.parts.items():
            part.is_paused = waits or split in self._paused

    def next_processing_time(self) -> int | None:
        times = (super().next_processing_time(), None if self._aligned is None else self._aligned.next_ms)
        return min((due for due in times if due is not None), default=None)

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        if self._aligned is not None:
            self._mark_paused()
        sent = super().on_processing_time(now_ms)
        if self._aligned is not None and self._aligned.is_due(now_ms):
            self._report(None if self.watermarks.is_idle else self.watermarks.current)
        return sent

    def finish(self) -> Iterable[Element]:
        if self._aligned is not None:
            self._aligned.ended()
            self._report(MAX_TIMESTAMP)
        return super().finish()

    def _report(self, watermark: int | None) -> None:
        assert self._aligned is not None and self.ctx.report_watermark is not None
        self.ctx.report_watermark(self._aligned.alignment, watermark)


def _pause(call: Callable[[set[str], set[str]], None], to_pause: set[str], to_resume: set[str]) -> bool:
    """Return whether the reader can; one that cannot is paused as a whole only."""
    try:
        if to_pause or to_resume:
            call(to_pause, to_resume)
    except NotImplementedError:
        return False
    return True


def _add_gauges(ctx: OperatorContext, split: str, part: Part) -> Any:
    group = ctx.metrics.add_group(names.SPLIT, split)
    marks = group.add_group("watermark")
    marks.gauge(names.CURRENT_WATERMARK, lambda: part.watermark if part.watermark > MIN_TIMESTAMP else None)
    marks.gauge(names.IS_IDLE, lambda: part.idle)
    return group
