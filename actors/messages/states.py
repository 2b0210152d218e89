"""States of jobs and of executions, with every legal move.

Source: apache/flink ExecutionState and JobStatus.
"""

from __future__ import annotations

from enum import Enum

from rayflink.common.job_status import JOB_MOVES, JobStatus
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
    """The state of one attempt to run one subtask."""

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
        """Return True for exactly FINISHED, CANCELED and FAILED."""
        return self in (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)

    def may_become(self, new: ExecutionState) -> bool:
        """Return whether the move from here to `new` is legal."""
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

__all__ = ["EXECUTION_MOVES", "JOB_MOVES", "ExecutionState", "IllegalTransition", "InvalidStart", "JobStatus"]
