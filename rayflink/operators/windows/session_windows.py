"""Sessions: windows that reach from record to record and merge where they overlap or touch, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from operator import index
from typing import Any, Generic

from rayflink.common.functions.type_variables import Input, WindowType
from rayflink.common.time import Length, to_millis

from .assigners import WindowAssigner, WindowAssignerContext
from .triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from .window import TimeWindow


class MergeCallback(ABC, Generic[WindowType]):
    """A callback that is notified of windows to be merged."""

    @abstractmethod
    def merge(self, to_be_merged: Iterable[WindowType], merge_result: WindowType) -> None:
        """Merge the windows `to_be_merged` into `merge_result`."""


_Callback = MergeCallback


class MergingWindowAssigner(WindowAssigner[Input, WindowType]):
    """Places each record into a window of its own, and says which windows of a key then become one."""

    MergeCallback = MergeCallback
    merges_touching_only = False
    """Return whether only time windows merge, and only those that touch: others need not be compared."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[WindowType], callback: _Callback[WindowType]) -> None:
        """Call `callback.merge` for each group of windows that becomes one."""


class SessionWindowTimeGapExtractor(ABC):
    """Says for each record how long its session waits for the next one."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap after `element`, in milliseconds, above 0."""


class Sessions(MergingWindowAssigner[Input, TimeWindow]):
    """A record opens [timestamp, timestamp + gap)."""

    _event_time: bool
    merges_touching_only = True
    fixed_gap_ms: int | None = None
    """The gap, where it is the same for all records."""

    def merge_windows(self, windows: Iterable[TimeWindow], callback: _Callback[TimeWindow]) -> None:
        TimeWindow.merge_windows(windows, callback)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> list[TimeWindow]:
        start = timestamp if self._event_time else context.get_current_processing_time()
        return [TimeWindow(start, start + self.gap_ms(element))]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger() if self._event_time else ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return self._event_time

    @abstractmethod
    def gap_ms(self, element: Any) -> int:
        """Return how long the session of `element` waits for the next record."""


class _FixedSessions(Sessions[Input]):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise ValueError(f"{type(self).__name__} needs a gap above 0, found {session_gap} ms")
        self.fixed_gap_ms = session_gap

    def gap_ms(self, element: Any) -> int:
        return self.fixed_gap_ms  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fixed_gap_ms})"


class _DynamicSessions(Sessions[Input]):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]) -> None:
        extractor = session_window_time_gap_extractor
        extract = getattr(extractor, "extract", extractor)
        if isinstance(extractor, type) or not callable(extract):
            problem = f"a SessionWindowTimeGapExtractor or a callable of the record is wanted, found {extractor!r:.100}"
            raise TypeError(problem)
        self._extract = extract

    def gap_ms(self, element: Any) -> int:
        gap = self._extract(element)
        try:
            gap_ms = gap if gap.__class__ is int else to_millis(_index(gap))
        except TypeError as error:
            problem = f"the extractor of the gap gave {gap!r:.100} for this record"
            raise TypeError(f"{problem}, wanted milliseconds as int, or a Duration") from error
        if gap_ms <= 0:
            raise ValueError(f"the gap of a session is above 0 ms, and the extractor gave {gap_ms} for this record")
        return int(gap_ms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def are_plain_sessions(assigner: Any) -> bool:
    """Return whether the assigner makes sessions with their own trigger, unchanged by a derived class."""
    kind = type(assigner)
    return issubclass(kind, Sessions) and all(
        getattr(kind, method) is getattr(Sessions, method)
        for method in ("assign_windows", "merge_windows", "get_default_trigger", "is_event_time")
    )


def _index(gap: Any) -> Any:
    """Return an int where the value stands for one, as those of numpy do; else the value itself."""
    return index(gap) if hasattr(type(gap), "__index__") and not isinstance(gap, bool) else gap


class DynamicEventTimeSessionWindows(_DynamicSessions[Input]):
    """Sessions by the records' timestamps, whose gap each record says.

    Args:
        session_window_time_gap_extractor: a SessionWindowTimeGapExtractor, or a callable of the record.
    """

    _event_time = True

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows[Any]:
        """Return an assigner of sessions that end when no record has come for the gap of the previous one."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicSessions[Input]):
    """Sessions by the wall clock, whose gap each record says.

    Args:
        session_window_time_gap_extractor: a SessionWindowTimeGapExtractor, or a callable of the record.
    """

    _event_time = False

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows[Any]:
        """Return an assigner of sessions that end when no record has come for the gap of the previous one."""
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_FixedSessions[Input]):
    """Sessions by the records' timestamps: records at most the gap apart are in one.

    >>> from rayflink.common import Time
    >>> EventTimeSessionWindows.with_gap(Time.seconds(5))
    EventTimeSessionWindows(5000)

    Args:
        session_gap: milliseconds, above 0.
    """

    _event_time = True

    @staticmethod
    def with_gap(size: Length) -> EventTimeSessionWindows[Any]:
        """Return an assigner of sessions that end when no record has come for `size`.

        Raises:
            ValueError: it is not above 0.
        """
        return EventTimeSessionWindows(to_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows[Any]:
        """Return an assigner of sessions whose gap is extracted from each record."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedSessions[Input]):
    """Sessions by the wall clock: records at most the gap apart are in one.

    Args:
        session_gap: milliseconds, above 0.
    """

    _event_time = False

    @staticmethod
    def with_gap(size: Length) -> ProcessingTimeSessionWindows[Any]:
        """Return an assigner of sessions that end when no record has come for `size`.

        Raises:
            ValueError: it is not above 0.
        """
        return ProcessingTimeSessionWindows(to_millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows[Any]:
        """Return an assigner of sessions whose gap is extracted from each record."""
        return DynamicProcessingTimeSessionWindows(extractor)


__all__ = [
    "DynamicEventTimeSessionWindows", "DynamicProcessingTimeSessionWindows", "EventTimeSessionWindows",
    "MergingWindowAssigner", "ProcessingTimeSessionWindows", "SessionWindowTimeGapExtractor",
]  # fmt: skip
