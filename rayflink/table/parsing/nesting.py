"""Statements that are nested more deeply than Python's limit of recursion allows."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from ..errors import SqlError

T = TypeVar("T")
_STACK_BYTES = 512 << 20
_FRAMES = 15_000
_alone = threading.Lock()
"""Limit and size of stacks are the process's."""


def deeply(call: Callable[[], T], text: str = "") -> T:
    """Call a function that walks a statement and changes nothing; where it is nested too deeply, again with more room.

    Raises:
        SqlError: that is not enough either.

    >>> deeply(lambda: len("SELECT 1"))
    8
    """
    try:
        return call()
    except RecursionError:
        return _with_more_room(call, text)


def too_deep(text: str = "") -> SqlError:
    """Return the error of a statement that is nested too deeply."""
    remedy = (
        "split it: use views for nested queries, IN (...) for many ORs, a function of your own for a long expression"
    )
    return SqlError("the statement is nested too deeply", remedy, text)


def _with_more_room(call: Callable[[], T], text: str) -> T:
    results: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except RecursionError:
            raised.append(too_deep(text))
        except BaseException as error:
            raised.append(error)

    with _alone:
        limit, stack = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
        try:
            sys.setrecursionlimit(max(limit, _FRAMES))
            thread = threading.Thread(target=run, name="rayflink-deep", daemon=True)
            thread.start()
            thread.join()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(limit)
    if raised:
        raise raised[0]
    return results[0]


__all__ = ["deeply", "too_deep"]
