"""Latency markers: when a source sends one, and what an operator records when it comes by.

Source: apache/flink LatencyMarksEmitter, LatencyStats (granularity "operator").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.configuration import reading
from rayflink.common.options import registry as options
from rayflink.common.records.batches import LatencyMarker

if TYPE_CHECKING:
    from .base import OperatorContext


class LatencyMarks:
    """Markers of one source: the first at once, then one every `metrics.latency.interval`; 0 sends none."""

    def __init__(self, ctx: OperatorContext) -> None:
        self._ctx = ctx
        self._interval_ms = reading(ctx.config).get(options.LATENCY_INTERVAL).to_millis()
        self.next_ms: int | None = ctx.clock.now_ms() if self._interval_ms > 0 else None

    def due(self, now_ms: int) -> tuple[LatencyMarker, ...]:
        """Return the marker to send now, if it is time for one; late ones are not made up for."""
        if self.next_ms is None or now_ms < self.next_ms:
            return ()
        self.next_ms = now_ms + self._interval_ms
        return (LatencyMarker(now_ms, self._ctx.operator_id, self._ctx.subtask),)


def record_latency(ctx: OperatorContext, marker: LatencyMarker) -> None:
    """Add the age of a marker, in milliseconds, to the operator's histogram for the source that sent it.

    It is reported as ``latency.source_id.<operator id>.latency``. Clocks of two machines may make an age negative.
    """
    remembered = reading(ctx.config).get(options.LATENCY_HISTORY)
    group = ctx.metrics.add_group("latency").add_group("source_id", marker.operator_id)
    group.histogram("latency", remembered).update(ctx.clock.now_ms() - marker.marked_time)
