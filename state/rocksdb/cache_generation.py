"""The entries of a row cache by age, the dirty ones among them, and an estimate of the memory they take."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, Final

from rayflink.user_types import UserKey, UserValue

from ..backend import Namespace
from .memory_estimate import estimate_bytes

ENTRY_BYTES = 110
"""Memory of an entry beside its key and value: places in dicts and sets. Measured: 84 bytes, with whole numbers."""
_LARGE_BYTES = 256 << 10
"""A key and value of more bytes than that are counted as several entries."""
ABSENT: Final = object()

KeySets = dict[Any, set[Any]]
"""Namespace -> keys in it."""


class Generation:
    """The entries that a cache has used since a rotation, and which of them are dirty.

    A cache has two: the hot one, and the cold one that the hot one became when the cache rotated.
    """

    __slots__ = ("dirty", "entries")

    def __init__(self) -> None:
        self.entries: dict[Any, dict[Any, Any]] = {}
        """Namespace -> key -> value."""
        self.dirty: KeySets = {}
        """Keys whose values differ from their rows; some may have left the generation since."""

    def namespace(self, namespace: Namespace) -> dict[UserKey, UserValue]:
        """Return key -> value of a namespace, which is empty where there is none."""
        return self.entries.get(namespace, {})

    def mark_dirty(self, namespace: Namespace, keys: Iterable[UserKey]) -> int:
        """Mark keys dirty, and return how many of them were not dirty before."""
        dirty = self.dirty.get(namespace, set())
        before = len(dirty)
        dirty.update(keys)
        if dirty:
            self.dirty[namespace] = dirty
        return len(dirty) - before

    def mark_clean(self, namespace: Namespace, keys: Iterable[UserKey]) -> None:
        """Mark keys clean: their rows are written."""
        dirty = self.dirty.get(namespace)
        if dirty is not None:
            dirty.difference_update(keys)
            if not dirty:
                del self.dirty[namespace]

    def dirty_entries(self, namespace: Namespace, keys: Iterable[UserKey]) -> tuple[list[Any], list[Any]]:
        """Return those of some dirty keys that are in this generation, and their values."""
        entries = self.namespace(namespace)
        present = [key for key in keys if key in entries]
        return present, [entries[key] for key in present]

    def first_dirty(self, limit: int) -> list[tuple[Any, set[Any]]]:
        """Return up to `limit` dirty keys, by namespace."""
        chosen: list[tuple[Any, set[Any]]] = []
        for namespace, keys in self.dirty.items():
            if limit <= 0:
                break
            chosen.append((namespace, set(islice(keys, limit))))
            limit -= len(chosen[-1][1])
        return chosen

    def first_entries(self, limit: int) -> list[tuple[Any, list[Any]]]:
        """Return the keys of up to `limit` entries, by namespace, in the order in which they came."""
        chosen: list[tuple[Any, list[Any]]] = []
        for namespace, entries in self.entries.items():
            keys = list(islice(entries, limit))
            chosen.append((namespace, keys))
            limit -= len(keys)
            if limit <= 0:
                break
        return chosen

    def remove(self, namespace: Namespace, keys: Collection[UserKey]) -> int:
        """Remove entries, dirty or not, of a namespace that there is, and return how many of them there were."""
        entries = self.entries[namespace]
        before = len(entries)
        for key in keys:
            entries.pop(key, None)
        if not entries:
            del self.entries[namespace]
            self.dirty.pop(namespace, None)
            return before
        removed = before - len(entries)
        if removed and (dirty := self.dirty.get(namespace)):
            dirty.difference_update(keys)
            if not dirty:
                del self.dirty[namespace]
        return removed

    def drop(self, namespace: Namespace) -> int:
        """Remove all entries of a namespace, and return how many there were."""
        self.dirty.pop(namespace, None)
        return len(self.entries.pop(namespace, ()))

    def move(self, namespace: Namespace, keys: Collection[UserKey], target: Generation) -> None:
        """Move entries to another generation, where they are as dirty as here."""
        entries, into = self.entries[namespace], target.entries.setdefault(namespace, {})
        for key in keys:
            into[key] = entries.pop(key)
        dirty = self.dirty.get(namespace)
        if dirty and (moved := dirty.intersection(keys)):
            self.mark_clean(namespace, moved)
            target.mark_dirty(namespace, moved)

    def take_over(self, source: Generation) -> None:
        """Replace everything by what another generation has, which is empty afterwards."""
        self.entries, self.dirty = source.entries, source.dirty
        source.entries, source.dirty = {}, {}

    def clear(self) -> None:
        """Drop everything."""
        self.entries.clear()
        self.dirty.clear()

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))


class CacheUsage:
    """The memory of a cache's hot generation, counted in entries of average size.

    This is the only count of it. An entry counts once, and so do an element that a value has grown by and a key that is
    known to be missing; a very large value counts as often as an average entry fits its bytes. The average is estimated
    from samples.
    """

    __slots__ = ("_average_bytes", "_growth_start", "entries")

    def __init__(self) -> None:
        self.entries = 0
        """Entries of the hot generation, as counted above."""
        self._growth_start = 0
        self._average_bytes = 64.0

    @property
    def entry_bytes(self) -> float:
        """Memory of one entry, estimated from samples."""
        return self._average_bytes + ENTRY_BYTES

    @property
    def growth(self) -> int:
        """Return entries that came into the cache, less those that went, since `restart_growth`."""
        return self.entries - self._growth_start

    def restart_growth(self) -> None:
        """Count growth from here on."""
        self._growth_start = self.entries

    def count_promoted(self, entries: int) -> None:
        """Count entries that came from the cold generation: both generations together have not grown."""
        self.entries += entries
        self._growth_start += entries

    def correct(self, entries: int) -> None:
        """Replace the count by an exact one; that is no growth."""
        self._growth_start += entries - self.entries
        self.entries = entries

    def clear(self) -> None:
        """Count from 0: the hot generation is empty."""
        self.entries = self._growth_start = 0

    def sample(self, key: UserKey, value: UserValue) -> None:
        """Take the size of one entry into the average, or count it as several where it is very large."""
        size = estimate_bytes(key) + estimate_bytes(value)
        if size > _LARGE_BYTES:
            self.entries += int(size / self.entry_bytes)
        else:
            self._average_bytes += (size - self._average_bytes) / 8


__all__ = ["ABSENT", "CacheUsage", "Generation", "KeySets"]
