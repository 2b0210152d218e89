"""What a task has received and not worked when an unaligned barrier overtook it: part of the snapshot. Pure.

Source: apache/flink ChannelStatePersister, FLIP-76.
"""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.common.records.batches import CheckpointBarrier, EndOfPartition, Event


class InputRecording:
    """Notes for one checkpoint what each channel delivers in front of its barrier.

    Args:
        checkpoint_id: number of the checkpoint.
        channels: whose barriers had not had their turn when the snapshot was taken.
    """

    def __init__(self, checkpoint_id: int, channels: Iterable[int]) -> None:
        self.checkpoint_id = checkpoint_id
        self.bodies: dict[int, list[bytes]] = {}
        """Channel -> encoded batches, in their order."""
        self._open = set(channels)

    @property
    def is_whole(self) -> bool:
        """Whether every channel has delivered its barrier, or its end."""
        return not self._open

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return sum(len(body) for bodies in self.bodies.values() for body in bodies)

    def close(self) -> None:
        """Note nothing more, and forget what was noted."""
        self._open.clear()
        self.bodies = {}

    def note(self, channel: int, item: bytes | Event) -> None:
        """A channel was given something, which waits there."""
        if channel not in self._open:
            return
        if isinstance(item, bytes):
            self.bodies.setdefault(channel, []).append(item)
        elif isinstance(item, EndOfPartition) or (
            isinstance(item, CheckpointBarrier) and item.checkpoint_id >= self.checkpoint_id
        ):
            self._open.discard(channel)


__all__ = ["InputRecording"]
