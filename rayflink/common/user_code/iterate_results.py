"""Results of a function that should have given several records, and cannot be drawn from."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from rayflink.user_types import UserRecord, UserValue

from ..errors import RayflinkError, shorten


class NotIterable(RayflinkError, TypeError):
    """A function that gives any number of records gave what is no iterable of them.

    Args:
        result: type and shortened form of what it gave.
        remedy: what to write instead.
    """

    def __init__(self, result: str, remedy: str) -> None:
        super().__init__(result, remedy)
        self.result, self.remedy = result, remedy

    def __str__(self) -> str:
        return f"the function gave {self.result}, wanted an iterable of records; {self.remedy}"


def iterate_results(results: UserValue, remedy: str | None = None) -> Iterator[UserRecord]:
    """Return an iterator over what a function gave.

    Args:
        remedy: as of `not_iterable`.

    Raises:
        NotIterable: it is no iterable.

    >>> list(iterate_results([1, 2]))
    [1, 2]
    >>> iterate_results(5)
    Traceback (most recent call last):
    rayflink.common.user_code.iterate_results.NotIterable: the function gave int 5, wanted an iterable of records; \
yield each record, or give a list of them; map() is for one record each
    """
    try:
        return iter(results)
    except TypeError:
        if hasattr(type(results), "__iter__"):
            raise  # the user's __iter__ raised it
        raise not_iterable(results, remedy) from None


def not_iterable(result: object, remedy: str | None = None) -> NotIterable:
    """Return the error for what cannot be drawn from.

    Args:
        remedy: of an async function; None: of a plain one.
    """
    description = f"{type(result).__name__} {shorten(result, 80)}"
    if inspect.iscoroutine(result):
        result.close()  # it will not be awaited, which Python would warn of
    if remedy is not None:
        return NotIterable(description, remedy)
    if hasattr(result, "__aiter__") or inspect.isawaitable(result):
        return NotIterable(description, "make it a plain function: 'def' in place of 'async def'")
    return NotIterable(description, "yield each record, or give a list of them; map() is for one record each")


__all__ = ["NotIterable", "iterate_results", "not_iterable"]
