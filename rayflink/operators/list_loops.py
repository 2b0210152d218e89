"""Loops over a list that run in C, such as `list(map(call, iterator))`: their position, and whether they ended early.

Such a loop is several times as fast as one in Python and says nothing of its position, so an operator keeps the list's
iterator and asks that.

>>> values = [4, 2, 0, 5]
>>> iterator = iter(values)
>>> list(map(lambda n: 8 // n, iterator))
Traceback (most recent call last):
ZeroDivisionError: integer division or modulo by zero
>>> record_at(values, iterator)
'0'
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import shortened


def record_at(values: list[Any], iterator: Iterator[Any]) -> str:
    """Return the record, shortened, at which a loop over a list raised; "" if it took none.

    Args:
        values: the list.
        iterator: the list's iterator, which the loop drew from.
    """
    taken = len(values) - iterator.__length_hint__()  # type: ignore[attr-defined]
    return shortened(values[taken - 1]) if 0 < taken <= len(values) else ""


def ensure_all_taken(iterator: Iterator[Any]) -> None:
    """Check that a loop over a list came to the list's end.

    A loop in C takes a StopIteration of the function it calls for the end of the records: it stops there, and the
    records behind are lost without an error. A list's iterator that was asked for more than its last record has
    released the list, and reduces to `iter([])` without a position from then on: two items instead of three.

    Args:
        iterator: the list's iterator, which the loop drew from.

    Raises:
        StopIteration: the function raised one, at the record that `record_at` returns.
    """
    if len(iterator.__reduce__()) == 3:
        raise StopIteration("the function called next() on an iterator without more elements; give next() a default")


__all__ = ["ensure_all_taken", "record_at"]
