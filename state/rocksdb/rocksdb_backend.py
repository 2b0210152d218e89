"""The RocksDB backend: keyed state larger than memory, behind a cache of decoded values.

As long as all state fits the cache there is no database: it is opened when the first entry leaves, or when a checkpoint
is announced and there are more than a few megabytes. A checkpoint of a database is its files; without one, and for
savepoints, it is key groups in the format of all backends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from rayflink.user_types import UserKey

from ..backend import KeyedMapTable, KeyedTable, Namespace
from ..descriptors import StateDescriptor
from ..group_capture import GroupCapture
from ..group_content import Rows
from ..grouped_backend import GroupedBackend
from ..keys import canonical_key
from ..snapshots import DatabaseFiles, KeyedCapture, SnapshotReader
from .cache_budget import CacheBudget, CacheLimits
from .rocksdb_capture import DatabaseCapture, Increments
from .rocksdb_files import STATE, TIMERS, AboutDatabase, open_restored, owned_part, read_about
from .rocksdb_rows import EXOTIC
from .rocksdb_store import RocksDBMemory, RocksDBOptions, RocksDBStore
from .rocksdb_tables import RocksDBListTable, RocksDBMapTable, RocksDBTable
from .rocksdb_timers import RocksDBTimerQueue
from .row_layout import RowLayout, to_pickle

_MOST_TIMERS = 50_000
_TIMER_BYTES = 300
READ_AHEAD = 4096
"""Keys whose values are read from disk in one go, at most."""
_LEAST_NATIVE_BYTES = 4 << 20
_SMALL_BYTES = 4 << 20
"""State in memory up to which checkpoints are whole, and need no database."""
_LEFT_CHANGED = 1000
"""Entries of a state that may be left to be written while the task waits."""
_WRITTEN_AT_ONCE = 500
_FLUSHED_BYTES = 1 << 20
"""Size of a memtable that is written to disk before a capture."""
_PREPARED_AGAIN_MS = 20
_NEVER = 1 << 63
Table = RocksDBTable | RocksDBListTable | RocksDBMapTable


class StateMemory:
    """The memory of all RocksDB backends of a slot: caches of decoded values, and RocksDB's own part.

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
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Count one more backend that shares the memory."""
        with self._lock:
            self._backends += 1

    def leave(self) -> None:
        """Count one backend less; the last one closes RocksDB's part."""
        with self._lock:
            self._backends -= 1
            if self._backends:
                return
            native, self._native = self._native, None
            if native is not None:
                native.close()
            if self._on_empty is not None:
                self._on_empty()

    def cache_bytes(self) -> int:
        """Return how many bytes of decoded values one backend may cache."""
        return int(self.total * self._cache_ratio) // max(1, self._backends)

    def native(self) -> RocksDBMemory:
        """Return the memory that the databases share, created on first use."""
        native = self._native
        if native is not None:
            return native
        with self._lock:
            if self._native is not None:
                return self._native
            size = max(_LEAST_NATIVE_BYTES, self.total - int(self.total * self._cache_ratio))
            if self._on_open is not None:
                self._on_open(size)
            self._native = RocksDBMemory(size, self._write_ratio, self._read_threads)
            return self._native


class RocksDBBackend(GroupedBackend[Table, RocksDBTimerQueue]):
    """A `KeyedBackend` that stores keyed state in RocksDB.

    Args:
        key_groups: the groups this subtask owns.
        max_parallelism: key groups in all.
        operator_uid: who owns the state, for errors.
        folder: of the database; it must not exist, is made when needed and goes with the backend.
        memory: what the backends of the slot share.
        options: how the database is made.
    """

    cache_limits: ClassVar[CacheLimits] = CacheLimits()
    """Bounds of the backend's caches; a test's subclass lowers them."""

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
        self.cache_budget = CacheBudget(memory.cache_bytes, self.cache_limits)
        """The memory of the backend's caches."""
        self._increments = Increments()
        self._announced = False
        self._unfiltered: set[str] = set()
        self._closed = False
        memory.enter()

    def table(self, descriptor: StateDescriptor) -> KeyedTable:
        """Return the table of a value, list, reducing or aggregating state."""
        return self._declared_table(descriptor)  # type: ignore[return-value]

    def map_table(self, descriptor: StateDescriptor) -> KeyedMapTable:
        """Return the table of a map state."""
        return self._declared_table(descriptor)  # type: ignore[return-value]

    @property
    def reads_ahead(self) -> int:
        """Return for how many keys `prefetch` pays: where reads missed the cache lately, as many as fit in it.

        Many reads wait for the disk together; a slice of input has far fewer records than that.
        """
        if not self.store.is_open:
            return 0
        weights = [table.usage.entry_bytes for table in self._single_values() if table.is_missed]
        return min(READ_AHEAD, int(self._memory.cache_bytes() / 4 / sum(weights))) if weights else 0

    def prefetch(self, keys: list[UserKey], namespace: Namespace = None) -> None:
        """Read in one go the values of these keys, where records of earlier batches had to look for them."""
        for table in self._single_values():
            if table.is_missed:
                table.prefetch(keys, namespace)

    def _single_values(self) -> Iterator[RocksDBTable]:
        return (table for _, table in self._tables.values() if isinstance(table, RocksDBTable))

    def announce(self, checkpoint_id: int) -> None:
        """Announce a capture: `prepare` begins to write dirty rows."""
        self._announced = True

    def prepare(self, may_continue: Callable[[], bool]) -> int | None:
        """Write some dirty rows, and flush memtables in the background, again and again until the capture.

        State that fits few megabytes stays in memory: it is written as a whole.
        """
        if not self._announced or not (self.store.is_open or self._estimated_bytes > _SMALL_BYTES):
            return None
        if not self.store.drain_some():
            return _PREPARED_AGAIN_MS if self.store.is_linking else 0
        for _, table in self._tables.values():
            while table.cache.has_more_dirty_than(_LEFT_CHANGED):
                table.cache.write_some(_WRITTEN_AT_ONCE)
                if not may_continue():
                    return 0
        for queue in self._timers.values():
            queue.flush()
        self.store.flush_in_background(_FLUSHED_BYTES)
        return _PREPARED_AGAIN_MS

    def capture(self, checkpoint_id: int) -> KeyedCapture:
        """Capture all tables and timers as they are now: from memory, or as the database's files once there is one."""
        self._announced = False
        for queue in self._timers.values():
            queue.flush()  # far timers, of which the first open the database
        if not self.store.is_open:
            return self._track_capture(self._capture_memory(self._tables))
        self.store.drain()
        caches = [table.cache for _, table in self._tables.values()]
        dirty = [(cache.column, cache.capture_dirty()) for cache in caches]
        far = {
            name: far_from_ms for name, queue in self._timers.items() if (far_from_ms := queue.far_from_ms) is not None
        }
        lists = {name: table for name, (_, table) in self._tables.items() if isinstance(table, RocksDBListTable)}
        kinds = {name: kind for name, (kind, _) in self._tables.items()}
        next_parts = {name: table.next_part for name, table in lists.items()}
        about = partial(AboutDatabase, self._max_parallelism, kinds, next_parts, far)
        link = self.store.link({column: rows for column, rows in dirty if rows is not None})
        for cache in caches:
            cache.capture_written_by(link)
        increments = self._increments.begin(checkpoint_id), partial(self._increments.stored, checkpoint_id)
        near = self._track_capture(self._capture_memory({}))
        return DatabaseCapture(
            link, self.store, self._key_groups, lambda: about(self._layout.namespaces.classes), near, increments
        )

    def _capture_memory(self, tables: dict[str, tuple[str, Table]]) -> GroupCapture:
        entries = {name: (kind, table.copy_entries()) for name, (kind, table) in tables.items()}
        timers = {name: queue.near.capture() for name, queue in self._timers.items()}
        return GroupCapture("the RocksDB backend", entries, timers, self._snapshot_filters, self._groups_of)

    @property
    def _estimated_bytes(self) -> float:
        return sum(table.cache.estimated_bytes for _, table in self._tables.values())

    def confirm(self, checkpoint_id: int) -> None:
        """Note that this checkpoint is complete: later ones may refer to its files."""
        super().confirm(checkpoint_id)
        self._increments.confirm(checkpoint_id)

    def abort(self, checkpoint_id: int) -> None:
        """Note that this checkpoint will never be complete."""
        super().abort(checkpoint_id)
        self._increments.abort(checkpoint_id)

    def restore_databases(
        self, databases: Sequence[DatabaseFiles], reader: SnapshotReader, reusable: bool = False
    ) -> None:
        """Open a database with the owned groups."""
        overlapping = [
            (database, read_about(database, self._max_parallelism, self._operator_uid))
            for database in databases
            if owned_part(database, self._key_groups)
        ]
        if not overlapping:
            return
        for _, about in overlapping:
            for name, kind in about.tables.items():
                self._table(name, kind)
        files = open_restored(self.store, self._layout, overlapping, reader, self._key_groups)
        if reusable:
            self._increments.start_from(files)
        for _, about in overlapping:
            for name in about.tables:
                self._tables[name][1].on_restored(about.next_parts.get(name, 0))
                self._unfiltered.add(name)
        for name in {name for _, about in overlapping for name in about.far_from_ms}:
            self.timers(name).on_restored(min(about.far_from_ms.get(name, _NEVER) for _, about in overlapping))

    def filter_snapshots(self, descriptor: StateDescriptor, snapshot_filter: Callable[[Any], Any]) -> None:
        """Filter snapshots as `KeyedBackend` says; restored files are unfiltered, so their rows are filtered now."""
        super().filter_snapshots(descriptor, snapshot_filter)
        if descriptor.name in self._unfiltered:
            self._unfiltered.discard(descriptor.name)
            _filter(self._tables[descriptor.name][1], self._key_groups, snapshot_filter)

    def restore(self, parts: Iterable[Mapping[int, bytes]]) -> None:
        """Restore the owned key groups, one after the other."""
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
            try:
                self.store.close()
            finally:
                self._memory.leave()

    def _samples(self, state: str, most: int) -> list[Any]:
        """Return some values that are in memory; nothing is read from disk for it."""
        kind, table = self._tables[state]
        named = ((name, value) for _, name, value in table.cache.all_cached_entries())
        values = [value for name, value in islice(named, most) if name is not EXOTIC]
        return [element for part in values for element in part[:most]][:most] if kind.endswith("list") else values

    def _new_table(self, name: str, kind: str) -> Table:
        column = self.store.column(STATE + name)
        make: Callable[..., Table] = RocksDBTable
        if kind.endswith("map"):
            make = RocksDBMapTable
        elif kind.endswith("list"):
            make = RocksDBListTable
        return make(column, self._layout, self.cache_budget, name)

    def _new_queue(self, name: str) -> RocksDBTimerQueue:
        column = self.store.column(TIMERS + name)
        most = min(_MOST_TIMERS, max(1024, self._memory.cache_bytes() // 4 // _TIMER_BYTES))
        return RocksDBTimerQueue(column, self._layout, self._key_groups, most)

    def _restore_timers(self, name: str, rows: Rows) -> None:
        queue = self.timers(name)
        for _, namespace, key, timestamp in sorted(rows, key=_position):
            queue.register(timestamp, canonical_key(key), namespace)


def _filter(table: Table, groups: range, snapshot_filter: Callable[[Any], Any]) -> None:
    """Replace each entry by what the filter returns for it."""
    for key, namespace, value in table.entries(groups):
        new = snapshot_filter(value)
        if isinstance(table, RocksDBMapTable):
            for map_key in value:
                if new is None or map_key not in new:
                    table.remove(key, map_key, namespace)
            changed = {} if new is None else {k: v for k, v in new.items() if to_pickle(v) != to_pickle(value.get(k))}
            for map_key, entry in changed.items():
                table.put(key, map_key, entry, namespace)
        elif new is None:
            table.remove(key, namespace)
        elif to_pickle(new) != to_pickle(value):
            table.put(key, new, namespace)


def _restore_table(table: Table, rows: Rows) -> None:
    for _, namespace, key, value in sorted(rows, key=_position):
        key = canonical_key(key)
        if isinstance(table, RocksDBMapTable):
            for map_key, entry in value.items():
                table.put(key, map_key, entry, namespace)
        elif isinstance(table, RocksDBListTable):
            table.put_new(key, value, namespace)
        else:
            table.put(key, value, namespace)


def _position(row: tuple[int, Any, Any, Any]) -> int:
    return row[0]


__all__ = ["RocksDBBackend", "StateMemory"]
