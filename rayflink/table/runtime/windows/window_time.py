"""The time of a window operator: how far it has come, and the rows that came too late for it."""

from __future__ import annotations

from typing import Any

from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.common.records.batches import MIN_TIMESTAMP
from rayflink.operators.base import OperatorContext


class WindowTime:
    """Knows how far time has come, by watermarks or by the clock; an operator shares it with its windows.

    Args:
        is_event_time: whether windows follow the watermark; else they follow the clock.
    """

    def __init__(self, is_event_time: bool) -> None:
        self.is_event_time = is_event_time
        self.progress = MIN_TIMESTAMP
        """The watermark, or the last millisecond of processing time that is over."""

    def setup(self, ctx: OperatorContext) -> None:
        """Take the clock and the metrics."""
        self._clock: Any = ctx.clock
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)

    @property
    def clock_ms(self) -> int:
        """Return what the clock shows, in epoch milliseconds."""
        return int(self._clock.now_ms())

    @property
    def now_ms(self) -> int:
        """Return the processing time; never one whose windows have fired."""
        return max(self.clock_ms, self.progress + 1)

    def count_late(self, rows: int) -> None:
        """Count rows that are dropped because their windows are over."""
        if self._late is not None and rows:
            self._late.inc(rows)


__all__ = ["WindowTime"]
