"""Values as they are at a moment, though they may be changed in place right after: what a capture holds of them.

What nobody can change is shared. Flat lists, dicts and sets of such values are copied, all else is pickled at once. The
work is done by C loops over many values, since the task waits meanwhile.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from .isolation import IMMUTABLE_TYPES, is_immutable_type

_SEQUENCES = frozenset({tuple, frozenset})
_FEW = 64


class Pickled:
    """A value as bytes; pickled, it is the value itself.

    >>> value = frozen([[[1]]])[0]
    >>> value.__class__.__name__, pickle.loads(pickle.dumps(value)), thawed(value)
    ('Pickled', [[1]], [[1]])
    """

    __slots__ = ("_data", "_failure")

    def __init__(self, value: Any) -> None:
        self._failure: Exception | None = None
        try:
            self._data = pickle.dumps(value, protocol=5)
        except Exception as error:  # a user's class may raise anything; whoever writes it says of which key it is
            self._failure = error

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        if self._failure is not None:
            raise self._failure
        return pickle.loads, (self._data,)


def thawed(value: Any) -> Any:
    """The value that was frozen; for one that was pickled a new object."""
    if value.__class__ is not Pickled:
        return value
    loads, given = value.__reduce__()
    return loads(*given)


def frozen(values: list[Any]) -> list[Any]:
    """The values as they are now, in their order; the same list where none of them can be changed.

    >>> held = [[1], [2]]
    >>> kept = frozen(held)
    >>> held[0].append(3)
    >>> kept
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
        return list(map(_frozen, values))


def all_immutable(values: Collection[Any]) -> bool:
    """Whether no value, and no part of one, can be changed.

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


def _frozen(value: Any) -> Any:
    kind = type(value)
    if kind in (list, set):
        return value.copy() if all_immutable(value) else Pickled(value)
    if kind is dict:
        return value.copy() if all_immutable(_parts_of((value,))) else Pickled(value)
    return value if all_immutable((value,)) else Pickled(value)


def _parts_of(maps: Iterable[dict[Any, Any]]) -> list[Any]:
    return [*chain.from_iterable(maps), *chain.from_iterable(map(dict.values, maps))]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's collector looks at all objects again and again while many new ones are made: five times the work."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


__all__ = ["Pickled", "all_immutable", "frozen", "thawed"]
