"""Timers larger than memory: the near ones in a `TimerQueue`, the far ones as rows in order of time.

All timers before the horizon are in memory, all others on disk. When there are too many in memory the later half goes
to disk and the horizon comes nearer; when those in memory have fired, the next ones are read and it moves away. So 10
million timers take as much memory as 50 thousand, and a queue that is never long never touches the disk.

As long as all are in memory timers of equal time fire in the order of `TimerQueue`. Those that come from disk fire by
namespace and key, in the order of their bytes.

Source: apache/flink RocksDBCachingPriorityQueueSet, TreeOrderedSetCache (a bounded head in memory before a sorted
store).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

from rayflink.user_types import UserKey

from ..backend import Namespace
from ..clock import epoch_ms
from ..keys.key_encoding import encode_key
from ..timers import TimerQueue
from .column_family import ColumnFamily
from .rocksdb_rows import TIME_BIAS, read_timer
from .row_layout import RowLayout, prefixes, reads_back, to_pickle

_PENDING = 8192
"""Changes on their way to disk."""


class RocksDBTimerQueue:
    """The timers of all keys of one subtask, like `TimerQueue`, spilled to disk.

    Args:
        column: where the far ones are; a row is the key group, the time, the namespace, the key.
        layout: of rows.
        key_groups: those of the subtask.
        most: timers kept in memory.
    """

    def __init__(self, column: ColumnFamily, layout: RowLayout, key_groups: range, most: int = 50_000) -> None:
        self.near = TimerQueue()
        """The timers in memory."""
        self._column, self._layout, self._key_groups = column, layout, key_groups
        self._most = max(most, 2)
        self._near_count = 0  # at least as many as there are
        self._horizon: tuple[int, bytes] | None = None  # time, and row without key group, of the first far timer
        self._pending: dict[tuple[int, Any, Any], bool] = {}  # (time, namespace, key) -> set, or deleted
        self._part = max(16, self._most // 2 // len(key_groups))  # rows of a key group read at a time
        self._has_far = False
        self._refuses = False
        self.refused = 0
        """Timers that were to be set while none was taken."""

    def register(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> None:
        """Set a timer; one that is set already stays as it is. `key` must be canonical.

        Raises:
            TypeError, ValueError: the timestamp is no int of 64 bits.
        """
        if self._refuses:
            self.refused += 1
            return
        if self._horizon is not None:
            timestamp = epoch_ms(timestamp, "a timer's time")
            if self._is_far(timestamp, key, namespace):
                self._has_far = True
                self._write((timestamp, namespace, key), True)
                return
        self.near.register(timestamp, key, namespace)
        self._near_count += 1
        if self._near_count > self._most:
            self._near_count = len(self.near)
            if self._near_count > self._most:
                self._spill()

    def refuse(self) -> None:
        """Refuse new timers until `clear`, and count them."""
        self._refuses = True

    def end_captures(self) -> None:
        """Note that no capture is read any more."""
        self.near.end_captures()

    def keys_at(self, timestamp: int, namespace: Namespace = None) -> _KeysAt:
        """Return an object on which setting a key sets its timer at that timestamp and namespace.

        Raises:
            TypeError, ValueError: the timestamp is no int of 64 bits.
        """
        return _KeysAt(self, epoch_ms(timestamp, "a timer's time"), namespace)

    def delete(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> None:
        """Forget a timer, if it is set."""
        if self._horizon is not None and self._is_far(timestamp, key, namespace):
            if self._has_far:
                self._write((timestamp, namespace, key), False)
        else:
            self.near.delete(timestamp, key, namespace)

    def contains(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> bool:
        """Return whether the timer is set."""
        if self._horizon is None or not self._is_far(timestamp, key, namespace):
            return self.near.contains(timestamp, key, namespace)
        is_set = self._pending.get((timestamp, namespace, key))
        if is_set is None:
            row = prefixes[self._layout.group_of(key)] + self._tail(timestamp, namespace, key)
            return self._column.read(row) is not None
        return is_set

    def next_timestamp(self) -> int | None:
        """Return the timestamp of the earliest timer, or None when there is none."""
        if self._horizon is None:
            return self.near.next_timestamp()
        while (timestamp := self.near.next_timestamp()) is None and self._has_far:
            self._refill()
        return timestamp

    def due(self, until: int) -> Iterator[tuple[int, UserKey, Namespace]]:
        """Remove and yield one by one the timers up to and including `until`, like `TimerQueue.due`."""
        while (timestamp := self.next_timestamp()) is not None and timestamp <= until:
            reached = until if self._horizon is None else min(until, self._horizon[0])
            for timer in self.near.due(reached):
                self._near_count -= 1
                yield timer
                if self._horizon is not None and self._horizon[0] < reached:
                    break  # many were set meanwhile, and the horizon has come nearer

    def due_keys(self, until: int, limit: int) -> Iterator[tuple[int, Any, list[Any]]]:
        """Remove and yield timers up to and including `until`: (timestamp, namespace, at most `limit` of its keys)."""
        while (timestamp := self.next_timestamp()) is not None and timestamp <= until:
            reached = until if self._horizon is None else min(until, self._horizon[0])
            for fired in self.near.due_keys(reached, limit):
                self._near_count -= len(fired[2])
                yield fired
                if self._horizon is not None and self._horizon[0] < reached:
                    break

    def clear(self) -> None:
        """Delete all timers, and accept new ones."""
        self.near.clear()
        self._pending.clear()
        self._column.delete_range(b"", b"\xff" * 64)
        self._near_count, self._horizon, self._has_far = 0, None, False
        self._refuses, self.refused = False, 0

    @property
    def far_from_ms(self) -> int | None:
        """Return a time before which all timers are in memory; None where all timers are."""
        return self._horizon[0] if self._horizon is not None and self._has_far else None

    def on_restored(self, far_from_ms: int) -> None:
        """Note that the column family now has rows, none of them of a timer before that time."""
        self._horizon = far_from_ms, (far_from_ms + TIME_BIAS).to_bytes(8, "big")
        self._has_far = True

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        """Yield (timestamp, key, namespace) of all timers, in the order in which they would fire."""
        yield from self.near
        self.flush()
        for row, data in merge(*self._scans(), key=_after_group):
            yield read_timer(self._layout, row, data)

    def __len__(self) -> int:
        """Return the number of timers set; the far ones are counted one by one."""
        self.flush()
        return len(self.near) + sum(1 for scan in self._scans() for _ in scan)

    # rows

    def _tail(self, timestamp: int, namespace: Namespace, key: UserKey) -> bytes:
        """Return a row without its key group: it sorts by time, namespace and key."""
        return (timestamp + TIME_BIAS).to_bytes(8, "big") + self._layout.namespaces.encode(namespace) + encode_key(key)

    def _is_far(self, timestamp: int, key: UserKey, namespace: Namespace) -> bool:
        assert self._horizon is not None
        time, tail = self._horizon
        return timestamp > time or (timestamp == time and self._tail(timestamp, namespace, key) >= tail)

    def _write(self, timer: tuple[int, Any, Any], is_set: bool) -> None:
        self._pending[timer] = is_set
        if len(self._pending) >= _PENDING:
            self.flush()

    def flush(self) -> None:
        """Write pending changes to disk."""
        pending, self._pending = self._pending, {}
        if not pending:
            return
        groups = self._layout.groups_of([key for _, _, key in pending])
        tail = self._tail
        changes = sorted(
            (prefixes[group] + tail(*timer), is_set, timer[2])
            for group, (timer, is_set) in zip(groups, pending.items(), strict=True)
        )
        puts = ((row, b"" if reads_back(key) else to_pickle(key)) for row, is_set, key in changes if is_set)
        self._column.write(puts, (row for row, is_set, _ in changes if not is_set))

    def _scans(self) -> Iterator[Iterator[tuple[bytes, bytes]]]:
        """Yield a scan of the far rows of each key group, in the order of time."""
        start = b"" if self._horizon is None else self._horizon[1]
        for group in self._key_groups:
            yield self._column.scan(prefixes[group], prefixes[group] + start)

    # the horizon

    def _spill(self) -> None:
        """Spill the later half of the timers in memory to disk."""
        timers = list(self.near)
        half = self._most // 2
        edge = timers[half][0]
        if timers[half - 1][0] == edge:  # one time has more timers than may stay: divide them by their bytes
            at_edge = [timer for timer in timers if timer[0] == edge]
            at_edge.sort(key=lambda timer: self._tail(edge, timer[2], timer[1]))
            before = sum(1 for timer in timers if timer[0] < edge)
            far = at_edge[half - before :] + timers[before + len(at_edge) :]
            self._horizon = edge, self._tail(edge, far[0][2], far[0][1])
        else:
            far = timers[half:]
            self._horizon = edge, (edge + TIME_BIAS).to_bytes(8, "big")
        for timestamp, key, namespace in far:
            self.near.delete(timestamp, key, namespace)
            self._write((timestamp, namespace, key), True)
        self._near_count = len(timers) - len(far)
        self._has_far = True

    def _refill(self) -> None:
        """Read the next timers from disk; the horizon moves behind them.

        From each key group this many are read; what comes no later than the last of any group is complete.
        """
        self.flush()
        edge: bytes | None = None
        rows: list[tuple[bytes, bytes]] = []
        for scan in self._scans():
            read = list(islice(scan, self._part))
            rows += read
            if len(read) == self._part:
                last = read[-1][0][2:]
                edge = last if edge is None else min(edge, last)
        complete = rows if edge is None else [pair for pair in rows if pair[0][2:] <= edge]
        complete.sort(key=_after_group)
        for row, data in complete:
            self.near.register(*read_timer(self._layout, row, data))
        self._near_count = len(complete)
        self._column.write((), sorted(row for row, _ in complete))
        if edge is None:
            self._has_far, self._horizon = False, None
        else:
            self._horizon = int.from_bytes(edge[:8], "big") - TIME_BIAS, edge + b"\0"
            if len(complete) < self._most // 8:
                self._part *= 2
            elif len(complete) > self._most // 2:
                self._part = max(16, self._part // 2)


class _KeysAt:
    """The keys with a timer at one timestamp and namespace; setting a key sets its timer."""

    __slots__ = ("_namespace", "_queue", "_timestamp")

    def __init__(self, queue: RocksDBTimerQueue, timestamp: int, namespace: Namespace) -> None:
        self._queue, self._timestamp, self._namespace = queue, timestamp, namespace

    def __setitem__(self, key: UserKey, value: None) -> None:
        self._queue.register(self._timestamp, key, self._namespace)

    def update(self, keys: dict[UserKey, None]) -> None:
        """Set the timers of these keys."""
        for key in keys:
            self._queue.register(self._timestamp, key, self._namespace)


def _after_group(pair: tuple[bytes, bytes]) -> bytes:
    return pair[0][2:]


__all__ = ["RocksDBTimerQueue"]
