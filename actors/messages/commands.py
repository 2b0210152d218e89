"""The commands of the job's decisions to the shell that carries them out, and its events: frozen values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rayflink.common.options.stop_mode import StopMode
from rayflink.state.storage.manifest import CheckpointManifest

from ..exchange.frames import TaskAddress
from .messages import TaskDeployment, TaskFailure, ToTask
from .scheduling import Slot
from .states import JobStatus

# shell -> job


@dataclass(frozen=True, slots=True)
class SlotsGranted:
    """An event: all requested slots are there."""


@dataclass(frozen=True, slots=True)
class SlotsRefused:
    """The cluster can never provide the slots, or provided only some; carries the resources that it has."""

    resources: str


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
    """A client wants the job cancelled; `by` names it."""

    by: str = "the user"


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A request to let the sources end, then the job finish."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class SavepointRequested:
    """A request for a savepoint.

    Args:
        request_id: comes back with the answer.
        directory: in which it gets a folder of its own; "": that of the options.
        stop: the job ends with it; None: the job goes on.
    """

    request_id: str
    directory: str = ""
    stop: StopMode | None = None

    def job_has_ended(self) -> AnswerSavepoint:
        """Return the answer of a job that is over."""
        return AnswerSavepoint(self.request_id, failure="the job has ended")


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """A request for a checkpoint now, whatever the interval.

    Args:
        request_id: comes back with the answer.
    """

    request_id: str

    def job_has_ended(self) -> AnswerCheckpoint:
        """Return the answer of a job that is over."""
        return AnswerCheckpoint(self.request_id, failure="the job has ended")


@dataclass(frozen=True, slots=True)
class RescaleRequested:
    """A request for other parallelisms, while the job runs.

    Args:
        request_id: comes back with the answer.
        parallelism: operator -> subtasks.
    """

    request_id: str
    parallelism: Mapping[str, int]

    def job_has_ended(self) -> AnswerRescale:
        """Return the answer of a job that is over."""
        return AnswerRescale(self.request_id, failure="the job has ended")


@dataclass(frozen=True, slots=True)
class RescaleRefused:
    """An event: the shell has answered a request for other parallelisms by itself, as there are no slots for them."""

    answer: AnswerRescale


@dataclass(frozen=True, slots=True)
class SlotsAvailable:
    """An event: the number of slots that the cluster has for the job, those that it has among them."""

    slots: int


@dataclass(frozen=True, slots=True)
class CheckpointPublished:
    """The metadata of a checkpoint is written: from now on it exists."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CheckpointNotPublished:
    """The metadata of a checkpoint could not be written.

    Args:
        exists: because another coordinator leads the job.
        in_doubt: perhaps it was, and another coordinator may start from it.
    """

    checkpoint_id: int
    reason: str
    exists: bool = False
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class EnumeratorAnswered:
    """Work that a split enumerator asked for is done; stays in the coordinator's process.

    Args:
        number: of the `CallForEnumerator`.
        answer: what the work returned; None where it raised.
        error: what it raised.
    """

    number: int
    answer: object = None
    error: Exception | None = None


CheckpointSignal: TypeAlias = SavepointRequested | CheckpointRequested | CheckpointPublished | CheckpointNotPublished
Signal: TypeAlias = (
    SlotsGranted
    | SlotsRefused
    | TaskGone
    | DeploymentFailed
    | CommandLost
    | CancelRequested
    | StopRequested
    | CheckpointSignal
    | RescaleRequested
    | RescaleRefused
    | SlotsAvailable
    | EnumeratorAnswered
    | Tick
)

# job -> shell


@dataclass(frozen=True, slots=True)
class RequestSlots:
    """Ask the cluster for these slots, all or nothing."""

    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class RequestRescale:
    """Hand a request for other parallelisms to the job like one of a client, when the slots for it are there."""

    request: RescaleRequested


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
class CheckpointsLeft:
    """The checkpoints of a job that remain when it has ended.

    Args:
        newest: path of the newest that stays, from which another job may start; "" where there is none.
        deleted: how many were deleted with the job; 0 where none had completed, or they stay.
        directory: where those were; "": in the coordinator's memory.
    """

    newest: str = ""
    deleted: int = 0
    directory: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job.

    Args:
        runtime_ms: from RUNNING to the end.
        accumulators: name -> merged value.
        vertices: vertex id -> name, parallelism and summed counters.
        failure: the first one; None unless FAILED.
        cancelled_by: who wanted it to end; "" unless CANCELED.
        checkpoints: what there is of its checkpoints.
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
    checkpoints: CheckpointsLeft = CheckpointsLeft()


@dataclass(frozen=True, slots=True)
class EndJob:
    """A command after everything has stopped: release slots and processes, and keep the result."""

    result: JobResult


@dataclass(frozen=True, slots=True)
class PublishCheckpoint:
    """Write the metadata of a checkpoint, unless the file is there already, and say how it went.

    Args:
        base: address to which `path`, and the files in the manifest, are relative.
        counts: the job may start from it again; not so from a savepoint that does not stop it.
    """

    checkpoint_id: int
    base: str
    path: str
    manifest: CheckpointManifest
    counts: bool = True


@dataclass(frozen=True, slots=True)
class DiscardFiles:
    """Delete files of a checkpoint storage that no checkpoint refers to any more; missing files are no error.

    Args:
        base: address to which `paths` and `folder` are relative.
        folder: it goes with all that is in it, metadata first, so that no checkpoint is there in part; "" is the base
            itself, None none.
    """

    base: str
    paths: tuple[str, ...] = ()
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class CallForEnumerator:
    """Run work of a split enumerator that may block, beside the decisions; stays in the coordinator's process.

    Args:
        number: comes back with the answer.
        work: takes nothing.
    """

    number: int
    work: Callable[[], object]

    def run(self) -> EnumeratorAnswered:
        """Do the work, and return its answer."""
        try:
            return EnumeratorAnswered(self.number, self.work())
        except Exception as error:  # whatever a user's enumerator raises; it decides what follows
            return EnumeratorAnswered(self.number, error=error)


@dataclass(frozen=True, slots=True)
class AnswerSavepoint:
    """The outcome of a savepoint: its address, or why there is none."""

    request_id: str
    location: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class AnswerCheckpoint:
    """The outcome of a checkpoint that was asked for: its number, or why there is none."""

    request_id: str
    checkpoint_id: int = 0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRescale:
    """The outcome of a request for other parallelisms.

    Args:
        pause_ms: from the end of the old tasks to the moment at which all new ones run.
        failure: why there is none; "" when the job has them.
    """

    request_id: str
    pause_ms: int = 0
    failure: str = ""


Request: TypeAlias = SavepointRequested | CheckpointRequested | RescaleRequested
Answer: TypeAlias = AnswerSavepoint | AnswerCheckpoint | AnswerRescale
CheckpointCommand: TypeAlias = PublishCheckpoint | DiscardFiles | AnswerSavepoint | AnswerCheckpoint | SendToTask
FileWork: TypeAlias = PublishCheckpoint | DiscardFiles
"""A command that the checkpoint storage carries out."""
Command: TypeAlias = (
    RequestSlots
    | DeployTask
    | KillTask
    | CheckpointCommand
    | RequestRescale
    | AnswerRescale
    | CallForEnumerator
    | EndJob
)
