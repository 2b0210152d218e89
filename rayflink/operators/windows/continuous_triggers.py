"""Triggers that fire again and again while a window is open, with PyFlink's names."""

from __future__ import annotations

from typing import Any

from rayflink.common.functions.type_variables import Input
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.time import Length, to_millis
from rayflink.state.descriptors import ReducingStateDescriptor

from .triggers import OnMergeContext, Trigger, TriggerContext, TriggerResult


class _Continuous(Trigger[Input, Any]):
    """A trigger with an interval and, in state, the time of its next firing.

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

    def can_merge(self) -> bool:
        return True

    def _next(self, time: int, window: Any, ctx: TriggerContext) -> int:
        """Store and return when the window fires next after `time`, at its end at the latest."""
        following = min(time + self.interval, int(window.max_timestamp()))
        ctx.get_partitioned_state(self._fire_time).add(following)
        return following

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
            ctx.register_event_time_timer(self._next(timestamp - timestamp % self.interval, window, ctx))
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
            ctx.register_event_time_timer(self._next(time, window, ctx))
        return TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._fire_time)
        following = ctx.get_partitioned_state(self._fire_time).get()
        if following is not None:
            ctx.register_event_time_timer(following)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        following = ctx.get_partitioned_state(self._fire_time)
        if following.get() is not None:
            ctx.delete_event_time_timer(following.get())
            following.clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class ContinuousProcessingTimeTrigger(_Continuous[Input]):
    """Fires each time the interval has passed on the wall clock while the window is open.

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
            ctx.register_processing_time_timer(self._next(now_ms - now_ms % self.interval, window, ctx))
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        following = ctx.get_partitioned_state(self._fire_time)
        if following.get() != time:
            return TriggerResult.CONTINUE
        following.clear()
        if time < window.max_timestamp():
            ctx.register_processing_time_timer(self._next(time, window, ctx))
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._fire_time)
        following = ctx.get_partitioned_state(self._fire_time).get()
        if following is not None:
            ctx.register_processing_time_timer(following)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        following = ctx.get_partitioned_state(self._fire_time)
        if following.get() is not None:
            ctx.delete_processing_time_timer(following.get())
            following.clear()


__all__ = ["ContinuousEventTimeTrigger", "ContinuousProcessingTimeTrigger"]
