"""States of a job, with every legal move.

Source: apache/flink JobStatus.
"""

from __future__ import annotations

from enum import Enum


class JobStatus(Enum):
    """The states of a job."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    RECONCILING = "RECONCILING"

    @property
    def is_terminal(self) -> bool:
        """Return whether the job will never run again under this id."""
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)

    def is_globally_terminal_state(self) -> bool:
        """Return whether the job has ended for good: FINISHED, CANCELED or FAILED.

        >>> JobStatus.FINISHED.is_globally_terminal_state(), JobStatus.SUSPENDED.is_globally_terminal_state()
        (True, False)
        """
        return self.is_terminal

    def is_terminal_state(self) -> bool:
        """Return whether its coordinator will not work the job any more: ended for good, or SUSPENDED."""
        return self.is_terminal or self is JobStatus.SUSPENDED

    def may_become(self, new: JobStatus) -> bool:
        """Return whether the move from here to `new` is legal."""
        return new in JOB_MOVES[self]


_J = JobStatus
JOB_MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    _J.INITIALIZING: frozenset({_J.CREATED, _J.FAILED, _J.CANCELED}),
    _J.CREATED: frozenset({_J.RUNNING, _J.FAILING, _J.CANCELLING, _J.SUSPENDED}),
    _J.RUNNING: frozenset({_J.FINISHED, _J.FAILING, _J.CANCELLING, _J.RESTARTING, _J.SUSPENDED}),
    _J.FAILING: frozenset({_J.FAILED, _J.RESTARTING, _J.CANCELLING, _J.SUSPENDED}),
    _J.RESTARTING: frozenset({_J.CREATED, _J.RUNNING, _J.FAILING, _J.CANCELLING, _J.SUSPENDED}),
    _J.CANCELLING: frozenset({_J.CANCELED, _J.FAILING, _J.SUSPENDED}),
    _J.SUSPENDED: frozenset({_J.RECONCILING}),
    _J.RECONCILING: frozenset({_J.RUNNING, _J.FAILING, _J.SUSPENDED}),
    _J.FAILED: frozenset(),
    _J.CANCELED: frozenset(),
    _J.FINISHED: frozenset(),
}
"""Status of a job -> the statuses that may follow it.

- INITIALIZING: the coordinator is being set up.
- CREATED: slots are requested; the job runs when all are there.
- RUNNING: tasks are deployed. It finishes with the last of them, restarts some of them, or ends otherwise.
- FAILING: it ends by a failure, when all tasks have ended; a cancel that comes meanwhile counts.
- RESTARTING: tasks that restart have not all ended, or the delay is not over; CREATED where a rescaled job needs slots.
- CANCELLING: it ends on request, when all tasks have ended.
- SUSPENDED, RECONCILING: of Flink's; no job of rayflink gets there.
- FAILED, CANCELED, FINISHED: nothing follows.
"""

__all__ = ["JOB_MOVES", "JobStatus"]
