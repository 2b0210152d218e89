"""A barrier on its way out of a task, and the records that it overtakes there and in front of the task."""

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


class OvertakenRecords:
    """The records of one checkpoint that were neither worked nor sent.

    An aligned barrier that may become unaligned is watched until it is sent, and put in front when its time is over.

    Args:
        barrier: passed on here.
        writers: of the task.
    """

    def __init__(self, barrier: CheckpointBarrier, writers: list[RecordWriter]) -> None:
        self._barrier = replace(barrier, aligned=False)
        self._to_send: dict[str, tuple[Buffer, ...]] = {}
        self._watched: list[tuple[str, Subpartition]] = []
        self._recording: InputRecording | None = None
        self._gate: InputGate | None = None
        for writer in writers:
            dataset, subs = writer.partition.id.dataset, writer.partition.subpartitions
            if writer.in_order or barrier.overtakes_at_ms is None:
                writer.broadcast(barrier)
            elif barrier.aligned:
                writer.broadcast(barrier)
                self._watched += [(in_flight.to_send(dataset, sub.index), sub) for sub in subs]
            else:
                for sub, overtaken in zip(subs, writer.overtake(barrier), strict=True):
                    self._to_send[in_flight.to_send(dataset, sub.index)] = overtaken

    def record(self, gate: InputGate, missing: frozenset[int], worked: tuple[int, list[bytes]]) -> None:
        """Note what the `missing` channels deliver in front of their barriers; `worked` is in the task's hands."""
        self._gate = gate
        self._recording = gate.record(self._barrier.checkpoint_id, missing, worked)

    def is_whole(self, now_ms: int) -> bool:
        """Whether nothing is missing that belongs to the checkpoint."""
        number, until = self._barrier.checkpoint_id, self._barrier.aligned_until_ms
        watched = []
        for name, sub in self._watched:
            if not sub.awaits_turn(number):
                continue
            if until is not None and now_ms >= until:
                self._to_send[name] = sub.overtake_late(self._barrier)
            else:
                watched.append((name, sub))
        self._watched = watched
        return not watched and (self._recording is None or self._recording.is_whole)

    def take(self) -> tuple[dict[str, tuple[str, tuple[bytes, ...]]], int]:
        """The lists that hold them, and their bytes in all."""
        lists = {name: tuple(buffer.body for buffer in buffers) for name, buffers in self._to_send.items() if buffers}
        if self._gate is not None and self._recording is not None:
            for channel, bodies in self._recording.bodies.items():
                at = self._gate.channels[channel].spec.partition
                lists[in_flight.received(at.dataset, at.producer)] = tuple(bodies)
        size = sum(len(body) for bodies in lists.values() for body in bodies)
        self.close()
        return {name: (in_flight.CHANNELS, bodies) for name, bodies in lists.items()}, size

    def close(self) -> None:
        """Forget them."""
        self._watched, self._to_send = [], {}
        if self._recording is not None:
            self._recording.close()


def put_back(records: InFlight, read: Callable[[Blob], bytes], gate: InputGate, writers: list[RecordWriter]) -> None:
    """Put the records of a checkpoint where they were; those that are to be dealt anew go through the selectors.

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
    for dataset, blobs in records.to_deal.items():
        for body in map(read, blobs):
            for part in split_batches(body):
                by_dataset[dataset].write(decode_batch(part))


__all__ = ["OvertakenRecords", "put_back"]
