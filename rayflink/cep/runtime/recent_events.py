"""Events that wait for the next watermarks and are not in state yet.

Most events wait for one watermark only. They stay in their batches until then, and those of keys in which no match can
begin or go on are dropped at once. They are moved to state before a snapshot, and where there are too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any, NamedTuple

from rayflink.state.rocksdb.memory_estimate import estimate_bytes
from rayflink.user_types import UserKey, UserRecord

from .match_state import WaitingEvent

_ENTRY_BYTES = 100
"""Of an event, for its key, timestamp, mask and places in lists."""


class EventBatch(NamedTuple):
    """Events in the order in which they came.

    Args:
        keys: of them, canonical.
        stamps, masks, events: one of each for an event.
        earliest, latest: of the timestamps.
    """

    keys: list[UserKey]
    stamps: list[int]
    masks: list[int]
    events: list[UserRecord]
    earliest: int
    latest: int

    @property
    def estimated_bytes(self) -> int:
        """Return what the events occupy, by the last one of them."""
        return len(self.keys) * (estimate_bytes(self.events[-1]) + _ENTRY_BYTES)

    @classmethod
    def of(cls, keys: list[UserKey], stamps: list[int], masks: list[int], events: list[UserRecord]) -> EventBatch:
        """Return a batch of at least one event."""
        return cls(keys, stamps, masks, events, min(stamps), max(stamps))

    def where(self, flags: list[bool]) -> EventBatch:
        """Return the events whose flag is set, of which there must be one."""
        return EventBatch.of(*(list(compress(column, flags)) for column in self[:4]))

    def waiting(self) -> Iterator[tuple[UserKey, WaitingEvent]]:
        """Yield each event with its key."""
        return zip(self.keys, zip(self.stamps, self.masks, self.events, strict=True), strict=True)


class RecentEvents:
    """Batches of events, the oldest first.

    Attributes:
        count: number of all events.
        estimated_bytes: of all events.
    """

    __slots__ = ("_batches", "count", "estimated_bytes")

    def __init__(self) -> None:
        self._batches: list[EventBatch] = []
        self.count = self.estimated_bytes = 0

    def add(self, batch: EventBatch) -> None:
        """Add the newest events."""
        self._batches.append(batch)
        self.count += len(batch.keys)
        self.estimated_bytes += batch.estimated_bytes

    def take_due(self, until: int) -> list[EventBatch]:
        """Remove and return the events up to a time."""
        due: list[EventBatch] = []
        later: list[EventBatch] = []
        for batch in self._batches:
            if batch.latest <= until:
                due.append(batch)
            elif batch.earliest > until:
                later.append(batch)
            else:
                due.append(batch.where([stamp <= until for stamp in batch.stamps]))
                later.append(batch.where([stamp > until for stamp in batch.stamps]))
        self._batches = later
        self.count = sum(len(batch.keys) for batch in later)
        self.estimated_bytes = sum(batch.estimated_bytes for batch in later)
        return due

    def take_all(self) -> list[EventBatch]:
        """Remove and return all events."""
        batches, self._batches = self._batches, []
        self.count = self.estimated_bytes = 0
        return batches


def events_by_key(batches: list[EventBatch], keys: set[UserKey] | None) -> dict[UserKey, list[WaitingEvent]]:
    """Return events by key, in the order in which they came.

    Args:
        keys: whose events are wanted; None for all.
    """
    events_of: dict[Any, list[WaitingEvent]] = {}
    get = events_of.get
    for batch in batches:
        waiting = batch.waiting()
        if keys is not None:
            waiting = compress(waiting, map(keys.__contains__, batch.keys))
        for key, event in waiting:
            events = get(key)
            if events is None:
                events_of[key] = [event]
            else:
                events.append(event)
    return events_of


__all__ = ["EventBatch", "RecentEvents", "events_by_key"]
