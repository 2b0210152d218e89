"""One task's part in checkpoints: barriers and triggers in; snapshots, forwarded barriers and answers out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rayflink.common.errors import assert_never
from rayflink.common.records.batches import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition
from rayflink.operators.chain import OperatorChain
from rayflink.state.snapshots import OperatorSnapshot

from ..exchange import alignment
from ..exchange.current_buffer import CurrentBuffer
from ..exchange.gate import ChannelState, InputChannel, InputGate
from ..exchange.subpartition import ExchangeError
from ..exchange.writer import RecordWriter
from ..messages.checkpoint_statistics import CheckpointMetrics
from ..messages.messages import (
    AssignSplits,
    CheckpointAcknowledged,
    CheckpointDeclined,
    LastCheckpointAwaited,
    TaskDeployment,
    ToCoordinator,
)
from ..messages.settings import TaskSettings
from .final_checkpoint import FinalCheckpoint
from .in_flight_capture import forward_barrier
from .incomplete_snapshots import IncompleteSnapshots
from .snapshot_writing import SnapshotWriting, SnapshotWritten


class TaskCheckpoints:
    """Aligns the barriers of all channels, decides when a snapshot is taken, and takes it.

    Args:
        deployment: the attempt that answers the coordinator; at-least-once by its options holds no channel back.
        chain: whose operators are snapshotted; it is idle whenever a method but `trigger` is called.
        gate: its channels are held back while barriers are aligned; a source's gate has none.
        writers: they pass barriers on.
        report: takes the answers.
        writing: writes what was taken.
    """

    def __init__(
        self,
        deployment: TaskDeployment,
        chain: OperatorChain,
        gate: InputGate,
        writers: list[RecordWriter],
        report: Callable[[ToCoordinator], None],
        writing: SnapshotWriting,
    ) -> None:
        self._attempt, self._clock, self._report = deployment.attempt, writing.clock, report
        self._chain, self._gate, self._writers = chain, gate, writers
        at_least_once = TaskSettings.of(deployment.config).at_least_once
        width, in_order = len(gate.channels), [c.index for c in gate.channels if c.spec.in_order]
        self._aligner: alignment.BarrierAligner | alignment.BarrierTracker = (
            alignment.BarrierTracker(width) if at_least_once else alignment.BarrierAligner(width, in_order)
        )
        self._triggered: deque[CheckpointBarrier | AssignSplits] = deque()
        self._writing = writing
        self._incomplete = IncompleteSnapshots(chain.links[0].operator, chain.deferred_snapshots, writing)
        self._looked_ms = 0
        self.final = FinalCheckpoint(deployment.checkpointing, deployment.finished)

    def trigger(self, barrier: CheckpointBarrier) -> None:
        """Queue a checkpoint that the coordinator begins here: at a source, or where every producer has finished.

        Declined where barriers are still to come from producers. A producer has finished only when all it sent was
        delivered, so the end of every channel is here before such a trigger comes.
        """
        if all(map(_ends, self._gate.channels)):
            self._triggered.append(barrier)
            self._gate.arrivals.note(barrier.checkpoint_id, self._clock.now_ms())
        else:
            self.decline(barrier.checkpoint_id, "it takes its barriers from its producers, and not all have finished")

    @property
    def has_triggered(self) -> bool:
        """Return whether a checkpoint that was triggered waits to begin."""
        return bool(self._triggered)

    @property
    def measured(self) -> CheckpointMetrics:
        """Return the metrics of the newest checkpoint, as far as they are known."""
        return self._incomplete.measured

    @property
    def triggered_id(self) -> int | None:
        """Return the number of the oldest checkpoint that was triggered and waits to begin; None: there is none."""
        numbers = (item.checkpoint_id for item in self._triggered if isinstance(item, CheckpointBarrier))
        return next(numbers, None)

    @property
    def aligning_id(self) -> int | None:
        """Return the number of the checkpoint whose barriers are not all here; None: there is none."""
        return self._aligner.pending_id

    def oldest_barrier_wait_ms(self) -> int:
        """Return how long the oldest barrier has waited that was received or triggered and is not aligned; 0: none."""
        return self._gate.arrivals.oldest_wait_ms(self._aligner.last_id, self._clock.now_ms())

    def begin_triggered(self, now_ms: int) -> bool:
        """Begin the oldest checkpoint that was triggered; return False if there is none."""
        if not self._triggered:
            return False
        barrier = self._triggered.popleft()
        assert isinstance(barrier, CheckpointBarrier), "splits that waited for a checkpoint were taken with it"
        self._act(self._aligner.trigger(barrier, now_ms))
        return True

    def look_on(self, now_ms: int) -> None:
        """Complete snapshots by what has arrived, and look at barriers that have arrived but wait in a queue.

        Called once a step, right after the mail is read.
        """
        self._incomplete.look(now_ms)
        self._looked_ms = now_ms
        if self._gate.overtaking:
            overtaking, self._gate.overtaking = self._gate.overtaking, []
            if isinstance(self._aligner, alignment.BarrierAligner):
                for barrier in overtaking:
                    self._act(self._aligner.announce(barrier, now_ms))

    def deadline_ms(self) -> int | None:
        """Return when `look_on` or `overtake` is due without a mail, or None."""
        due = self._overtakes_at_ms
        times = [self._incomplete.next_ms, due if due is None or due > self._looked_ms else None]
        return min((time for time in times if time is not None), default=None)

    def overtakes(self, now_ms: int) -> bool:
        """Return whether a barrier waits for its turn no longer; call `overtake` between two elements then."""
        due = self._overtakes_at_ms
        return due is not None and due <= now_ms

    def overtake(self, worked: CurrentBuffer, now_ms: int) -> None:
        """Take the snapshot; the rest of the batch `worked` and what waits in the channels are part of it."""
        if not self.begin_triggered(now_ms) and isinstance(self._aligner, alignment.BarrierAligner):
            self._act(self._aligner.overtake(now_ms), worked)

    @property
    def _overtakes_at_ms(self) -> int | None:
        if self._triggered and isinstance(first := self._triggered[0], CheckpointBarrier):
            return first.overtakes_at_ms
        return self._aligner.overtakes_at_ms

    def hold_back(self, splits: AssignSplits) -> bool:
        """Make splits that were assigned after a checkpoint was triggered wait for it; return whether they have to.

        They are not part of that checkpoint.
        """
        if self._triggered:
            self._triggered.append(splits)
        return bool(self._triggered)

    def released(self) -> list[AssignSplits]:
        """Return the splits that need not wait any longer."""
        splits: list[AssignSplits] = []
        while self._triggered and isinstance(first := self._triggered[0], AssignSplits):
            splits.append(first)
            self._triggered.popleft()
        return splits

    def barrier(self, channel: int, barrier: CheckpointBarrier, now_ms: int) -> None:
        """Take the barrier that a channel has delivered."""
        self._act(self._aligner.barrier(channel, barrier, now_ms))

    def cancel(self, channel: int, marker: CancelCheckpointMarker) -> None:
        """Take the marker of a producer that has aborted a checkpoint."""
        self._act(self._aligner.cancel(channel, marker))

    def end(self, channel: int, now_ms: int) -> None:
        """Take the end of partition of a channel.

        Raises:
            ExchangeError: something is queued behind it.
        """
        trailing = self._gate.channels[channel].queue
        if trailing:
            raise ExchangeError(
                f"Trailing data in checkpoint barrier handler. Channel {channel} holds {len(trailing)} items behind "
                "its end of partition, wanted none; run one version on all nodes"
            )
        self._act(self._aligner.end(channel, now_ms))

    def decline(self, checkpoint_id: int, reason: str, is_failure: bool = True) -> None:
        """Report to the coordinator that this task takes no part."""
        self._report(CheckpointDeclined(self._attempt, checkpoint_id, reason, is_failure))

    def announced(self, checkpoint_id: int) -> None:
        """Announce a checkpoint that will be triggered soon to every operator; no barrier of it is here yet."""
        for operator in self._chain.checkpoint_listeners:
            operator.announce(checkpoint_id)

    def complete(self, checkpoint_id: int) -> None:
        """Notify every operator that the checkpoint is durable."""
        self._writing.complete(checkpoint_id)
        for operator in self._chain.checkpoint_listeners:
            operator.notify_checkpoint_complete(checkpoint_id)
        self.final.complete(checkpoint_id)

    def aborted(self, checkpoint_id: int) -> None:
        """Notify every operator that the checkpoint will never be complete, and discard the task's part of it."""
        self._incomplete.give_up(checkpoint_id)
        for operator in self._chain.checkpoint_listeners:
            operator.notify_checkpoint_aborted(checkpoint_id)
        self.final.aborted(checkpoint_id)

    def written(self, written: SnapshotWritten) -> None:
        """Acknowledge the checkpoint whose snapshot is written, or decline it if it could not be."""
        number, wanted = written.checkpoint_id, self._writing.take(written)
        if written.failure:
            if wanted:
                reason = f"its snapshot could not be written: {written.failure}"
                self._report(CheckpointDeclined(self._attempt, number, reason, is_unwritten=True))
        elif wanted or written.snapshots:  # what came too late the coordinator deletes
            is_over = self.final.includes_all_data(number)
            self._report(CheckpointAcknowledged(self._attempt, number, written.snapshots, written.metrics, is_over))

    def data_over(self) -> None:
        """Record the end of the task's data, and report to the coordinator if the task waits for a checkpoint."""
        if self.final.data_over():
            self._report(LastCheckpointAwaited(self._attempt))

    def abandon(self) -> None:
        """Drop all checkpoints that have not begun, and all parts that are not complete."""
        self._triggered.clear()
        self._gate.arrivals = alignment.BarrierArrivals()
        self._incomplete.close()

    def _act(self, actions: list[alignment.Action], worked: CurrentBuffer | None = None) -> None:
        for action in actions:
            match action:
                case alignment.Block():
                    self._gate.block(action.channel)
                case alignment.Unblock():
                    self._gate.unblock()
                case alignment.Aligned():
                    self._gate.arrivals.forget(action.barrier.checkpoint_id)
                    self._take(action, worked)
                case alignment.Aborted(number):
                    self._gate.arrivals.forget(number)
                    for writer in self._writers:
                        writer.broadcast(CancelCheckpointMarker(number))
                    self.decline(number, "a producer or a newer checkpoint cancelled it", is_failure=False)
                case _:
                    assert_never(action)

    def _take(self, aligned: alignment.Aligned, worked: CurrentBuffer | None) -> None:
        """Emit what belongs before the barrier, forward the barrier, then capture: no record is worked in between."""
        assert self._chain.idle, "a barrier is taken between elements only"
        started = self._clock.monotonic()
        barrier, number = aligned.barrier, aligned.barrier.checkpoint_id
        delay = max(0, self._clock.now_ms() - aligned.alignment_ms - barrier.timestamp)
        self._chain.prepare_snapshot(number)
        in_flight = forward_barrier(barrier, self._writers)
        if aligned.missing:
            current = (0, []) if worked is None else (worked.channel, worked.remainder())
            in_flight.record(self._gate, aligned.missing, current)
        captured = self._captured(number)
        took = int((self._clock.monotonic() - started) * 1000)
        self.final.taken(barrier)
        metrics = CheckpointMetrics(delay, aligned.alignment_ms, took)
        self._incomplete.begin(barrier, captured, metrics, in_flight)

    def _captured(self, checkpoint_id: int) -> dict[str, OperatorSnapshot]:
        """Capture the state of all operators of the chain; if one fails, release what the others have captured."""
        captured: dict[str, OperatorSnapshot] = {}
        try:
            for link in self._chain.links:
                state = link.operator.snapshot_state(checkpoint_id)
                if state is not None:
                    captured[link.operator.ctx.operator_id] = state
        except BaseException:
            for state in captured.values():
                if state.capture is not None:
                    state.capture.release()
            raise
        return captured


def _ends(channel: InputChannel) -> bool:
    """Return whether nothing more comes on a channel, though its queue may still be worked."""
    queue = channel.queue
    return channel.state is ChannelState.FINISHED or bool(queue) and isinstance(queue[-1], EndOfPartition)
