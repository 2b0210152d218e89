"""Snapshots that were taken and are not complete yet: records still in flight belong to them too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rayflink.common.records.batches import CheckpointBarrier
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import LateSnapshot
from rayflink.state.snapshots import OperatorSnapshot

from ..messages.checkpoint_statistics import CheckpointMetrics
from .in_flight_capture import InFlightCapture
from .snapshot_writing import SnapshotWriting

_LOOK_AGAIN_MS = 10


@dataclass(slots=True)
class _Open:
    barrier: CheckpointBarrier
    captured: dict[str, OperatorSnapshot]
    metrics: CheckpointMetrics
    in_flight: InFlightCapture
    late: list[LateSnapshot] = field(default_factory=list)

    def is_complete(self, now_ms: int) -> bool:
        """Return whether nothing is missing, after adding what has arrived since the last call."""
        records_are_here = self.in_flight.is_complete(now_ms)
        still_late = []
        for operator in self.late:
            rest = operator.rest_of_snapshot(self.barrier.checkpoint_id)
            if rest is None:
                still_late.append(operator)
            else:
                self.captured[operator.ctx.operator_id] = rest
        self.late = still_late
        return records_are_here and not still_late

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


class OpenSnapshots:
    """Hands the parts of one task over to be written, each when it is whole.

    Args:
        head: of the task's chain; its snapshot includes the records in flight.
        late: the operators whose snapshot is completed after the barrier.
        writing: takes what is whole.
    """

    def __init__(self, head: Operator, late: list[LateSnapshot], writing: SnapshotWriting) -> None:
        self._head, self._late = head, late
        self._writing = writing
        self._open: dict[int, _Open] = {}
        self.next_ms: int | None = None
        """The time to look again though nothing came; None: nothing is open."""

    def begin(
        self,
        barrier: CheckpointBarrier,
        captured: dict[str, OperatorSnapshot],
        metrics: CheckpointMetrics,
        in_flight: InFlightCapture,
    ) -> None:
        """Add a snapshot that was taken."""
        self._open[barrier.checkpoint_id] = _Open(barrier, captured, metrics, in_flight, list(self._late))
        self.look(self._writing.clock.now_ms())

    def look(self, now_ms: int) -> None:
        """Hand over the snapshots that are complete by now."""
        if not self._open:
            return
        for number, part in list(self._open.items()):
            if part.is_complete(now_ms):
                del self._open[number]
                part.join(self._head.ctx.operator_id)
                self._writing.begin(part.barrier, part.captured, part.metrics)
        self.next_ms = now_ms + _LOOK_AGAIN_MS if self._open else None

    def give_up(self, checkpoint_id: int) -> None:
        """Discard a snapshot whose checkpoint was aborted."""
        part = self._open.pop(checkpoint_id, None)
        self.next_ms = self.next_ms if self._open else None
        if part is None:
            self._writing.give_up(checkpoint_id)
            return
        part.close()

    def close(self) -> None:
        """Discard all snapshots: the task has ended."""
        for number in list(self._open):
            self.give_up(number)
        self._writing.close()


__all__ = ["OpenSnapshots"]
