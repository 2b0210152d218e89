"""When a task may end: after the checkpoint that has all its work in it. Pure."""

from __future__ import annotations

from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier


class LastCheckpoint:
    """Follows one task from the end of its data, or from a savepoint that stops it, to the moment at which it may end.

    Args:
        checkpointing: whether checkpoints are taken by the clock; only then one is awaited after the end of data.
        finished: all its data was worked before it began.

    Source: apache/flink FLIP-147 (checkpoints after tasks finished), FLIP-34 (stop with savepoint).
    """

    def __init__(self, checkpointing: bool, finished: bool = False) -> None:
        self._checkpointing = checkpointing
        self._data_is_over = self._is_cut_short = False
        self._first: int | None = 0 if finished else None
        self._suspended_by: int | None = None
        self._aborted: set[int] = set()
        self.awaited = False
        """Whether the task has to wait for a checkpoint before it ends."""
        self.cut = finished
        """Whether nothing of its data is worked any more: it ends in the middle of it, or had ended before."""

    @property
    def is_suspended(self) -> bool:
        """Whether it waits, in the middle of its data, until the savepoint that stops it is complete."""
        return self._suspended_by is not None

    @property
    def stands_still(self) -> bool:
        """Whether the operators give nothing any more, also by no timer: what they hold is in a snapshot."""
        return self.is_suspended or self.cut

    @property
    def is_done(self) -> bool:
        """Whether all its data is in a complete checkpoint: further ones would only keep it from its end."""
        return self._checkpointing and self._first is not None and not self.awaited

    def is_over_in(self, checkpoint_id: int) -> bool:
        """Whether all data was worked when the task took its part of that checkpoint, and not only for this time."""
        return self._comes_after(checkpoint_id) and not self._is_cut_short

    def _comes_after(self, checkpoint_id: int) -> bool:
        return self._first is not None and checkpoint_id >= self._first

    def data_over(self) -> bool:
        """All its data is worked; whether a checkpoint has to be asked for."""
        self._data_is_over = True
        self.awaited = self.awaited or self._checkpointing
        return self.awaited

    def taken(self, barrier: CheckpointBarrier) -> None:
        """The task took its part of a checkpoint, of which it may have heard before that it will never be complete."""
        if self._data_is_over and self._first is None:
            self._first = barrier.checkpoint_id
        was_aborted = barrier.checkpoint_id in self._aborted
        self._aborted = {number for number in self._aborted if number > barrier.checkpoint_id}
        if was_aborted:
            return
        if barrier.stop is not None:
            self.awaited = self._is_cut_short = True
        if barrier.stop is StopMode.SUSPEND:
            self._suspended_by = barrier.checkpoint_id

    def complete(self, checkpoint_id: int) -> None:
        """A checkpoint is durable."""
        if self._comes_after(checkpoint_id):
            self.awaited = False
        if checkpoint_id == self._suspended_by:
            self._suspended_by = None
            self.awaited, self.cut = False, True

    def aborted(self, checkpoint_id: int) -> None:
        """A checkpoint will never be complete: a task that was suspended for it goes on."""
        self._aborted.add(checkpoint_id)
        if checkpoint_id == self._suspended_by:
            self._suspended_by = None
            self._is_cut_short = False
            self.awaited = self._data_is_over and self._checkpointing


__all__ = ["LastCheckpoint"]
