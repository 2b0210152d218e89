"""Requests that change a job: savepoint, checkpoint, stop, cancel."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from rayflink.common.options import registry as options
from rayflink.common.options.stop_mode import StopMode
from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from ..jobs.cluster_job import ClusterJobs, JobHasEnded, RunningJob, UnknownJob
from .job_finding import asked
from .operations import OperationFailed, OperationResult, Operations, TriggerResponse
from .typed_requests import EMPTY, Empty, TypedEndpoint, ensure_no_page, hex_id, versioned

__all__ = ["CheckpointInfo", "JobOperations", "SavepointInfo", "TriggerId"]

ASK_S = 5.0
"""Seconds for which a job is asked for an outcome, again and again."""
BY = "a request to the REST interface"
TriggerId = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{32}$")]
SavepointFormat = Literal["CANONICAL", "NATIVE"]
SAVEPOINT, CHECKPOINT = "savepoint", "checkpoint"


class SavepointTrigger(msgspec.Struct, rename="kebab", frozen=True):
    """The body of a request for a savepoint.

    Args:
        target_directory: in which it gets a folder; None: as execution.checkpointing.savepoint-dir says.
        cancel_job: cancel the job once the savepoint is complete; `/stop` lets no record come between the two.
        format_type: of Flink; there is one form here, which every backend reads.
        trigger_id: the same one means the same savepoint; None: a new one.
    """

    target_directory: str | None = None
    cancel_job: bool = False
    format_type: SavepointFormat | None = msgspec.field(default=None, name="formatType")
    trigger_id: TriggerId | None = msgspec.field(default=None, name="triggerId")


class StopTrigger(msgspec.Struct, rename="camel", frozen=True):
    """The body of a request to stop with a savepoint.

    Args:
        target_directory: as for a savepoint.
        drain: let event time go to its end first, so that all windows close.
        format_type: of Flink, without effect.
        trigger_id: the same one means the same savepoint; None: a new one.
    """

    target_directory: str | None = None
    drain: bool = False
    format_type: SavepointFormat | None = None
    trigger_id: TriggerId | None = None


class CheckpointTrigger(msgspec.Struct, rename="camel", frozen=True):
    """The body of a request for a checkpoint.

    Args:
        checkpoint_type: of Flink; a checkpoint here is as the options of the job say.
        trigger_id: the same one means the same checkpoint; None: a new one.
    """

    checkpoint_type: Literal["CONFIGURED", "FULL", "INCREMENTAL"] = "CONFIGURED"
    trigger_id: TriggerId | None = None


class SavepointInfo(msgspec.Struct, frozen=True):
    """The outcome of a savepoint.

    Args:
        location: its address.
    """

    location: str


class CheckpointInfo(msgspec.Struct, rename="camel", frozen=True):
    """The outcome of a checkpoint.

    Args:
        checkpoint_id: its number.
    """

    checkpoint_id: int


class TerminationQuery(msgspec.Struct, frozen=True):
    """The query of a request to end a job.

    Args:
        mode: "cancel"; "stop" is refused, as in Flink.
    """

    mode: Literal["cancel", "stop"] = "cancel"


class JobOperations:
    """Answers the requests that change a job.

    Args:
        jobs: of the cluster.
        operations: that are under way.

    Source: apache/flink SavepointHandlers, StopWithSavepointTriggerHandler, CheckpointHandlers, JobCancellationHandler.
    """

    def __init__(self, jobs: ClusterJobs, operations: Operations) -> None:
        self._jobs, self._operations = jobs, operations

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        job = "/jobs/{jobid}"
        savepoint = TypedEndpoint(self._savepoint, None, SavepointTrigger, "SavepointTriggerRequestBody", 202)
        stop = TypedEndpoint(self._stop, None, StopTrigger, "StopWithSavepointRequestBody", 202)
        checkpoint = TypedEndpoint(self._checkpoint, None, CheckpointTrigger, "CheckpointTriggerRequestBody", 202)
        return [
            *versioned("POST", f"{job}/savepoints", savepoint, Role.OPERATE),
            *versioned("GET", f"{job}/savepoints/{{triggerid}}", TypedEndpoint(self._savepoint_result), Role.READ),
            *versioned("POST", f"{job}/stop", stop, Role.OPERATE),
            *versioned("POST", f"{job}/checkpoints", checkpoint, Role.OPERATE),
            *versioned("GET", f"{job}/checkpoints/{{triggerid}}", TypedEndpoint(self._checkpoint_result), Role.READ),
            *versioned("PATCH", job, TypedEndpoint(self._terminate, TerminationQuery, status=202), Role.OPERATE),
            *versioned("GET", f"{job}/yarn-cancel", TypedEndpoint(self._cancel_by_get, status=202), Role.OPERATE),
            *versioned("PATCH", f"{job}/clientHeartbeat", TypedEndpoint(self._heartbeat, status=202), Role.OPERATE),
        ]

    # savepoints and checkpoints

    def _savepoint(self, request: JsonRequest, body: SavepointTrigger) -> TriggerResponse:
        """Take a savepoint of a job."""
        job_id = hex_id(request, "jobid")
        self._ensure_directory(job_id, body.target_directory)

        def work(trigger_id: str) -> SavepointInfo:
            job = self._jobs.running(job_id)
            info = _savepoint(job, trigger_id, body.target_directory or "", None)
            if body.cancel_job:
                self._jobs.cancel(job_id, BY)
            return info

        return self._operations.begin(SAVEPOINT, job_id, body.trigger_id, work)

    def _stop(self, request: JsonRequest, body: StopTrigger) -> TriggerResponse:
        """Stop a job with a savepoint."""
        job_id = hex_id(request, "jobid")
        self._ensure_directory(job_id, body.target_directory)
        mode = StopMode.DRAIN if body.drain else StopMode.SUSPEND

        def work(trigger_id: str) -> SavepointInfo:
            return _savepoint(self._jobs.running(job_id), trigger_id, body.target_directory or "", mode)

        return self._operations.begin(SAVEPOINT, job_id, body.trigger_id, work)

    def _savepoint_result(self, request: JsonRequest) -> OperationResult[SavepointInfo]:
        """Return how far a savepoint is, whether the job stops with it or not."""
        result = self._operations.result(SAVEPOINT, hex_id(request, "jobid"), hex_id(request, "triggerid"))
        return result  # type: ignore[return-value]

    def _checkpoint(self, request: JsonRequest, body: CheckpointTrigger) -> TriggerResponse:
        """Take a checkpoint of a job now."""
        job_id = hex_id(request, "jobid")

        def work(trigger_id: str) -> CheckpointInfo:
            job = self._jobs.running(job_id)
            while (answer := job.checkpoint(trigger_id, ASK_S)) is None:
                pass  # the job is asked again
            checkpoint_id, failure = answer
            if failure:
                raise OperationFailed(failure)
            return CheckpointInfo(checkpoint_id)

        return self._operations.begin(CHECKPOINT, job_id, body.trigger_id, work)

    def _checkpoint_result(self, request: JsonRequest) -> OperationResult[CheckpointInfo]:
        """Return how far a checkpoint is that was asked for."""
        result = self._operations.result(CHECKPOINT, hex_id(request, "jobid"), hex_id(request, "triggerid"))
        return result  # type: ignore[return-value]

    def _ensure_directory(self, job_id: str, directory: str | None) -> None:
        """Refuse a savepoint without a place; that there is no such job is an outcome of the operation, as in Flink."""
        if directory:
            return
        try:
            configuration = self._jobs.view(job_id).description()["configuration"]
        except UnknownJob:
            return
        if not configuration.get(options.SAVEPOINT_DIRECTORY.key):
            problem = f"Config key [{options.SAVEPOINT_DIRECTORY.key}] is not set."
            raise Refusal(400, f"{problem} Property [target-directory] must be provided.")

    # the end of a job

    def _terminate(self, request: JsonRequest, query: TerminationQuery) -> Empty:
        """Cancel a job."""
        if query.mode == "stop":
            problem = 'The termination mode "stop" has been removed.'
            remedy = 'For an ungraceful shutdown, please use "cancel" instead.'
            raise Refusal(308, f'{problem} {remedy} For a graceful shutdown, please use "jobs/:jobId/stop" instead.')
        return self._cancelled(hex_id(request, "jobid"))

    def _cancel_by_get(self, request: JsonRequest) -> Empty:
        """Cancel a job; Flink's pages send this request."""
        ensure_no_page(request)
        return self._cancelled(hex_id(request, "jobid"))

    def _cancelled(self, job_id: str) -> Empty:
        try:
            asked(lambda: self._jobs.cancel(job_id, BY))
        except UnknownJob as error:
            raise Refusal(404, "Job could not be found.", str(error)) from error
        except JobHasEnded as error:
            if error.state == "CANCELED":
                return EMPTY
            problem = "Job cancellation failed because the job has already reached another terminal state"
            raise Refusal(409, f"{problem} ({error.state}).") from error
        return EMPTY

    def _heartbeat(self, request: JsonRequest) -> Empty:
        """Accept the heartbeat of a client, which no job here waits for."""
        job_id = hex_id(request, "jobid")
        try:
            self._jobs.view(job_id)
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error
        return EMPTY


def _savepoint(job: RunningJob, request_id: str, directory: str, stop: StopMode | None) -> SavepointInfo:
    """Return the savepoint of a job, which is asked until it knows of it.

    Raises:
        OperationFailed: there is none.
    """
    while (answer := job.savepoint(request_id, directory, stop, ASK_S)) is None:
        pass  # the job is asked again
    location, failure = answer
    if failure:
        raise OperationFailed(failure)
    return SavepointInfo(location)
