"""The tables of the RocksDB backend: values, lists and maps, each over a cache and a column family."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, groupby, islice
from typing import Any, ClassVar

from rayflink.user_types import UserKey, UserValue

from ..backend import Namespace
from ..errors import InvalidKeyError
from ..group_capture import TableCopy
from ..keys.key_encoding import canonical_key
from .cache_budget import CacheBudget
from .column_family import ColumnFamily, prefix_end
from .dirty_rows import LIST_PART, DirtyRows
from .rocksdb_rows import (
    EXOTIC,
    Entry,
    KeySpace,
    ListRows,
    MapRows,
    SpaceRows,
    ValueRows,
    decode_value,
    entry_reader,
    expand_exotic,
    named_value,
)
from .row_cache import RowCache, is_hashable
from .row_layout import RowLayout, has_stored_keys, prefixes

_SMALL_MAP = 256
"""Entries up to which a map that is read as a whole stays in memory."""
_FEW = 16
"""Entries that are looked for one by one before a batch is read ahead."""
_PART = 1024
"""Rows a walk reads at a time."""


class _Table:
    """The base of the tables: reading and writing whole tables."""

    cache: RowCache
    _column: ColumnFamily
    _layout: RowLayout
    _kind: ClassVar[str]

    def _merge_rows(self, named: Iterable[Entry]) -> Iterable[Entry]:
        """Merge the entries of (name, namespace, value) that are adjacent and of one namespace."""
        raise NotImplementedError

    def _places_in_memory(self) -> Iterator[tuple[UserKey, Namespace]]:
        """Yield (key, namespace) of the entries in memory."""
        return ((key, namespace) for namespace, key in self.cache.namespaces())

    def _stored_key(self, data: bytes) -> UserKey:
        """Return the key that is stored with a row's value, since its row does not give it back exactly."""
        return pickle.loads(data).keys

    def on_restored(self, next_part: int) -> None:
        """Note that the column family now has rows; list parts have numbers below `next_part`."""
        self.cache.assume_any_stored()

    def copy_entries(self) -> Iterable[Entry]:
        """Copy all entries, which are in memory, as they are now."""
        cache = self.cache
        return self._merge_rows(TableCopy({space: cache.cached_entries(space) for space in cache.namespaces()}))

    def entries(self, groups: Collection[int]) -> Iterator[Entry]:
        """Yield (key, namespace, value) of all entries in these key groups, by group."""
        cache = self.cache
        if self._column.is_empty:
            named = (
                (name, space, value)
                for space in cache.namespaces()
                for name, value in cache.cached_entries(space).items()
            )
            entries = list(self._merge_rows(named))
            groups_of = self._layout.groups_of([key for key, _, _ in entries])
            in_order = sorted(range(len(entries)), key=groups_of.__getitem__)
            yield from (entries[index] for index in in_order if groups_of[index] in groups)
            return
        cache.flush()
        for group in sorted(groups):
            yield from entry_reader(self._kind)(self._layout, self._column.scan(prefixes[group]))

    def flush(self) -> None:
        """Write back all dirty entries."""
        self.cache.flush()

    def clear_all(self) -> None:
        """Delete all entries."""
        self.cache.clear_all()

    def walk(self) -> Iterator[tuple[UserKey, Namespace]]:
        """Yield (key, namespace) of the entries: those in memory, then the rows on disk, a part at a time."""
        yield from self._places_in_memory()
        start, last = b"", None
        while part := list(islice(self._column.scan(b"", start), _PART)):
            for row, data in part:
                key, namespace, _ = self._layout.read(row)
                if (key, namespace) != last:
                    yield self._stored_key(data) if has_stored_keys(data) else key, namespace
                last = key, namespace
            start = part[-1][0] + b"\0"


class RocksDBTable(RowCache, _Table):
    """A `KeyedTable` of single values, which is its own cache."""

    tracks_changes = True
    _kind = "value"

    def __init__(self, column: ColumnFamily, layout: RowLayout, budget: CacheBudget, state: str) -> None:
        super().__init__(column, ValueRows(layout), budget, state)
        self._column, self._layout = column, layout

    @property
    def cache(self) -> RowCache:  # type: ignore[override]
        """Return the table itself."""
        return self

    def append(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Add `value` to the end of the entry's list."""
        self.put(key, [*self.get(key, namespace, ()), value], namespace)

    def remove(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the entry, if it is there."""
        self.remove_all((key,), namespace)

    @property
    def is_missed(self) -> bool:
        """Return whether values had to be read from disk since the last `prefetch`, that one included."""
        return self.misses > _FEW

    def prefetch(self, keys: list[UserKey], namespace: Namespace = None) -> None:
        """Read in one batch the values that single reads would miss."""
        self.misses //= 2  # as long as each reads something, the next is worth it
        self.load(keys, namespace)
        self.pinned = False

    def flush(self) -> None:
        """Write back all dirty entries."""
        super().flush()
        self.recount()

    def capture_dirty(self) -> DirtyRows | None:
        """Capture the dirty entries, as `RowCache` does, and count anew."""
        dirty = super().capture_dirty()
        self.recount()
        return dirty

    def __len__(self) -> int:
        if self._column.is_empty:
            return sum(1 for _ in self.all_cached_entries())
        self.flush()
        return sum(1 for _ in self._column.scan(b""))

    def _merge_rows(self, named: Iterable[Entry]) -> Iterable[Entry]:
        return named

    def _places_in_memory(self) -> Iterator[tuple[Any, Any]]:
        for space in self.namespaces():
            for name in list(self.cached_entries(space)):
                yield name, space


class RocksDBMapTable(_Table):
    """A `KeyedMapTable` with a row per map entry. Maps are read in the order of their keys' canonical bytes."""

    _kind = "map"

    def __init__(self, column: ColumnFamily, layout: RowLayout, budget: CacheBudget, state: str) -> None:
        self._column, self._layout, self._rows = column, layout, MapRows(layout)
        self.cache = RowCache(column, self._rows, budget, state)

    def get(self, key: UserKey, map_key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the value at `map_key`, or `default`."""
        name = _name_of(map_key)
        if name is EXOTIC:
            return self.cache.get(EXOTIC, (namespace, key), {}).get(map_key, default)
        return self.cache.get(name, (namespace, key), default)

    def put(self, key: UserKey, map_key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the value at `map_key`."""
        name = _name_of(map_key)
        if name is EXOTIC:
            value = {**self.cache.get(EXOTIC, (namespace, key), {}), map_key: value}
        self.cache.put(name, value, (namespace, key))

    def remove(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> None:
        """Delete the value at `map_key`, if there is one."""
        space, name = (namespace, key), _name_of(map_key)
        if name is EXOTIC:
            exotic = dict(self.cache.get(EXOTIC, space, {}))
            exotic.pop(map_key, None)
            if exotic:
                self.cache.put(EXOTIC, exotic, space)
                return
        self.cache.remove_all((name,), space)

    def contains(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> bool:
        """Return whether there is a value at `map_key`."""
        return self.get(key, map_key, namespace, EXOTIC) is not EXOTIC

    def items(self, key: UserKey, namespace: Namespace = None) -> Iterable[tuple[UserKey, UserValue]]:
        """Return all (map key, value) of one key as of now; those of a large map are read lazily."""
        space, cache = (namespace, key), self.cache
        if cache.is_complete(space):
            return list(expand_exotic(self._in_order(space)))
        cache.flush_namespace(space)
        prefix = self._rows.prefix(space)
        rows = (named_value(row, data, len(prefix)) for row, data in self._column.scan(prefix))
        first = list(islice(rows, _SMALL_MAP))
        if len(first) == _SMALL_MAP:
            return expand_exotic(chain(first, rows))
        here = cache.cached_entries(space)
        cache.pinned = True  # nothing leaves the cache meanwhile
        for name, value in first:
            if name not in here:
                cache.insert_clean(space, name, value)
        cache.complete_namespace(space)
        cache.pinned = False
        cache.make_room()
        return list(expand_exotic([(name, here.get(name, value)) for name, value in first]))

    def clear(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the whole map of one key."""
        _delete_space(self.cache, self._rows, (namespace, key))

    def _merge_rows(self, named: Iterable[Entry]) -> Iterable[Entry]:
        return (
            (key, namespace, dict(expand_exotic((name, value) for name, _, value in part)))
            for (namespace, key), part in groupby(named, _space)
        )

    def _stored_key(self, data: bytes) -> UserKey:
        return pickle.loads(data).keys[0]

    def _in_order(self, space: KeySpace) -> list[tuple[UserKey, UserValue]]:
        return sorted(self.cache.cached_entries(space).items(), key=lambda pair: self._rows.name_bytes(pair[0]))


class RocksDBListTable(_Table):
    """A `KeyedTable` of lists stored in parts; appending begins a new part, so nothing is read for it."""

    tracks_changes = True
    _kind = "list"

    def __init__(self, column: ColumnFamily, layout: RowLayout, budget: CacheBudget, state: str) -> None:
        self._column, self._layout, self._rows = column, layout, ListRows(layout)
        self.cache = RowCache(column, self._rows, budget, state)
        self._open: dict[KeySpace, tuple[int, list[UserValue]]] = {}
        self._next = 0
        self._loaded: dict[Namespace, dict[UserKey, list[UserValue]]] = {}
        self.cache.on_rotate = self._open.clear

    def load(self, keys: Iterable[UserKey], namespace: Namespace = None) -> dict[UserKey, UserValue]:
        """Return the whole lists of these keys."""
        if not self.cache.pinned:
            self._loaded = {}
        lists = self._loaded.setdefault(namespace, {})
        for raw_key in dict.fromkeys(filter(is_hashable, keys)):
            try:
                key = canonical_key(raw_key)
            except InvalidKeyError:
                continue  # whoever uses it says so
            if key not in lists and (elements := self.get(key, namespace)) is not None:
                lists[key] = elements
        self.cache.pinned = True
        return lists

    def changed(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Note that the loaded lists of these keys were set or mutated."""
        lists = self._loaded.get(namespace, {})
        for key in map(canonical_key, keys):
            if key in lists:
                self.put(key, lists[key], namespace)

    def get(self, key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the whole list, or `default`."""
        space, cache = (namespace, key), self.cache
        if cache.is_complete(space):
            return self._whole(space, default)
        cache.flush_namespace(space)
        here, was_pinned = cache.cached_entries(space), cache.pinned
        cache.pinned = True  # nothing leaves the cache meanwhile
        prefix = self._rows.prefix(space)
        for row, data in self._column.scan(prefix):
            number = int.from_bytes(row[len(prefix) :], "big")
            if number not in here:
                cache.insert_clean(space, number, decode_value(data))
        cache.complete_namespace(space)
        cache.pinned = was_pinned
        elements = self._whole(space, default)
        cache.make_room()
        return elements

    def put(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the whole list."""
        self.remove(key, namespace)
        self.put_new(key, value, namespace)

    def append(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Add `value` to the end of the entry's list."""
        space = (namespace, key)
        number, part = self._open.get(space, (0, None))
        if part is None or len(part) >= LIST_PART:
            self._begin(space, [value])
        else:
            part.append(value)
            self.cache.mark_extended(space, number, value)

    def remove(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the list, if there is one."""
        space = (namespace, key)
        self._open.pop(space, None)
        _delete_space(self.cache, self._rows, space)

    def remove_all(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Delete the lists of these keys."""
        for key in keys:
            self.remove(key, namespace)

    def __len__(self) -> int:
        if self._column.is_empty:
            return len(self.cache.namespaces())
        self.flush()
        return sum(1 for _ in groupby(self._column.scan(b""), lambda pair: pair[0][:-8]))

    def put_new(self, key: UserKey, value: UserValue, namespace: Namespace) -> None:
        """Set the whole list of a key that has none."""
        elements, space = list(value), (namespace, key)
        for start in range(0, len(elements), LIST_PART):
            self._begin(space, elements[start : start + LIST_PART])

    @property
    def next_part(self) -> int:
        """Return a number above those of all parts."""
        return self._next

    def on_restored(self, next_part: int) -> None:
        super().on_restored(next_part)
        self._next = max(self._next, next_part)

    def _merge_rows(self, named: Iterable[Entry]) -> Iterable[Entry]:
        for (namespace, key), of_key in groupby(named, _space):
            parts = sorted(((number, part) for number, _, part in of_key), key=_first)
            elements: list[Any] = []
            for _, part in parts:
                elements += part if part.__class__ is list else [part]  # one that cannot be written stands for itself
            yield key, namespace, elements

    def _whole(self, space: KeySpace, default: UserValue) -> UserValue:
        parts = self.cache.cached_entries(space)
        return [element for number in sorted(parts) for element in parts[number]] if parts else default

    def _begin(self, space: KeySpace, part: list[UserValue]) -> None:
        self._open[space] = self._next, part
        self._next += 1
        self.cache.put(self._next - 1, part, space)


def _delete_space(cache: RowCache, rows: SpaceRows[Any], space: KeySpace) -> None:
    names = cache.stored_keys(space)
    if not cache.drop_namespace(space):
        return
    prefix = rows.prefix(space)
    if names is None:
        stop = prefix_end(prefix)
        assert stop is not None, "key groups end below ff ff"
        cache.column.delete_range(prefix, stop)
    else:
        cache.column.write((), [prefix + rows.name_bytes(name) for name in names])


def _name_of(map_key: UserKey) -> Any:
    """Return the name of a map key's value in the cache."""
    if type(map_key) in (str, int, bytes):
        return map_key
    hash(map_key)  # what a dict does not take is no key of a map
    try:
        return canonical_key(map_key)
    except InvalidKeyError:
        return EXOTIC


def _space(entry: tuple[UserKey, Any, UserValue]) -> KeySpace:
    space: KeySpace = entry[1]
    return space


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


__all__ = ["RocksDBListTable", "RocksDBMapTable", "RocksDBTable"]
