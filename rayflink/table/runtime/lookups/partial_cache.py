"""The rows of keys that were looked up lately, as columns: `lookup.cache` = PARTIAL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.time import to_millis
from rayflink.connectors.lookup_cache import LookupCache

from ..keyed_state.key_rows import KeyRows, take_rows
from .found_rows import FoundRows
from .key_numbers import KeyNumbers, gathered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

_NEVER = np.iinfo(np.int64).max
_GONE = -1
"""The time of loading of an entry whose rows were replaced."""
_KEPT = 7 / 8
"""The part of a full cache that stays: the keys used last."""
_LEAST_DEAD = 1 << 10
"""Keys that are over, at least, before they are removed."""


@dataclass(frozen=True, slots=True)
class PartialCacheStatistics:
    """The contents of a cache."""

    keys: int
    """Keys whose rows are in memory, those without rows too."""
    rows: int
    """Rows in memory; a key without rows counts as one."""


class PartialCache:
    """Rows by key, bounded in rows and in time; keys that were used longest ago are removed, an eighth at a time.

    Args:
        limits: of the cache.
        kinds: types of the key columns.
        row_kinds: types of the columns of rows.
        now_ms: the clock, in milliseconds.
        metrics: where hits and misses are counted, under Flink's names.
    """

    def __init__(
        self, limits: LookupCache, kinds: Sequence[pa.DataType], row_kinds: Sequence[pa.DataType],
        now_ms: Callable[[], int], metrics: MetricGroup,
    ) -> None:  # fmt: skip
        self._limits, self._kinds, self._row_kinds, self._now_ms = limits, list(kinds), list(row_kinds), now_ms
        written, used = limits.expire_after_write, limits.expire_after_access
        self._written_ms = _NEVER if written is None else to_millis(written)
        self._used_ms = _NEVER if used is None else to_millis(used)
        self._hits, self._misses = metrics.counter("hitCount"), metrics.counter("missCount")
        self._row_count = 0
        """Rows in memory; a key without rows counts as one. Other threads read it."""
        metrics.gauge("numCachedRecord", lambda: self._row_count)
        self._clear()

    def _clear(self) -> None:
        self._keys, self._rows = KeyNumbers(self._kinds), KeyRows()
        self._entry_room = _Columns(4)
        """For each key: its first row, the number of its rows, when they were loaded, when they were asked for last."""
        self._live_room = _Columns(1)
        """For each number of a key that of the entry that it has now; a key that was loaded anew has a later one."""
        self._row_count = 0
        self._checked = 0
        """Entries there were when those that are over were counted last."""

    @property
    def _entries(self) -> Numbers:
        return self._entry_room.columns

    @property
    def _live(self) -> Numbers:
        live: Numbers = self._live_room.columns[0]
        return live

    def statistics(self) -> PartialCacheStatistics:
        """Return the present sizes, those of expired rows included that were not removed yet."""
        return PartialCacheStatistics(len(self._live), self._row_count)

    def find(self, keys: Sequence[pa.Array]) -> tuple[FoundRows, Truths]:
        """Return the rows of keys, and which of them have to be loaded, bool[n]; these have no rows."""
        now, numbers = self._now_ms(), self._keys.find(keys)
        is_missing = numbers < 0
        known = np.flatnonzero(~is_missing)
        entries = self._live[numbers[known]]
        is_over = self._is_over(entries, now)
        is_missing[known[is_over]] = True
        known, entries = known[~is_over], entries[~is_over]
        self._hits.inc(len(known))
        self._misses.inc(len(is_missing) - len(known))
        self._entries[3, entries] = now
        by_key = FoundRows.nothing(self._row_kinds, len(is_missing))
        counts = self._entries[1, entries]
        by_key.counts[known] = counts
        stored = FoundRows([], self._entries[0, entries], counts).row_numbers()
        columns = gathered(self._rows, stored) if len(stored) else by_key.columns
        firsts = np.cumsum(by_key.counts) - by_key.counts
        return FoundRows(columns, firsts, by_key.counts), is_missing

    def add(self, keys: Sequence[pa.Array], by_key: FoundRows) -> None:
        """Remember the rows of keys, no two of them equal, and forget others where there are too many."""
        known = self._keys.find(keys)
        self._entries[2, self._live[known[known >= 0]]] = _GONE
        fits = self._fitting(by_key.counts)
        if not len(fits):
            return
        if len(fits) < len(by_key.counts):
            keys = take_rows(keys, fits)
            by_key = FoundRows(by_key.columns, by_key.firsts[fits], by_key.counts[fits])
        self._make_room(int(np.maximum(by_key.counts, 1).sum()), self._now_ms())
        numbers = self._keys.find(keys)
        new = np.flatnonzero(numbers < 0)
        entries = np.arange(len(by_key.counts)) + self._entries.shape[1]
        earlier = self._live[numbers[numbers >= 0]]
        self._row_count -= int(np.maximum(self._entries[1, earlier], 1).sum())
        self._live[numbers[numbers >= 0]] = entries[numbers >= 0]
        if len(new):
            self._keys.add(take_rows(keys, new))
            self._live_room.append(entries[new][np.newaxis])
        self._append(by_key)

    def _fitting(self, counts: Numbers) -> Numbers:
        """Return the numbers of the keys that are remembered, given how many rows each has."""
        sizes, most = np.maximum(counts, 1), self._limits.max_rows
        stays = np.ones(len(counts), dtype=np.bool_) if self._limits.cache_missing_key else counts > 0
        if most is not None:
            stays &= sizes <= most
            stays &= np.cumsum(np.where(stays, sizes, 0)) <= most
        return np.flatnonzero(stays)

    def _append(self, by_key: FoundRows) -> None:
        rows, now = by_key.row_numbers(), self._now_ms()
        firsts = np.cumsum(by_key.counts) - by_key.counts
        if len(rows):
            numbers = self._rows.append(take_rows(by_key.columns, rows), len(rows))
            firsts = firsts + numbers[0]
        times = np.full(len(firsts), now)
        self._entry_room.append(np.stack([firsts, by_key.counts, times, times]))
        self._row_count += int(np.maximum(by_key.counts, 1).sum())

    def _is_over(self, entries: Numbers, now: int) -> Truths:
        loaded, used = self._entries[2, entries], self._entries[3, entries]
        over: Truths = (now - loaded >= self._written_ms) | (now - used >= self._used_ms) | (loaded == _GONE)
        return over

    def _make_room(self, wanted: int, now: int) -> None:
        """Remove keys that are over or were used longest ago, where there would be too many, or many are over."""
        most, entry_count = self._limits.max_rows, self._entries.shape[1]
        is_full = most is not None and self._row_count + wanted > most
        if not is_full and entry_count - self._checked <= max(_LEAST_DEAD, len(self._live) // 8):
            return
        self._checked = entry_count
        dead = int(self._is_over(self._live, now).sum()) + entry_count - len(self._live)
        if not is_full and dead <= max(_LEAST_DEAD, len(self._live) // 2):
            return
        sizes = np.maximum(self._entries[1, self._live], 1)
        stays = np.flatnonzero(~self._is_over(self._live, now))
        if most is not None:
            order = stays[np.argsort(-self._entries[3, self._live[stays]], kind="stable")]
            room = min(int(most * _KEPT), most - wanted) if is_full else most
            stays = np.sort(order[np.cumsum(sizes[order]) <= room])
        self._keep(stays)

    def _keep(self, stays: Numbers) -> None:
        """Build the cache anew with some of its keys, by their numbers."""
        if not len(stays):
            self._clear()
            return
        entries = self._entries[:, self._live[stays]]
        keys, rows = self._keys.take(stays), FoundRows([], entries[0], entries[1]).row_numbers()
        columns = gathered(self._rows, rows) if len(rows) else []
        self._clear()
        self._keys.add(keys)
        self._live_room.append(np.arange(len(stays))[np.newaxis])
        if len(rows):
            self._rows.append(columns, len(rows))
        entries[0] = np.cumsum(entries[1]) - entries[1]
        self._entry_room.append(entries)
        self._row_count = int(np.maximum(entries[1], 1).sum())
        self._checked = len(stays)


class _Columns:
    """Numbers in columns of one length, to which others are appended; their room doubles.

    Args:
        width: number of columns.
    """

    def __init__(self, width: int) -> None:
        self._room, self._length = np.zeros((width, 1024), dtype=np.int64), 0

    @property
    def columns(self) -> Numbers:
        """Return a view of the numbers, int64[width, n], through which they may be changed."""
        return self._room[:, : self._length]

    def append(self, columns: Numbers) -> None:
        """Append columns."""
        length = self._length + columns.shape[1]
        if length > self._room.shape[1]:
            room = np.zeros((len(self._room), max(length, 2 * self._room.shape[1])), dtype=np.int64)
            room[:, : self._length] = self.columns
            self._room = room
        self._room[:, self._length : length] = columns
        self._length = length


__all__ = ["PartialCache", "PartialCacheStatistics"]
