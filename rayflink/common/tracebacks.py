"""Tracebacks as the user of this package wants them: the frames of the program, none of the package's own."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from .errors import described

_PACKAGE = __name__.partition(".")[0]
_LIBRARIES = (sys.stdlib_module_names | {"pyarrow"}) - {"__main__"}
_LONGEST_LINE = 2_000
_MOST_LINES = 400


def users_traceback(error: BaseException, tb: TracebackType | None = None) -> str:
    """The error and what it was raised from, as `traceback` prints them, without a frame of this package.

    An error in which the program had no part is its name and text alone; Python's own modules and pyarrow's are no part
    of it. What it was raised from is left out where the program had no part in that, and all behind it as well. Lines
    and texts that are too long for people are cut.

    Args:
        tb: where the error's own traceback begins; None: at its first frame.
    """
    tb = error.__traceback__ if tb is None else tb
    told = traceback.TracebackException(type(error), error, tb)
    _strip(told, error, tb)
    if not _is_users(tb) and told.__cause__ is None and told.__context__ is None:
        return _bounded(described(error))
    return _bounded("".join(told.format()))


def _strip(told: traceback.TracebackException, error: BaseException, tb: TracebackType | None) -> None:
    link: traceback.TracebackException | None = told
    source: BaseException | None = error
    while link is not None and source is not None:
        own = [_is_own(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(tb)]
        link.stack[:] = [frame for frame, ours in zip(link.stack, own, strict=False) if not ours]
        by_cause = link.__cause__ is not None
        behind = link.__cause__ if by_cause else None if link.__suppress_context__ else link.__context__
        source = source.__cause__ if by_cause else source.__context__
        tb = None if source is None else source.__traceback__
        if not _is_users(tb):
            link.__cause__ = link.__context__ = None
            return
        link = behind


def _is_users(tb: TracebackType | None) -> bool:
    """Whether a frame of the program is in it."""
    for frame, _ in traceback.walk_tb(tb):
        module = frame.f_globals.get("__name__")
        if not _is_own(module) and str(module).partition(".")[0] not in _LIBRARIES:
            return True
    return False


def _bounded(text: str) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) > _MOST_LINES:
        half, left_out = _MOST_LINES // 2, len(lines) - _MOST_LINES
        lines = [*lines[:half], f"... ({left_out} lines)\n", *lines[-half:]]
    return "".join(line if len(line) <= _LONGEST_LINE else _cut(line) for line in lines)


def _cut(line: str) -> str:
    return f"{line[:_LONGEST_LINE]}... ({len(line)} characters)" + ("\n" if line.endswith("\n") else "")


def _is_own(module: object) -> bool:
    return str(module) == _PACKAGE or str(module).startswith(f"{_PACKAGE}.")


__all__ = ["users_traceback"]
