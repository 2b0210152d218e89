"""The measurements of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckpointMetrics:
    """The measurements of one task's part in a checkpoint; times in milliseconds.

    Args:
        start_delay_ms: from the trigger to the first barrier.
        alignment_ms: from the first barrier to the last.
        sync_ms: taking the snapshot, while no record was processed.
        async_ms: writing it, with the wait for a thread that writes.
        state_bytes: of the snapshot, what it shares with others included.
        written_bytes: what was written anew.
        in_flight_bytes: of records on the way, that the snapshot holds.
    """

    start_delay_ms: int = 0
    alignment_ms: int = 0
    sync_ms: int = 0
    async_ms: int = 0
    state_bytes: int = 0
    written_bytes: int = 0
    in_flight_bytes: int = 0


__all__ = ["CheckpointMetrics"]
