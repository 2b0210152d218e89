"""The tables of the RocksDB backend: values, lists and maps of keys, over a cache and a column each."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, groupby, islice
from typing import Any

from .errors import InvalidKeyError
from .frozen import thawed
from .group_capture import FrozenTable
from .key_encoding import canonical_key, read_key
from .rocksdb_rows import EXOTIC, EXOTIC_ROW, ListRows, MapRows, SpaceRows, ValueRows, value_of
from .rocksdb_store import Column, beyond
from .row_cache import LIST_PART, CacheBudget, RowCache
from .row_layout import Kept, RowLayout, is_kept, prefixes

_SMALL_MAP = 256
"""Entries up to which a map that is read as a whole stays in memory."""
_FEW = 16
"""Entries that are looked for one by one before a batch is read ahead."""
_PART = 1024
"""Rows a walk reads at a time."""
Entry = tuple[Any, Any, Any]
"""(key, namespace, value)."""


class _Table:
    """What the tables share: the reading of all of it."""

    _column: Column
    _layout: RowLayout

    def _places_in_memory(self) -> Iterator[tuple[Any, Any]]:
        raise NotImplementedError

    def _kept_key(self, data: bytes) -> Any:
        """The key that is stored in a row, since it cannot be read back from where the row lies."""
        return pickle.loads(data).keys

    def walk(self) -> Iterator[tuple[Any, Any]]:
        """(key, namespace) of the entries: those in memory, then the rows on disk, a part at a time."""
        yield from self._places_in_memory()
        start, last = b"", None
        while part := list(islice(self._column.scan(b"", start), _PART)):
            for row, data in part:
                key, namespace, _ = self._layout.read(row)
                if (key, namespace) != last:
                    yield self._kept_key(data) if is_kept(data) else key, namespace
                last = key, namespace
            start = part[-1][0] + b"\0"


class RocksDBTable(RowCache, _Table):
    """Single values; a `KeyedTable`, which is its own cache."""

    tracks_changes = True

    def __init__(self, column: Column, layout: RowLayout, budget: CacheBudget, state: str) -> None:
        super().__init__(column, ValueRows(layout), budget, state)
        self._column, self._layout = column, layout

    def append(self, key: Any, value: Any, namespace: Any = None) -> None:
        """Add `value` to the end of the entry's list."""
        self.put(key, [*self.get(key, namespace, ()), value], namespace)

    def remove(self, key: Any, namespace: Any = None) -> None:
        """Delete the entry, if it is there."""
        self.remove_all((key,), namespace)

    @property
    def is_missed(self) -> bool:
        """Whether values had to be looked for on disk since the last `prefetch`, that one included."""
        return self.misses > _FEW

    def prefetch(self, keys: list[Any], namespace: Any = None) -> None:
        """Read in one go what single reads of a batch would look for."""
        self.misses //= 2  # as long as each reads something, the next is worth it
        self.load(keys, namespace)
        self.lent = False

    def frozen(self) -> Iterable[Entry]:
        """All entries, which are in memory, as they are now."""
        return FrozenTable({space: self.space(space) for space in self.spaces()})

    def by_group(self, groups: Collection[int]) -> Iterator[tuple[int, Iterator[Entry]]]:
        """For each key group its entries; what changed must have been flushed, if anything ever was written."""
        if self._column.is_empty:
            yield from _grouped(self._layout, groups, [(n, s, v) for s, n, v in self.in_memory()])
            return
        for group in groups:
            yield group, self._scanned(group)

    def entries(self, groups: Collection[int]) -> Iterator[Entry]:
        """(key, namespace, value) of all entries in these key groups, by group."""
        if not self._column.is_empty:
            self.flush()
        for _, entries in self.by_group(sorted(groups)):
            yield from entries

    def __len__(self) -> int:
        if self._column.is_empty:
            return sum(1 for _ in self.in_memory())
        self.flush()
        return sum(1 for _ in self._column.scan(b""))

    def _scanned(self, group: int) -> Iterator[Entry]:
        for row, data in self._column.scan(prefixes[group]):
            key, namespace, _ = self._layout.read(row)
            value = pickle.loads(data)
            if value.__class__ is Kept:
                key, value = value.keys, value.value
            yield key, namespace, value

    def _places_in_memory(self) -> Iterator[tuple[Any, Any]]:
        for space in self.spaces():
            for name in list(self.space(space)):
                yield name, space


class RocksDBMapTable(_Table):
    """Maps, each entry a row; a `KeyedMapTable`. Maps are read in the order of their keys' canonical bytes."""

    def __init__(self, column: Column, layout: RowLayout, budget: CacheBudget, state: str) -> None:
        self._column, self._layout, self._rows = column, layout, MapRows(layout)
        self.cache = RowCache(column, self._rows, budget, state)

    def get(self, key: Any, map_key: Any, namespace: Any = None, default: Any = None) -> Any:
        """The value at `map_key`, or `default`."""
        name = _name_of(map_key)
        if name is EXOTIC:
            return self.cache.get(EXOTIC, (namespace, key), {}).get(map_key, default)
        return self.cache.get(name, (namespace, key), default)

    def put(self, key: Any, map_key: Any, value: Any, namespace: Any = None) -> None:
        """Set the value at `map_key`."""
        name = _name_of(map_key)
        if name is EXOTIC:
            value = {**self.cache.get(EXOTIC, (namespace, key), {}), map_key: value}
        self.cache.put(name, value, (namespace, key))

    def remove(self, key: Any, map_key: Any, namespace: Any = None) -> None:
        """Delete the value at `map_key`, if there is one."""
        space, name = (namespace, key), _name_of(map_key)
        if name is EXOTIC:
            held = dict(self.cache.get(EXOTIC, space, {}))
            held.pop(map_key, None)
            if held:
                self.cache.put(EXOTIC, held, space)
                return
        self.cache.remove_all((name,), space)

    def contains(self, key: Any, map_key: Any, namespace: Any = None) -> bool:
        """Whether there is a value at `map_key`."""
        return self.get(key, map_key, namespace, EXOTIC) is not EXOTIC

    def items(self, key: Any, namespace: Any = None) -> Iterable[tuple[Any, Any]]:
        """All (map key, value) of one key as of now; those of a large map are read as they are asked for."""
        space, cache = (namespace, key), self.cache
        if cache.is_only_here(space):
            return _expanded(self._in_order(space))
        cache.flush_space(space)
        prefix = self._rows.prefix(space)
        rows = (self._named(row, data, len(prefix)) for row, data in self._column.scan(prefix))
        first = list(islice(rows, _SMALL_MAP))
        if len(first) == _SMALL_MAP:
            return _each(chain(first, rows))
        here = cache.space(space)
        cache.lent = True  # nothing leaves the cache meanwhile
        for name, value in first:
            if name not in here:
                cache.admit(space, name, value)
        cache.gather(space)
        cache.lent = False
        cache.make_room()
        return _expanded([(name, here.get(name, value)) for name, value in first])

    def clear(self, key: Any, namespace: Any = None) -> None:
        """Delete the whole map of one key."""
        _delete_space(self.cache, self._rows, (namespace, key))

    def flush(self) -> None:
        """Write back all that changed."""
        self.cache.flush()

    def clear_all(self) -> None:
        """Delete all maps."""
        self.cache.clear_all()

    def frozen(self) -> Iterable[Entry]:
        """All maps, which are in memory, as they are now."""
        cache = self.cache
        entries = FrozenTable({space: cache.space(space) for space in cache.spaces()})
        return (
            (key, namespace, dict(_each((name, thawed(value)) for name, _, value in part)))
            for (namespace, key), part in groupby(entries, _space)
        )

    def by_group(self, groups: Collection[int]) -> Iterator[tuple[int, Iterator[Entry]]]:
        """For each key group its maps; what changed must have been flushed, if anything ever was written."""
        if self._column.is_empty:
            maps = [(space[1], space[0], dict(_expanded(self._in_order(space)))) for space in self.cache.spaces()]
            yield from _grouped(self._layout, groups, [entry for entry in maps if entry[2]])
            return
        for group in groups:
            yield group, self._scanned(group)

    def _scanned(self, group: int) -> Iterator[Entry]:
        rows = self._column.scan(prefixes[group])
        for (key, namespace, end), part in groupby(rows, lambda pair: self._layout.read(pair[0])):
            named = list(part)
            kept = pickle.loads(named[0][1])
            if kept.__class__ is Kept:
                key = kept.keys[0]
            yield key, namespace, dict(_expanded([self._named(row, data, end) for row, data in named]))

    def _kept_key(self, data: bytes) -> Any:
        return pickle.loads(data).keys[0]

    def _named(self, row: bytes, data: bytes, end: int) -> tuple[Any, Any]:
        value = pickle.loads(data)
        if row[end:] == EXOTIC_ROW:
            return EXOTIC, value.value if value.__class__ is Kept else value
        if value.__class__ is Kept:
            return value.keys[1], value.value
        return read_key(row, end)[0], value

    def _in_order(self, space: Any) -> list[tuple[Any, Any]]:
        return sorted(self.cache.space(space).items(), key=lambda pair: self._rows.name_bytes(pair[0]))

    def _places_in_memory(self) -> Iterator[tuple[Any, Any]]:
        for namespace, key in self.cache.spaces():
            yield key, namespace


class RocksDBListTable(_Table):
    """Lists; a `KeyedTable`. A list is stored in parts, and what is added goes to a new part: none is read for that."""

    tracks_changes = True

    def __init__(self, column: Column, layout: RowLayout, budget: CacheBudget, state: str) -> None:
        self._column, self._layout, self._rows = column, layout, ListRows(layout)
        self.cache = RowCache(column, self._rows, budget, state)
        self._open: dict[Any, tuple[int, list[Any]]] = {}
        self._next = 0
        self._lent: dict[Any, dict[Any, list[Any]]] = {}
        self.cache.on_rotate = self._open.clear

    def load(self, keys: Iterable[Any], namespace: Any = None) -> dict[Any, Any]:
        """The whole lists of these keys."""
        if not self.cache.lent:
            self._lent = {}
        lists = self._lent.setdefault(namespace, {})
        for given in dict.fromkeys(filter(_is_hashable, keys)):
            try:
                key = canonical_key(given)
            except InvalidKeyError:
                continue  # whoever uses it says so
            if key not in lists and (found := self.get(key, namespace)) is not None:
                lists[key] = found
        self.cache.lent = True
        return lists

    def changed(self, keys: Iterable[Any], namespace: Any = None) -> None:
        """The loaded lists of these keys were set or mutated."""
        lists = self._lent.get(namespace, {})
        for key in map(canonical_key, keys):
            if key in lists:
                self.put(key, lists[key], namespace)

    def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
        """The whole list, or `default`."""
        space, cache = (namespace, key), self.cache
        if cache.is_only_here(space):
            return self._joined(space, default)
        cache.flush_space(space)
        here, lent = cache.space(space), cache.lent
        cache.lent = True  # nothing leaves the cache meanwhile
        prefix = self._rows.prefix(space)
        for row, data in self._column.scan(prefix):
            number = int.from_bytes(row[len(prefix) :], "big")
            if number not in here:
                cache.admit(space, number, value_of(data))
        cache.gather(space)
        cache.lent = lent
        found = self._joined(space, default)
        cache.make_room()
        return found

    def put(self, key: Any, value: Any, namespace: Any = None) -> None:
        """Set the whole list."""
        self.remove(key, namespace)
        elements, space = list(value), (namespace, key)
        for at in range(0, len(elements), LIST_PART):
            self._begin(space, elements[at : at + LIST_PART])

    def append(self, key: Any, value: Any, namespace: Any = None) -> None:
        """Add `value` to the end of the entry's list."""
        space = (namespace, key)
        number, part = self._open.get(space, (0, None))
        if part is None or len(part) >= LIST_PART:
            self._begin(space, [value])
        else:
            part.append(value)
            self.cache.mark(space, number, value)

    def remove(self, key: Any, namespace: Any = None) -> None:
        """Delete the list, if there is one."""
        space = (namespace, key)
        self._open.pop(space, None)
        _delete_space(self.cache, self._rows, space)

    def remove_all(self, keys: Iterable[Any], namespace: Any = None) -> None:
        """Delete the lists of these keys."""
        for key in keys:
            self.remove(key, namespace)

    def frozen(self) -> Iterable[Entry]:
        """All lists, which are in memory, as they are now."""
        cache = self.cache
        parts = FrozenTable({space: dict(sorted(cache.space(space).items())) for space in cache.spaces()})
        return (
            (key, namespace, list(chain.from_iterable(thawed(part) for _, _, part in of_key)))
            for (namespace, key), of_key in groupby(parts, _space)
        )

    def by_group(self, groups: Collection[int]) -> Iterator[tuple[int, Iterator[Entry]]]:
        """For each key group its lists; what changed must have been flushed, if anything ever was written."""
        if self._column.is_empty:
            spaces = self.cache.spaces()
            yield from _grouped(self._layout, groups, [(key, ns, self.get(key, ns)) for ns, key in spaces])
            return
        for group in groups:
            yield group, self._scanned(group)

    def entries(self, groups: Collection[int]) -> Iterator[Entry]:
        """(key, namespace, value) of all lists in these key groups, by group."""
        if not self._column.is_empty:
            self.flush()
        for _, entries in self.by_group(sorted(groups)):
            yield from entries

    def __len__(self) -> int:
        if self._column.is_empty:
            return len(self.cache.spaces())
        self.flush()
        return sum(1 for _ in groupby(self._column.scan(b""), lambda pair: pair[0][:-8]))

    def flush(self) -> None:
        """Write back all that changed."""
        self.cache.flush()

    def clear_all(self) -> None:
        """Delete all lists."""
        self.cache.clear_all()

    def _joined(self, space: Any, default: Any) -> Any:
        parts = self.cache.space(space)
        return [element for number in sorted(parts) for element in parts[number]] if parts else default

    def _begin(self, space: Any, part: list[Any]) -> None:
        self._open[space] = self._next, part
        self._next += 1
        self.cache.put(self._next - 1, part, space)

    def _scanned(self, group: int) -> Iterator[Entry]:
        for row, part in groupby(self._column.scan(prefixes[group]), lambda pair: pair[0][:-8]):
            key, namespace, _ = self._layout.read(row)
            elements: list[Any] = []
            for _, data in part:
                value = pickle.loads(data)
                if value.__class__ is Kept:
                    key, value = value.keys, value.value
                elements += value
            yield key, namespace, elements

    def _places_in_memory(self) -> Iterator[tuple[Any, Any]]:
        for namespace, key in self.cache.spaces():
            yield key, namespace


def _delete_space(cache: RowCache, rows: SpaceRows, space: Any) -> None:
    known = cache.known_names(space)
    if not cache.drop_space(space):
        return
    prefix = rows.prefix(space)
    if known is None:
        stop = beyond(prefix)
        assert stop is not None, "key groups end below ff ff"
        cache.column.delete_range(prefix, stop)
    else:
        cache.column.write((), [prefix + rows.name_bytes(name) for name in known])


def _grouped(layout: RowLayout, groups: Collection[int], entries: list[Entry]) -> Iterator[tuple[int, Iterator[Entry]]]:
    """Entries by key group, in each in their order."""
    by_group: dict[int, list[Entry]] = {}
    for group, entry in zip(layout.groups_of([entry[0] for entry in entries]), entries, strict=True):
        by_group.setdefault(group, []).append(entry)
    for group in groups:
        if group in by_group:
            yield group, iter(by_group[group])


def _name_of(map_key: Any) -> Any:
    """The name under which a map key's value lies."""
    if type(map_key) in (str, int, bytes):
        return map_key
    try:
        return canonical_key(map_key)
    except InvalidKeyError:
        hash(map_key)
        return EXOTIC


def _space(entry: Entry) -> Any:
    return entry[1]


def _expanded(named: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return list(_each(named))


def _each(named: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for name, value in named:
        if name is EXOTIC:
            yield from value.items()
        else:
            yield name, value


def _is_hashable(name: Any) -> bool:
    return type(name).__hash__ is not None


__all__ = ["RocksDBListTable", "RocksDBMapTable", "RocksDBTable"]
