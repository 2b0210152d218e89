"""Keeps apart the records of a batch when a user's function hands out one mutable object again and again.

Values are not copied between chained functions. But a function that returns its own buffer each time, or a generator
that yields one list and changes it in between, would fill a batch with one object. So the results of a function that
may hold mutable objects are looked at one by one: a mutable result to which somebody else still refers, at its top or
anywhere in it, is copied at once. A function that provably holds nothing (`holds_nothing`) is spared that.

Where a stream goes several ways, one consumer must not see what another does to its records: `own_copies` gives each
the records it may change.

What counts as "somebody else" is read from reference counts; what a fresh object has is measured at import, on the very
code paths that are used later.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable
from itertools import chain
from sys import getrefcount
from typing import Any

from rayflink.user_types import UserValue

from ..errors import RayflinkError
from .immutability import IMMUTABLE_TYPES, is_immutable


class CopyError(RayflinkError):
    """An object has to be copied and cannot be.

    Args:
        kind: type of the object.
        reason: why the copy failed.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind, self.reason = kind, reason


class FanOutError(CopyError):
    """A record that cannot be copied goes to several operators, each of which may change its own."""

    def __str__(self) -> str:
        return (
            f"a record of type {self.kind} goes to several operators and cannot be copied ({self.reason}); let records "
            "hold plain values only, or give the type a __deepcopy__"
        )


class AliasingError(CopyError):
    """An object that cannot be copied is handed out by a function that keeps it."""

    def __str__(self) -> str:
        return (
            f"a result of type {self.kind} is still referred to by the function that gave it and cannot be copied "
            f"({self.reason}); make a new object for each result, or give the type a __deepcopy__"
        )


def detached(value: UserValue, record: UserValue = None) -> Any:
    """Return `value`, or a copy of it if anything but the caller refers to it or to something mutable in it.

    The caller must hold `value` in exactly one local variable.

    Args:
        value: a result of a user's function.
        record: the one the function was called with; where it is (part of) the result, it is handed on as it is.
    """
    kind = type(value)
    if kind is tuple:
        for part in value:
            if type(part) not in IMMUTABLE_TYPES:
                break
        else:
            return value
    if value is record or is_immutable(kind):
        return value
    is_referenced = getrefcount(value) > _FRESH_RESULT  # not inside the call below: its arguments would count
    return _copied(value) if _is_shared(value, record, is_referenced) else value


def detached_list(values: Iterable[Any], record: UserValue = None) -> list[Any]:
    """Return the elements of a list or tuple of results as a new list, each of them `detached`."""
    out = list(values)
    for index, value in enumerate(out):
        kind = type(value)
        if kind is tuple:
            for part in value:
                part_kind = type(part)
                if part_kind is not str and part_kind is not int and part_kind not in IMMUTABLE_TYPES:
                    break
            else:
                continue
        if value is record or is_immutable(kind):
            continue
        is_referenced = getrefcount(value) > _FRESH_LISTED
        if _is_shared(value, record, is_referenced):
            out[index] = _copied(value)
    return out


def own_copies(values: list[Any]) -> list[Any]:
    """Return the same records as objects of their own; the list itself where they cannot be changed.

    The types are looked at one level of tuples at a time, not record by record.

    Raises:
        FanOutError: a record cannot be copied.
    """
    level: Iterable[Any] = values
    while kinds := {kind for kind in set(map(type, level)) if not is_immutable(kind)}:
        if not kinds <= _PLAIN_FROZEN:
            return [_own_copy(value) for value in values]
        level = list(chain.from_iterable([value for value in level if type(value) in _PLAIN_FROZEN]))
    return values


def _own_copy(value: UserValue) -> Any:
    if type(value) is not dict and type(value) is not list and not _can_change(value):
        return value
    try:
        return _copied(value)
    except AliasingError as error:
        raise FanOutError(error.kind, error.reason) from error.__cause__


def _can_change(value: UserValue) -> bool:
    kind = type(value)
    if is_immutable(kind):
        return False
    if not _is_frozen(kind) or (issubclass(kind, tuple) and hasattr(value, "__dict__")):
        return True
    return any(map(_can_change, _parts(value, kind)))


def _is_shared(value: UserValue, record: UserValue, is_referenced: bool) -> bool:
    """Return whether something mutable in `value` is reachable by others.

    Args:
        is_referenced: others refer to `value` itself.
    """
    kind = type(value)
    if is_referenced and kind is not tuple and not _is_frozen(kind):
        return True
    if kind.__module__ == "numpy" and getattr(value, "base", None) is not None:
        return True  # a view of an array that lives elsewhere
    for part in _parts(value, kind):
        if type(part) in IMMUTABLE_TYPES or part is record or is_immutable(type(part)):
            continue
        is_part_referenced = is_referenced or getrefcount(part) > _FRESH_PART
        if _is_shared(part, record, is_part_referenced):
            return True
    return False


def _parts(value: UserValue, kind: type) -> Iterable[Any]:
    if issubclass(kind, dict):
        return value.values()  # type: ignore[no-any-return]
    if issubclass(kind, (tuple, list, deque, frozenset, set)):
        return value  # type: ignore[no-any-return]
    return _fields(value, kind)


def _fields(value: UserValue, kind: type) -> Iterable[Any]:
    own = getattr(value, "__dict__", None)
    if own:
        yield from own.values()
    for base in kind.__mro__:
        names = base.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(value, name):
                yield getattr(value, name)


def _is_frozen(kind: type) -> bool:
    parameters = getattr(kind, "__dataclass_params__", None)
    return issubclass(kind, (tuple, frozenset)) or (parameters is not None and parameters.frozen)


def _copied(value: UserValue) -> Any:
    kind = type(value)
    if kind is list or kind is set or kind is bytearray:
        if kind is bytearray or all(map(is_immutable, map(type, value))):
            return value.copy()
    elif kind is dict:
        if all(map(is_immutable, map(type, value.values()))):
            return value.copy()
    elif kind is tuple:
        return tuple([part if type(part) in IMMUTABLE_TYPES else _copied(part) for part in value])
    try:
        return copy.deepcopy(value)
    except Exception as error:  # a user's type may raise anything here
        raise AliasingError(kind.__name__, f"{type(error).__name__}: {error}") from error


_PLAIN_FROZEN = frozenset({tuple, frozenset})


class _Calibration:
    """Measures the reference counts of objects to which nothing else refers, on the paths of this module."""

    @staticmethod
    def of_result() -> int:
        def probe(value: UserValue, record: UserValue = None) -> int:
            return getrefcount(value)

        result: list[object] = [object()]
        return probe(result, None)

    @staticmethod
    def of_part() -> int:
        count = 0
        for part in _parts([[]], list):
            count = getrefcount(part)
        return count

    @staticmethod
    def of_listed() -> int:
        count = 0
        out: list[Any] = list([] for _ in range(1))
        for _index, value in enumerate(out):
            count = getrefcount(value)
        return count


_FRESH_RESULT = _Calibration.of_result()
_FRESH_PART = _Calibration.of_part()
_FRESH_LISTED = _Calibration.of_listed() + 1  # the list that the function returned holds it too
