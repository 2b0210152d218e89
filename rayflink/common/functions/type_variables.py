"""Type variables of functions and streams, for type checkers; a class whose parameters are left out has `Any` there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Record = TypeVar("Record", covariant=True, default=Any)
    Record2 = TypeVar("Record2", covariant=True, default=Any)
    Key = TypeVar("Key", covariant=True, default=Any)
    Input = TypeVar("Input", contravariant=True, default=Any)
    Input1 = TypeVar("Input1", contravariant=True, default=Any)
    Input2 = TypeVar("Input2", contravariant=True, default=Any)
    Output = TypeVar("Output", covariant=True, default=Any)
    Whole = TypeVar("Whole", default=Any)
    KeyInput = TypeVar("KeyInput", contravariant=True, default=Any)
    Window = TypeVar("Window", covariant=True, default=Any)
    First = TypeVar("First", covariant=True, default=Any)
    Second = TypeVar("Second", covariant=True, default=Any)
    Next = TypeVar("Next", covariant=True, default=Any)
    Element = TypeVar("Element", default=Any)
    WindowType = TypeVar("WindowType", default=Any)
    WindowInput = TypeVar("WindowInput", contravariant=True, default=Any)
    StateInput = TypeVar("StateInput", contravariant=True, default=Any)
    ContextKey = TypeVar("ContextKey", covariant=True, default=Any)
    ContextWindow = TypeVar("ContextWindow", covariant=True, default=Any)
else:
    from typing import TypeVar

    Record, Record2 = TypeVar("Record", covariant=True), TypeVar("Record2", covariant=True)
    Key = TypeVar("Key", covariant=True)
    Input = TypeVar("Input", contravariant=True)
    Input1, Input2 = TypeVar("Input1", contravariant=True), TypeVar("Input2", contravariant=True)
    Output = TypeVar("Output", covariant=True)
    Whole = TypeVar("Whole")
    KeyInput = TypeVar("KeyInput", contravariant=True)
    Window, WindowInput = TypeVar("Window", covariant=True), TypeVar("WindowInput", contravariant=True)
    StateInput = TypeVar("StateInput", contravariant=True)
    First, Second = TypeVar("First", covariant=True), TypeVar("Second", covariant=True)
    Next = TypeVar("Next", covariant=True)
    Element, WindowType = TypeVar("Element"), TypeVar("WindowType")
    ContextKey, ContextWindow = TypeVar("ContextKey", covariant=True), TypeVar("ContextWindow", covariant=True)

Result = TypeVar("Result")
"""The result type of one call: that of the function passed."""
Selected = TypeVar("Selected")
"""The key type of one call: that of the selector passed."""

__all__ = [
    "ContextKey", "ContextWindow", "Element", "First", "Input", "Input1", "Input2", "Key", "KeyInput", "Next", "Output",
    "Record", "Record2", "Result", "Second", "Selected", "StateInput", "Whole", "Window", "WindowInput", "WindowType",
]  # fmt: skip
