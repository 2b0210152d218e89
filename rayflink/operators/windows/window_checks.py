"""Checks of the results of a user's assigner and trigger."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base import shortened
from .triggers import TriggerResult
from .window import CountWindow, GlobalWindow, TimeWindow, Window

_LIST = "give a list of windows, [] for a record that belongs to none"


def checked_windows(returned: Any) -> list[Any]:
    """Return the windows that an assigner gave, as a list.

    Raises:
        TypeError, ValueError: they are none.
    """
    if returned.__class__ is not list:
        if returned is None or isinstance(returned, (str, bytes, Window)) or not isinstance(returned, Iterable):
            raise TypeError(f"assign_windows gave {shortened(returned)}; {_LIST}")
        returned = list(returned)
    for window in returned:
        kind = window.__class__
        if kind is TimeWindow:
            start, end = window
            if not (_is_whole(start) and _is_whole(end)):
                raise TypeError(f"assign_windows gave {window}; start and end are whole milliseconds, as int")
            if end <= start:
                raise ValueError(f"assign_windows gave {window}; a window ends behind its start")
        elif kind is not GlobalWindow and kind is not CountWindow:
            _check_other(window)
    return returned  # type: ignore[no-any-return]


def _is_whole(number: Any) -> bool:
    return number.__class__ is int or hasattr(type(number), "__index__") and not isinstance(number, bool)


def _check_other(window: Any) -> None:
    if not callable(getattr(window, "max_timestamp", None)) or isinstance(window, type):
        problem = f"assign_windows gave {shortened(window)} among its windows"
        raise TypeError(f"{problem}, wanted TimeWindow(start, end) or a window of another class with max_timestamp()")
    try:
        hash(window)
    except TypeError:
        problem = f"assign_windows gave {shortened(window)}, which has no hash"
        raise TypeError(f"{problem}; write __hash__ beside __eq__, for state is found by window") from None
    if not any("__eq__" in vars(kind) for kind in type(window).__mro__[:-1]):
        problem = f"assign_windows gave {shortened(window)}, which equals nothing but itself"
        raise TypeError(f"{problem}; write __eq__ and __hash__, for state is found by window")
    last = window.max_timestamp()
    if not _is_whole(last):
        problem = f"max_timestamp of {shortened(window)} gave {shortened(last)}"
        raise TypeError(f"{problem}, wanted epoch milliseconds as int")


def checked_result(returned: Any, method: str) -> TriggerResult:
    """Return the result of a trigger.

    Raises:
        TypeError: it is no TriggerResult.
    """
    if returned.__class__ is TriggerResult:
        return returned
    problem = f"{method} of the trigger gave {shortened(returned)}, wanted a TriggerResult"
    raise TypeError(f"{problem}; end it with, for example, `return TriggerResult.CONTINUE`")


__all__ = ["checked_result", "checked_windows"]
