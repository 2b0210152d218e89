"""The hashmap backend: tables are dicts of the user's own objects, turned into bytes only for a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from rayflink.user_types import UserKey, UserValue

from .backend import KeyedMapTable, KeyedTable, Namespace
from .descriptors import StateDescriptor
from .group_capture import GroupCapture, TableCopy
from .group_content import Content, Rows
from .grouped_backend import GroupedBackend
from .keys import canonical_key
from .rocksdb.rocksdb_files import database_contents
from .snapshots import DatabaseFiles, SnapshotReader
from .timers import TimerQueue

_PART = 1024
"""The fewest keys that a walk takes at a time."""


class HashMapTable:
    """A `KeyedTable` of entries namespace -> key -> value, whose loaded dicts are the storage itself.

    Args:
        groups_of: keys -> their key groups.
    """

    __slots__ = ("_groups_of", "_releases", "_removals", "_spaces")

    tracks_changes = False

    def __init__(self, groups_of: Callable[[list[Any]], list[int]]) -> None:
        self._groups_of = groups_of
        self._spaces: dict[Any, dict[Any, Any]] = {}
        self._removals = 0  # entries ever removed one by one
        self._releases = 0  # namespaces ever released

    def load(self, keys: Iterable[UserKey], namespace: Namespace = None) -> dict[UserKey, UserValue]:
        """Return all entries of the namespace; `keys` is ignored."""
        space = self._spaces.get(namespace)
        if space is None:
            space = self._spaces[namespace] = {}
        return space

    def changed(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Do nothing: the loaded dict is the storage."""

    def get(self, key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the entry's value, or `default`."""
        space = self._spaces.get(namespace)
        return default if space is None else space.get(key, default)

    def put(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the entry."""
        self.load((), namespace)[key] = value

    def append(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Add `value` to the end of the entry's list."""
        self.load((), namespace).setdefault(key, []).append(value)

    def remove(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the entry, if it is there."""
        self.remove_all((key,), namespace)

    def remove_all(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Delete the entries of these keys; a namespace without entries is released."""
        space = self._spaces.get(namespace)
        if space is None:
            return
        before = len(space)
        for key in keys:
            space.pop(key, None)
        self._removals += before - len(space)
        if not space:
            del self._spaces[namespace]
            self._releases += 1

    def rows(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (key, namespace, value) of all entries: by namespace, in each the oldest first."""
        for namespace, space in self._spaces.items():
            for key, value in space.items():
                yield key, namespace, value

    def entries(self, groups: Collection[int]) -> Iterator[tuple[UserKey, Namespace, UserValue]]:
        """Yield (key, namespace, value) of all entries in these key groups, in the order of `rows`."""
        rows = list(self.rows())
        for row, group in zip(rows, self._groups_of([row[0] for row in rows]), strict=True):
            if group in groups:
                yield row

    def walk(self) -> Iterator[tuple[UserKey, Namespace]]:
        """Yield (key, namespace) of the entries, also while they change."""
        for namespace in _steady(self._spaces, lambda: self._releases):
            for key in _steady(self._spaces.get(namespace, {}), lambda: self._removals):
                yield key, namespace

    def copy_entries(self) -> TableCopy:
        """Copy all entries as they are now, in the order of `rows`."""
        return TableCopy(self._spaces)

    def clear_all(self) -> None:
        """Delete all entries."""
        self._spaces.clear()

    def __len__(self) -> int:
        return sum(map(len, self._spaces.values()))


class HashMapMapTable:
    """A `KeyedMapTable` that stores maps as the values of a table."""

    __slots__ = ("table",)

    def __init__(self, table: HashMapTable) -> None:
        self.table = table

    def get(self, key: UserKey, map_key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the value at `map_key`, or `default`."""
        entries = self.table.get(key, namespace)
        return default if entries is None else entries.get(map_key, default)

    def put(self, key: UserKey, map_key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the value at `map_key`."""
        self.table.load((), namespace).setdefault(key, {})[map_key] = value

    def remove(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> None:
        """Delete the value at `map_key`; the entry goes with its last value."""
        entries = self.table.get(key, namespace)
        if entries is not None:
            entries.pop(map_key, None)
            if not entries:
                self.table.remove(key, namespace)

    def contains(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> bool:
        """Return whether there is a value at `map_key`."""
        return map_key in self.table.get(key, namespace, ())

    def items(self, key: UserKey, namespace: Namespace = None) -> list[tuple[UserKey, UserValue]]:
        """Return all (map key, value) of one key as of now."""
        return list(self.table.get(key, namespace, {}).items())

    def clear(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the whole map of one key."""
        self.table.remove(key, namespace)

    def walk(self) -> Iterator[tuple[UserKey, Namespace]]:
        """Yield (key, namespace) of the maps, also while they change."""
        return self.table.walk()


class HashMapBackend(GroupedBackend[HashMapTable, TimerQueue]):
    """A `KeyedBackend` that stores keyed state as Python objects.

    A capture shares keys and immutable values, and copies or pickles the others before it returns; timers are copied as
    they change afterwards.

    Args:
        key_groups: the groups this subtask owns.
        max_parallelism: key groups in all.
        operator_uid: who owns the state, for errors.
    """

    create_table = HashMapTable

    def __init__(self, key_groups: range, max_parallelism: int, operator_uid: str = "") -> None:
        super().__init__(key_groups, max_parallelism, operator_uid)

    def table(self, descriptor: StateDescriptor) -> KeyedTable:
        """Return the table of a value, list, reducing or aggregating state."""
        return self._declared_table(descriptor)

    def map_table(self, descriptor: StateDescriptor) -> KeyedMapTable:
        """Return the table of a map state."""
        return HashMapMapTable(self._declared_table(descriptor))

    @property
    def reads_ahead(self) -> int:
        """Return 0: all state is in memory."""
        return 0

    def prefetch(self, keys: list[UserKey], namespace: Namespace = None) -> None:
        """Do nothing: all state is in memory."""

    def announce(self, checkpoint_id: int) -> None:
        """Do nothing: there is nothing to write ahead."""

    def prepare(self, may_continue: Callable[[], bool]) -> int | None:
        """Do nothing."""
        return None

    def capture(self, checkpoint_id: int) -> GroupCapture:
        """Capture all tables and timers as they are now."""
        tables = {name: (kind, table.copy_entries()) for name, (kind, table) in self._tables.items()}
        timers = {name: queue.capture() for name, queue in self._timers.items()}
        return self._track_capture(
            GroupCapture("the hashmap backend", tables, timers, self._snapshot_filters, self._groups_of)
        )

    def restore_databases(
        self, databases: Sequence[DatabaseFiles], reader: SnapshotReader, reusable: bool = False
    ) -> None:
        """Restore the owned key groups from RocksDB's files."""

        self._take(database_contents(databases, reader, self._key_groups, self._max_parallelism, self._operator_uid))

    def restore(self, parts: Iterable[Mapping[int, bytes]]) -> None:
        """Restore the owned key groups; entries and timers keep the order they had in the subtask that wrote them."""
        self._take(self._owned(parts))

    def _take(self, contents: Iterable[Content]) -> None:
        tables: dict[str, Rows] = {}
        timers: dict[str, Rows] = {}
        for content in contents:
            for name, (kind, rows) in content["tables"].items():
                self._table(name, kind)
                tables.setdefault(name, []).extend(rows)
            for name, rows in content["timers"].items():
                timers.setdefault(name, []).extend(rows)
        for name, rows in tables.items():
            table = self._tables[name][1]
            for _, namespace, key, value in sorted(rows, key=itemgetter(0)):
                table.put(canonical_key(key), value, namespace)
        for name, rows in timers.items():
            queue = self.timers(name)
            for _, namespace, key, timestamp in sorted(rows, key=itemgetter(0)):
                queue.register(timestamp, canonical_key(key), namespace)

    def close(self) -> None:
        """Drop all objects."""
        self._tables.clear()
        self._timers.clear()

    def _samples(self, state: str, most: int) -> list[Any]:
        kind, table = self._tables[state]
        values = (value for _, _, value in table.rows())
        if kind.endswith(("map", "list")):
            parts = (islice(value.values() if kind.endswith("map") else value, most) for value in islice(values, most))
            return list(islice(chain.from_iterable(parts), most))
        return list(islice(values, most))

    def _new_table(self, name: str, kind: str) -> HashMapTable:
        return self.create_table(self._groups_of)

    def _new_queue(self, name: str) -> TimerQueue:
        return TimerQueue()


def _steady(entries: dict[Any, Any], removals: Callable[[], int]) -> Iterator[Any]:
    """Yield the keys of a dict that may change meanwhile; those present throughout come once or more.

    A dict keeps its order and adds at the end, so n removals bring a key forward by n places at most. The keys
    sought are the first ones, as many as there are now. A part is a sixteenth of the keys, since finding the place
    to go on costs a step over each key before it; it grows where removals push the walk back, and so it ends.
    """
    position, part, end = 0, _PART, len(entries)
    while position < end:
        part = max(part, len(entries) // 16)
        keys = list(islice(entries, position, position + part))
        before, reached = removals(), position + part
        yield from keys
        if reached >= end:
            return
        removed = removals() - before
        if removed > part // 2:
            part *= 2
        position = max(0, reached - removed)
