"""The order in which the events of a key are matched: by time, and by a comparator among those of one time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from numbers import Number, Real
from typing import Any, TypeAlias

from rayflink.common.errors import RayflinkError, shorten
from rayflink.operators.base import UserCodeError
from rayflink.user_types import UserRecord

from .match_state import EVENT, STAMP, WaitingEvent

Comparator: TypeAlias = Callable[[Any, Any], int]
"""(event, event) -> negative, 0 or positive."""
_NUMBERS = frozenset({int, float})


class NoNumber(RayflinkError, TypeError):
    """A comparator of events gave something else than a number, which a bool and NaN are not.

    Args:
        result: what it gave, shortened.
    """

    def __init__(self, result: str) -> None:
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        return (
            f"the comparator gave {self.result}; return a negative number where the first event comes first, a "
            "positive one where the second does, and 0 for the order of arrival, such as (a > b) - (a < b)"
        )


def order_of(
    comparator: Comparator, failure: Callable[[UserRecord, UserRecord], UserCodeError]
) -> Callable[[WaitingEvent], Any]:
    """Return a sort key: by time, and by the comparator among events of one time.

    Args:
        failure: returns the error to raise where the comparator gives no number for two events, or raises.
    """

    def compare(first: UserRecord, second: UserRecord) -> int:
        try:
            answer = comparator(first, second)
            _ensure_number(answer)
        except Exception as error:
            raise failure(first, second) from error
        return answer

    key = cmp_to_key(compare)
    return lambda event: (event[STAMP], key(event[EVENT]))


def _ensure_number(answer: object) -> None:
    is_number = type(answer) in _NUMBERS or (isinstance(answer, Number) and not isinstance(answer, bool))
    if not is_number or (isinstance(answer, Real) and answer != answer):
        raise NoNumber(f"{shorten(answer, 80)} of type {type(answer).__name__}")


__all__ = ["Comparator", "NoNumber", "order_of"]
