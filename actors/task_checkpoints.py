"""One task's part in checkpoints: barriers and triggers in; snapshots, forwarded barriers and answers out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from rayflink.common.batches import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition
from rayflink.operators.base import OperatorSnapshot
from rayflink.operators.chain import OperatorChain

from .exchange import alignment
from .exchange.gate import ChannelState, InputChannel, InputGate
from .exchange.subpartition import ExchangeError
from .exchange.writer import RecordWriter
from .messages import CheckpointAcknowledged, CheckpointDeclined, TaskDeployment, ToCoordinator
from .settings import TaskSettings


class TaskCheckpoints:
    """Decides with the barriers of all channels when a snapshot is taken, and takes it.

    Args:
        deployment: the attempt that answers the coordinator; at-least-once by its options holds no channel back.
        chain: whose operators are snapshotted; it is idle whenever a method but `trigger` is called.
        gate: its channels are held back while barriers are aligned; a source's gate has none.
        writers: they pass barriers on.
        clock: `now_ms()` and `monotonic()`.
        report: takes the answers.
    """

    def __init__(
        self,
        deployment: TaskDeployment,
        chain: OperatorChain,
        gate: InputGate,
        writers: list[RecordWriter],
        clock: Any,
        report: Callable[[ToCoordinator], None],
    ) -> None:
        self._attempt, self._clock, self._report = deployment.attempt, clock, report
        self._chain, self._gate, self._writers = chain, gate, writers
        at_least_once = TaskSettings.of(deployment.config).at_least_once
        handler = alignment.BarrierTracker if at_least_once else alignment.BarrierAligner
        self._aligner: alignment.BarrierAligner | alignment.BarrierTracker = handler(len(gate.channels))
        self._triggered: deque[CheckpointBarrier] = deque()

    def trigger(self, barrier: CheckpointBarrier) -> None:
        """The coordinator begins a checkpoint here: at a source, or where every producer has finished.

        Declined where barriers are still to come from producers. A producer has finished only when all it sent was
        delivered, so the end of every channel is here before such a trigger comes.
        """
        if all(map(_ends, self._gate.channels)):
            self._triggered.append(barrier)
        else:
            self.decline(barrier.checkpoint_id, "it takes its barriers from its producers, and not all have finished")

    def begin_triggered(self, now_ms: int) -> bool:
        """Begin the oldest checkpoint that was triggered; False when there is none."""
        if not self._triggered:
            return False
        self._act(self._aligner.trigger(self._triggered.popleft(), now_ms))
        return True

    def barrier(self, channel: int, barrier: CheckpointBarrier, now_ms: int) -> None:
        """A channel delivered its barrier."""
        self._act(self._aligner.barrier(channel, barrier, now_ms))

    def cancel(self, channel: int, marker: CancelCheckpointMarker) -> None:
        """A producer gave a checkpoint up."""
        self._act(self._aligner.cancel(channel, marker))

    def end(self, channel: int, now_ms: int) -> None:
        """A channel delivered its end of partition.

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

    def decline(self, checkpoint_id: int, reason: str) -> None:
        """Tell the coordinator that this task takes no part."""
        self._report(CheckpointDeclined(self._attempt, checkpoint_id, reason))

    def complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable: every operator is told."""
        for link in self._chain.links:
            link.operator.notify_checkpoint_complete(checkpoint_id)

    def aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never be complete: every operator is told."""
        for link in self._chain.links:
            link.operator.notify_checkpoint_aborted(checkpoint_id)

    def abandon(self) -> None:
        """Begin nothing more."""
        self._triggered.clear()

    def _act(self, actions: list[alignment.Action]) -> None:
        for action in actions:
            if isinstance(action, alignment.Block):
                self._gate.block(action.channel)
            elif isinstance(action, alignment.Unblock):
                self._gate.unblock()
            elif isinstance(action, alignment.Aligned):
                self._take(action.barrier, action.alignment_ms)
            else:
                for writer in self._writers:
                    writer.broadcast(CancelCheckpointMarker(action.checkpoint_id))
                self.decline(action.checkpoint_id, "a producer or a newer checkpoint cancelled it")

    def _take(self, barrier: CheckpointBarrier, alignment_ms: int) -> None:
        """Elements before the barrier, the barrier, then the snapshot: no record is worked in between."""
        assert self._chain.idle, "a barrier is taken between elements only"
        started = self._clock.monotonic()
        number = barrier.checkpoint_id
        for index, link in enumerate(self._chain.links):
            self._chain.emit(index, link.operator.prepare_snapshot(number))
            self._chain.drain()
        for writer in self._writers:
            writer.broadcast(barrier)
        snapshots: dict[str, OperatorSnapshot] = {}
        for link in self._chain.links:
            state = link.operator.snapshot_state(number)
            if state is not None:
                snapshots[link.operator.ctx.operator_id] = state
        took = int((self._clock.monotonic() - started) * 1000)
        delay = max(0, self._clock.now_ms() - barrier.timestamp)
        self._report(CheckpointAcknowledged(self._attempt, number, snapshots, alignment_ms, delay, took))


def _ends(channel: InputChannel) -> bool:
    """Whether nothing more comes on a channel; what it still holds may wait to be worked."""
    queue = channel.queue
    return channel.state is ChannelState.FINISHED or bool(queue) and isinstance(queue[-1], EndOfPartition)
