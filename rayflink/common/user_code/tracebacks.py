"""Tracebacks as the user of this package wants them: the frames of the program, none of the package's own."""

from __future__ import annotations

import sys
import traceback
from types import FrameType, TracebackType

from ..errors import described
from ..text_output.bounded_text import TookTooLong, cut, within_deadline

_PACKAGE = __name__.partition(".")[0]
_LIBRARIES = (sys.stdlib_module_names | {"pyarrow"}) - {"__main__"}
_LONGEST_LINE = 2_000
_MOST_LINES = 400
_LONGEST_TEXT = 20_000


def users_traceback(error: BaseException, tb: TracebackType | None = None) -> str:
    """Return the error and what it was raised from, as `traceback` prints them, without a frame of this package.

    An error in which the program had no part is its name and message alone; Python's own modules and pyarrow's are no
    part of it. What it was raised from is left out where the program had no part in that, and all behind it as well.
    Lines and messages that are too long for people are cut.

    Args:
        tb: where the error's own traceback begins; None: at its first frame.
    """
    tb = error.__traceback__ if tb is None else tb
    summary = _summary(error, tb)
    _strip(summary, error, tb)
    if not _is_users(tb) and summary.__cause__ is None and summary.__context__ is None:
        return _bounded(described(error))
    return _bounded("".join(summary.format()))


def full_traceback(error: BaseException) -> str:
    """Return the error and what it was raised from, with all frames; long lines and strings are cut."""
    return _bounded("".join(_summary(error, error.__traceback__).format()))


def _summary(error: BaseException, tb: TracebackType | None) -> traceback.TracebackException:
    """Return the summary of an error without the messages that are slow, its own or one it was raised from."""
    try:
        summary: traceback.TracebackException = within_deadline(
            lambda: traceback.TracebackException(type(error), error, tb)
        )
    except (TookTooLong, RuntimeError):  # threads may be used up, too
        text = described(error).partition(": ")[2]
        return traceback.TracebackException(type(error), Exception(text), tb)
    link: traceback.TracebackException | None = summary
    while link is not None:
        _shorten_texts(link)
        link = link.__cause__ or link.__context__
    return summary


def _shorten_texts(link: traceback.TracebackException) -> None:
    """Cut what an error says, so that no copies of something huge are made of it."""
    text = getattr(link, "_str", None)
    if isinstance(text, str) and len(text) > _LONGEST_TEXT:
        link._str = cut(text, _LONGEST_TEXT)  # type: ignore[attr-defined]
    notes = getattr(link, "__notes__", None)
    if isinstance(notes, list):
        shortened = [cut(note, _LONGEST_TEXT) if isinstance(note, str) else note for note in notes]
        link.__notes__ = shortened  # type: ignore[attr-defined]  # of Python 3.11 and later
    for member in getattr(link, "exceptions", None) or ():
        _shorten_texts(member)


def _strip(summary: traceback.TracebackException, error: BaseException, tb: TracebackType | None) -> None:
    link: traceback.TracebackException | None = summary
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


def is_of_program(frame: FrameType) -> bool:
    """Return whether it is a frame of the program, and of no package that is installed."""
    module, path = frame.f_globals.get("__name__"), frame.f_code.co_filename
    if _is_own(module) or str(module).partition(".")[0] in _LIBRARIES:
        return False
    return "site-packages" not in path and "dist-packages" not in path and not path.startswith("<frozen")


def _is_users(tb: TracebackType | None) -> bool:
    """Return whether a frame of the program is in it."""
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


__all__ = ["full_traceback", "is_of_program", "users_traceback"]
