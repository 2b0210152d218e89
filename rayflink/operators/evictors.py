"""What leaves a window between its firing and its function, or behind it.

PyFlink has no evictors; the names are those of Flink's Java API.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class TimestampedValue(Generic[T]):
    """A record of a window with its timestamp, epoch milliseconds; None where it has none."""

    value: T
    timestamp: int | None


class EvictorContext(ABC):
    """Clocks and metrics of the window an evictor is called for: those of `Trigger.TriggerContext`."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Epoch milliseconds of the task's wall clock."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """Epoch milliseconds of event time."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """Metric group of the operator."""


class Evictor(Generic[T, W]):
    """Takes records out of a window that fires; what it takes out is gone for later firings too.

    A window with an evictor keeps all its records, also where its function would need one result only.
    """

    def evict_before(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        """Take elements out before the window's function sees them.

        Args:
            elements: all of the window, in order of arrival; to be changed in place, as by `del elements[:2]`.
            size: their number.
        """

    def evict_after(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        """Take elements out when the function has seen them.

        Args:
            elements: those that `evict_before` has left; to be changed in place.
            size: their number before any was taken out.
        """


class CountEvictor(Evictor[T, W]):
    """Keeps the newest records.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> from rayflink.datastream.window import CountTrigger, GlobalWindows
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> windows = env.from_collection([("a", n) for n in (2, 5, 7, 9, 4, 2)]).key_by(0).window(GlobalWindows.create())
    >>> list(windows.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(4)).sum(1).execute_and_collect())
    [('a', 7), ('a', 23), ('a', 22)]

    Args:
        max_count: how many, at least 0.
        do_evict_after: take the others out behind the function instead of before it.
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        if max_count < 0:
            raise ValueError(f"CountEvictor needs a count of at least 0 records, got {max_count}")
        self._max_count, self._do_evict_after = max_count, do_evict_after

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor[Any, Any]:
        """Keeps the newest `max_count` records.

        Raises:
            ValueError: it is below 0.
        """
        return CountEvictor(max_count, do_evict_after)

    def evict_before(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        if not self._do_evict_after:
            self._evict(elements)

    def evict_after(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        if self._do_evict_after:
            self._evict(elements)

    def _evict(self, elements: list[TimestampedValue[T]]) -> None:
        del elements[: max(len(elements) - self._max_count, 0)]


__all__ = ["CountEvictor", "Evictor", "EvictorContext", "TimestampedValue"]
