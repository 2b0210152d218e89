"""States of jobs and of executions, with every legal move.

Source: apache/flink ExecutionState and JobStatus.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from rayflink.common.job_status import JOB_MOVES, JobStatus
from rayflink.state.errors import RayflinkError

STORY_LENGTH = 8
"""The number of moves that an error shows."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a state machine.

    Args:
        before: name of the state before it.
        after: name of the state after it.
        at_ms: when, in epoch milliseconds.
        cause: why, in a few words: "reported by its task", "cancelled".
    """

    before: str
    after: str
    at_ms: int
    cause: str

    def __str__(self) -> str:
        return f"{self.before} -> {self.after} at {self.at_ms} ({self.cause})"


class MoveHistory:
    """The newest moves of one state machine, for the error of a move that it does not have.

    >>> history = MoveHistory("execution Map (1/1)")
    >>> history.add("CREATED", "SCHEDULED", 7, "deployment")
    >>> print(history.refusal("SCHEDULED", "RUNNING", "reported by its task"))
    execution Map (1/1) cannot go from SCHEDULED to RUNNING (reported by its task); this is a defect of the runtime, \
please report it with its last moves: CREATED -> SCHEDULED at 7 (deployment)

    Args:
        title: names the machine in the error.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._moves: deque[Move] = deque(maxlen=STORY_LENGTH)

    def add(self, before: str, after: str, at_ms: int, cause: str) -> None:
        """Add the newest move, and forget the oldest one of more than `STORY_LENGTH`."""
        self._moves.append(Move(before, after, at_ms, cause))

    def refusal(self, state: str, wanted: str, cause: str) -> IllegalTransition:
        """Return the error for the move from `state` to `wanted`, which is not legal."""
        return IllegalTransition(self.title, state, wanted, cause, tuple(self._moves))


class IllegalTransition(RayflinkError):
    """A state machine was asked for a move that it does not have.

    Args:
        what: the machine, for people.
        state: its name.
        wanted: name of the state that it cannot go to.
        cause: why it was asked for that; "" for unknown.
        story: its moves before, the oldest first.
    """

    def __init__(self, what: str, state: str, wanted: str, cause: str = "", story: Iterable[Move] = ()) -> None:
        story = tuple(story)
        super().__init__(what, state, wanted, cause, story)
        self.what, self.state, self.wanted, self.cause, self.story = what, state, wanted, cause, story

    def __str__(self) -> str:
        cause = f" ({self.cause})" if self.cause else ""
        story = f" with its last moves: {'; '.join(map(str, self.story))}" if self.story else ""
        return (
            f"{self.what} cannot go from {self.state} to {self.wanted}{cause}; "
            f"this is a defect of the runtime, please report it{story}"
        )


class InvalidStart(RayflinkError):
    """A task was started that is not at its beginning."""

    def __init__(self, task: str, state: str) -> None:
        super().__init__(task, state)
        self.task, self.state = task, state

    def __str__(self) -> str:
        return (
            f"Invalid state for beginning of operation of task {self.task}: found {self.state}, wanted CREATED; "
            "this is a defect of the runtime, please report it"
        )


class ExecutionState(Enum):
    """The state of one attempt to run one subtask; `EXECUTION_MOVES` has every legal move."""

    CREATED = "CREATED"
    """The attempt has an id, and nothing else."""
    SCHEDULED = "SCHEDULED"
    """Its slot is there; it is about to be deployed, together with others."""
    DEPLOYING = "DEPLOYING"
    """Its deployment was sent to the slot, whose process loads the program."""
    INITIALIZING = "INITIALIZING"
    """Its operators are being restored and opened."""
    RUNNING = "RUNNING"
    """It processes records and takes part in checkpoints."""
    FINISHED = "FINISHED"
    """The end of the input was reached, or the job was stopped so that it looked reached."""
    CANCELING = "CANCELING"
    """It was asked to end, because the job or its region restarts, is cancelled or has failed."""
    CANCELED = "CANCELED"
    """It has ended without finishing, as it was asked to."""
    FAILED = "FAILED"
    """It has ended by an error, or its process is gone."""
    RECONCILING = "RECONCILING"
    """The coordinator came back and does not know yet what became of the attempt."""

    @property
    def is_terminal(self) -> bool:
        """Return True for exactly FINISHED, CANCELED and FAILED."""
        return self in (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)

    def may_become(self, new: ExecutionState) -> bool:
        """Return whether the move from here to `new` is legal."""
        return new in EXECUTION_MOVES[self]

    def moves_after_report(self, reported: ExecutionState) -> tuple[ExecutionState, ...]:
        """Return the moves by which the coordinator follows the report of a task; () where it changes nothing.

        Reports may overtake each other, and a cancel may cross them. So these are no defects:

        - What the coordinator knows already, and INITIALIZING of an attempt that is further: no move.
        - Anything of an attempt that is being cancelled, unless it is its end: then CANCELED, whatever it reports.
        - FINISHED of an attempt so fast that this overtook its RUNNING: both moves.
        - CANCELED, though the job did not ask for it: FAILED.

        Any other report is returned as it is, and refused where it is no legal move.

        >>> [state.value for state in ExecutionState.DEPLOYING.moves_after_report(ExecutionState.FINISHED)]
        ['RUNNING', 'FINISHED']
        """
        if reported is _E.DEPLOYING or reported is self:
            return ()
        if reported is _E.INITIALIZING and self is not _E.DEPLOYING:
            return ()
        if self is _E.CANCELING:
            return (_E.CANCELED,) if reported.is_terminal else ()
        if reported is _E.FINISHED and self is not _E.RUNNING:
            return (_E.RUNNING, _E.FINISHED)
        return (_E.FAILED,) if reported is _E.CANCELED else (reported,)


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
"""State of an attempt -> the states that may follow it.

- CREATED: it is scheduled, or its job ends before. RECONCILING is for a coordinator that came back.
- SCHEDULED: it is deployed in the same decision. What has not been deployed is CANCELED at once, no task is asked.
- DEPLOYING: the task loads its program; RUNNING where its report of INITIALIZING was overtaken.
- INITIALIZING: the task restores and opens its operators.
- RUNNING: it ends by itself, is asked to end, or fails.
- CANCELING: the task has confirmed its end, or its process was killed.
- RECONCILING: the task reports how it stands.
- FINISHED, CANCELED, FAILED: nothing follows; a restart makes a new attempt.
"""

__all__ = [
    "EXECUTION_MOVES",
    "JOB_MOVES",
    "STORY_LENGTH",
    "ExecutionState",
    "IllegalTransition",
    "InvalidStart",
    "JobStatus",
    "Move",
    "MoveHistory",
]
