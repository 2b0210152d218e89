"""A bounded write-back cache of decoded values in front of sorted rows.

Entries lie in namespaces, so that a batch works on one plain dict. There are two generations (`cache_generation`): an
entry that is used goes to the hot one. When the hot generation has taken most of the budget the cache rotates: hot
becomes cold, and while a new hot generation grows, cold entries that are not used are evicted, and written first where
they are dirty (`write_back`). An entry that is used again and again is therefore neither read nor written, and no call
waits for a large write.

Rows that are known not to be on disk are neither looked up nor deleted there (`missing_rows`): a window that begins and
ends within the cache never touches the disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rayflink.user_types import UserKey, UserValue

from ..backend import Namespace
from ..errors import InvalidKeyError
from ..keys.key_encoding import canonical_key
from .cache_budget import CacheBudget
from .cache_generation import ABSENT, CacheUsage, Generation
from .column_family import ColumnFamily
from .dirty_rows import DirtyRows, Rows
from .missing_rows import MissingRows
from .write_back import WriteBack

NAMESPACE_BYTES = 400
_LARGE_ROW_BYTES = 4096
_CANONICAL_TYPES = frozenset({str, int, bytes})
"""Types of keys that are canonical as they are."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """The sizes of a row cache."""

    hot_entries: int
    """Entries of the hot generation."""
    cold_entries: int
    """Entries of the cold generation, which leave first."""
    dirty_namespaces: int
    """Namespaces with entries that are not written to RocksDB yet, counted in each generation."""
    tombstones: int
    """Keys whose removal is not written yet."""
    known_missing: int
    """Keys that are known to have no row."""
    complete_namespaces: int
    """Namespaces all of whose rows are in the cache, or are known to be missing."""


class RowCache:
    """A cache of entries (namespace, key) -> value over the rows of a column family.

    For single values, namespace and key are those of the state. Maps and lists have a namespace here for each of their
    keys, the pair (namespace, key), in which an entry's key is a map key or the number of a part of a list.

    Args:
        column: the rows.
        rows: how entries are laid out in rows.
        budget: the memory that the caches of a backend share.
        state: name of the state, for errors.
    """

    def __init__(self, column: ColumnFamily, rows: Rows[Any, Any], budget: CacheBudget, state: str) -> None:
        self.column, self._rows, self._budget = column, rows, budget
        self._hot, self._cold = Generation(), Generation()
        self._missing = MissingRows(column, budget.limits.max_stored_namespaces)
        self._write_back = WriteBack(
            column, rows, state, (self._cold, self._hot), self._missing, budget.limits.evict_entries
        )
        self._hot_entries, self._hot_dirty = self._hot.entries, self._hot.dirty  # for `get` and `put`, once per record
        self._has_renamed_keys = False
        self.usage = CacheUsage()
        """Memory of the hot generation."""
        self.pinned = False
        """True while a caller may hold a dict of the hot generation: nothing leaves the cache meanwhile."""
        self.misses = 0
        """Entries that were looked up on disk."""
        self.on_rotate: Callable[[], None] = _nothing
        """Called when the hot generation has become the cold one."""
        self._sample_interval = self._until_sample = budget.sample_interval()
        budget.add(self)

    @property
    def estimated_bytes(self) -> float:
        """Return bytes of the hot generation, and of what is known of namespaces."""
        namespaces = len(self._hot.entries) + self._missing.complete_namespaces
        return self.usage.entries * self.usage.entry_bytes + namespaces * NAMESPACE_BYTES

    def statistics(self) -> CacheStatistics:
        """Return the sizes of the cache, counted one by one."""
        return CacheStatistics(
            hot_entries=len(self._hot),
            cold_entries=len(self._cold),
            dirty_namespaces=len(self._hot.dirty) + len(self._cold.dirty),
            tombstones=self._missing.tombstones,
            known_missing=self._missing.known_missing,
            complete_namespaces=self._missing.complete_namespaces,
        )

    # one entry

    def get(self, key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the value, or `default` where there is none."""
        entries = self._hot_entries.get(namespace)
        if entries is not None:
            value = entries.get(key, ABSENT)
            if value is not ABSENT:
                return value
        return self._look_up(namespace, key, default)

    def put(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the value."""
        self.pinned = False
        entries = self._hot_entries.get(namespace)
        if entries is None:
            entries = self._hot_entries[namespace] = {}
        if key not in entries:
            self.usage.entries += 1
            if (cold := self._cold.entries) and (old := cold.get(namespace)) is not None:
                old.pop(key, None)
        entries[key] = value
        dirty = self._hot_dirty.get(namespace)
        if dirty is None:
            dirty = self._hot_dirty[namespace] = set()
        dirty.add(key)
        self._until_sample -= 1
        if self._until_sample <= 0:
            self._sample(key, value)

    def mark_extended(self, namespace: Namespace, key: UserKey, element: UserValue) -> None:
        """Mark a hot entry dirty whose value has been extended in place by an element."""
        self.pinned = False
        self._hot.mark_dirty(namespace, (key,))
        self._count_new(key, element)

    def insert_clean(self, namespace: Namespace, key: UserKey, value: UserValue) -> None:
        """Take in an entry as it is on disk."""
        self._hot.entries.setdefault(namespace, {})[key] = value
        self._count_new(key, value)

    # many entries of a namespace

    def load(self, keys: Iterable[UserKey], namespace: Namespace = None) -> dict[UserKey, UserValue]:
        """Return the hot dict of the namespace, with at least those of `keys` that have a value.

        The caller may set values in it, which it has to report by `changed`; the dict is valid until the next call.
        """
        self.make_room()
        self.pinned = True
        entries = self._hot.entries.get(namespace)
        if entries is None:
            entries = self._hot.entries[namespace] = {}
        try:
            absent = set(keys).difference(entries)
        except TypeError:  # one of them cannot be a key: whoever uses it says so
            absent = {key for key in keys if is_hashable(key)}.difference(entries)
        if absent:
            self._fetch(namespace, entries, absent)
        return entries

    def changed(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Mark entries dirty that were set in the loaded dict."""
        if self._has_renamed_keys:
            keys = [canonical_key(key) for key in keys]
        generation = self._hot if namespace in self._hot.entries else self._cold
        self.usage.entries += generation.mark_dirty(namespace, keys)
        self.pinned = False
        for key in islice(keys, 1):
            entries = generation.namespace(namespace)
            if key in entries:
                self.usage.sample(key, entries[key])

    def remove_all(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Delete the entries that there are."""
        self.pinned = False
        if not isinstance(keys, (tuple, list)):
            keys = list(keys)
        if namespace in self._hot_entries:
            self.usage.entries -= self._hot.remove(namespace, keys)
        if namespace in self._cold.entries:
            self._cold.remove(namespace, keys)
        missing = self._missing
        if not self.column.is_empty:
            missing.bury(namespace, keys)
            if missing.tombstones > self._budget.limits.max_tombstones:
                self._write_back.delete_tombstones()

    # namespaces

    def namespaces(self) -> list[Any]:
        """Return the namespaces that have entries in memory."""
        return list({**self._cold.entries, **self._hot.entries})

    def cached_entries(self, namespace: Namespace) -> dict[UserKey, UserValue]:
        """Return key -> value of the entries of a namespace that are in memory."""
        return {**self._cold.namespace(namespace), **self._hot.namespace(namespace)}

    def all_cached_entries(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (namespace, key, value) of all entries in memory."""
        for generation in (self._cold, self._hot):
            for namespace, entries in generation.entries.items():
                for key, value in entries.items():
                    yield namespace, key, value

    def is_complete(self, namespace: Namespace) -> bool:
        """Return whether all entries of the namespace are in memory."""
        return self._missing.is_complete(namespace)

    def complete_namespace(self, namespace: Namespace) -> None:
        """Keep a namespace in the hot generation, all entries of which the caller has read into memory."""
        self._promote(namespace, list(self._cold.namespace(namespace)))
        self._missing.complete(namespace)

    def stored_keys(self, namespace: Namespace) -> list[Any] | None:
        """Return the keys of all rows that a namespace may have on disk, or None where they are not known."""
        buried = self._missing.buried_keys(namespace)
        return None if buried is None else [*self.cached_entries(namespace), *buried]

    def drop_namespace(self, namespace: Namespace) -> bool:
        """Remove a namespace from memory, and return whether it may have rows, which the caller then has to delete."""
        self.pinned = False
        may_have_rows = self._missing.may_have_rows(namespace)
        self.usage.entries -= self._hot.drop(namespace)
        self._cold.drop(namespace)
        self._write_back.drop(namespace)
        self._missing.drop(namespace)
        if may_have_rows:
            self._missing.complete(namespace)
            self._count_knowledge()
        return may_have_rows

    # both generations

    def make_room(self) -> None:
        """Keep to the budget, unless a caller holds a dict."""
        if not self.pinned:
            self._budget.make_room()

    def rotate(self) -> None:
        """Make the hot generation the cold one, after what is left of that is written back and dropped."""
        self._write_back.delete_tombstones()
        self._write_back.evict(sys.maxsize)
        self._cold.take_over(self._hot)
        self._hot_entries, self._hot_dirty = self._hot.entries, self._hot.dirty
        self._missing.rotate()
        self.usage.clear()
        self.on_rotate()

    def evict(self, surplus_bytes: float) -> float:
        """Drop about as many bytes of cold entries, as far as there are, and return how many those were."""
        if surplus_bytes <= 0 or not self._cold.entries:
            return 0.0
        entry_bytes = self.usage.entry_bytes
        return self._write_back.evict(int(surplus_bytes / entry_bytes) + 1) * entry_bytes

    def flush(self) -> None:
        """Write all dirty entries; nothing is dropped."""
        self._write_back.flush()

    def flush_namespace(self, namespace: Namespace) -> None:
        """Write the dirty entries of one namespace."""
        self._write_back.flush_namespace(namespace)

    def has_more_dirty_than(self, entries: int) -> bool:
        """Return whether more entries than that are dirty or deleted, and not written yet."""
        return self._write_back.has_more_dirty_than(entries)

    def write_some(self, limit: int) -> None:
        """Write up to `limit` dirty entries."""
        self._write_back.write_some(limit)

    def capture_dirty(self) -> DirtyRows | None:
        """Return all dirty entries as they are now, for another thread to write, or None where there are none."""
        return self._write_back.capture()

    def capture_written_by(self, written: Future[Any]) -> None:
        """Take the captured entries as written when `written` is done, or as dirty again when it has failed."""
        self._write_back.capture_written_by(written)

    def recount(self) -> None:
        """Count the hot generation anew: entries that are dirty again after they were written were counted twice."""
        self.usage.correct(len(self._hot) + self._missing.known_missing)

    def assume_any_stored(self) -> None:
        """Assume rows of every namespace: the column has come with some."""
        self._missing.assume_any_stored()

    def clear_all(self) -> None:
        """Delete everything, in memory and on disk."""
        self._hot.clear()
        self._cold.clear()
        self._missing.clear()
        self._write_back.clear()
        self.usage.clear()
        self.pinned = False
        self.on_rotate()
        self.column.delete_range(b"", b"\xff" * 64)

    # inside

    def _look_up(self, namespace: Namespace, key: UserKey, default: UserValue) -> UserValue:
        """Return the value of a key that is not hot, or `default`."""
        if (cold := self._cold.entries) and (entries := cold.get(namespace)) is not None and key in entries:
            value = entries[key]
            self._promote(namespace, (key,))
            return value
        if self._missing.is_missing(namespace, key):
            return default
        self.misses += 1
        data = self.column.read(self._rows.row(namespace, key))
        if data is None:
            self._missing.add(namespace, (key,))
            self.usage.entries += 1
            self._count_knowledge()
            return default
        value = self._rows.decode(data)
        self.insert_clean(namespace, key, value)
        return value

    def _promote(self, namespace: Namespace, keys: Collection[UserKey]) -> None:
        """Move entries of the cold generation to the hot one."""
        if keys:
            self._cold.move(namespace, keys, self._hot)
            self.usage.count_promoted(len(keys))

    def _fetch(self, namespace: Namespace, entries: dict[Any, Any], absent: set[Any]) -> None:
        """Bring those of some keys into the hot dict that are cold or on disk."""
        if not _CANONICAL_TYPES.issuperset(map(type, absent)):
            absent = self._canonical(absent).difference(entries)
        cold = self._cold.entries.get(namespace)
        if cold:
            warm = [key for key in absent if key in cold]  # `intersection` would go through all that are cold
            absent = absent.difference(warm)
            self._promote(namespace, warm)
        if absent and (unknown := self._missing.without_missing(namespace, absent)):
            self._read(namespace, entries, unknown)

    def _canonical(self, keys: set[UserKey]) -> set[Any]:
        """Return the canonical forms of keys, without those that have none."""
        canonical = set()
        for raw_key in keys:
            try:
                key = canonical_key(raw_key)
            except InvalidKeyError:
                continue  # whoever uses it says so
            if key is not raw_key:
                self._has_renamed_keys = True
            canonical.add(key)
        return canonical

    def _read(self, namespace: Namespace, entries: dict[Any, Any], keys: list[UserKey]) -> None:
        """Read rows in their order on disk, and put those that there are into the hot dict."""
        self.misses += len(keys)
        self.usage.entries += len(keys)
        rows = self._rows.rows(namespace, keys)
        order = sorted(range(len(keys)), key=rows.__getitem__)
        data_of_rows = self.column.read_all([rows[index] for index in order])
        missing, largest = [], _LARGE_ROW_BYTES
        for index, data, value in zip(order, data_of_rows, self._rows.decode_all(data_of_rows), strict=True):
            if data is None:
                missing.append(keys[index])
                continue
            entries[keys[index]] = value
            if len(data) > largest:
                largest = len(data)
                self.usage.sample(keys[index], value)
        if missing:
            self._missing.add(namespace, missing)

    def _count_new(self, key: UserKey, value: UserValue) -> None:
        """Count an entry, or an element, that came into the hot generation."""
        self.usage.entries += 1
        self._until_sample -= 1
        if self._until_sample <= 0:
            self._sample(key, value)

    def _count_knowledge(self) -> None:
        """Make room now and then: memory was taken for what is known, not for a value."""
        self._until_sample -= 1
        if self._until_sample <= 0:
            self._until_sample = self._sample_interval
            self.make_room()

    def _sample(self, key: UserKey, value: UserValue) -> None:
        """Estimate sizes anew from one entry, and make room."""
        self._until_sample = self._sample_interval
        self.usage.sample(key, value)
        self.make_room()


def _nothing() -> None:
    """Do nothing at a rotation."""


def is_hashable(key: UserKey) -> bool:
    """Return whether a dict can have the key."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


__all__ = ["CacheStatistics", "RowCache", "is_hashable"]
