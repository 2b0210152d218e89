"""Decides when a task takes its snapshot: barriers of all channels in, one decision out. Pure.

A barrier that may overtake records is announced when it is received, before its turn. The snapshot is then taken before
the channels have delivered their barriers: what they still deliver in front of these belongs to it.

Both handlers keep three rules. A newer barrier subsumes an older checkpoint that is still waiting. A checkpoint that
was completed, aborted or subsumed never comes back: later barriers and markers of it are dropped. A channel that has
ended is waited for no longer.

Source: asynchronous barrier snapshotting (Carbone et al.); apache/flink SingleCheckpointBarrierHandler and
CheckpointBarrierTracker.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rayflink.common.records.batches import CancelCheckpointMarker, CheckpointBarrier

MAX_TRACKED = 50
"""The most checkpoints that a `BarrierTracker` waits for at a time; with one more the oldest is aborted."""


@dataclass(frozen=True, slots=True)
class Block:
    """Hold this channel back: its barrier is here, others are not."""

    channel: int


@dataclass(frozen=True, slots=True)
class Unblock:
    """Go on with all channels."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The alignment is over, so take the snapshot now; the first barrier came `alignment_ms` ago.

    Where a barrier has overtaken records, those of the `missing` channels are not here yet.
    """

    barrier: CheckpointBarrier
    alignment_ms: int
    missing: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Aborted:
    """This checkpoint will not happen here; notify the consumers."""

    checkpoint_id: int


Action: TypeAlias = Block | Unblock | Aligned | Aborted


class BarrierArrivals:
    """Since when barriers wait that were received or triggered; those of a checkpoint count as the first of them."""

    def __init__(self) -> None:
        self._since_ms: dict[int, int] = {}

    def note(self, checkpoint_id: int, now_ms: int) -> None:
        """Record that a barrier was received or triggered."""
        self._since_ms.setdefault(checkpoint_id, now_ms)

    def forget(self, checkpoint_id: int) -> None:
        """Forget the barriers of this checkpoint and of older ones: they wait no longer."""
        self._since_ms = {number: since for number, since in self._since_ms.items() if number > checkpoint_id}

    def oldest_wait_ms(self, last_id: int, now_ms: int) -> int:
        """Return how long the oldest barrier of a checkpoint above `last_id` has waited; 0 if there is none."""
        since = min((since for number, since in self._since_ms.items() if number > last_id), default=now_ms)
        return max(0, now_ms - since)


class BarrierAligner:
    """The exactly-once handler: a channel whose barrier has come waits for the others.

    Args:
        channels: number of input channels of the task, >= 0.
        in_order: those of them whose records no barrier overtakes.
    """

    def __init__(self, channels: int, in_order: Collection[int] = ()) -> None:
        self._open = set(range(channels))
        self._in_order = frozenset(in_order)
        self._pending: CheckpointBarrier | None = None
        self._arrived: set[int] = set()
        self._since_ms = 0
        self.last_id = 0

    @property
    def pending_id(self) -> int | None:
        """Return the checkpoint being aligned, or None."""
        return None if self._pending is None else self._pending.checkpoint_id

    def barrier(self, channel: int, barrier: CheckpointBarrier, now_ms: int) -> list[Action]:
        """Handle the barrier that a channel delivered."""
        if channel not in self._open:
            return []  # what an ended channel says no longer counts
        actions = self._start(barrier, now_ms)
        if actions is None:
            return []
        self._arrived.add(channel)
        if self._complete():
            return actions + self._align(now_ms)
        return [*actions, Block(channel)]

    def announce(self, barrier: CheckpointBarrier, now_ms: int) -> list[Action]:
        """Note that a channel has received a barrier that may overtake records; its turn comes later.

        Not to be confused with `CheckpointAnnounced`, by which a checkpoint is announced before it is triggered.
        """
        return self._start(barrier, now_ms) or []

    @property
    def overtakes_at_ms(self) -> int | None:
        """Return the time at which the awaited barrier overtakes the records before it; None: not before others have
        come.
        """
        if self._pending is None or not self._arrived >= self._open & self._in_order:
            return None
        return self._pending.overtakes_at_ms

    def overtake(self, now_ms: int) -> list[Action]:
        """Take the snapshot though barriers are missing, at or after `overtakes_at_ms`."""
        assert self._pending is not None
        self._pending = replace(self._pending, aligned=False)
        return self._align(now_ms)

    def trigger(self, barrier: CheckpointBarrier, now_ms: int) -> list[Action]:
        """Trigger the snapshot of a task whose producers have all finished, so that no barrier comes from them.

        The records queued in the channels are processed first: the snapshot is taken once every channel has ended.
        """
        actions = self._start(barrier, now_ms)
        if actions is None:
            return []
        return actions + self._align(now_ms) if self._complete() else actions

    def cancel(self, channel: int, marker: CancelCheckpointMarker) -> list[Action]:
        """Handle a checkpoint that a producer aborted; an older one that waits is aborted with it."""
        cancelled, pending = marker.checkpoint_id, self._pending
        if cancelled <= self.last_id or (pending is not None and cancelled < pending.checkpoint_id):
            return []
        actions = [] if pending is None else self._abort()
        if pending is None or pending.checkpoint_id < cancelled:
            self.last_id = cancelled
            actions.append(Aborted(cancelled))
        return actions

    def end(self, channel: int, now_ms: int) -> list[Action]:
        """Stop waiting for a channel that has ended and delivers no barrier any more."""
        self._open.discard(channel)
        if self._pending is not None and self._complete():
            return self._align(now_ms)
        return []

    def _start(self, barrier: CheckpointBarrier, now_ms: int) -> list[Action] | None:
        """Make `barrier` the pending one; return None when it is an old one."""
        number, pending = barrier.checkpoint_id, self._pending
        if number <= self.last_id or (pending is not None and number < pending.checkpoint_id):
            return None
        if pending is not None and number == pending.checkpoint_id:
            if not barrier.aligned:
                self._pending = barrier
            return []
        actions = [] if pending is None else self._abort()
        self._pending, self._since_ms = barrier, now_ms
        return actions

    def _complete(self) -> bool:
        return self._arrived >= self._open

    def _align(self, now_ms: int) -> list[Action]:
        assert self._pending is not None
        missing = frozenset(self._open - self._arrived)
        aligned = Aligned(self._pending, max(0, now_ms - self._since_ms), missing)
        self._forget()
        return [aligned, Unblock()]

    def _abort(self) -> list[Action]:
        assert self._pending is not None
        aborted = Aborted(self._pending.checkpoint_id)
        self._forget()
        return [Unblock(), aborted]

    def _forget(self) -> None:
        assert self._pending is not None
        self.last_id = self._pending.checkpoint_id
        self._pending = None
        self._arrived = set()


@dataclass(slots=True)
class _Counted:
    barrier: CheckpointBarrier
    since_ms: int
    arrived: set[int] = field(default_factory=set)


class BarrierTracker:
    """The at-least-once handler: no channel waits; the last barrier of a checkpoint triggers the snapshot.

    Args:
        channels: number of input channels of the task, >= 0.
    """

    def __init__(self, channels: int) -> None:
        self._open = set(range(channels))
        self._seen: dict[int, _Counted] = {}
        self.last_id = 0
        self.overtakes_at_ms: int | None = None
        """No barrier overtakes anything here."""

    @property
    def pending_id(self) -> int | None:
        """Return the oldest checkpoint whose barriers are not all here, or None."""
        return min(self._seen, default=None)

    def barrier(self, channel: int, barrier: CheckpointBarrier, now_ms: int) -> list[Action]:
        """Take the barrier that a channel delivered; no channel is ever held back."""
        if barrier.checkpoint_id <= self.last_id or channel not in self._open:
            return []
        self._count(barrier, now_ms).arrived.add(channel)
        return self._completed(now_ms) or self._too_many()

    def trigger(self, barrier: CheckpointBarrier, now_ms: int) -> list[Action]:
        """Trigger the snapshot of a task whose producers have all finished, taken once all channels have ended."""
        if barrier.checkpoint_id <= self.last_id:
            return []
        self._count(barrier, now_ms)
        return self._completed(now_ms) or self._too_many()

    def cancel(self, channel: int, marker: CancelCheckpointMarker) -> list[Action]:
        """Cancel a checkpoint that a producer gave up; older ones that wait are cancelled with it."""
        cancelled = marker.checkpoint_id
        if cancelled <= self.last_id:
            return []
        actions = self._drop_below(cancelled)
        self._seen.pop(cancelled, None)
        self.last_id = cancelled
        return [*actions, Aborted(cancelled)]

    def end(self, channel: int, now_ms: int) -> list[Action]:
        """Stop waiting for a channel that has ended."""
        self._open.discard(channel)
        return self._completed(now_ms)

    def _count(self, barrier: CheckpointBarrier, now_ms: int) -> _Counted:
        return self._seen.setdefault(barrier.checkpoint_id, _Counted(barrier, now_ms))

    def _completed(self, now_ms: int) -> list[Action]:
        """Return complete checkpoints in ascending order; an incomplete one below a complete one is subsumed."""
        actions: list[Action] = []
        for number in sorted(n for n, counted in self._seen.items() if counted.arrived >= self._open):
            actions += self._drop_below(number)
            counted = self._seen.pop(number)
            self.last_id = number
            actions.append(Aligned(counted.barrier, max(0, now_ms - counted.since_ms)))
        return actions

    def _drop_below(self, number: int) -> list[Action]:
        older = sorted(waiting for waiting in self._seen if waiting < number)
        for waiting in older:
            del self._seen[waiting]
        return [Aborted(waiting) for waiting in older]

    def _too_many(self) -> list[Action]:
        if len(self._seen) <= MAX_TRACKED:
            return []
        oldest = min(self._seen)
        del self._seen[oldest]
        self.last_id = oldest
        return [Aborted(oldest)]
