"""Forwards barriers downstream and captures the records that one checkpoint finds in flight around its task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rayflink.common.records.batches import CheckpointBarrier
from rayflink.state.snapshots import Blob

from ..exchange.codec import decode_batch, rows_in, split_batches
from ..exchange.gate import InputGate
from ..exchange.recording import InputRecording
from ..exchange.subpartition import Buffer, Subpartition
from ..exchange.writer import RecordWriter
from ..messages import in_flight
from ..messages.in_flight import InFlight


def forward_barrier(barrier: CheckpointBarrier, writers: list[RecordWriter]) -> InFlightCapture:
    """Send the barrier downstream, and return the capture of the records that it overtakes on its way out.

    An aligned barrier takes its place behind the records that were written before it; if it has a timeout, its
    subpartitions are watched until it is sent. An unaligned barrier goes to the front at once, and the buffers that
    it overtakes belong to the checkpoint.

    Args:
        barrier: the barrier that the task has taken its snapshot for.
        writers: the task's writers, one for each output.
    """
    capture = InFlightCapture(barrier)
    for writer in writers:
        dataset, subs = writer.partition.id.dataset, writer.partition.subpartitions
        if writer.in_order or barrier.overtakes_at_ms is None:
            writer.broadcast(barrier)
        elif barrier.aligned:
            writer.broadcast(barrier)
            for sub in subs:
                capture.watch(in_flight.to_send(dataset, sub.index), sub)
        else:
            for sub, overtaken in zip(subs, writer.overtake(barrier), strict=True):
                capture.add(in_flight.to_send(dataset, sub.index), overtaken)
    return capture


class InFlightCapture:
    """The records of one checkpoint that the task has neither worked nor sent; made by `forward_barrier`.

    An aligned barrier whose alignment may time out is watched in every subpartition until it is sent. When its time is
    over it moves to the front, and what it overtakes is added.

    Args:
        barrier: the barrier of the checkpoint.
    """

    def __init__(self, barrier: CheckpointBarrier) -> None:
        self._barrier = replace(barrier, aligned=False)
        self._to_send: dict[str, tuple[Buffer, ...]] = {}
        self._watched: list[tuple[str, Subpartition]] = []
        self._recording: InputRecording | None = None
        self._gate: InputGate | None = None

    def watch(self, name: str, subpartition: Subpartition) -> None:
        """Watch the barrier in a subpartition until it is sent; `name` is the state list of what it may overtake."""
        self._watched.append((name, subpartition))

    def add(self, name: str, overtaken: tuple[Buffer, ...]) -> None:
        """Add buffers that the barrier has overtaken, under the name of their state list."""
        self._to_send[name] = overtaken

    def record(self, gate: InputGate, missing: frozenset[int], current: tuple[int, list[bytes]]) -> None:
        """Record what the `missing` channels deliver before their barriers.

        Args:
            gate: the task's input gate.
            missing: indices of the channels whose barrier has not come.
            current: the channel of the batch that the task is working, and the encoded rest of that batch.
        """
        self._gate = gate
        self._recording = gate.record(self._barrier.checkpoint_id, missing, current)

    def advance(self, now_ms: int) -> bool:
        """Move barriers whose time is over to the front; return whether no record of the checkpoint is missing now."""
        number, until = self._barrier.checkpoint_id, self._barrier.aligned_until_ms
        watched = []
        for name, sub in self._watched:
            if not sub.awaits_turn(number):
                continue
            if until is not None and now_ms >= until:
                self.add(name, sub.overtake_late(self._barrier))
            else:
                watched.append((name, sub))
        self._watched = watched
        return not watched and self.has_all_barriers

    @property
    def has_all_barriers(self) -> bool:
        """Return whether every channel has delivered its barrier, or its end."""
        return self._recording is None or self._recording.is_whole

    def take(self) -> tuple[dict[str, tuple[str, tuple[bytes, ...]]], int]:
        """Return the state lists of all captured records, and their bytes in total; the capture is empty then."""
        lists = {name: tuple(buffer.body for buffer in buffers) for name, buffers in self._to_send.items() if buffers}
        if self._gate is not None and self._recording is not None:
            for channel, bodies in self._recording.bodies.items():
                partition = self._gate.channels[channel].spec.partition
                lists[in_flight.received(partition.dataset, partition.producer)] = tuple(bodies)
        size = sum(len(body) for bodies in lists.values() for body in bodies)
        self.close()
        return {name: (in_flight.CHANNELS, bodies) for name, bodies in lists.items()}, size

    def close(self) -> None:
        """Drop the captured records and stop recording."""
        self._watched, self._to_send = [], {}
        if self._recording is not None:
            self._recording.close()


def restore_in_flight(
    records: InFlight, read: Callable[[Blob], bytes], gate: InputGate, writers: list[RecordWriter]
) -> None:
    """Put the in-flight records of a checkpoint back where they were captured.

    Records of outputs whose consumers were rescaled go through the writers' selectors again.

    Raises:
        StorageError, DamagedFileError: they cannot be read.
        UserCodeError: a key selector or partitioner raised.
    """
    channels = {(c.spec.partition.dataset, c.spec.partition.producer): c.index for c in gate.channels}
    for source, blobs in records.received.items():
        gate.preload(channels[source], map(read, blobs))
    by_dataset = {writer.partition.id.dataset: writer for writer in writers}
    for (dataset, consumer), blobs in records.to_send.items():
        for body in map(read, blobs):
            rows = sum(rows_in(part) for part in split_batches(body))
            partition = by_dataset[dataset].partition
            partition.subpartitions[consumer].rows_written += rows
            partition.add(consumer, Buffer(body, rows))
    for dataset, blobs in records.to_redistribute.items():
        for body in map(read, blobs):
            for part in split_batches(body):
                by_dataset[dataset].write(decode_batch(part))


__all__ = ["InFlightCapture", "forward_barrier", "restore_in_flight"]
