"""Finds a function of the program that does not return, from outside the thread it runs in."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from rayflink.common.user_code.tracebacks import is_of_program
from rayflink.operators.base import Operator

STALLED_AFTER_S = 10.0
"""A step that takes so long is reported."""
WARN_AFTER_S = 60.0
"""One that takes so long is a warning in the log, once a task."""


class StepWatch:
    """Records since when a thread has been in its step; the thread calls `begin` and `end`, others ask `stalled`.

    Args:
        now: seconds, monotonic.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._thread = 0
        self._since: float | None = None

    def begin(self, now: float) -> None:
        """Record that the calling thread begins a step."""
        self._thread, self._since = threading.get_ident(), now

    def end(self) -> None:
        """Record that the thread waits; it runs nothing that can take long."""
        self._since = None

    def stalled(self) -> dict[str, Any] | None:
        """Return operator, place in the program and milliseconds of a step that takes long; None where none does."""
        since = self._since
        if since is None or self._now() - since < STALLED_AFTER_S:
            return None
        operator, place = running_code(sys._current_frames().get(self._thread))
        if self._since != since:  # it has returned meanwhile
            return None
        return {"operator": operator, "at": place, "ms": int((self._now() - since) * 1000)}


def running_code(frame: FrameType | None) -> tuple[str, str]:
    """Return the operator that a thread is in, and "file:line in function" of the program; each may be "".

    Args:
        frame: the innermost of the thread.
    """
    operator = place = ""
    for outer in _outwards(frame):
        if not place and is_of_program(outer):
            place = f"{outer.f_code.co_filename}:{outer.f_lineno} in {outer.f_code.co_name}"
        if not operator and outer.f_code.co_varnames[:1] == ("self",):
            method_of = outer.f_locals.get("self")
            operator = str(method_of.ctx.operator_name) if isinstance(method_of, Operator) else ""
    return operator, place


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


__all__ = ["STALLED_AFTER_S", "StepWatch", "running_code"]
