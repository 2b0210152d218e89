"""Triggers that fire again and again while a window is open, with PyFlink's names."""

from __future__ import annotations

from typing import Any

from rayflink.common.functions.type_variables import Input
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.time import Length, to_millis
from rayflink.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor

from .triggers import OnMergeContext, Trigger, TriggerContext, TriggerResult


class _Continuous(Trigger[Input, Any]):
    """A trigger with an interval and, in state, the time of its next firing.

    The time is there twice: to be merged, and as that of the timer of this one window. `clear` of a window that became
    part of another finds only the latter.

    Args:
        interval: milliseconds between two firings, above 0.

    Raises:
        ValueError: it is not above 0.
    """

    def __init__(self, interval: int) -> None:
        if interval <= 0:
            raise ValueError(f"{type(self).__name__} needs an interval above 0, found {interval} ms")
        self.interval = interval
        self._fire_time = ReducingStateDescriptor("fire-time", min)
        self._timer = ValueStateDescriptor("fire-timer")

    def can_merge(self) -> bool:
        return True

    def _next(self, time: int, end: int, ctx: TriggerContext) -> int:
        """Store and return when a window fires next after `time`, at its last timestamp `end` at the latest."""
        return self._store(min(time + self.interval, end), ctx)

    def _store(self, fire_time: int, ctx: TriggerContext) -> int:
        """Store and return the time of the next firing."""
        ctx.get_partitioned_state(self._fire_time).add(fire_time)
        ctx.get_partitioned_state(self._timer).update(fire_time)
        return fire_time

    def _merge_times(self, ctx: OnMergeContext) -> int | None:
        """Merge the times of the next firing, and return the earliest; None where the window has none."""
        ctx.merge_partitioned_state(self._fire_time)
        earliest: int | None = ctx.get_partitioned_state(self._fire_time).get()
        ctx.get_partitioned_state(self._timer).update(earliest)
        return earliest

    def _remove(self, ctx: TriggerContext) -> int | None:
        """Clear the state of a window, and return the time of its timer; None where it has none."""
        fire_time, timer = ctx.get_partitioned_state(self._fire_time), ctx.get_partitioned_state(self._timer)
        time: int | None = timer.value()
        if time is None:  # savepoints of earlier builds have the other state alone
            time = fire_time.get()
        fire_time.clear()
        timer.clear()
        return time

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(_Continuous[Input]):
    """Fires each time the watermark has advanced by the interval, and at the window's end.

    A window without an end fires twice at the end of all input: for the current interval, and for its own end. Flink
    fires it for every interval until the greatest timestamp, so such a job never ends.

    Args:
        interval: milliseconds between two firings, above 0.
    """

    @staticmethod
    def of(interval: Length) -> ContinuousEventTimeTrigger[Any]:
        """Return a trigger that fires every `interval` of event time."""
        return ContinuousEventTimeTrigger(to_millis(interval))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        if ctx.get_partitioned_state(self._fire_time).get() is None:
            start = timestamp - timestamp % self.interval
            ctx.register_event_time_timer(self._next(start, window.max_timestamp(), ctx))
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        following = ctx.get_partitioned_state(self._fire_time)
        if following.get() != time:
            return TriggerResult.CONTINUE
        following.clear()
        if ctx.get_current_watermark() < MAX_TIMESTAMP or window.max_timestamp() < MAX_TIMESTAMP:
            ctx.register_event_time_timer(self._next(time, window.max_timestamp(), ctx))
        return TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        earliest = self._merge_times(ctx)
        if earliest is not None:
            ctx.register_event_time_timer(earliest)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        time = self._remove(ctx)
        if time is not None:
            ctx.delete_event_time_timer(time)
        ctx.delete_event_time_timer(window.max_timestamp())


class ContinuousProcessingTimeTrigger(_Continuous[Input]):
    """Fires each time the interval has passed on the wall clock while the window is open.

    A window of processing time fires at its end too. One of event time does not fire when the watermark passes its end:
    records since the last firing are dropped. Its last timestamp means nothing on the wall clock, and bounds no firing
    once the clock is past it; in Flink it bounds all.

    Args:
        interval: milliseconds between two firings, above 0.
    """

    @staticmethod
    def of(interval: Length) -> ContinuousProcessingTimeTrigger[Any]:
        """Return a trigger that fires every `interval` of the wall clock."""
        return ContinuousProcessingTimeTrigger(to_millis(interval))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        if ctx.get_partitioned_state(self._fire_time).get() is None:
            now_ms = ctx.get_current_processing_time()
            ctx.register_processing_time_timer(self._next(now_ms, window.max_timestamp(), ctx))
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        following = ctx.get_partitioned_state(self._fire_time)
        if following.get() != time:
            return TriggerResult.CONTINUE
        following.clear()
        ctx.register_processing_time_timer(self._next(time, window.max_timestamp(), ctx))
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        earliest = self._merge_times(ctx)
        if earliest is not None:
            ctx.register_processing_time_timer(earliest)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        time = self._remove(ctx)
        if time is not None:
            ctx.delete_processing_time_timer(time)

    def _next(self, time: int, end: int, ctx: TriggerContext) -> int:
        following = time - time % self.interval + self.interval
        return self._store(end if time < end < following else following, ctx)


__all__ = ["ContinuousEventTimeTrigger", "ContinuousProcessingTimeTrigger"]
