"""Tracebacks as the user of this package wants them: the frames of the program, none of the package's own."""

from __future__ import annotations

import traceback
from types import TracebackType

from .errors import described

_PACKAGE = __name__.partition(".")[0]


def users_traceback(error: BaseException, tb: TracebackType | None = None) -> str:
    """The error and what it was raised from, as `traceback` prints them, without a frame of this package.

    An error in which the program had no part is its name and text alone. What it was raised from is left out where the
    program had no part in that, and all behind it as well.

    Args:
        tb: where the error's own traceback begins; None: at its first frame.
    """
    tb = error.__traceback__ if tb is None else tb
    told = traceback.TracebackException(type(error), error, tb)
    _strip(told, error, tb)
    if not told.stack and told.__cause__ is None and told.__context__ is None:
        return described(error)
    return "".join(told.format())


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
        if all(_is_own(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(tb)):
            link.__cause__ = link.__context__ = None
            return
        link = behind


def _is_own(module: object) -> bool:
    return str(module) == _PACKAGE or str(module).startswith(f"{_PACKAGE}.")


__all__ = ["users_traceback"]
