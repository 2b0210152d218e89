"""The causes for which checkpoints are aborted, and the count of consecutive failures that fails the job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AbortCause(Enum):
    """The reason why a checkpoint is aborted: (message, whether it counts against the tolerable failures).

    Source: apache/flink CheckpointFailureReason, CheckpointFailureManager. Other than there, an enumerator or a hook
    that raises, and metadata that cannot be written, count: the job would else go on for ever without checkpoints.
    And a savepoint of which a part cannot be written counts not: its place is that of whoever asked for it.
    """

    EXPIRED = "Checkpoint expired before completing.", True
    DECLINED = "Checkpoint was declined.", True
    NOT_TRIGGERED = "Failure to prepare the checkpoint.", True
    NOT_PUBLISHED = "Failure to write the checkpoint's metadata.", True
    FENCED = "This coordinator leads the job no more.", False
    OUTDATED = "A task has built its part on a checkpoint that is kept no more.", False
    NOT_WRITTEN = "A part of the savepoint could not be written.", False
    NOT_READY = "Checkpoint was declined (task is not ready).", False
    TASK_ENDED = "A task ended before it acknowledged.", False
    SUBSUMED = "Checkpoint has been subsumed.", False
    STOPPING = "The job is stopped with a savepoint.", False
    SUSPENDED = "Checkpoint coordinator is suspending.", False
    JOB_ENDED = "The job has ended.", False

    @property
    def counts(self) -> bool:
        """Return whether the cause is a failure, and not a consequence of what the job itself decides."""
        return self.value[1]

    def describe(self, detail: str) -> str:
        """Return the message, followed by the detail if there is one."""
        return f"{self.value[0][:-1]}: {detail}" if detail else self.value[0]


@dataclass(frozen=True, slots=True)
class FailJob:
    """A request to fail the job, which restarts if its restart strategy says so.

    Args:
        is_final: it does not start again, as another coordinator leads it.
    """

    reason: str
    is_final: bool = False

    @property
    def kind(self) -> str:
        """Return the kind of the failure."""
        return "Fenced" if self.is_final else "CheckpointFailed"


@dataclass
class FailureCounter:
    """Counts consecutive checkpoint failures.

    Args:
        tolerable: how many there may be; at least 0.
    """

    tolerable: int
    in_a_row: int = 0
    _last_success: int = 0

    def succeeded(self, checkpoint_id: int) -> None:
        """Reset the count: a checkpoint is complete."""
        if checkpoint_id > self._last_success:
            self._last_success, self.in_a_row = checkpoint_id, 0

    def failed(self, checkpoint_id: int, reason: str) -> list[FailJob]:
        """Count a failure if its cause counts; the job fails with one more than is tolerable."""
        if checkpoint_id <= self._last_success:
            return []
        self.in_a_row += 1
        if self.in_a_row <= self.tolerable:
            return []
        self.in_a_row = 0
        return [
            FailJob(
                "Exceeded checkpoint tolerable failure threshold. The latest checkpoint failed due to "
                f"{reason} (checkpoint {checkpoint_id}; tolerable are {self.tolerable} in a row: remove the cause, or "
                "raise execution.checkpointing.tolerable-failed-checkpoints)"
            )
        ]


__all__ = ["AbortCause", "FailJob", "FailureCounter"]
