"""The status of a job: its legal moves, when they happened, and the failures that caused them. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ..messages.executions import ExceptionEntry, Execution, FailurePlace
from ..messages.messages import TaskFailure
from ..messages.states import JobStatus, MoveHistory
from .history.rescale_history import RescaleHistory

HISTORY_LENGTH = 16
"""The number of failures in the history (web.exception-history-size)."""


class JobLifecycle:
    """Moves one job through its status and remembers its failures; every move is checked.

    Args:
        name: of the job, for errors.
        exceptions: the failures under earlier coordinators.
        rescales: remembers changes of parallelism; None: one that remembers none.
        began_ms: when the job began under an earlier coordinator, epoch milliseconds; 0: it did not.
    """

    def __init__(
        self,
        name: str,
        exceptions: Iterable[ExceptionEntry] = (),
        rescales: RescaleHistory | None = None,
        began_ms: int = 0,
    ) -> None:
        self.status = JobStatus.INITIALIZING
        self.now_ms = 0
        """The time of the newest event, in epoch milliseconds."""
        self.timestamps: dict[str, int] = {}
        """Name of a status -> when it was entered last, in epoch milliseconds."""
        self.exceptions: deque[ExceptionEntry] = deque(exceptions, HISTORY_LENGTH)
        """The newest failures, the oldest first."""
        self.rescales = rescales or RescaleHistory(0)
        """The changes of parallelism."""
        self.failure: TaskFailure | None = None
        """The failure that ends the job; None while there is none."""
        self.failed_subtask = 0
        self.cancelled_by = ""
        """The client that cancelled the job; "" where none did."""
        self.noted = 0
        """Failures that were added to the history here."""
        self.began_ms = began_ms
        """When the job began under an earlier coordinator, epoch milliseconds; 0: it did not."""
        self._history = MoveHistory(f"job {name!r}")

    @property
    def may_fail(self) -> bool:
        """Return whether a failure or a cancel ends the job from here; else it is ending already, or has ended."""
        return self.status in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING)

    def begin(self, now_ms: int) -> None:
        """Note the time, which is that of the job's beginning unless it has begun earlier."""
        self.now_ms = now_ms
        self.timestamps[self.status.value] = min(self.began_ms or now_ms, now_ms)

    def enter(self, status: JobStatus, cause: str = "") -> None:
        """Enter a status.

        Args:
            cause: why, in a few words.

        Raises:
            IllegalTransition: there is no such move.
        """
        if not self.status.may_become(status):
            raise self._history.refusal(self.status.value, status.value, cause)
        self._history.add(self.status.value, status.value, self.now_ms, cause)
        self.status = status
        self.timestamps[status.value] = self.now_ms

    def note(self, task: str, failure: TaskFailure, failed: Execution | None = None) -> None:
        """Append a failure to the history; the job goes on.

        Args:
            failed: the attempt; None: the coordinator.
        """
        self.noted += 1
        follows = self.status in (JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING)
        self.exceptions.append(ExceptionEntry(self.now_ms, task, failure, FailurePlace.of(failed), follows))

    def fail(self, task: str, subtask: int, failure: TaskFailure, failed: Execution | None = None) -> None:
        """Append a failure to the history, and begin to fail if the job is not ending already."""
        self.note(task, failure, failed)
        if self.failure is None:
            self.failure, self.failed_subtask = failure, subtask
        if self.may_fail:
            self.enter(JobStatus.FAILING, f"{task} failed: {failure.kind}")

    def cancel(self, by: str) -> None:
        """Begin to end on request."""
        self.cancelled_by = by
        self.enter(JobStatus.CANCELLING, f"cancelled by {by}")

    @property
    def runtime_ms(self) -> int:
        """Return the time since the job was RUNNING last; 0 where it never was."""
        return self.now_ms - self.timestamps.get(JobStatus.RUNNING.value, self.now_ms)


__all__ = ["HISTORY_LENGTH", "JobLifecycle"]
