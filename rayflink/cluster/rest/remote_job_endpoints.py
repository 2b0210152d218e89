"""Requests of rayflink's own clients about jobs: what `JobClient` promises, in its own form.

Flink's requests leave out metrics, rates, notes and rows of failures, and ask for savepoints in two steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rayflink.actors.on_ray.task_log import lines_of
from rayflink.common.errors import JobExecutionError
from rayflink.common.job_status import JobStatus
from rayflink.common.options.stop_mode import StopMode
from rayflink.serving.framing import framed
from rayflink.serving.json_requests import Answer, FileAnswer, JsonRequest, Refusal, Role, Route

from ..dispatcher.dispatcher import Dispatcher
from ..jobs.cluster_job import RunningJob
from ..runners.runner import Runner
from .job_finding import EndedJob, JobFinder, asked, natural, wait_s
from .typed_requests import hex_id

__all__ = ["RemoteJobEndpoints"]



class RemoteJobEndpoints:
    """Answers the clients of jobs that run on the cluster, whoever has submitted them.

    Args:
        dispatcher: of the cluster.
        runner: of its jobs, which has their logs.
    """

    def __init__(self, dispatcher: Dispatcher, runner: Runner) -> None:
        self._dispatcher, self._runner, self._finder = dispatcher, runner, JobFinder(dispatcher)

    def routes(self) -> list[Route]:
        """Return the functions of all requests."""
        job = "/rayflink/jobs/{jobid}"
        return [
            Route("GET", "/rayflink/statuses", self._list, Role.READ),
            Route("GET", f"{job}/status", self._status, Role.READ),
            Route("GET", f"{job}/description", self._description, Role.READ),
            Route("GET", f"{job}/checkpoints", self._checkpoints, Role.READ),
            Route("GET", f"{job}/accumulators", self._accumulators, Role.READ),
            Route("POST", f"{job}/log", self._log, Role.READ),
            Route("POST", f"{job}/cancel", self._cancel, Role.OPERATE),
            Route("POST", f"{job}/stop", self._stop, Role.OPERATE),
            Route("POST", f"{job}/savepoint", self._savepoint, Role.OPERATE),
            Route("POST", f"{job}/rescale", self._rescale, Role.OPERATE),
        ]

    # readers

    def _list(self, request: JsonRequest) -> Answer:
        self._finder.ensure_ready()
        with_ended = request.query.get("ended", "true") != "false"
        statuses = self._dispatcher.statuses()
        return _json({"jobs": [job for job in statuses if with_ended or not JobStatus(job["state"]).is_terminal]})

    def _status(self, request: JsonRequest) -> Answer:
        return _json(asked(self._finder.view(request).status))

    def _description(self, request: JsonRequest) -> Answer:
        return _json(asked(self._finder.view(request).description))

    def _checkpoints(self, request: JsonRequest) -> Answer:
        number = natural(request, "id") if "id" in request.query else None
        view = self._finder.view(request)
        return _json({"checkpoints": asked(lambda: view.checkpoints(number))})

    def _accumulators(self, request: JsonRequest) -> Answer:
        job = self._finder.started(request, 0.0)
        if isinstance(job, EndedJob):
            return _framed({"values": job.view.accumulators()}, b"")
        if job is None:
            return _framed({"values": {}}, b"")
        try:
            return _framed({"values": None}, asked(job.packed_accumulators))
        except JobExecutionError as error:
            raise Refusal(422, error.reason, error.remedy) from error

    def _log(self, request: JsonRequest) -> Answer:
        positions = request.document().get("positions", {})
        if not isinstance(positions, dict) or not all(_is_position(place) for place in positions.values()):
            raise Refusal(400, "found no positions of files, wanted those of the answer before")
        pieces = self._runner.log(hex_id(request, "jobid"), positions)
        lines = [
            (line.at_ms, line.stream, line.vertex, line.subtask, line.text, line.process)
            for piece in pieces
            for line in lines_of(piece)
        ]
        return _json({"lines": lines, "positions": {piece.file: piece.end for piece in pieces}})

    # operators

    def _cancel(self, request: JsonRequest) -> Answer:
        job_id, by = hex_id(request, "jobid"), request.query.get("by", "the user")
        self._ask_if_running(request, lambda job: self._dispatcher.cancel(job_id, by))
        return _json({})

    def _stop(self, request: JsonRequest) -> Answer:
        self._ask_if_running(request, lambda job: job.stop())
        return _json({})

    def _savepoint(self, request: JsonRequest) -> Answer:
        document, timeout_s = request.document(), wait_s(request)
        try:
            request_id, directory = str(document["request_id"]), str(document.get("directory", ""))
            stop = None if document.get("stop") is None else StopMode[str(document["stop"])]
        except KeyError as error:
            raise Refusal(400, f"found no proper {error}, wanted what a client of this version sends") from error
        return self._outcome(request, lambda job: job.savepoint(request_id, directory, stop, timeout_s))

    def _rescale(self, request: JsonRequest) -> Answer:
        document, timeout_s = request.document(), wait_s(request)
        try:
            request_id = str(document["request_id"])
            parallelism = {str(name): int(number) for name, number in document["parallelism"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Refusal(400, f"found no proper request ({error}), wanted operator -> number") from error
        return self._outcome(request, lambda job: job.rescale(request_id, parallelism, timeout_s))

    def _outcome(self, request: JsonRequest, ask: Callable[[RunningJob], tuple[Any, str] | None]) -> Answer:
        """Answer with the outcome of a request, also where the job has ended with it; {} where it is not known yet."""
        job = self._finder.started(request, wait_s(request))
        if isinstance(job, EndedJob):
            state = job.view.status()["state"]
            return _json({"value": None, "failure": f"the job has ended ({state}), and its answer is gone"})
        started = job
        answer = None if started is None else asked(lambda: ask(started))
        return _json({} if answer is None else {"value": answer[0], "failure": answer[1]})

    def _ask_if_running(self, request: JsonRequest, ask: Callable[[RunningJob], None]) -> None:
        try:
            job = self._finder.running(request)
        except Refusal as refusal:
            if refusal.status != 410:
                raise
            return  # it has ended, which is what was asked for
        try:
            asked(lambda: ask(job))
        except JobExecutionError as error:  # it is being brought back
            raise Refusal(503, error.reason, error.remedy) from error


def _is_position(place: object) -> bool:
    return isinstance(place, int) and 0 <= place < 1 << 63


def _json(document: object) -> bytes:
    return json.dumps(document, default=str).encode()


def _framed(head: dict[str, Any], *pieces: bytes) -> FileAnswer:
    return FileAnswer(framed(json.dumps(head, default=str).encode(), *pieces), "application/octet-stream")
