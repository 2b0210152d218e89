"""Places of a notebook that are drawn on again: a widget where ipywidgets is installed, else HTML and text."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from typing import Protocol

__all__ = ["Canvas", "canvas", "current_cell", "show_elsewhere"]


class Canvas(Protocol):
    """The place where a view is drawn."""

    def draw(self, html: str, text: str, is_last: bool) -> None:
        """Draw in the place of what was drawn before."""


def canvas(label: str, stop: Callable[[], None]) -> Canvas:
    """Return the place to draw on that there is: a widget, an output of a notebook, or a terminal.

    Args:
        label: of the button of a widget.
        stop: is called in a thread of its own when the button is pressed.
    """
    if importlib.util.find_spec("IPython") is None:
        return _Terminal()
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return _Terminal()
    return _Output() if importlib.util.find_spec("ipywidgets") is None else _Widget(label, stop)


def current_cell() -> int | None:
    """Return the number of the cell that runs; None: there is no notebook."""
    if importlib.util.find_spec("IPython") is None:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return shell.execution_count if shell is not None and hasattr(shell, "kernel") else None


def show_elsewhere(view: object, cell: int | None) -> None:
    """Show a view in a line, but not in the cell that draws it.

    Args:
        cell: in which the view is drawn; None: there is no notebook.
    """
    from IPython.display import display

    if cell is None or cell != current_cell():
        display({"text/plain": repr(view)}, raw=True)  # type: ignore[no-untyped-call]


class _Terminal:
    """Prints the last state alone, as a terminal has no place to draw on."""

    def draw(self, html: str, text: str, is_last: bool) -> None:
        if is_last:
            print(text)


class _Output:
    """An output of a cell, in HTML and as text, which is replaced."""

    def __init__(self) -> None:
        from IPython.display import DisplayHandle

        self._handle = DisplayHandle()  # type: ignore[no-untyped-call]
        self._is_shown = False

    def draw(self, html: str, text: str, is_last: bool) -> None:
        content = {"text/html": html, "text/plain": text}
        if self._is_shown:
            self._handle.update(content, raw=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.display(content, raw=True)  # type: ignore[no-untyped-call]
            self._is_shown = True


class _Widget:
    """An output of a cell below a button that ends what is shown.

    Args:
        label: of the button.
        stop: is called in a thread of its own when the button is pressed.
    """

    def __init__(self, label: str, stop: Callable[[], None]) -> None:
        import ipywidgets  # type: ignore[import-untyped]
        from IPython.display import display

        self._button = ipywidgets.Button(description=label)
        self._button.on_click(lambda _: threading.Thread(target=stop, daemon=True).start())
        display(self._button)  # type: ignore[no-untyped-call]
        self._output = _Output()

    def draw(self, html: str, text: str, is_last: bool) -> None:
        if is_last:
            self._button.disabled, self._button.description = True, "Ended"
        self._output.draw(html, text, is_last)
