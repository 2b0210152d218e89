"""Windows of time, and the assigners that say which of them a record belongs to, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from ..common.time import Duration, Time, to_millis
from .triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger

Length = Duration | Time | timedelta | int


class TimeWindow(NamedTuple):
    """The interval [start, end) in epoch milliseconds. It is only a name: what it holds is in keyed state.

    >>> TimeWindow(0, 10).max_timestamp()
    9
    """

    start: int
    end: int

    def max_timestamp(self) -> int:
        """The greatest timestamp that belongs to the window."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the windows overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))


class WindowAssignerContext(ABC):
    """What an assigner may ask."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Epoch milliseconds of the task's wall clock."""


class WindowAssigner(ABC):
    """Places each record into windows; stateless."""

    @abstractmethod
    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Iterable[Any]:
        """The windows of `element`; none is allowed."""

    @abstractmethod
    def get_default_trigger(self) -> Trigger:
        """The trigger used where the user names none."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by event time; else by processing time."""


class AlignedWindows(WindowAssigner):
    """Windows of one size that start every `slide` milliseconds, the same for all keys.

    Args:
        size_ms: length of a window, above 0.
        slide_ms: distance of two starts, above 0.
        offset_ms: shifts all starts; in (-slide_ms, slide_ms).

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(self, size_ms: int, slide_ms: int, offset_ms: int = 0) -> None:
        if size_ms <= 0 or slide_ms <= 0 or abs(offset_ms) >= slide_ms:
            raise ValueError(
                f"{type(self).__name__} needs a size and a slide above 0 and an offset nearer to 0 than the slide, "
                f"got size {size_ms} ms, slide {slide_ms} ms, offset {offset_ms} ms"
            )
        self.size_ms, self.slide_ms, self.offset_ms = size_ms, slide_ms, offset_ms

    def last_start(self, timestamp: int) -> int:
        """Start of the latest window that begins at or before `timestamp`."""
        return timestamp - (timestamp - self.offset_ms) % self.slide_ms

    def windows_from(self, last_start: int, timestamp: int) -> list[TimeWindow]:
        """The windows of `timestamp`, whose latest start is given: the latest first.

        >>> SlidingEventTimeWindows.of(10, 5).windows_from(5, 7)
        [TimeWindow(start=5, end=15), TimeWindow(start=0, end=10)]
        """
        size = self.size_ms
        return [TimeWindow(start, start + size) for start in range(last_start, timestamp - size, -self.slide_ms)]

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> list[TimeWindow]:
        if not self.is_event_time():
            timestamp = context.get_current_processing_time()
        return self.windows_from(self.last_start(timestamp), timestamp)

    def get_default_trigger(self) -> Trigger:
        return EventTimeTrigger() if self.is_event_time() else ProcessingTimeTrigger()

    def __repr__(self) -> str:
        slide = "" if self.slide_ms == self.size_ms else f", {self.slide_ms}"
        return f"{type(self).__name__}({self.size_ms}{slide})"


class _Tumbling(AlignedWindows):
    @classmethod
    def of(cls, size: Length, offset: Length = 0) -> Any:
        """Windows of `size`, one after the other, from the epoch shifted by `offset`.

        Raises:
            ValueError: the size is not above 0, or the offset not below it.
        """
        size_ms = to_millis(size)
        return cls(size_ms, size_ms, to_millis(offset))


class _Sliding(AlignedWindows):
    @classmethod
    def of(cls, size: Length, slide: Length, offset: Length = 0) -> Any:
        """Windows of `size` that begin every `slide`, from the epoch shifted by `offset`.

        Raises:
            ValueError: size or slide is not above 0, or the offset not below the slide.
        """
        return cls(to_millis(size), to_millis(slide), to_millis(offset))


class TumblingEventTimeWindows(_Tumbling):
    """Windows that do not overlap, by the records' timestamps."""

    def is_event_time(self) -> bool:
        return True


class TumblingProcessingTimeWindows(_Tumbling):
    """Windows that do not overlap, by the wall clock."""

    def is_event_time(self) -> bool:
        return False


class SlidingEventTimeWindows(_Sliding):
    """Windows that overlap, by the records' timestamps."""

    def is_event_time(self) -> bool:
        return True


class SlidingProcessingTimeWindows(_Sliding):
    """Windows that overlap, by the wall clock."""

    def is_event_time(self) -> bool:
        return False


__all__ = [
    "AlignedWindows", "SlidingEventTimeWindows", "SlidingProcessingTimeWindows", "TimeWindow",
    "TumblingEventTimeWindows", "TumblingProcessingTimeWindows", "WindowAssigner", "WindowAssignerContext",
]  # fmt: skip
