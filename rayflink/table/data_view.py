"""Collections in the accumulators of aggregate functions, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """A collection in an accumulator.

    In groups of a stream its entries are state of their own: a change writes the entries that it changes, however many
    there are. Elsewhere, and in programs that make one, it is in memory.
    """

    @abstractmethod
    def clear(self) -> None:
        """Remove all entries."""


class ListView(DataView, Generic[T]):
    """A list to which values are appended.

    >>> view = ListView()
    >>> view.add("a")
    >>> view.add_all(["b", "c"])
    >>> list(view)
    ['a', 'b', 'c']
    """

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """Return the values, in the order in which they came."""
        return self._list

    def add(self, value: T) -> None:
        """Append a value."""
        self._list.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Append several values."""
        for value in values:
            self.add(value)

    def clear(self) -> None:
        self._list = []

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, ListView) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes


class RemovableIterator(Generic[T]):
    """An iterator over entries of a map that can remove the entry that it returned last.

    Args:
        entries: what it returns.
        remove: removes the entry of a key.
        keys: of the entries.
    """

    def __init__(self, entries: Iterable[T], keys: Iterable[K], remove: Callable[[K], None]) -> None:
        self._entries, self._keys, self._remove = iter(entries), iter(keys), remove
        self._last: list[K] = []

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        entry = next(self._entries)
        self._last = [next(self._keys)]
        return entry

    def remove(self) -> None:
        """Remove the entry that was returned last.

        Raises:
            ValueError: none was returned since the last call.
        """
        if not self._last:
            raise ValueError("remove() has no entry to remove; call next() before each remove()")
        self._remove(self._last.pop())


class MapView(DataView, Generic[K, V]):
    """A map of keys to values; a key that is absent has the value None.

    A value that is changed in place has to be put again.

    >>> view = MapView()
    >>> view["a"] = 1
    >>> view.put_all({"b": 2, "c": 3})
    >>> entries = view.items()
    >>> for key, value in entries:
    ...     if value > 1:
    ...         entries.remove()
    >>> list(view), "b" in view, view.get("b")
    (['a'], False, None)
    """

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key; None where it is absent."""
        return self._dict.get(key)

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of several keys."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: K) -> None:
        """Remove a key; nothing happens where it is absent."""
        self._dict.pop(key, None)

    def contains(self, key: K) -> bool:
        """Return whether there is a key."""
        return key in self._dict

    def items(self) -> RemovableIterator[tuple[K, V]]:
        """Return an iterator over keys and values, which can remove entries."""
        entries = dict(self._entries())
        return RemovableIterator(entries.items(), list(entries), self.remove)

    def keys(self) -> RemovableIterator[K]:
        """Return an iterator over keys, which can remove entries."""
        keys = list(self._entries())
        return RemovableIterator(keys, keys, self.remove)

    def values(self) -> RemovableIterator[V]:
        """Return an iterator over values, which can remove entries."""
        entries = dict(self._entries())
        return RemovableIterator(entries.values(), list(entries), self.remove)

    def is_empty(self) -> bool:
        """Return whether there is no key."""
        return not self._dict

    def clear(self) -> None:
        self._dict = {}

    def _entries(self) -> dict[K, V]:
        """Return all entries."""
        return self._dict

    def __eq__(self, other: object) -> bool:
        return self._entries() == other._entries() if isinstance(other, MapView) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


__all__ = ["DataView", "ListView", "MapView"]
