"""The row formats of the tables of the RocksDB backend: values, maps and lists."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Generic, TypeAlias, TypeVar

from rayflink.user_types import UserKey, UserValue

from ..backend import Namespace
from ..keys.key_encoding import encode_key, read_key
from ..keys.key_forms import INT64_MIN, INT64_STOP
from .row_layout import EXACT_TYPES, RowLayout, ValueWithKeys, canonical_if_key, reads_back, to_pickle

_INTS = {int}
Space = TypeVar("Space")
"""Type of the namespaces of a cache: those of the backend, or with a key as a `KeySpace`."""
Name = TypeVar("Name")
"""Type of the names within a namespace: keys, map keys or numbers of list parts."""
KeySpace: TypeAlias = tuple[Namespace, UserKey]
"""(namespace, key)."""


def decode_value(data: bytes) -> UserValue:
    """Decode the value in the bytes of a row."""
    value = pickle.loads(data)
    return value.value if value.__class__ is ValueWithKeys else value


class _Rows(Generic[Space, Name]):
    """The base of the row formats."""

    decode = staticmethod(decode_value)

    def __init__(self, layout: RowLayout) -> None:
        self._layout = layout

    def decode_all(self, rows: list[bytes | None]) -> list[UserValue]:
        """Decode the values of rows, None where there is no row."""
        loads = pickle.loads
        values = [None if data is None else loads(data) for data in rows]
        if ValueWithKeys in set(map(type, values)):
            return [value.value if value.__class__ is ValueWithKeys else value for value in values]
        return values

    def encode(self, space: Space, name: Name, value: UserValue) -> bytes:
        """Encode a value, with the keys that cannot be read back from its row."""
        raise NotImplementedError

    def encode_all(self, space: Space, names: Sequence[Name], values: list[UserValue]) -> list[bytes]:
        """Encode the values of several names of a namespace, like `encode`."""
        return [self.encode(space, name, value) for name, value in zip(names, values, strict=True)]


class ValueRows(_Rows[Namespace, UserKey]):
    """Rows of single values: the space is the namespace, the name is the key."""

    def row(self, space: Namespace, name: UserKey) -> bytes:
        return self._layout.row(name, space)

    def rows(self, space: Namespace, names: Sequence[UserKey]) -> list[bytes]:
        if len(names) < 8:
            return [self._layout.row(name, space) for name in names]
        return self._layout.rows(names, space)

    def encode(self, space: Namespace, name: UserKey, value: UserValue) -> bytes:
        return to_pickle(value if reads_back(name) else ValueWithKeys(name, value))

    def encode_all(self, space: Namespace, names: Sequence[UserKey], values: list[UserValue]) -> list[bytes]:
        kinds = set(map(type, names))
        if kinds <= EXACT_TYPES or (kinds == _INTS and INT64_MIN <= min(names) and max(names) < INT64_STOP):
            dumps = pickle.dumps
            return [dumps(value, 5) for value in values]
        return super().encode_all(space, names, values)

    def key_of(self, space: Namespace, name: UserKey) -> UserKey:
        """Return the key an entry belongs to."""
        return name


class SpaceRows(_Rows[KeySpace, Name]):
    """Rows of states with several entries per key: the namespace of the rows is (namespace, key)."""

    def prefix(self, space: KeySpace) -> bytes:
        """Return the prefix of all rows of a namespace."""
        return self._layout.row(space[1], space[0])

    def row(self, space: KeySpace, name: Name) -> bytes:
        return self.prefix(space) + self.name_bytes(name)

    def rows(self, space: KeySpace, names: Sequence[Name]) -> list[bytes]:
        prefix = self.prefix(space)
        return [prefix + self.name_bytes(name) for name in names]

    def key_of(self, space: KeySpace, name: Name) -> UserKey:
        """Return the key an entry belongs to."""
        return space[1]

    def name_bytes(self, name: Name) -> bytes:
        """Return the end of a row."""
        raise NotImplementedError


class Exotic:
    """The name of one dict per map: the entries at map keys that have no canonical bytes."""

    def __repr__(self) -> str:
        return "<map keys without canonical bytes>"


EXOTIC = Exotic()
EXOTIC_ROW = b"\xfe"


class MapRows(SpaceRows[UserKey]):
    """Rows of maps: the name is the map key."""

    def name_bytes(self, name: UserKey) -> bytes:
        return EXOTIC_ROW if name is EXOTIC else encode_key(name)

    def encode(self, space: KeySpace, name: UserKey, value: UserValue) -> bytes:
        if reads_back(space[1]) and (name is EXOTIC or reads_back(name)):
            return to_pickle(value)
        return to_pickle(ValueWithKeys((space[1], None if name is EXOTIC else name), value))


class ListRows(SpaceRows[int]):
    """Rows of lists: the name is the number of a part, of which later ones have greater numbers."""

    def name_bytes(self, name: int) -> bytes:
        return name.to_bytes(8, "big")

    def encode(self, space: KeySpace, name: int, value: UserValue) -> bytes:
        return to_pickle(value if reads_back(space[1]) else ValueWithKeys(space[1], value))


StoredRow = tuple[bytes, bytes]
"""(row, what it holds)."""
Entry = tuple[UserKey, Namespace, UserValue]
"""(key, namespace, value)."""


def value_entries(layout: RowLayout, rows: Iterable[StoredRow]) -> Iterator[Entry]:
    """Yield the entries in sorted rows of single values."""
    for row, data in rows:
        key, namespace, _ = layout.read(row)
        value = layout.loads(data)
        if value.__class__ is ValueWithKeys:
            key, value = value.keys, value.value
        yield key, namespace, value


def map_entries(layout: RowLayout, rows: Iterable[StoredRow]) -> Iterator[Entry]:
    """Yield the maps in sorted rows."""
    for (key, namespace, end), part in groupby(rows, lambda pair: layout.read(pair[0])):
        named = list(part)
        value = layout.loads(named[0][1])
        if value.__class__ is ValueWithKeys:
            key = value.keys[0]
        yield key, namespace, dict(expand_exotic(named_value(row, data, end, layout.loads) for row, data in named))


def list_entries(layout: RowLayout, rows: Iterable[StoredRow]) -> Iterator[Entry]:
    """Yield the lists in sorted rows, their parts concatenated."""
    for row, part in groupby(rows, lambda pair: pair[0][:-8]):
        key, namespace, _ = layout.read(row)
        elements: list[Any] = []
        for _, data in part:
            value = layout.loads(data)
            if value.__class__ is ValueWithKeys:
                key, value = value.keys, value.value
            elements += value
        yield key, namespace, elements


def entry_reader(stored_kind: str) -> Callable[[RowLayout, Iterable[StoredRow]], Iterator[Entry]]:
    """Return the function that reads the rows of a state of this kind."""
    if stored_kind.endswith("map"):
        return map_entries
    return list_entries if stored_kind.endswith("list") else value_entries


def named_value(row: bytes, data: bytes, end: int, loads: Callable[[bytes], Any] = pickle.loads) -> tuple[Any, Any]:
    """Return map key and value of a map's row, whose map key begins at `end`."""
    value = loads(data)
    if row[end:] == EXOTIC_ROW:
        return EXOTIC, value.value if value.__class__ is ValueWithKeys else value
    if value.__class__ is ValueWithKeys:
        return value.keys[1], value.value
    return read_key(row, end)[0], value


def expand_exotic(named: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Yield (map key, value) of all, including those without canonical bytes."""
    for name, value in named:
        if name is EXOTIC:
            yield from value.items()
        else:
            yield name, value


def read_timer(layout: RowLayout, row: bytes, data: bytes) -> tuple[int, Any, Any]:
    """Return (timestamp, key, namespace) of a timer's row."""
    namespace, position = layout.namespaces.read(row, 10)
    key = canonical_if_key(layout.loads(data)) if data else read_key(row, position)[0]
    return int.from_bytes(row[2:10], "big") - TIME_BIAS, key, namespace


TIME_BIAS = 1 << 63
"""Added to times, so that they sort as bytes."""

__all__ = [
    "EXOTIC", "EXOTIC_ROW", "Entry", "ListRows", "MapRows", "SpaceRows", "StoredRow", "TIME_BIAS", "ValueRows",
    "decode_value", "entry_reader", "expand_exotic", "list_entries", "map_entries", "named_value", "read_timer",
    "value_entries",
]  # fmt: skip
