"""Windows by count of records, and the one window of all records, with PyFlink's names."""

from __future__ import annotations

from typing import Any

from rayflink.common.functions.type_variables import Input
from rayflink.state.descriptors import ValueStateDescriptor

from .assigners import WindowAssigner, WindowAssignerContext
from .triggers import CountTrigger, NeverTrigger, PurgingTrigger, Trigger
from .window import CountWindow, GlobalWindow


class _Counted(WindowAssigner[Input, CountWindow]):
    """Counts the records of each key in state; a full window is evaluated and dropped."""

    def __init__(self, window_size: int, window_slide: int, state_name: str) -> None:
        if window_size < 1 or window_slide < 1:
            name, problem = type(self).__name__, f"found size {window_size}, slide {window_slide}"
            raise ValueError(f"{name} needs a size and a slide of at least 1 record, {problem}")
        self._window_size, self._window_slide = window_size, window_slide
        self._count = ValueStateDescriptor(state_name)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> list[CountWindow]:
        state = context.get_runtime_context().get_state(self._count)
        count: int = state.value() or 0
        state.update(count + 1)
        last, size, slide = count // self._window_slide, self._window_size, self._window_slide
        first = max(0, (count - size) // slide + 1)
        return [CountWindow(number) for number in range(last, first - 1, -1)]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return PurgingTrigger.of(CountTrigger.of(self._window_size))

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(_Counted[Input]):
    """Windows of a fixed number of records of a key, one after the other.

    Args:
        window_size: records in a window, at least 1.
    """

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, window_size, "tumble-count-assigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner[Any]:
        """Return an assigner of windows of `window_size` records.

        Raises:
            ValueError: it is below 1.
        """
        return CountTumblingWindowAssigner(window_size)

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(_Counted[Input]):
    """Windows of a fixed number of records of a key that begin every few records. Only full windows are evaluated, as
    in PyFlink.

    Args:
        window_size: records in a window, at least 1.
        window_slide: records between the starts of two windows, at least 1.
    """

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size, window_slide, "slide-count-assigner")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner[Any]:
        """Return an assigner of windows of `window_size` records that begin every `window_slide` records.

        Raises:
            ValueError: one of them is below 1.
        """
        return CountSlidingWindowAssigner(window_size, window_slide)

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"


class GlobalWindows(WindowAssigner[Input, GlobalWindow]):
    """One window for all records of a key; it needs a trigger, for by itself it never fires."""

    @staticmethod
    def create() -> GlobalWindows[Any]:
        """Return the assigner."""
        return GlobalWindows()

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> list[GlobalWindow]:
        return [_GLOBAL]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return NeverTrigger()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


_GLOBAL = GlobalWindow.get()

__all__ = ["CountSlidingWindowAssigner", "CountTumblingWindowAssigner", "GlobalWindows"]
