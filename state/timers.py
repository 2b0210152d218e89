"""Timers of one operator and one clock: (timestamp, key, namespace), each at most once, fired in order of time.

Timers of equal time fire by namespace, in the order in which the namespaces were first used at that time, and within a
namespace by key, in the order in which the timers were set. Flink fires equal timers in the order of its binary heap,
which depends on what else the heap held and is promised to no one; ours is the order of arrival, and survives a
restore.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from rayflink.user_types import UserKey

from .backend import Namespace
from .clock import epoch_ms


class TimersCopy:
    """Timers as they are, or were at a capture: (timestamp, key, namespace) in the order in which they would fire."""

    __slots__ = ("_at",)

    def __init__(self, timers: dict[int, dict[Any, dict[UserKey, None]]]) -> None:
        self._at = timers

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        for timestamp in sorted(self._at):
            for namespace, keys in self._at[timestamp].items():
                for key in keys:
                    yield timestamp, key, namespace

    def __len__(self) -> int:
        return sum(len(keys) for spaces in self._at.values() for keys in spaces.values())


class TimerQueue:
    """The timers of all keys of one subtask. Timestamps are epoch milliseconds."""

    __slots__ = ("_at", "_heap", "_refuses", "_shared", "refused")

    def __init__(self) -> None:
        self._at: dict[int, dict[Any, dict[UserKey, None]]] = {}  # timestamp -> namespace -> keys, in order
        self._heap: list[int] = []  # every timestamp of _at once, and some that are no longer there
        self._shared: dict[int, dict[Any, dict[UserKey, None]]] = {}  # _at at the last capture: copied before a change
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
        self.keys_at(timestamp, namespace)[key] = None

    def refuse(self) -> None:
        """Refuse new timers until `clear`, and count them."""
        self._refuses = True

    def keys_at(self, timestamp: int, namespace: Namespace = None) -> dict[UserKey, None]:
        """Return the keys with a timer at that timestamp and namespace, as a dict in which setting a key sets its
        timer.

        The dict is good until a timer of the queue is deleted or fires, or the queue is captured; a key must be put
        in before that.

        Raises:
            TypeError, ValueError: the timestamp is no int of 64 bits.
        """
        spaces = self._at.get(timestamp)
        if self._shared and spaces is not None:
            spaces = self._own(timestamp)
        if spaces is None:
            timestamp = epoch_ms(timestamp, "a timer's time")
            spaces = self._at[timestamp] = {}
            heappush(self._heap, timestamp)
            if len(self._heap) > 2 * len(self._at) + 64:  # mostly times whose timers were deleted
                self._heap = list(self._at)
                heapify(self._heap)
        keys = spaces.get(namespace)
        if keys is None:
            keys = spaces[namespace] = {}
        return keys

    def delete(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> None:
        """Forget a timer, if it is set."""
        keys = self._own(timestamp).get(namespace, _EMPTY)
        if key in keys:
            del keys[key]
            if not keys:
                self._drop(timestamp, namespace)

    def contains(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> bool:
        """Return whether the timer is set."""
        return key in self._at.get(timestamp, _EMPTY).get(namespace, _EMPTY)

    def next_timestamp(self) -> int | None:
        """Return the timestamp of the earliest timer, or None when there is none."""
        heap, timers = self._heap, self._at
        while heap and heap[0] not in timers:
            heappop(heap)
        return heap[0] if heap else None

    def due(self, until: int) -> Iterator[tuple[int, UserKey, Namespace]]:
        """Remove and yield one by one the timers up to and including `until`: (timestamp, key, namespace).

        Timers may be set and deleted meanwhile: one set at or before `until` fires too, at its place in time; one that
        is deleted does not. The iterator may be left at any point: what it gave out is gone, the rest stays set.
        """
        while (timestamp := self.next_timestamp()) is not None and timestamp <= until:
            namespace = next(iter(self._at[timestamp]))
            for key in list(self._at[timestamp][namespace]):
                if not self.contains(timestamp, key, namespace):
                    continue
                self.delete(timestamp, key, namespace)
                yield timestamp, key, namespace
                if self._heap and self._heap[0] < timestamp:  # set meanwhile, and due before the rest of these keys
                    yield from self.due(timestamp - 1)

    def due_keys(self, until: int, limit: int) -> Iterator[tuple[int, Any, list[Any]]]:
        """Remove and yield timers up to and including `until`: (timestamp, namespace, at most `limit` of its keys)."""
        while (timestamp := self.next_timestamp()) is not None and timestamp <= until:
            namespace = next(iter(self._at[timestamp]))
            keys = self._at[timestamp][namespace]
            if len(keys) <= limit:
                self._drop(timestamp, namespace)
                yield timestamp, namespace, list(keys)
                continue
            everyone = list(keys)
            for start in range(0, len(everyone), limit):
                keys = self._own(timestamp).get(namespace, _EMPTY)
                chosen = [
                    key for key in everyone[start : start + limit] if key in keys
                ]  # others were deleted meanwhile
                for key in chosen:
                    del keys[key]
                if chosen and not keys:
                    self._drop(timestamp, namespace)
                if chosen:
                    yield timestamp, namespace, chosen

    def capture(self) -> TimersCopy:
        """Capture the timers as they are now; they are copied as they change, time by time."""
        self._shared = dict(self._at)
        return TimersCopy(self._shared)

    def end_captures(self) -> None:
        """Note that no capture is read any more."""
        self._shared = {}

    def clear(self) -> None:
        """Delete all timers, and accept new ones."""
        self._at.clear()
        self._heap.clear()
        self._refuses, self.refused = False, 0

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        """Yield (timestamp, key, namespace) of all timers, in the order in which they would fire."""
        return iter(TimersCopy(self._at))

    def __len__(self) -> int:
        """Return the number of timers set."""
        return len(TimersCopy(self._at))

    def _own(self, timestamp: int) -> Any:
        """Return the timers of a time, to be changed; none where there are none."""
        spaces = self._at.get(timestamp)
        if spaces is not None and self._shared.get(timestamp) is spaces:
            spaces = self._at[timestamp] = {namespace: dict(keys) for namespace, keys in spaces.items()}
        return _EMPTY if spaces is None else spaces

    def _drop(self, timestamp: int, namespace: Namespace) -> None:
        spaces = self._own(timestamp)
        del spaces[namespace]
        if not spaces:
            del self._at[timestamp]  # the heap still holds it; next_timestamp passes over it


_EMPTY: dict[Any, Any] = {}
