"""Evictors: rules that remove records from a window that fires, before or after its function.

PyFlink has no evictors; the names are those of Flink's Java API.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from rayflink.common.functions.type_variables import Element, WindowType
from rayflink.common.time import Length, to_millis

from .delta_trigger import delta_of


@dataclass(frozen=True, slots=True)
class TimestampedValue(Generic[Element]):
    """A record of a window with its timestamp, epoch milliseconds; None where it has none."""

    value: Element
    timestamp: int | None


class EvictorContext(ABC):
    """Clocks and metrics of the window an evictor is called for: those of `Trigger.TriggerContext`."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Return the epoch milliseconds of the task's wall clock."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """Return the epoch milliseconds of event time."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """Return the metric group of the operator."""


class Evictor(Generic[Element, WindowType]):
    """Takes records out of a window that fires; what it takes out is gone for later firings too.

    A window with an evictor keeps all its records, also where its function would need one result only.
    """

    def evict_before(
        self, elements: list[TimestampedValue[Element]], size: int, window: WindowType, ctx: EvictorContext
    ) -> None:
        """Take elements out before the window's function sees them.

        Args:
            elements: all of the window, in order of arrival; to be changed in place, as by `del elements[:2]`.
            size: their number.
        """

    def evict_after(
        self, elements: list[TimestampedValue[Element]], size: int, window: WindowType, ctx: EvictorContext
    ) -> None:
        """Take elements out when the function has seen them.

        Args:
            elements: those that `evict_before` has left; to be changed in place.
            size: their number before any was taken out.
        """


class _OnOneSide(Evictor[Element, WindowType]):
    """Takes records out before the window's function, or behind it."""

    def __init__(self, do_evict_after: bool) -> None:
        self._do_evict_after = do_evict_after

    def evict_before(
        self, elements: list[TimestampedValue[Element]], size: int, window: WindowType, ctx: EvictorContext
    ) -> None:
        if not self._do_evict_after:
            self._evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue[Element]], size: int, window: WindowType, ctx: EvictorContext
    ) -> None:
        if self._do_evict_after:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue[Element]]) -> None:
        """Take elements out."""


class CountEvictor(_OnOneSide[Element, WindowType]):
    """Keeps the newest records.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> from rayflink.datastream.window import CountTrigger, GlobalWindows
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> windows = env.from_collection([("a", n) for n in (2, 5, 7, 9, 4, 2)]).key_by(0).window(GlobalWindows.create())
    >>> list(windows.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(4)).sum(1).execute_and_collect())
    [('a', 7), ('a', 23), ('a', 22)]

    Args:
        max_count: how many, at least 0.
        do_evict_after: remove the others after the function, not before it.
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        if max_count < 0:
            raise ValueError(f"CountEvictor needs a count of at least 0 records, found {max_count}")
        super().__init__(do_evict_after)
        self._max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor[Any, Any]:
        """Return an evictor that keeps the newest `max_count` records.

        Raises:
            ValueError: it is below 0.
        """
        return CountEvictor(max_count, do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Element]]) -> None:
        del elements[: max(len(elements) - self._max_count, 0)]


class TimeEvictor(_OnOneSide[Element, WindowType]):
    """Keeps the records that are less than so long before the newest one, by their timestamps.

    Records without timestamps all stay.

    >>> TimeEvictor.of(1000)
    TimeEvictor(1000)

    Args:
        window_size: milliseconds, above 0.
        do_evict_after: remove the others after the function, not before it.
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        if window_size <= 0:
            raise ValueError(f"TimeEvictor needs a time above 0, found {window_size} ms")
        super().__init__(do_evict_after)
        self._window_size = window_size

    @staticmethod
    def of(window_size: Length, do_evict_after: bool = False) -> TimeEvictor[Any, Any]:
        """Return an evictor that keeps the records of the last `window_size`.

        Raises:
            ValueError: it is not above 0.
        """
        return TimeEvictor(to_millis(window_size), do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Element]]) -> None:
        stamps = [element.timestamp for element in elements if element.timestamp is not None]
        if stamps and len(stamps) == len(elements):
            until = max(stamps) - self._window_size
            elements[:] = [element for element, stamp in zip(elements, stamps, strict=True) if stamp > until]

    def __repr__(self) -> str:
        return f"TimeEvictor({self._window_size})"


class DeltaEvictor(_OnOneSide[Element, WindowType]):
    """Keeps the records that differ from the newest one by less than a threshold.

    >>> evictor = DeltaEvictor.of(3, lambda old, new: new - old)
    >>> elements = [TimestampedValue(n, None) for n in (1, 5, 4, 7)]
    >>> evictor.evict_before(elements, 4, None, None)
    >>> [element.value for element in elements]
    [5, 7]

    Args:
        threshold: what differs by as much as that goes.
        delta_function: old record, newest record -> how much they differ.
        do_evict_after: remove the others after the function, not before it.
    """

    def __init__(
        self, threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False
    ) -> None:
        super().__init__(do_evict_after)
        self._threshold, self._delta = threshold, delta_of(delta_function)

    @staticmethod
    def of(
        threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False
    ) -> DeltaEvictor[Any, Any]:
        """Return an evictor that keeps the records nearer to the newest one than `threshold`.

        Raises:
            TypeError: the delta function is none.
        """
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _evict(self, elements: list[TimestampedValue[Element]]) -> None:
        if elements:
            newest, delta, threshold = elements[-1].value, self._delta, self._threshold
            elements[:] = [element for element in elements if delta(element.value, newest) < threshold]


__all__ = ["CountEvictor", "DeltaEvictor", "Evictor", "EvictorContext", "TimeEvictor", "TimestampedValue"]
