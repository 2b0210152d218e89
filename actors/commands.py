"""What the job's decisions ask of the shell that carries them out, and what it tells them: frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .exchange.frames import TaskAddress
from .messages import TaskDeployment, TaskFailure, ToTask
from .scheduling import Slot
from .states import JobStatus

# shell -> job


@dataclass(frozen=True, slots=True)
class SlotsGranted:
    """All the slots that were asked for are there."""


@dataclass(frozen=True, slots=True)
class SlotsRefused:
    """The cluster can never give them, or gave some only: what it has."""

    found: str


@dataclass(frozen=True, slots=True)
class TaskGone:
    """The process of an attempt is dead."""

    attempt: TaskAddress
    reason: str


@dataclass(frozen=True, slots=True)
class DeploymentFailed:
    """An attempt could not be deployed, or its process did not accept it: whether it runs is not known."""

    attempt: TaskAddress
    failure: TaskFailure


@dataclass(frozen=True, slots=True)
class CommandLost:
    """The call that carried a command to an attempt failed: whether the command was obeyed is not known.

    Args:
        what: name of the command.
        reason: how the call failed.
    """

    attempt: TaskAddress
    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody wants the job cancelled; `by` names him."""

    by: str = "the user"


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Let the sources end, then the job finish."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Signal = (
    SlotsGranted | SlotsRefused | TaskGone | DeploymentFailed | CommandLost | CancelRequested | StopRequested | Tick
)

# job -> shell


@dataclass(frozen=True, slots=True)
class RequestSlots:
    """Ask the cluster for these slots, all or nothing."""

    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class DeployTask:
    """Run this attempt in this slot."""

    slot: Slot
    deployment: TaskDeployment


@dataclass(frozen=True, slots=True)
class SendToTask:
    """Give an attempt a message."""

    attempt: TaskAddress
    message: ToTask


@dataclass(frozen=True, slots=True)
class KillTask:
    """End the attempt's process now; it did not stop by itself in time."""

    attempt: TaskAddress


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended.

    Args:
        runtime_ms: from RUNNING to the end.
        accumulators: name -> merged value.
        vertices: vertex id -> name, parallelism and summed counters.
        failure: the first one; None unless FAILED.
        cancelled_by: who wanted it to end; "" unless CANCELED.
    """

    job_id: str
    job_name: str
    status: JobStatus
    runtime_ms: int
    accumulators: Mapping[str, Any] = field(default_factory=dict)
    vertices: tuple[Mapping[str, Any], ...] = ()
    failure: TaskFailure | None = None
    failed_subtask: int = 0
    cancelled_by: str = ""


@dataclass(frozen=True, slots=True)
class EndJob:
    """Everything has stopped: release slots and processes, and keep the result."""

    result: JobResult


Command = RequestSlots | DeployTask | SendToTask | KillTask | EndJob
