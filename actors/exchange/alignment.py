"""When a task takes its snapshot: barriers of all channels in, one decision out. Pure.

Source: asynchronous barrier snapshotting (Carbone et al.); apache/flink SingleCheckpointBarrierHandler and
CheckpointBarrierTracker.
"""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.batches import CancelCheckpointMarker, CheckpointBarrier


@dataclass(frozen=True, slots=True)
class Block:
    """Hold this channel back: its barrier is here, others are not."""

    channel: int


@dataclass(frozen=True, slots=True)
class Unblock:
    """Go on with all channels."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """All barriers are here: snapshot now; the first came `alignment_ms` ago."""

    barrier: CheckpointBarrier
    alignment_ms: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """This checkpoint will not happen here; tell the consumers."""

    checkpoint_id: int


Action = Block | Unblock | Aligned | Aborted


class BarrierAligner:
    """Exactly-once: a channel whose barrier has come waits for the others.

    Args:
        channels: number of input channels of the task, >= 1.
    """

    def __init__(self, channels: int) -> None:
        self._open = set(range(channels))
        self._pending: CheckpointBarrier | None = None
        self._arrived: set[int] = set()
        self._since_ms = 0
        self.last_id = 0

    @property
    def pending_id(self) -> int | None:
        """The checkpoint being aligned, or None."""
        return None if self._pending is None else self._pending.checkpoint_id

    def barrier(self, channel: int, barrier: CheckpointBarrier, now_ms: int) -> list[Action]:
        """A channel delivered its barrier."""
        if barrier.checkpoint_id <= self.last_id:
            return []  # subsumed or cancelled before
        actions: list[Action] = []
        pending = self._pending
        if pending is not None and barrier.checkpoint_id < pending.checkpoint_id:
            return []
        if pending is not None and barrier.checkpoint_id > pending.checkpoint_id:
            actions += self._abort()
        if self._pending is None:
            self._pending, self._since_ms = barrier, now_ms
        self._arrived.add(channel)
        if self._complete():
            return actions + self._align(now_ms)
        return [*actions, Block(channel)]

    def cancel(self, channel: int, marker: CancelCheckpointMarker) -> list[Action]:
        """A producer gave the checkpoint up."""
        if marker.checkpoint_id <= self.last_id:
            return []
        if self._pending is not None:
            if marker.checkpoint_id < self._pending.checkpoint_id:
                return []
            if marker.checkpoint_id == self._pending.checkpoint_id:
                return self._abort()
            actions = self._abort()
        else:
            actions = []
        self.last_id = marker.checkpoint_id
        return [*actions, Aborted(marker.checkpoint_id)]

    def end(self, channel: int, now_ms: int) -> list[Action]:
        """A channel has ended: it delivers no barrier any more and none is waited for."""
        self._open.discard(channel)
        self._arrived.discard(channel)
        if self._pending is not None and self._complete():
            return self._align(now_ms)
        return []

    def _complete(self) -> bool:
        return self._arrived >= self._open

    def _align(self, now_ms: int) -> list[Action]:
        assert self._pending is not None
        aligned = Aligned(self._pending, now_ms - self._since_ms)
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


class BarrierTracker:
    """At-least-once: nothing waits; the snapshot is taken when the last barrier of a checkpoint has passed.

    Args:
        channels: number of input channels of the task, >= 1.
    """

    def __init__(self, channels: int) -> None:
        self._open = set(range(channels))
        self._seen: dict[int, tuple[CheckpointBarrier, set[int], int]] = {}
        self.last_id = 0

    @property
    def pending_id(self) -> int | None:
        """The oldest checkpoint whose barriers are not all here, or None."""
        return min(self._seen, default=None)

    def barrier(self, channel: int, barrier: CheckpointBarrier, now_ms: int) -> list[Action]:
        """A channel delivered its barrier; no channel is ever held back."""
        if barrier.checkpoint_id <= self.last_id:
            return []
        _, arrived, _ = self._seen.setdefault(barrier.checkpoint_id, (barrier, set(), now_ms))
        arrived.add(channel)
        return self._completed(now_ms)

    def cancel(self, channel: int, marker: CancelCheckpointMarker) -> list[Action]:
        """A producer gave the checkpoint up."""
        if marker.checkpoint_id <= self.last_id:
            return []
        for older in [i for i in self._seen if i <= marker.checkpoint_id]:
            del self._seen[older]
        self.last_id = marker.checkpoint_id
        return [Aborted(marker.checkpoint_id)]

    def end(self, channel: int, now_ms: int) -> list[Action]:
        """A channel has ended and is waited for no longer."""
        self._open.discard(channel)
        return self._completed(now_ms)

    def _completed(self, now_ms: int) -> list[Action]:
        actions: list[Action] = []
        for checkpoint_id in sorted(self._seen):
            barrier, arrived, since_ms = self._seen[checkpoint_id]
            if arrived >= self._open:
                actions += [Aborted(i) for i in sorted(self._seen) if i < checkpoint_id]
                for done in [i for i in self._seen if i <= checkpoint_id]:
                    del self._seen[done]
                self.last_id = checkpoint_id
                actions.append(Aligned(barrier, now_ms - since_ms))
        return actions
