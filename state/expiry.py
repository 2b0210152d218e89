"""State with a time to live: tables whose entries carry the time of their last access and are removed when expired.

An entry expires when its time to live has passed since that time: at `last access + ttl`, by the wall clock. Lists and
maps keep a time for each element and each map key. The times are stored with the values, so they are in the snapshot
and a restored entry is as old as it was.

In the background a sweep walks over all entries, round after round, slice by slice. A round begins at the earliest when
half the time to live has passed since the last one began, so what expired is gone after that half and one round. Flink
leaves this to a filter in RocksDB's compaction; a sweep does the same on every backend.

Source: apache/flink TtlValueState, TtlListState, TtlMapState, TtlIncrementalCleanup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from rayflink.user_types import UserKey, UserValue

from .backend import Entries, KeyContext, KeyedBackend, KeyedMapTable, KeyedTable, MapEntries, Namespace
from .descriptors import StateDescriptor

SLICE_MS = 100
"""Time between two slices of a round, at least."""
SLICE_SECONDS = 0.005
"""Time after which a slice of the background sweep ends."""
LEAST_ROUND_MS = 1_000
"""Time between the beginnings of two rounds, at least."""
_ENTRIES_BETWEEN_CLOCK_CHECKS = 16
"""Entries of a slice between two looks at the clock."""

_ABSENT: Final = object()
T = TypeVar("T", bound=KeyedTable | KeyedMapTable)
_Entry = tuple[int, Any]
"""(last access in epoch ms, value)."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """The rules by which entries of a state expire.

    Args:
        ttl_ms: time from the last access to the expiry, above 0.
        on_read: reading is an access; else only creating and writing is.
        returns_expired: an expired entry that is still there is returned once more, and then removed.
        in_snapshots: expired entries are left out of snapshots.
        looked_at: keys of the state that each access also looks at, to remove expired entries; 0 for none.
        in_background: a sweep over all entries removes expired ones, also when the state is not accessed.
    """

    ttl_ms: int
    on_read: bool = False
    returns_expired: bool = False
    in_snapshots: bool = False
    looked_at: int = 0
    in_background: bool = False


def expiring_table(expiry: Expiry, descriptor: StateDescriptor, backend: KeyedBackend, context: KeyContext) -> Entries:
    """Return the table of a value, list, reducing or aggregating state whose entries expire."""
    expiring = ExpiringListTable if descriptor.kind == "list" else ExpiringTable
    table = expiring(backend.table(descriptor), expiry, context.now_ms, context.counter_of(descriptor.name))
    _announce(table, expiry, descriptor, backend, context)
    return table


def expiring_map_table(
    expiry: Expiry, descriptor: StateDescriptor, backend: KeyedBackend, context: KeyContext
) -> MapEntries:
    """Return the table of a map state whose values expire one by one."""
    table = ExpiringMapTable(backend.map_table(descriptor), expiry, context.now_ms, context.counter_of(descriptor.name))
    _announce(table, expiry, descriptor, backend, context)
    return table


def _announce(
    table: Expiring[Any], expiry: Expiry, descriptor: StateDescriptor, backend: KeyedBackend, context: KeyContext
) -> None:
    if expiry.in_snapshots:
        backend.filter_snapshots(descriptor, table.unexpired)
    if expiry.in_background:
        context.swept.append(table)


class Expiring(Generic[T]):
    """The base of the tables that expire: the clock, and the walks that remove expired entries of keys not read again.

    Args:
        table: holds (last access, value) pairs.
        expiry: the rules.
        now_ms: epoch milliseconds of the wall clock.
        count_expired: called with the number of entries that expired and were removed.
    """

    __slots__ = (
        "_count_expired", "_expiry", "_met", "_now_ms", "_quiet", "_round", "_round_began_ms", "_table", "_walk",
        "sweep_at",
    )  # fmt: skip

    def __init__(
        self, table: T, expiry: Expiry, now_ms: Callable[[], int], count_expired: Callable[[int], None]
    ) -> None:
        self._table = table
        self._expiry = expiry
        self._now_ms = now_ms
        self._count_expired = count_expired
        self._walk: Iterator[tuple[Any, Any]] = iter(())
        self._round: Iterator[tuple[Any, Any]] | None = None
        self._round_began_ms = 0
        self._met = False  # whether the round has met an entry
        self._quiet = False  # whether nothing was written since the round began, which may miss what is
        self.sweep_at: int | None = 0 if expiry.in_background else None
        """Time at which the next slice of the background sweep is due, epoch ms; None while there are no entries."""

    def sweep(self, now_ms: int, most: int, may_continue: Callable[[], bool]) -> None:
        """Run one slice of the background sweep, which also sets when the next is due.

        Args:
            now_ms: epoch milliseconds.
            most: entries to look at, at least 1; a list or map counts as one.
            may_continue: asked now and then; on False the slice ends.
        """
        if self._round is None:
            self._round, self._round_began_ms = self._begin_walk(), now_ms
            self._met, self._quiet = False, True
        seen = 0
        for key, namespace in islice(self._round, most):
            self._met = self._tidy(key, namespace, now_ms) or self._met
            seen += 1
            if seen % _ENTRIES_BETWEEN_CLOCK_CHECKS == 0 and not may_continue():
                break
        if seen:
            self.sweep_at = now_ms + SLICE_MS
            return
        self._round = None
        if self._met or not self._quiet:
            pause = max(self._expiry.ttl_ms // 2, LEAST_ROUND_MS)
            self.sweep_at = max(self._round_began_ms + pause, now_ms + SLICE_MS)
        else:
            self.sweep_at = None

    def unexpired(self, entry: Any) -> UserValue:
        """Return what a snapshot stores of an entry; None for nothing."""
        raise NotImplementedError

    def _is_expired(self, entry: _Entry, now_ms: int) -> bool:
        return entry[0] + self._expiry.ttl_ms <= now_ms

    def _wrote(self, now_ms: int) -> None:
        """Note that an entry exists, which may expire after its time to live."""
        self._quiet = False
        if self.sweep_at is None:
            self.sweep_at = now_ms + self._expiry.ttl_ms

    def _look_around(self) -> None:
        """Look at the next few keys of the walk; after the last one it begins anew."""
        if not self._expiry.looked_at:
            return
        now_ms, ended = self._now_ms(), True
        for key, namespace in islice(self._walk, self._expiry.looked_at):
            self._tidy(key, namespace, now_ms)
            ended = False
        if ended:
            self._walk = self._begin_walk()

    def _begin_walk(self) -> Iterator[tuple[Any, Any]]:
        return self._table.walk()

    def _tidy(self, key: UserKey, namespace: Namespace, now_ms: int) -> bool:
        """Remove what expired at a place; return whether there was anything."""
        raise NotImplementedError


class ExpiringTable(Expiring[KeyedTable]):
    """Single values that expire."""

    __slots__ = ()

    def get(self, key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the entry's value, or `default` where there is none that has not expired."""
        self._look_around()
        entry = self._table.get(key, namespace)
        if entry is None:
            return default
        now_ms = self._now_ms()
        if self._is_expired(entry, now_ms):
            self._remove_expired(key, namespace)
            return entry[1] if self._expiry.returns_expired else default
        if self._expiry.on_read:
            self._table.put(key, (now_ms, entry[1]), namespace)
        return entry[1]

    def put(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the entry; its time begins anew."""
        self._look_around()
        now_ms = self._now_ms()
        self._table.put(key, (now_ms, value), namespace)
        if self._quiet:
            self._wrote(now_ms)

    def append(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Raise NotImplementedError: single values have no end to append to."""
        raise NotImplementedError("only the table of a list state can be appended to")

    def remove(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the entry, if it is there."""
        self._look_around()
        self._table.remove(key, namespace)

    def unexpired(self, entry: Any) -> UserValue:
        """Return what a snapshot stores of an entry; None for nothing."""
        return None if self._is_expired(entry, self._now_ms()) else entry

    def _tidy(self, key: UserKey, namespace: Namespace, now_ms: int) -> bool:
        entry = self._table.get(key, namespace)
        if entry is not None and self._is_expired(entry, now_ms):
            self._remove_expired(key, namespace)
        return entry is not None

    def _remove_expired(self, key: UserKey, namespace: Namespace, entries: int = 1) -> None:
        self._table.remove(key, namespace)
        self._count_expired(entries)


class ExpiringListTable(ExpiringTable):
    """Lists whose elements expire one by one."""

    __slots__ = ()

    def get(self, key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the values of the elements that have not expired, or `default` where there are none.

        With `returns_expired` those that expired are among them until all have, and then once more.
        """
        self._look_around()
        entries: list[_Entry] | None = self._table.get(key, namespace)
        if entries is None:
            return default
        now_ms, expiry = self._now_ms(), self._expiry
        live = [entry for entry in entries if not self._is_expired(entry, now_ms)]
        if not live:
            self._remove_expired(key, namespace, len(entries))
        elif expiry.on_read:
            self._keep(key, [(now_ms, value) for _, value in live], namespace, len(entries))
        elif len(live) < len(entries) and not expiry.returns_expired:
            self._keep(key, live, namespace, len(entries))
        readable = entries if expiry.returns_expired else live
        return [value for _, value in readable] if readable else default

    def put(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the whole list; the time of each element begins anew."""
        self._look_around()
        now_ms = self._now_ms()
        self._table.put(key, [(now_ms, element) for element in value], namespace)
        if self._quiet:
            self._wrote(now_ms)

    def append(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Add `value` to the end of the entry's list."""
        self._look_around()
        now_ms = self._now_ms()
        self._table.append(key, (now_ms, value), namespace)
        if self._quiet:
            self._wrote(now_ms)

    def unexpired(self, entry: Any) -> UserValue:
        """Return what a snapshot stores of a list; None for nothing."""
        now_ms = self._now_ms()
        return [element for element in entry if not self._is_expired(element, now_ms)] or None

    def _tidy(self, key: UserKey, namespace: Namespace, now_ms: int) -> bool:
        entries = self._table.get(key, namespace, ())
        live = [entry for entry in entries if not self._is_expired(entry, now_ms)]
        if not live and entries:
            self._remove_expired(key, namespace, len(entries))
        elif len(live) < len(entries):
            self._keep(key, live, namespace, len(entries))
        return bool(entries)

    def _keep(self, key: UserKey, live: list[_Entry], namespace: Namespace, before: int) -> None:
        self._table.put(key, live, namespace)
        if len(live) < before:
            self._count_expired(before - len(live))


class ExpiringMapTable(Expiring[KeyedMapTable]):
    """Maps whose values expire one by one."""

    __slots__ = ()

    def get(self, key: UserKey, map_key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the value at `map_key`, or `default` where there is none that has not expired."""
        self._look_around()
        entry = self._table.get(key, map_key, namespace)
        is_readable = entry is not None and self._read(key, map_key, entry, namespace, self._now_ms())
        return entry[1] if is_readable else default

    def put(self, key: UserKey, map_key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the value at `map_key`; its time begins anew."""
        self._look_around()
        now_ms = self._now_ms()
        self._table.put(key, map_key, (now_ms, value), namespace)
        if self._quiet:
            self._wrote(now_ms)

    def remove(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> None:
        """Delete the value at `map_key`, if there is one."""
        self._look_around()
        self._table.remove(key, map_key, namespace)

    def contains(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> bool:
        """Return whether there is a value at `map_key`; this counts as a read."""
        return self.get(key, map_key, namespace, _ABSENT) is not _ABSENT

    def items(self, key: UserKey, namespace: Namespace = None) -> list[tuple[UserKey, UserValue]]:
        """Return all (map key, value) of one key that have not expired; this counts as a read."""
        self._look_around()
        now_ms, entries = self._now_ms(), self._table.items(key, namespace)
        return [(name, entry[1]) for name, entry in entries if self._read(key, name, entry, namespace, now_ms)]

    def clear(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the whole map of one key."""
        self._look_around()
        self._table.clear(key, namespace)

    def unexpired(self, entry: Any) -> UserValue:
        """Return what a snapshot stores of a map; None for nothing."""
        now_ms = self._now_ms()
        return {name: value for name, value in entry.items() if not self._is_expired(value, now_ms)} or None

    def _read(self, key: UserKey, map_key: UserKey, entry: _Entry, namespace: Namespace, now_ms: int) -> bool:
        """Return whether a read returns the entry; remove it if it expired, else renew its time where reads do so."""
        if self._is_expired(entry, now_ms):
            self._remove_expired(key, map_key, namespace)
            return self._expiry.returns_expired
        if self._expiry.on_read:
            self._table.put(key, map_key, (now_ms, entry[1]), namespace)
        return True

    def _tidy(self, key: UserKey, namespace: Namespace, now_ms: int) -> bool:
        has_entries = False
        for map_key, entry in self._table.items(key, namespace):
            has_entries = True
            if self._is_expired(entry, now_ms):
                self._remove_expired(key, map_key, namespace)
        return has_entries

    def _remove_expired(self, key: UserKey, map_key: UserKey, namespace: Namespace) -> None:
        self._table.remove(key, map_key, namespace)
        self._count_expired(1)


__all__ = ["SLICE_MS", "SLICE_SECONDS", "Expiring", "Expiry", "expiring_map_table", "expiring_table"]
