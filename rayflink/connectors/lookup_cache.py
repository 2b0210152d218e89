"""A cache of the rows that lookups in an outside table have found, bounded in rows and in time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.time import Length, to_millis

T = TypeVar("T")

_LEAST_WRITES = 16
"""Writes, at least, after which what has expired is looked for."""


@dataclass(frozen=True)
class LookupCache:
    """The limits of a cache, with the names of Flink's `lookup.partial-cache.*`.

    >>> LookupCache(max_rows=1000)
    LookupCache(max_rows=1000, expire_after_write=None, expire_after_access=None, cache_missing_key=True)

    Args:
        max_rows: rows in memory at most, the least recently used go first; a key without rows counts as one. None: any
            number, if one of the times is given.
        expire_after_write: time for which rows are used after they were loaded, as Duration, timedelta or int of
            milliseconds; None: for ever.
        expire_after_access: time for which rows are used after they were asked for last; None: for ever.
        cache_missing_key: whether it is remembered that a key has no rows.

    Raises:
        ValueError: nothing limits the cache, or a limit is not above 0.
    """

    max_rows: int | None = None
    expire_after_write: Length | None = None
    expire_after_access: Length | None = None
    cache_missing_key: bool = True

    def __post_init__(self) -> None:
        times = [time for time in (self.expire_after_write, self.expire_after_access) if time is not None]
        if self.max_rows is None and not times:
            remedy = "give max_rows, expire_after_write or expire_after_access"
            raise ValueError(f"nothing limits the cache, and it would fill the memory; {remedy}")
        if (self.max_rows is not None and self.max_rows < 1) or any(to_millis(time) < 1 for time in times):
            raise ValueError(f"each limit is above 0, found {self!r}; leave out what is not to limit the cache")


@dataclass
class _Entry(Generic[T]):
    """The rows of a key.

    Args:
        written_ms, used_ms: epoch milliseconds.
    """

    rows: tuple[T, ...]
    written_ms: int
    used_ms: int


@dataclass(frozen=True, slots=True)
class CachedRowsStatistics:
    """The contents of a lookup cache."""

    keys: int
    """Keys whose rows are in memory, those without rows too."""
    rows: int
    """Rows in memory; a key without rows counts as one."""


class CachedRows(Generic[T]):
    """Rows by key, the most recently used at the end.

    Args:
        limits: of the cache.
        now_ms: the clock, in milliseconds.
        metrics: where hits and misses are counted, under Flink's names.
    """

    def __init__(self, limits: LookupCache, now_ms: Callable[[], int], metrics: MetricGroup) -> None:
        self._now_ms, self._limits = now_ms, limits
        written, used = limits.expire_after_write, limits.expire_after_access
        self._written_ms = None if written is None else to_millis(written)
        self._used_ms = None if used is None else to_millis(used)
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._rows = self._writes = self._after_sweep = 0
        self._hits, self._misses = metrics.counter("hitCount"), metrics.counter("missCount")
        metrics.gauge("numCachedRecord", lambda: self._rows)

    def __len__(self) -> int:
        return self._rows

    def statistics(self) -> CachedRowsStatistics:
        """Return the present sizes, those of expired rows included that were not removed yet."""
        return CachedRowsStatistics(len(self._entries), self._rows)

    def get(self, key: Hashable) -> tuple[T, ...] | None:
        """Return the rows of a key, perhaps none; None: they have to be loaded."""
        entry, now = self._entries.get(key), self._now_ms()
        if entry is not None and self._is_over(entry, now):
            self._remove(key)
            entry = None
        if entry is None:
            self._misses.inc()
            return None
        self._hits.inc()
        entry.used_ms = now
        self._entries.move_to_end(key)
        return entry.rows

    def put(self, key: Hashable, rows: Sequence[T]) -> None:
        """Remember the rows of a key, and forget others where there are too many."""
        if key in self._entries:
            self._remove(key)
        if not rows and not self._limits.cache_missing_key:
            return
        now = self._now_ms()
        self._entries[key] = _Entry(tuple(rows), now, now)
        self._rows += max(1, len(rows))
        self._writes += 1
        if self._writes > self._after_sweep + _LEAST_WRITES:  # so a write looks at about two entries
            for old in [old for old, entry in self._entries.items() if self._is_over(entry, now)]:
                self._remove(old)
            self._writes, self._after_sweep = 0, len(self._entries)
        while self._limits.max_rows is not None and self._rows > self._limits.max_rows:
            self._remove(next(iter(self._entries)))

    def _is_over(self, entry: _Entry[T], now: int) -> bool:
        is_old = self._written_ms is not None and now - entry.written_ms >= self._written_ms
        return is_old or (self._used_ms is not None and now - entry.used_ms >= self._used_ms)

    def _remove(self, key: Hashable) -> None:
        self._rows -= max(1, len(self._entries.pop(key).rows))


__all__ = ["CachedRows", "LookupCache"]
