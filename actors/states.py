"""States of jobs and of executions, with every legal move.

Source: apache/flink ExecutionState and JobStatus.
"""

from __future__ import annotations

from enum import Enum

from rayflink.state.errors import RayflinkError


class IllegalTransition(RayflinkError):
    """A state machine was asked for a move it does not have."""

    def __init__(self, what: str, found: str, wanted: str) -> None:
        super().__init__(what, found, wanted)
        self.what, self.found, self.wanted = what, found, wanted

    def __str__(self) -> str:
        return (
            f"{self.what} cannot go from {self.found} to {self.wanted}; "
            "this is a defect of the runtime, please report it"
        )


class InvalidStart(RayflinkError):
    """A task was started that is not at its beginning."""

    def __init__(self, task: str, found: str) -> None:
        super().__init__(task, found)
        self.task, self.found = task, found

    def __str__(self) -> str:
        return (
            f"Invalid state for beginning of operation of task {self.task}: found {self.found}, wanted CREATED; "
            "this is a defect of the runtime, please report it"
        )


class ExecutionState(Enum):
    """Where one attempt to run one subtask stands."""

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    """The end of the input was reached, or the job was stopped so that it looked reached."""
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"
    RECONCILING = "RECONCILING"
    """The coordinator came back and does not know yet what became of the attempt."""

    @property
    def is_terminal(self) -> bool:
        """True for exactly FINISHED, CANCELED and FAILED."""
        return self in (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)

    def may_become(self, new: ExecutionState) -> bool:
        """Whether the move from here to `new` is legal."""
        return new in EXECUTION_MOVES[self]


_E = ExecutionState
EXECUTION_MOVES: dict[ExecutionState, frozenset[ExecutionState]] = {
    _E.CREATED: frozenset({_E.SCHEDULED, _E.RECONCILING, _E.CANCELED, _E.FAILED}),
    _E.SCHEDULED: frozenset({_E.DEPLOYING, _E.CANCELED, _E.FAILED}),
    _E.DEPLOYING: frozenset({_E.INITIALIZING, _E.RUNNING, _E.CANCELING, _E.FAILED}),
    _E.INITIALIZING: frozenset({_E.RUNNING, _E.CANCELING, _E.FAILED}),
    _E.RUNNING: frozenset({_E.FINISHED, _E.CANCELING, _E.FAILED}),
    _E.CANCELING: frozenset({_E.CANCELED, _E.FAILED}),
    _E.RECONCILING: frozenset({_E.RUNNING, _E.FINISHED, _E.CANCELED, _E.FAILED}),
    _E.FINISHED: frozenset(),
    _E.CANCELED: frozenset(),
    _E.FAILED: frozenset(),
}


class JobStatus(Enum):
    """Where a job stands."""

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
        """Whether the job will never run again under this id."""
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)

    def may_become(self, new: JobStatus) -> bool:
        """Whether the move from here to `new` is legal."""
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
