"""The line of the user's program that made something."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.partition(".")[0]


def call_site() -> str:
    """Return "file:line in function" of the innermost caller outside this package, or "" where there is none.

    The file is as the interpreter names it; at the top level of a module the function is "<module>".
    """
    frame = _users_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def warn_user(message: str) -> None:
    """Give a UserWarning for the line that `call_site` names."""
    frame = _users_frame()
    if frame is None:
        warnings.warn(message, UserWarning, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=registry)


def _users_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module != _PACKAGE and not module.startswith(f"{_PACKAGE}."):
            return frame
        frame = frame.f_back
    return None
