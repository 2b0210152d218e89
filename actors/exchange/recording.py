"""Records the data that a task had received but not processed when an unaligned barrier overtook it. Pure.

Source: apache/flink ChannelStatePersister, FLIP-76.
"""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.common.records.batches import CheckpointBarrier, EndOfPartition, Event


class InputRecording:
    """Records for one checkpoint the data that each channel delivers in front of its barrier.

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
        """Return whether every channel has delivered its barrier, or its end."""
        return not self._open

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all batches."""
        return sum(len(body) for bodies in self.bodies.values() for body in bodies)

    def close(self) -> None:
        """Stop recording, and drop what was recorded."""
        self._open.clear()
        self.bodies = {}

    def note(self, channel: int, item: bytes | Event) -> None:
        """Record an element that a channel received, which waits there."""
        if channel not in self._open:
            return
        if isinstance(item, bytes):
            self.bodies.setdefault(channel, []).append(item)
        elif isinstance(item, EndOfPartition) or (
            isinstance(item, CheckpointBarrier) and item.checkpoint_id >= self.checkpoint_id
        ):
            self._open.discard(channel)


__all__ = ["InputRecording"]
