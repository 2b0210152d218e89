"""A trigger that fires when records have changed enough; PyFlink has none, the names are those of Flink's Java API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rayflink.common.functions.type_variables import Input, WindowType
from rayflink.state.descriptors import ValueStateDescriptor

from .triggers import Trigger, TriggerContext, TriggerResult


def delta_of(delta_function: Any) -> Callable[[Any, Any], float]:
    """Return the callable that measures how much two records differ: itself, or the `get_delta` of an object.

    Raises:
        TypeError: it is neither a callable nor such an object.
    """
    function = getattr(delta_function, "get_delta", delta_function)
    if isinstance(delta_function, type) or not callable(function):
        raise TypeError(f"a delta function is a callable of the old and the new record, found {delta_function!r:.100}")
    return function  # type: ignore[no-any-return]


class DeltaTrigger(Trigger[Input, WindowType]):
    """Fires when a record differs by more than a threshold from the one at which the window fired last.

    The first record of a window is the first to compare with, and does not fire.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> from rayflink.datastream.window import GlobalWindows
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> windows = env.from_collection([("a", n) for n in (10, 12, 14, 15, 21)]).key_by(0).window(GlobalWindows.create())
    >>> trigger = DeltaTrigger.of(3, lambda old, new: new[1] - old[1])
    >>> list(windows.trigger(trigger).max(1).execute_and_collect())
    [('a', 14), ('a', 21)]

    Args:
        threshold: a difference above it fires.
        delta_function: returns the difference of two records: the one that fired last, and the new one.
    """

    def __init__(self, threshold: float, delta_function: Callable[[Any, Any], float]) -> None:
        self._threshold, self._delta = threshold, delta_of(delta_function)
        self._last = ValueStateDescriptor("last-element")

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float]) -> DeltaTrigger[Any, Any]:
        """Return a trigger that fires at differences above `threshold`.

        Raises:
            TypeError: the delta function cannot be called.
        """
        return DeltaTrigger(threshold, delta_function)

    def on_element(self, element: Input, timestamp: int, window: WindowType, ctx: TriggerContext) -> TriggerResult:
        last = ctx.get_partitioned_state(self._last)
        before = last.value()
        if before is None:
            last.update(element)
            return TriggerResult.CONTINUE
        if self._delta(before, element) <= self._threshold:
            return TriggerResult.CONTINUE
        last.update(element)
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: WindowType, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: WindowType, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: WindowType, ctx: TriggerContext) -> None:
        ctx.get_partitioned_state(self._last).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self._threshold})"


__all__ = ["DeltaTrigger", "delta_of"]
