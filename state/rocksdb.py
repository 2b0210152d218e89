"""The RocksDB backend: keyed state larger than memory, behind a cache of decoded values.

As long as all state fits the cache there is no database: it is opened when the first entry leaves. Snapshots have the
hashmap backend's format, so that each restores the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .backend import KeyedMapTable, KeyedTable
from .descriptors import StateDescriptor
from .group_capture import GroupCapture
from .group_content import Content, Rows, encode_group
from .grouped_backend import GroupedBackend
from .keys import canonical_key
from .rocksdb_store import RocksDBMemory, RocksDBOptions, RocksDBStore
from .rocksdb_tables import RocksDBListTable, RocksDBMapTable, RocksDBTable
from .rocksdb_timers import RocksDBTimerQueue
from .row_cache import CacheBudget
from .row_layout import RowLayout
from .snapshots import DatabaseFiles, KeyedCapture, KeyedParts, SnapshotReader, SnapshotWriter

_MOST_TIMERS = 50_000
_TIMER_BYTES = 300
READ_AHEAD = 4096
"""Keys whose values are read from disk in one go, at most."""
_LEAST_NATIVE_BYTES = 4 << 20
Table = RocksDBTable | RocksDBListTable | RocksDBMapTable


class StateMemory:
    """The memory of all RocksDB backends of a slot: decoded values in caches, and what RocksDB has itself.

    >>> memory = StateMemory(64 << 20)
    >>> memory.enter(); memory.enter()
    >>> memory.cache_bytes() >> 20
    16

    Args:
        total: bytes of both together.
        cache_ratio: share of decoded values, in (0, 1).
        write_ratio: share of RocksDB's own part that memtables may fill, in (0, 1).
        read_threads: that read the rows of one batch at the same time.
        on_open: called with the bytes that RocksDB takes, when it takes them.
        on_empty: called when no backend is left.
    """

    def __init__(
        self,
        total: int,
        cache_ratio: float = 0.5,
        write_ratio: float = 0.5,
        read_threads: int = 8,
        on_open: Callable[[int], None] | None = None,
        on_empty: Callable[[], None] | None = None,
    ) -> None:
        self.total = total
        self._cache_ratio, self._write_ratio = cache_ratio, write_ratio
        self._on_open, self._on_empty = on_open, on_empty
        self._read_threads = read_threads
        self._backends = 0
        self._native: RocksDBMemory | None = None

    def enter(self) -> None:
        """One more backend shares the memory."""
        self._backends += 1

    def leave(self) -> None:
        """One backend is closed."""
        self._backends -= 1
        if not self._backends:
            native, self._native = self._native, None
            if native is not None:
                native.close()
            if self._on_empty is not None:
                self._on_empty()

    def cache_bytes(self) -> int:
        """What one backend may keep of decoded values."""
        return int(self.total * self._cache_ratio) // max(1, self._backends)

    def native(self) -> RocksDBMemory:
        """What the databases share; made when it is first asked for."""
        if self._native is None:
            size = max(_LEAST_NATIVE_BYTES, self.total - int(self.total * self._cache_ratio))
            if self._on_open is not None:
                self._on_open(size)
            self._native = RocksDBMemory(size, self._write_ratio, self._read_threads)
        return self._native


class _Written:
    def __init__(self, groups: dict[int, bytes]) -> None:
        self._groups = groups

    def write(self, writer: SnapshotWriter) -> KeyedParts:
        return KeyedParts({group: writer.put(data) for group, data in self._groups.items()})

    def release(self) -> None:
        self._groups = {}


class RocksDBBackend(GroupedBackend[Table, RocksDBTimerQueue]):
    """Keeps keyed state in RocksDB; a `KeyedBackend`.

    Args:
        key_groups: the groups this subtask owns.
        max_parallelism: key groups in all.
        operator_uid: who owns the state, for errors.
        folder: of the database; it must not exist, is made when needed and goes with the backend.
        memory: what the backends of the slot share.
        options: how the database is made.
    """

    def __init__(
        self,
        key_groups: range,
        max_parallelism: int,
        operator_uid: str,
        folder: Path,
        memory: StateMemory,
        options: RocksDBOptions | None = None,
    ) -> None:
        super().__init__(key_groups, max_parallelism, operator_uid)
        self._memory = memory
        self._layout = RowLayout(max_parallelism, self._check_groups)
        self.store = RocksDBStore(folder, memory.native, options)
        self._budget = CacheBudget(memory.cache_bytes)
        self._closed = False
        memory.enter()

    def table(self, descriptor: StateDescriptor) -> KeyedTable:
        """The table of a value, list, reducing or aggregating state."""
        return self._table(descriptor.name, descriptor.stored_kind)  # type: ignore[return-value]

    def map_table(self, descriptor: StateDescriptor) -> KeyedMapTable:
        """The table of a map state."""
        return self._table(descriptor.name, descriptor.stored_kind)  # type: ignore[return-value]

    @property
    def reads_ahead(self) -> int:
        """Where single values had to be looked for on disk lately, as many as have room in the cache and do some good.

        Many reads wait for the disk together; a slice of input has far fewer records than that.
        """
        if not self.store.is_open:
            return 0
        weights = [table.entry_bytes for table in self._single_values() if table.is_missed]
        return min(READ_AHEAD, int(self._memory.cache_bytes() / 4 / sum(weights))) if weights else 0

    def prefetch(self, keys: list[Any], namespace: Any = None) -> None:
        """Read in one go the values of these keys, where records of earlier batches had to look for them."""
        for table in self._single_values():
            if table.is_missed:
                table.prefetch(keys, namespace)

    def _single_values(self) -> Iterator[RocksDBTable]:
        return (table for _, table in self._tables.values() if isinstance(table, RocksDBTable))

    def announce(self, checkpoint_id: int) -> None:
        """Begin to write what changed."""

    def prepare(self, may_continue: Callable[[], bool]) -> int | None:
        """Nothing to do."""
        return None

    def capture(self, checkpoint_id: int) -> KeyedCapture:
        """All tables and timers as they are now."""
        if not self.store.is_open:
            return self._captured_in_memory()
        return _Written(self._snapshot())

    def _captured_in_memory(self) -> GroupCapture:
        tables = {name: (kind, table.frozen()) for name, (kind, table) in self._tables.items()}
        timers = {name: queue.near.capture() for name, queue in self._timers.items()}
        return self._remembered(GroupCapture("the RocksDB backend", tables, timers, self._kept, self._groups_of))

    def _snapshot(self) -> dict[int, bytes]:
        near = {name: self._near_timers(queue) for name, queue in self._timers.items()}
        after = {name: len(queue.near) for name, queue in self._timers.items()}
        if self.store.is_open:
            for _, table in self._tables.values():
                table.flush()
        by_group = {name: dict(self._rows(name, table)) for name, (_, table) in self._tables.items()}
        snapshot = {}
        for group in self._key_groups:
            content: Content = {"tables": {}, "timers": {}}
            for name, groups in by_group.items():
                entries = groups.get(group)
                rows = [] if entries is None else list(entries)
                if rows:
                    content["tables"][name] = self._tables[name][0], rows
            for name, queue in self._timers.items():
                timers = near[name].get(group, [])
                timers += [(after[name], ns, key, at) for at, key, ns in queue.far(group)]
                if timers:
                    content["timers"][name] = timers
            if content["tables"] or content["timers"]:
                snapshot[group] = encode_group(content, "the RocksDB backend")
        return snapshot

    def restore_databases(
        self, databases: Sequence[DatabaseFiles], reader: SnapshotReader, reusable: bool = False
    ) -> None:
        """Take the owned groups."""
        assert not databases, "no backend writes any yet"

    def restore(self, parts: Iterable[Mapping[int, bytes]]) -> None:
        """Take the owned groups, one after the other."""
        timers: dict[str, Rows] = {}
        for content in self._owned(parts):
            for name, (kind, rows) in content["tables"].items():
                _restore_table(self._table(name, kind), rows)
            for name, rows in content["timers"].items():
                timers.setdefault(name, []).extend(rows)
                if len(timers[name]) > _MOST_TIMERS:
                    self._restore_timers(name, timers.pop(name))
        for name, rows in timers.items():
            self._restore_timers(name, rows)

    def close(self) -> None:
        """Close the database and remove its folder; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._tables.clear()
            self._timers.clear()
            self.store.close()
            self._memory.leave()

    def _new_table(self, name: str, kind: str) -> Table:
        column = self.store.column(f"state/{name}")
        make: Callable[..., Table] = RocksDBTable
        if kind.endswith("map"):
            make = RocksDBMapTable
        elif kind.endswith("list"):
            make = RocksDBListTable
        return make(column, self._layout, self._budget, name)

    def _new_queue(self, name: str) -> RocksDBTimerQueue:
        column = self.store.column(f"timers/{name}")
        most = min(_MOST_TIMERS, max(1024, self._memory.cache_bytes() // 4 // _TIMER_BYTES))
        return RocksDBTimerQueue(column, self._layout, self._key_groups, most)

    def _rows(self, name: str, table: Table) -> Iterator[tuple[int, Iterator[tuple[int, Any, Any, Any]]]]:
        """For each key group what a snapshot holds of a table."""
        kept = self._kept.get(name)
        for group, entries in table.by_group(self._key_groups):
            yield group, _numbered(entries, kept)

    def _near_timers(self, queue: RocksDBTimerQueue) -> dict[int, Rows]:
        """Key group -> the timers in memory, with their places in the order of firing."""
        by_group: dict[int, Rows] = {}
        timers = list(queue.near)
        groups = self._layout.groups_of([key for _, key, _ in timers])
        for position, (group, (timestamp, key, namespace)) in enumerate(zip(groups, timers, strict=True)):
            by_group.setdefault(group, []).append((position, namespace, key, timestamp))
        return by_group

    def _restore_timers(self, name: str, rows: Rows) -> None:
        queue = self.timers(name)
        for _, namespace, key, timestamp in sorted(rows, key=_position):
            queue.register(timestamp, canonical_key(key), namespace)


def _numbered(
    entries: Iterable[tuple[Any, Any, Any]], kept: Callable[[Any], Any] | None
) -> Iterator[tuple[int, Any, Any, Any]]:
    for position, (key, namespace, value) in enumerate(entries):
        if kept is None:
            yield position, namespace, key, value
        elif (held := kept(value)) is not None:
            yield position, namespace, key, held


def _restore_table(table: Table, rows: Rows) -> None:
    for _, namespace, key, value in sorted(rows, key=_position):
        key = canonical_key(key)
        if isinstance(table, RocksDBMapTable):
            for map_key, entry in value.items():
                table.put(key, map_key, entry, namespace)
        else:
            table.put(key, value, namespace)


def _position(row: tuple[int, Any, Any, Any]) -> int:
    return row[0]


__all__ = ["RocksDBBackend", "StateMemory"]
