"""Copies of values for a snapshot, which stay the same although the values may be changed in place right after.

Immutable values are shared. Flat lists, dicts and sets of such values are copied, all else is pickled at once. The
work is done by C loops over many values, since the task waits meanwhile.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from rayflink.user_types import UserValue

from .value_isolation import IMMUTABLE_TYPES, is_immutable_type

_SEQUENCES = frozenset({tuple, frozenset})
_FEW = 64
_CHUNK = 256
"""Values that are pickled together."""


class _Chunk:
    """Some values as bytes, which are read one after the other."""

    def __init__(self, values: list[Any]) -> None:
        self._data = pickle.dumps(values, protocol=5)
        self._count = len(values)
        self._values: list[Any] | None = None

    def value(self, index: int) -> Any:
        values = self._values
        if values is None:
            values = self._values = pickle.loads(self._data)
        if index == self._count - 1:
            self._values = None
        return values[index]


class Pickled:
    """A value in a chunk of bytes."""

    __slots__ = ("_at", "_chunk")

    def __init__(self, chunk: _Chunk, index: int) -> None:
        self._chunk, self._at = chunk, index

    def value(self) -> Any:
        """Return the value, as an object of its own."""
        return self._chunk.value(self._at)


class Unpicklable:
    """A stand-in for a value that cannot be pickled: pickling it raises the original error."""

    __slots__ = ("_failure",)

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def __reduce__(self) -> Any:
        raise self._failure


def read_copy(value: UserValue) -> Any:
    """Return the value of a copy; for a pickled one a new object.

    >>> read_copy(copy_values([[[1]]])[0]), read_copy(5)
    ([[1]], 5)
    """
    return value.value() if value.__class__ is Pickled else value


def copy_values(values: list[Any]) -> list[Any]:
    """Copy values as they are now, to be read with `read_copy`; return the same list where none can be changed.

    >>> held = [[1], [2]]
    >>> kept = copy_values(held)
    >>> held[0].append(3)
    >>> [read_copy(value) for value in kept]
    [[1], [2]]
    """
    if all_immutable(values):
        return values
    kinds = set(map(type, values))
    if len(kinds) == 1 and len(values) > _FEW:
        (kind,) = kinds
        if kind in (list, set) and all_immutable(list(chain.from_iterable(values))):
            with _no_collection():
                return list(map(kind.copy, values))
        if kind is dict and all_immutable(_parts_of(values)):
            with _no_collection():
                return list(map(dict.copy, values))
    with _no_collection():
        return [value for start in range(0, len(values), _CHUNK) for value in _chunk_of(values[start : start + _CHUNK])]


def all_immutable(values: Collection[Any]) -> bool:
    """Return whether no value, and no part of one, can be changed.

    >>> all_immutable([1, "a", (2, (None,))]), all_immutable([1, ([],)])
    (True, False)
    """
    kinds = set(map(type, values)) - IMMUTABLE_TYPES
    if not kinds:
        return True
    if not all(kind in _SEQUENCES or is_immutable_type(kind) for kind in kinds):
        return False
    if not kinds & _SEQUENCES:
        return True
    if len(kinds) == 1 and len(set(map(type, values))) == 1:
        if set(map(type, chain.from_iterable(values))) <= IMMUTABLE_TYPES:
            return True
        return all_immutable(list(chain.from_iterable(values)))
    return all_immutable([part for value in values if type(value) in _SEQUENCES for part in value])


def _chunk_of(values: list[Any]) -> list[Any]:
    if all_immutable(values):
        return values
    try:
        chunk = _Chunk(values)
    except Exception:  # a user's class may raise anything while it is pickled; who writes it says of which key it is
        return [value for each in values for value in _one(each)]
    return [Pickled(chunk, index) for index in range(len(values))]


def _one(value: UserValue) -> list[Any]:
    if all_immutable((value,)):
        return [value]
    parts = value if type(value) in (list, set) else _parts_of([value]) if type(value) is dict else None
    if parts is not None and all_immutable(parts):
        return [value.copy()]
    try:
        return [Pickled(_Chunk([value]), 0)]
    except Exception as error:  # as above
        return [Unpicklable(error)]


def _parts_of(maps: Iterable[dict[Any, Any]]) -> list[Any]:
    return [*chain.from_iterable(maps), *chain.from_iterable(map(dict.values, maps))]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch off Python's garbage collector, which makes creating many objects five times slower."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


__all__ = ["all_immutable", "copy_values", "read_copy"]
