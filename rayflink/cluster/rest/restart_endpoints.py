"""Requests that start a job again, by the program that the cluster has stored. They are rayflink's own."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from rayflink.common.errors import ConfigError
from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from ..dispatcher.dispatcher import Dispatcher
from ..dispatcher.job_restarts import Restart, RestartOffer
from ..dispatcher.restarted_submission import RestartChanges, ensure_changeable
from ..jobs.cluster_job import UnknownJob
from .job_finding import asked
from .job_operations import TriggerId
from .operations import OperationResult, Operations, TriggerResponse
from .typed_requests import TypedEndpoint, hex_id

__all__ = ["RestartEndpoints"]

RESTART = "restart"
Subtasks = Annotated[int, msgspec.Meta(ge=1, le=32768)]


class RestartTrigger(msgspec.Struct, rename="camel", frozen=True):
    """The body of a request to start a job again.

    Args:
        job_id: of the new job; the same one means the same start; None: a new one.
        start_from: NEWEST is the newest checkpoint or savepoint; a job that runs takes a savepoint and stops before.
            PATH is the one of `savepointPath`, NOTHING none.
        savepoint_path: address of a checkpoint or savepoint, with PATH.
        allow_non_restored_state: leave state behind that belongs to no operator.
        parallelism: vertex or operator -> subtasks, by uid, name or id; others have as many as before.
        configuration: options of the job that are different.
    """

    job_id: TriggerId | None = None
    start_from: Literal["NEWEST", "PATH", "NOTHING"] = "NEWEST"
    savepoint_path: str = ""
    allow_non_restored_state: bool = False
    parallelism: dict[str, Subtasks] = {}
    configuration: dict[str, str] = {}


class RestartInfo(msgspec.Struct, rename="kebab", frozen=True):
    """The outcome of a new start.

    Args:
        jobid: of the new job.
        start_from: checkpoint or savepoint that it started from; "": none.
    """

    jobid: str
    start_from: str


class RestartEndpoints:
    """Answers the requests that start jobs again.

    Args:
        dispatcher: of the cluster.
        operations: that are under way.
    """

    def __init__(self, dispatcher: Dispatcher, operations: Operations) -> None:
        self._dispatcher, self._operations = dispatcher, operations

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        path = "/rayflink/jobs/{jobid}/restart"
        restart = TypedEndpoint(self._restart, None, RestartTrigger, "RestartRequestBody", 202)
        return [
            Route("GET", path, TypedEndpoint(self._offer), Role.READ),
            Route("POST", path, restart, Role.SUBMIT),
            Route("GET", f"{path}/{{triggerid}}", TypedEndpoint(self._result), Role.READ),
        ]

    def _offer(self, request: JsonRequest) -> RestartOffer:
        """Return from which checkpoints a job can be started again, and as which jobs it was."""
        job_id = hex_id(request, "jobid")
        try:
            return asked(lambda: self._dispatcher.restarts.offer(job_id))
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error

    def _restart(self, request: JsonRequest, body: RestartTrigger) -> TriggerResponse:
        """Start a job again as a new job; one that runs is stopped with a savepoint before."""
        job_id = hex_id(request, "jobid")
        if (body.start_from == "PATH") != bool(body.savepoint_path):
            raise Refusal(400, f"found startFrom {body.start_from} and savepointPath {body.savepoint_path!r:.200}",
                          "give a path with PATH, and none with NEWEST and NOTHING")  # fmt: skip
        changes = RestartChanges(body.allow_non_restored_state, body.parallelism, body.configuration)
        try:
            ensure_changeable(changes.options)
        except ConfigError as error:
            raise Refusal(400, str(error)) from error
        refusal = self._offer(request).refusal
        if refusal:
            raise Refusal(409, refusal)
        start_from = None if body.start_from == "NEWEST" else body.savepoint_path
        by = f"a new start with the token {request.caller.name!r}"

        def work(new_id: str) -> RestartInfo:
            started: Restart = self._dispatcher.restarts.restart(job_id, new_id, start_from, changes, by)
            return RestartInfo(started.job_id, started.start_from)

        return self._operations.begin(RESTART, job_id, body.job_id, work)

    def _result(self, request: JsonRequest) -> OperationResult[RestartInfo]:
        """Return how far a new start is."""
        result = self._operations.result(RESTART, hex_id(request, "jobid"), hex_id(request, "triggerid"))
        return result  # type: ignore[return-value]
