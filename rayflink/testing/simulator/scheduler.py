"""A deterministic scheduler: events wait in queues, and a seed draws which of those that are due happens next."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rayflink.state.clock import ManualClock


@dataclass(frozen=True, slots=True)
class ScheduledEvent:
    """Something that is going to happen.

    Args:
        due_ms: the virtual time before which it does not happen.
        target: whom it concerns, such as the task that steps.
        action: what happens.
    """

    due_ms: int
    target: Hashable
    action: Callable[[], None]


class EventSource(Protocol):
    """A part of the simulation that offers events to the scheduler."""

    def due(self, now_ms: int) -> Sequence[ScheduledEvent]:
        """Return the events of which any may happen now; their order depends on earlier events alone."""
        ...

    def take(self, event: ScheduledEvent) -> None:
        """Remove an event, which is about to happen."""
        ...

    def times(self) -> Iterable[int]:
        """Return times at which more events may be due; those that have passed do not matter."""
        ...


class Lanes:
    """Events that happen in their order for each target, like messages on one connection.

    Args:
        keep_places: a target keeps its place among the others while it has no events; else it comes last afterwards.

    >>> lanes = Lanes()
    >>> for due_ms, target in ((5, "a"), (0, "a"), (0, "b")):
    ...     lanes.add(ScheduledEvent(due_ms, target, lambda: None))
    >>> [(event.due_ms, event.target) for event in lanes.due(now_ms=0)]
    [(0, 'b')]
    """

    def __init__(self, keep_places: bool = False) -> None:
        self._keep_places = keep_places
        self._lanes: dict[Hashable, deque[ScheduledEvent]] = {}

    def add(self, event: ScheduledEvent) -> None:
        """Add an event behind the others of its target."""
        self._lanes.setdefault(event.target, deque()).append(event)

    def due(self, now_ms: int) -> Sequence[ScheduledEvent]:
        """Return the first event of each target, where it is due."""
        return [lane[0] for lane in self._lanes.values() if lane and lane[0].due_ms <= now_ms]

    def take(self, event: ScheduledEvent) -> None:
        """Remove an event, the first of its target."""
        lane = self._lanes[event.target]
        lane.popleft()
        if not lane and not self._keep_places:
            del self._lanes[event.target]

    def times(self) -> Iterable[int]:
        """Return when the first event of each target is due."""
        return [lane[0].due_ms for lane in self._lanes.values() if lane]

    def drop(self, target: Hashable) -> None:
        """Remove all events of a target."""
        self._lanes.pop(target, None)


class Pool:
    """Events that happen in any order.

    Of events that are equal the first is taken, whichever was chosen: the order of the others shows in later choices.
    """

    def __init__(self) -> None:
        self._events: list[ScheduledEvent] = []

    def add(self, event: ScheduledEvent) -> None:
        """Add an event."""
        self._events.append(event)

    def due(self, now_ms: int) -> Sequence[ScheduledEvent]:
        """Return the events that are due."""
        return [event for event in self._events if event.due_ms <= now_ms]

    def take(self, event: ScheduledEvent) -> None:
        """Remove an event, or one that is equal to it."""
        self._events.remove(event)

    def times(self) -> Iterable[int]:
        """Return when each event is due."""
        return [event.due_ms for event in self._events]

    def drop(self, target: Hashable) -> None:
        """Remove all events of a target."""
        self._events = [event for event in self._events if event.target != target]


class FirstOfEachTarget(Pool):
    """Events that happen in their order for each target; the scheduler sees them in the order of all targets."""

    def due(self, now_ms: int) -> Sequence[ScheduledEvent]:
        """Return the first event of each target, where it is due."""
        seen: set[Hashable] = set()
        due = []
        for event in self._events:
            if event.target not in seen:
                seen.add(event.target)
                if event.due_ms <= now_ms:
                    due.append(event)
        return due


class Scheduler:
    """Performs one event after the other.

    Every move draws a number for the choice, and one that decides whether a millisecond passes: so the seed determines
    the whole order.

    Args:
        clock: the virtual time.
        draw: all chance of the run.
    """

    def __init__(self, clock: ManualClock, draw: random.Random) -> None:
        self._clock, self._draw = clock, draw
        self._sources: tuple[EventSource, ...] = ()
        self.move = 0
        """Number of events that have happened."""

    def add(self, *sources: EventSource) -> None:
        """Add sources of events, behind those there are."""
        self._sources += sources

    def perform_one(self) -> bool:
        """Perform one of the events that are due; return False when there is none."""
        now = self._clock.now_ms()
        choices = [(source, event) for source in self._sources for event in source.due(now)]
        if not choices:
            return False
        source, event = choices[int(self._draw.random() * len(choices))]
        self.move += 1
        source.take(event)
        event.action()
        if self._draw.random() < 0.1:
            self._clock.advance(1)
        return True

    def wait(self, times: Iterable[int]) -> None:
        """Advance the clock to the first time at which an event may be due, or to one of `times` before that."""
        now = self._clock.now_ms()
        coming = [time for source in self._sources for time in source.times() if time > now]
        coming += [time for time in times if time > now]
        self._clock.advance(min(coming) - now)


__all__ = ["EventSource", "FirstOfEachTarget", "Lanes", "Pool", "ScheduledEvent", "Scheduler"]
