"""The hashmap backend: tables are dicts of the user's own objects, and bytes are made only for a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any

from .backend import ForeignKeyError, KeyedMapTable, KeyedTable
from .descriptors import StateDescriptor
from .errors import SnapshotMismatch
from .group_content import Content, Rows, decode_group, encode_group
from .key_columns import hash_keys
from .key_groups import key_groups_of
from .keys import canonical_key
from .timers import TimerQueue

_PART = 1024
"""The fewest keys that a walk takes at a time."""


class HashMapTable:
    """Entries as namespace -> key -> value; a `KeyedTable` whose loaded dicts are the storage itself.

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

    def load(self, keys: Iterable[Any], namespace: Any = None) -> dict[Any, Any]:
        """All entries of the namespace; `keys` is not looked at."""
        space = self._spaces.get(namespace)
        if space is None:
            space = self._spaces[namespace] = {}
        return space

    def changed(self, keys: Iterable[Any], namespace: Any = None) -> None:
        """Nothing to do: the loaded dict is the storage."""

    def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
        """The entry's value, or `default`."""
        space = self._spaces.get(namespace)
        return default if space is None else space.get(key, default)

    def put(self, key: Any, value: Any, namespace: Any = None) -> None:
        """Set the entry."""
        self.load((), namespace)[key] = value

    def append(self, key: Any, value: Any, namespace: Any = None) -> None:
        """Add `value` to the end of the entry's list."""
        self.load((), namespace).setdefault(key, []).append(value)

    def remove(self, key: Any, namespace: Any = None) -> None:
        """Delete the entry, if it is there."""
        self.remove_all((key,), namespace)

    def remove_all(self, keys: Iterable[Any], namespace: Any = None) -> None:
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
        """(key, namespace, value) of all entries: by namespace, in each the oldest first."""
        for namespace, space in self._spaces.items():
            for key, value in space.items():
                yield key, namespace, value

    def entries(self, groups: Collection[int]) -> Iterator[tuple[Any, Any, Any]]:
        """(key, namespace, value) of all entries in these key groups, in the order of `rows`."""
        rows = list(self.rows())
        for row, group in zip(rows, self._groups_of([row[0] for row in rows]), strict=True):
            if group in groups:
                yield row

    def walk(self) -> Iterator[tuple[Any, Any]]:
        """(key, namespace) of the entries, also while they change."""
        for namespace in _steady(self._spaces, lambda: self._releases):
            for key in _steady(self._spaces.get(namespace, {}), lambda: self._removals):
                yield key, namespace

    def clear(self) -> None:
        """Delete all entries."""
        self._spaces.clear()

    def __len__(self) -> int:
        return sum(map(len, self._spaces.values()))


class HashMapMapTable:
    """Maps as the values of a table; a `KeyedMapTable`."""

    __slots__ = ("table",)

    def __init__(self, table: HashMapTable) -> None:
        self.table = table

    def get(self, key: Any, map_key: Any, namespace: Any = None, default: Any = None) -> Any:
        """The value at `map_key`, or `default`."""
        entries = self.table.get(key, namespace)
        return default if entries is None else entries.get(map_key, default)

    def put(self, key: Any, map_key: Any, value: Any, namespace: Any = None) -> None:
        """Set the value at `map_key`."""
        self.table.load((), namespace).setdefault(key, {})[map_key] = value

    def remove(self, key: Any, map_key: Any, namespace: Any = None) -> None:
        """Delete the value at `map_key`; the entry goes with its last value."""
        entries = self.table.get(key, namespace)
        if entries is not None:
            entries.pop(map_key, None)
            if not entries:
                self.table.remove(key, namespace)

    def contains(self, key: Any, map_key: Any, namespace: Any = None) -> bool:
        """Whether there is a value at `map_key`."""
        return map_key in self.table.get(key, namespace, ())

    def items(self, key: Any, namespace: Any = None) -> list[tuple[Any, Any]]:
        """All (map key, value) of one key as of now."""
        return list(self.table.get(key, namespace, {}).items())

    def clear(self, key: Any, namespace: Any = None) -> None:
        """Delete the whole map of one key."""
        self.table.remove(key, namespace)

    def walk(self) -> Iterator[tuple[Any, Any]]:
        """(key, namespace) of the maps, also while they change."""
        return self.table.walk()


class HashMapBackend:
    """Keeps keyed state as Python objects; a `KeyedBackend`.

    Args:
        key_groups: the groups this subtask owns.
        max_parallelism: key groups in all.
        operator_uid: who owns the state, for errors.
    """

    create_table = HashMapTable

    def __init__(self, key_groups: range, max_parallelism: int, operator_uid: str = "") -> None:
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._operator_uid = operator_uid
        self._tables: dict[str, tuple[str, HashMapTable]] = {}
        self._timers: dict[str, TimerQueue] = {}
        self._kept: dict[str, Callable[[Any], Any]] = {}

    @property
    def key_groups(self) -> range:
        """The groups this subtask owns."""
        return self._key_groups

    def table(self, descriptor: StateDescriptor) -> KeyedTable:
        """The table of a value, list, reducing or aggregating state."""
        return self._table(descriptor.name, descriptor.stored_kind)

    def map_table(self, descriptor: StateDescriptor) -> KeyedMapTable:
        """The table of a map state."""
        return HashMapMapTable(self._table(descriptor.name, descriptor.stored_kind))

    def filter_snapshots(self, descriptor: StateDescriptor, kept: Callable[[Any], Any]) -> None:
        """From now on snapshots hold what `kept` gives for each entry of the state; nothing where that is None."""
        self._kept[descriptor.name] = kept

    def timers(self, name: str) -> TimerQueue:
        """The queue of timers of this name."""
        return self._timers.setdefault(name, TimerQueue())

    @property
    def reads_ahead(self) -> int:
        """None: all state is in memory."""
        return 0

    def prefetch(self, keys: list[Any], namespace: Any = None) -> None:
        """Nothing to do: all state is in memory."""

    def snapshot(self) -> dict[int, bytes]:
        """Key group -> pickled tables and timers, in a versioned frame."""
        content: dict[int, Content] = {}
        for name, (kind, table) in self._tables.items():
            for group, rows in self._by_group(self._rows(name, table)).items():
                tables = content.setdefault(group, {"tables": {}, "timers": {}})["tables"]
                tables[name] = (kind, rows)
        for name, queue in self._timers.items():
            timers = ((key, namespace, timestamp) for timestamp, key, namespace in queue)
            for group, rows in self._by_group(timers).items():
                content.setdefault(group, {"tables": {}, "timers": {}})["timers"][name] = rows
        return {group: encode_group(content[group], "the hashmap backend") for group in sorted(content)}

    def restore(self, parts: Iterable[Mapping[int, bytes]]) -> None:
        """Take the owned groups; entries and timers come back in the order they had in the subtask that wrote them."""
        tables: dict[str, Rows] = {}
        timers: dict[str, Rows] = {}
        for part in parts:
            for group in self.key_groups:
                if group in part:
                    content = decode_group(part[group], self._operator_uid)
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

    def refuse_timers(self) -> None:
        """Set no timer until `clear`."""
        for queue in self._timers.values():
            queue.refuse()

    @property
    def refused_timers(self) -> int:
        """How many were to be set since."""
        return sum(queue.refused for queue in self._timers.values())

    def clear(self) -> None:
        """Delete all entries and timers."""
        for _, table in self._tables.values():
            table.clear()
        for queue in self._timers.values():
            queue.clear()

    def close(self) -> None:
        """Let go of all objects."""
        self._tables.clear()
        self._timers.clear()

    def _table(self, name: str, kind: str) -> HashMapTable:
        if name not in self._tables:
            self._tables[name] = kind, self.create_table(self._groups_of)
        known, table = self._tables[name]
        if known != kind:
            raise SnapshotMismatch(name, self._operator_uid, f"{known} state", f"{kind} state", "the kinds differ")
        return table

    def _rows(self, name: str, table: HashMapTable) -> Iterator[tuple[Any, Any, Any]]:
        """What a snapshot holds of a table."""
        kept = self._kept.get(name)
        if kept is None:
            return table.rows()
        filtered = ((key, namespace, kept(value)) for key, namespace, value in table.rows())
        return (row for row in filtered if row[2] is not None)

    def _groups_of(self, keys: list[Any]) -> list[int]:
        if not keys:
            return []
        groups: list[int] = key_groups_of(hash_keys(keys), self._max_parallelism).tolist()
        owned = self.key_groups
        if min(groups) < owned.start or max(groups) >= owned.stop:
            stray = next(i for i, group in enumerate(groups) if group not in owned)
            raise ForeignKeyError(repr(keys[stray]), groups[stray], f"[{owned.start}, {owned.stop})")
        return groups

    def _by_group(self, entries: Iterable[tuple[Any, Any, Any]]) -> dict[int, Rows]:
        rows = list(entries)
        by_group: dict[int, Rows] = {}
        groups = self._groups_of([row[0] for row in rows])
        for position, (group, (key, namespace, value)) in enumerate(zip(groups, rows, strict=True)):
            by_group.setdefault(group, []).append((position, namespace, key, value))
        return by_group


def _steady(entries: dict[Any, Any], removals: Callable[[], int]) -> Iterator[Any]:
    """The keys of a dict that may change meanwhile; those that are there all the time once or more.

    A dict keeps its order and adds at the end, so n removals bring a key forward by n places at most. The keys
    sought are the first ones, as many as there are now. A part is a sixteenth of the keys, since finding the place
    to go on costs a step over each key before it; it grows where removals push the walk back, and so it ends.
    """
    position, part, end = 0, _PART, len(entries)
    while position < end:
        part = max(part, len(entries) // 16)
        given = list(islice(entries, position, position + part))
        before, reached = removals(), position + part
        yield from given
        if reached >= end:
            return
        gone = removals() - before
        if gone > part // 2:
            part *= 2
        position = max(0, reached - gone)
