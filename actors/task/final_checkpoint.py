"""Decides when a task may end: after the checkpoint that includes all its work. Pure."""

from __future__ import annotations

from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier


class FinalCheckpoint:
    """Follows one task from the end of its data, or from a savepoint that stops it, to the moment at which it may end.

    Args:
        checkpointing: checkpoints are triggered periodically; only then one is awaited after the end of data.
        finished: all data of the task was worked before this attempt began.

    Source: apache/flink FLIP-147 (checkpoints after tasks finished), FLIP-34 (stop with savepoint).
    """

    def __init__(self, checkpointing: bool, finished: bool = False) -> None:
        self._checkpointing = checkpointing
        self._data_is_over = self._stops_with_savepoint = False
        self._first_with_all_data: int | None = 0 if finished else None
        self._suspended_by: int | None = None
        self._aborted: set[int] = set()
        self.awaited = False
        """True if the task has to wait for a checkpoint before it ends."""
        self.skips_data = finished
        """True if the task processes no more data: a savepoint stopped it in mid-data, or it had finished before."""

    @property
    def is_suspended(self) -> bool:
        """Return whether the task waits, in the middle of its data, until the savepoint that stops it is complete."""
        return self._suspended_by is not None

    @property
    def is_quiescent(self) -> bool:
        """Return whether the operators emit nothing more, not even by timers: their state is in a snapshot."""
        return self.is_suspended or self.skips_data

    @property
    def is_done(self) -> bool:
        """Return whether all data is in a complete checkpoint, so that a further one would only delay the end."""
        return self._checkpointing and self._first_with_all_data is not None and not self.awaited

    def includes_all_data(self, checkpoint_id: int) -> bool:
        """Return whether the task's part of that checkpoint was taken after the end of its data.

        False for a savepoint that stops the job: a job that is restored from it works on.
        """
        return self._is_after_end(checkpoint_id) and not self._stops_with_savepoint

    def _is_after_end(self, checkpoint_id: int) -> bool:
        return self._first_with_all_data is not None and checkpoint_id >= self._first_with_all_data

    def data_over(self) -> bool:
        """Record that all data is worked, and return whether a checkpoint has to be requested."""
        self._data_is_over = True
        self.awaited = self.awaited or self._checkpointing
        return self.awaited

    def taken(self, barrier: CheckpointBarrier) -> None:
        """Record that the task took its part of a checkpoint, which may have been aborted before its barrier came."""
        if self._data_is_over and self._first_with_all_data is None:
            self._first_with_all_data = barrier.checkpoint_id
        was_aborted = barrier.checkpoint_id in self._aborted
        self._aborted = {number for number in self._aborted if number > barrier.checkpoint_id}
        if was_aborted:
            return
        if barrier.stop is not None:
            self.awaited = self._stops_with_savepoint = True
        if barrier.stop is StopMode.SUSPEND:
            self._suspended_by = barrier.checkpoint_id

    def complete(self, checkpoint_id: int) -> None:
        """Record that a checkpoint is durable."""
        if self._is_after_end(checkpoint_id):
            self.awaited = False
        if checkpoint_id == self._suspended_by:
            self._suspended_by = None
            self.awaited, self.skips_data = False, True

    def aborted(self, checkpoint_id: int) -> None:
        """Record that a checkpoint will never be complete; a task that was suspended for it resumes."""
        self._aborted.add(checkpoint_id)
        if checkpoint_id == self._suspended_by:
            self._suspended_by = None
            self._stops_with_savepoint = False
            self.awaited = self._data_is_over and self._checkpointing


__all__ = ["FinalCheckpoint"]
