"""Snapshots that were taken and are not complete yet: records still in flight belong to them too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rayflink.common.records.batches import CheckpointBarrier
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import DeferredSnapshot
from rayflink.state.snapshots import OperatorSnapshot

from ..messages.checkpoint_statistics import CheckpointMetrics
from .in_flight_capture import InFlightCapture
from .snapshot_writing import SnapshotWriting

_LOOK_AGAIN_MS = 10


@dataclass(slots=True)
class _Incomplete:
    barrier: CheckpointBarrier
    captured: dict[str, OperatorSnapshot]
    metrics: CheckpointMetrics
    in_flight: InFlightCapture
    begun_ms: int
    deferred: list[DeferredSnapshot] = field(default_factory=list)
    is_aligned: bool = False

    def advance(self, now_ms: int) -> bool:
        """Add what has arrived since the last call; return whether nothing is missing now."""
        records_are_here = self.in_flight.advance(now_ms)
        if not self.is_aligned and self.in_flight.has_all_barriers:
            self.is_aligned = True
            alignment_ms = self.metrics.alignment_ms + max(0, now_ms - self.begun_ms)
            self.metrics = replace(self.metrics, alignment_ms=alignment_ms)
        still_deferred = []
        for operator in self.deferred:
            rest = operator.rest_of_snapshot(self.barrier.checkpoint_id)
            if rest is None:
                still_deferred.append(operator)
            else:
                self.captured[operator.ctx.operator_id] = rest
        self.deferred = still_deferred
        return records_are_here and not still_deferred

    def join(self, operator_id: str) -> None:
        """Add the records to the snapshot of an operator."""
        lists, size = self.in_flight.take()
        if lists:
            snapshot = self.captured.get(operator_id, OperatorSnapshot())
            self.captured[operator_id] = replace(snapshot, lists={**snapshot.lists, **lists})
            self.metrics = replace(self.metrics, in_flight_bytes=size)

    def close(self) -> None:
        """Release all captured records."""
        self.in_flight.close()
        for snapshot in self.captured.values():
            if snapshot.capture is not None:
                snapshot.capture.release()


class IncompleteSnapshots:
    """Hands the parts of one task over to be written, each when it is whole.

    Args:
        head: of the task's chain; its snapshot includes the records in flight.
        deferred: the operators whose snapshot is completed after the barrier.
        writing: takes what is whole.
    """

    def __init__(self, head: Operator, deferred: list[DeferredSnapshot], writing: SnapshotWriting) -> None:
        self._head, self._deferred = head, deferred
        self._writing = writing
        self._incomplete: dict[int, _Incomplete] = {}
        self._newest = 0
        self.measured = CheckpointMetrics()
        """The metrics of the newest checkpoint, as far as they are known; the alignment counts once it is over."""
        self.next_ms: int | None = None
        """The time to look again though nothing came; None: none is incomplete."""

    def begin(
        self,
        barrier: CheckpointBarrier,
        captured: dict[str, OperatorSnapshot],
        metrics: CheckpointMetrics,
        in_flight: InFlightCapture,
    ) -> None:
        """Add a snapshot that was taken."""
        now_ms = self._writing.clock.now_ms()
        part = _Incomplete(barrier, captured, metrics, in_flight, now_ms, list(self._deferred))
        self._incomplete[barrier.checkpoint_id] = part
        self._newest, self.measured = barrier.checkpoint_id, metrics
        self.look(now_ms)

    def look(self, now_ms: int) -> None:
        """Hand over the snapshots that are complete by now."""
        if not self._incomplete:
            return
        for number, part in list(self._incomplete.items()):
            is_complete = part.advance(now_ms)
            if number == self._newest:
                self.measured = part.metrics
            if is_complete:
                del self._incomplete[number]
                part.join(self._head.ctx.operator_id)
                self._writing.begin(part.barrier, part.captured, part.metrics)
        self.next_ms = now_ms + _LOOK_AGAIN_MS if self._incomplete else None

    def give_up(self, checkpoint_id: int) -> None:
        """Discard a snapshot whose checkpoint was aborted."""
        part = self._incomplete.pop(checkpoint_id, None)
        self.next_ms = self.next_ms if self._incomplete else None
        if part is None:
            self._writing.give_up(checkpoint_id)
            return
        part.close()

    def close(self) -> None:
        """Discard all snapshots: the task has ended."""
        for number in list(self._incomplete):
            self.give_up(number)
        self._writing.close()


__all__ = ["IncompleteSnapshots"]
