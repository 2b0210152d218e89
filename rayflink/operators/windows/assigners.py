"""Window assigners, which say which windows a record belongs to, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from rayflink.common.functions.type_variables import Input, WindowType
from rayflink.common.time import Length, to_millis

from .triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from .window import TimeWindow

A = TypeVar("A", bound="AlignedWindows[Any]")
_MOST_WINDOWS = 10_000_000
"""Most windows of one record; each gives a result when it ends, so more can only be a mistake in a unit of time."""


class WindowAssignerContext(ABC):
    """The clock and the runtime context, for an assigner."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Return the epoch milliseconds of the task's wall clock."""

    @abstractmethod
    def get_runtime_context(self) -> Any:
        """Return the `RuntimeContext`, with the state of the record's key."""


_Context = WindowAssignerContext


class WindowAssigner(ABC, Generic[Input, WindowType]):
    """Places each record into windows; what it remembers of a key is in state."""

    WindowAssignerContext = WindowAssignerContext

    @abstractmethod
    def assign_windows(self, element: Input, timestamp: int, context: _Context) -> Iterable[WindowType]:
        """Return the windows of `element`, which may be none."""

    @abstractmethod
    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        """Return the trigger used where the user names none; `env` is the program's environment."""

    def get_window_serializer(self) -> Any:
        """Return None: windows in state are pickled."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return whether windows end by event time; otherwise they end by processing time."""


class AlignedWindows(WindowAssigner[Input, TimeWindow]):
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
                f"found size {size_ms} ms, slide {slide_ms} ms, offset {offset_ms} ms"
            )
        if size_ms // slide_ms > _MOST_WINDOWS:
            raise ValueError(
                f"{type(self).__name__} of size {size_ms} ms and slide {slide_ms} ms puts each record into "
                f"{size_ms // slide_ms} windows, at most {_MOST_WINDOWS} are allowed; choose a longer slide"
            )
        self.size_ms, self.slide_ms, self.offset_ms = size_ms, slide_ms, offset_ms

    def last_start(self, timestamp: int) -> int:
        """Return the start of the latest window that begins at or before `timestamp`."""
        return timestamp - (timestamp - self.offset_ms) % self.slide_ms

    def windows_from(self, last_start: int, timestamp: int) -> list[TimeWindow]:
        """Return the windows of `timestamp`, whose latest start is given: the latest first.

        >>> SlidingEventTimeWindows.of(10, 5).windows_from(5, 7)
        [TimeWindow(start=5, end=15), TimeWindow(start=0, end=10)]
        """
        size = self.size_ms
        return [TimeWindow(start, start + size) for start in range(last_start, timestamp - size, -self.slide_ms)]

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> list[TimeWindow]:
        if not self.is_event_time():
            timestamp = context.get_current_processing_time()
        return self.windows_from(self.last_start(timestamp), timestamp)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger() if self.is_event_time() else ProcessingTimeTrigger()

    def __repr__(self) -> str:
        slide = "" if self.slide_ms == self.size_ms else f", {self.slide_ms}"
        return f"{type(self).__name__}({self.size_ms}{slide})"


class _Tumbling(AlignedWindows[Input]):
    def __init__(self, size: int, offset: int = 0) -> None:
        super().__init__(size, size, offset)

    @classmethod
    def of(cls: type[A], size: Length, offset: Length | None = None) -> A:
        """Return an assigner of consecutive windows of `size`, aligned with the epoch shifted by `offset`.

        Raises:
            ValueError: the size is not above 0, or the offset not below it.
        """
        return cls(to_millis(size), to_millis(offset or 0))


class _Sliding(AlignedWindows[Input]):
    def __init__(self, size: int, slide: int, offset: int = 0) -> None:
        super().__init__(size, slide, offset)

    @classmethod
    def of(cls: type[A], size: Length, slide: Length, offset: Length | None = None) -> A:
        """Return an assigner of windows of `size` that begin every `slide`, aligned with the epoch shifted by `offset`.

        Raises:
            ValueError: size or slide is not above 0, or the offset not below the slide.
        """
        return cls(to_millis(size), to_millis(slide), to_millis(offset or 0))


class TumblingEventTimeWindows(_Tumbling[Input]):
    """Windows that do not overlap, by the records' timestamps."""

    def is_event_time(self) -> bool:
        return True


class TumblingProcessingTimeWindows(_Tumbling[Input]):
    """Windows that do not overlap, by the wall clock."""

    def is_event_time(self) -> bool:
        return False


class SlidingEventTimeWindows(_Sliding[Input]):
    """Windows that overlap, by the records' timestamps."""

    def is_event_time(self) -> bool:
        return True


class SlidingProcessingTimeWindows(_Sliding[Input]):
    """Windows that overlap, by the wall clock."""

    def is_event_time(self) -> bool:
        return False


__all__ = [
    "AlignedWindows", "SlidingEventTimeWindows", "SlidingProcessingTimeWindows", "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows", "WindowAssigner", "WindowAssignerContext",
]  # fmt: skip
