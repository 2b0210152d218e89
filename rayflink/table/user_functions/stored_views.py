"""Views in accumulators whose entries are stored apart from the accumulator, and are read when they are asked for.

An accumulator is pickled without its views: each is a number in its place. A `ViewEntries` reads the stored entries of
the views of an accumulator, and what was changed of them is written by `changes`.
"""

from __future__ import annotations

import io
import pickle
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple, Protocol, TypeAlias

from rayflink.common.user_code.code_pickler import CodePickler
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes
from rayflink.user_types import UserValue

from ..data_view import DataView, ListView, MapView

MARK = b"V"
"""The first byte of an accumulator that was pickled without its views; a pickle begins with another."""
Place: TypeAlias = "tuple[str, int, int]"
"""A view in a pickle: its class, its number, and how many entries it has."""


_FAR = 1 << 62
"""Numbers that are farther from 0 are compared in their types."""


class Change(NamedTuple):
    """A changed entry.

    Args:
        view: number of the view.
        entry: bytes that no other entry of the view has.
        value: bytes of the entry; None: it is removed.
    """

    view: int
    entry: bytes
    value: bytes | None


class ViewEntries(Protocol):
    """The stored entries of the views of one accumulator."""

    def entry(self, view: int, entry: bytes) -> bytes | None:
        """Return an entry of a view; None: there is none."""
        ...

    def entries(self, view: int) -> Mapping[bytes, bytes]:
        """Return all entries of a view."""
        ...

    @property
    def are_at_hand(self) -> bool:
        """Return whether all entries are in memory."""
        ...


def entry_of(key: UserValue) -> bytes:
    """Return bytes that are equal for equal keys, and no others.

    >>> entry_of(1) == entry_of(True) == entry_of(1.0) == entry_of(Decimal("1.00")), entry_of("1") == entry_of(1)
    (True, False)
    """
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5)
    pickler.fast = True  # a part that occurs twice is written twice, whether it is one object or two
    pickler.dump(_plain(key))
    return file.getvalue()


def _plain(key: UserValue) -> UserValue:
    """Return the same form for numbers that are equal."""
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    if isinstance(key, (bool, float, Decimal)) and -_FAR < key < _FAR and key == int(key):
        return int(key)
    return key


class StoredView(DataView):
    """A view whose entries are stored."""

    number: int

    @property
    @abstractmethod
    def place(self) -> Place:
        """Return what stands for it in the pickle of its accumulator."""

    @abstractmethod
    def changes(self) -> Iterator[Change]:
        """Yield the entries that have changed, first those that are removed."""


class StoredMapView(StoredView, MapView[UserValue, UserValue]):
    """A map whose entries are stored.

    Args:
        entries: what is stored.
        number: of the view.
        count: of its entries.
    """

    def __init__(self, entries: ViewEntries, number: int, count: int) -> None:
        super().__init__()
        self.number, self._stored, self._count = number, entries, count
        self._absent: set[UserValue] = set()
        self._changed: dict[UserValue, None] = {}
        self._is_whole, self._is_cleared = not count, False

    @property
    def place(self) -> Place:
        return "map", self.number, self._count

    def get(self, key: UserValue) -> UserValue:
        return self._dict[key] if self.contains(key) else None

    def contains(self, key: UserValue) -> bool:
        if key in self._dict:
            return True
        if self._is_whole or key in self._absent:
            return False
        if self._stored.are_at_hand:
            return key in self._entries()
        data = self._stored.entry(self.number, entry_of(key))
        if data is None:
            self._absent.add(key)
            return False
        self._dict[key] = from_bytes(data)[1]
        return True

    def put(self, key: UserValue, value: UserValue) -> None:
        self._count += not self.contains(key)
        self._absent.discard(key)
        self._dict[key] = value
        self._changed[key] = None

    def remove(self, key: UserValue) -> None:
        if self.contains(key):
            del self._dict[key]
            self._count -= 1
            self._absent.add(key)
            self._changed[key] = None

    def is_empty(self) -> bool:
        return not self._count

    def clear(self) -> None:
        self._is_cleared = self._is_cleared or self._count > 0 or bool(self._changed)
        self._dict, self._absent, self._changed = {}, set(), {}
        self._count, self._is_whole = 0, True

    def _entries(self) -> dict[UserValue, UserValue]:
        if not self._is_whole:
            self._is_whole = True
            stored = dict(map(from_bytes, self._stored.entries(self.number).values()))
            fresh = {key: value for key, value in self._dict.items() if key not in stored}
            known = {key: self._dict.get(key, value) for key, value in stored.items() if key not in self._absent}
            self._dict = {**known, **fresh}
        return self._dict

    def changes(self) -> Iterator[Change]:
        if self._is_cleared:
            yield from (Change(self.number, entry, None) for entry in self._stored.entries(self.number))
        for key in self._changed:
            value = to_bytes((key, self._dict[key])) if key in self._dict else None
            yield Change(self.number, entry_of(key), value)


class StoredListView(StoredView, ListView[UserValue]):
    """A list whose values are stored.

    Args:
        entries: what is stored.
        number: of the view.
        count: of its values.
    """

    def __init__(self, entries: ViewEntries, number: int, count: int) -> None:
        super().__init__()
        self.number, self._stored, self._before = number, entries, count
        self._is_whole, self._is_cleared = not count, False
        self._read: list[UserValue] = []
        """The values that were stored, where the list is whole."""

    @property
    def place(self) -> Place:
        return "list", self.number, self._before + len(self._list)

    def get(self) -> Iterable[UserValue]:
        if not self._is_whole:
            self._is_whole = True
            stored = self._stored.entries(self.number)
            self._read = [from_bytes(stored[entry]) for entry in sorted(stored)]
        return [*self._read, *self._list]

    def clear(self) -> None:
        self._is_cleared = self._is_cleared or self._before > 0
        self._list, self._read, self._before, self._is_whole = [], [], 0, True

    def changes(self) -> Iterator[Change]:
        if self._is_cleared:
            yield from (Change(self.number, entry, None) for entry in self._stored.entries(self.number))
        for place, value in enumerate(self._list, self._before):
            yield Change(self.number, place.to_bytes(8, "big"), to_bytes(value))


_CLASSES: dict[str, type[StoredMapView | StoredListView]] = {"map": StoredMapView, "list": StoredListView}


class _WithoutViews:
    """Pickles an accumulator without its views, which it collects; those that are not stored yet become so."""

    def collect(self, entries: ViewEntries, free_number: int) -> None:
        """Begin to collect views.

        Args:
            entries: of views that are stored; there are none of those that are new.
            free_number: the first number that no view has.
        """
        self.views: dict[int, StoredView] = {}
        self._entries, self._free_number = entries, free_number
        self._places: dict[int, Place] = {}

    def persistent_id(self, obj: UserValue) -> Place | None:
        """Return what stands for a view."""
        if not isinstance(obj, DataView):
            return None
        if id(obj) not in self._places:
            view = obj if isinstance(obj, StoredView) else self._stored(obj)
            self.views[view.number] = view
            self._places[id(obj)] = view.place
        return self._places[id(obj)]

    def _stored(self, view: DataView) -> StoredView:
        stored: StoredMapView | StoredListView
        if isinstance(view, MapView):
            stored = StoredMapView(self._entries, self._free_number, 0)
            for key, value in view.items():
                stored.put(key, value)
        else:
            assert isinstance(view, ListView), f"found {view!r}; a view is a ListView or a MapView"
            stored = StoredListView(self._entries, self._free_number, 0)
            stored.add_all(view.get())
        self._free_number += 1
        return stored


class _ByName(_WithoutViews, pickle.Pickler):
    """Pickles classes by their names."""


class _ByValue(_WithoutViews, CodePickler):
    """Pickles classes that have no name to be found by."""


def _dumped(accumulator: UserValue, entries: ViewEntries, free_number: int) -> tuple[bytes, dict[int, StoredView]]:
    """Return an accumulator without its views, and these."""
    try:
        return _dumped_as(_ByName, accumulator, entries, free_number)
    except Exception:  # as of `value_bytes.to_bytes`: what a user's class raises
        return _dumped_as(_ByValue, accumulator, entries, free_number)


def _dumped_as(
    pickler_class: type[_ByName | _ByValue], accumulator: UserValue, entries: ViewEntries, free_number: int
) -> tuple[bytes, dict[int, StoredView]]:
    file = io.BytesIO()
    pickler = pickler_class(file, protocol=5)
    pickler.collect(entries, free_number)
    pickler.dump(accumulator)
    return MARK + file.getvalue(), pickler.views


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, entries: ViewEntries) -> None:
        super().__init__(file)
        self._entries = entries
        self.views: dict[int, StoredView] = {}

    def persistent_load(self, pid: Place) -> StoredView:
        kind, number, count = pid
        return self.views.setdefault(number, _CLASSES[kind](self._entries, number, count))


class Views:
    """The views of one accumulator.

    Args:
        entries: what is stored of them.
    """

    def __init__(self, entries: ViewEntries) -> None:
        self._entries = entries
        self._loaded: dict[int, StoredView] = {}

    def load(self, data: bytes) -> UserValue:
        """Return an accumulator with its views."""
        unpickler = _Unpickler(io.BytesIO(data[1:]), self._entries)
        accumulator = unpickler.load()
        self._loaded = unpickler.views
        return accumulator

    def dump(self, accumulator: UserValue) -> tuple[bytes, list[Change]]:
        """Return an accumulator without its views, and what has changed in these."""
        data, views = _dumped(accumulator, self._entries, max(self._loaded, default=-1) + 1)
        changes = [change for number, view in self._loaded.items() if number not in views
                   for change in _removed(view)]  # fmt: skip
        changes += (change for view in views.values() for change in view.changes())
        return data, changes


def _removed(view: StoredView) -> list[Change]:
    """Return the removal of all entries of a view."""
    view.clear()
    return list(view.changes())


def has_views(accumulator: UserValue) -> bool:
    """Return whether there are views in an accumulator."""
    return bool(_dumped(accumulator, Nothing(), 0)[1])


class Nothing:
    """No stored entries; a `ViewEntries`."""

    are_at_hand = True

    def entry(self, view: int, entry: bytes) -> bytes | None:
        return None

    def entries(self, view: int) -> Mapping[bytes, bytes]:
        return {}


__all__ = ["MARK", "Change", "Nothing", "ViewEntries", "Views", "entry_of", "has_views"]
