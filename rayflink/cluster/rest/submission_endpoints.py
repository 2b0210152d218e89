"""The requests of `execution.target: remote`: submit a job, follow it, draw its rows, wait for its result.

They are rayflink's own: Flink's clients send serialized Java.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rayflink.common.errors import JobExecutionError, RayflinkError
from rayflink.common.job_status import JobStatus
from rayflink.serving.framing import framed
from rayflink.serving.json_requests import Answer, FileAnswer, JsonRequest, Refusal, Role, Route
from rayflink.state.storage.storage import StorageError

from ..dispatcher.dispatcher import Dispatcher, NotReady
from ..jobs.cluster_job import JobHasEnded, JobView, UnknownJob
from ..registry.job_registry import DuplicateJob
from ..registry.leadership import DispatcherFenced
from .job_finding import EndedJob, JobFinder, asked, natural, wait_s
from .numbered_answers import NumberedAnswers
from .typed_requests import hex_id

__all__ = ["SubmissionEndpoints"]


class SubmissionEndpoints:
    """Answers the requests of clients that have programs of their own.

    Args:
        dispatcher: of the cluster.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher, self._finder = dispatcher, JobFinder(dispatcher)
        self._answers = NumberedAnswers()

    def routes(self) -> list[Route]:
        """Return the functions of all requests."""
        job = "/rayflink/jobs/{jobid}"
        return [
            Route("POST", "/rayflink/jobs", self._submit, Role.SUBMIT, takes_upload=True),
            Route("GET", "/rayflink/jobs", self._list, Role.READ),
            Route("GET", "/rayflink/dispatcher", self._describe, Role.READ),
            Route("GET", f"{job}/renewal", self._renewal, Role.READ),
            Route("POST", f"{job}/renewal", self._renew, Role.OPERATE),
            Route("GET", f"{job}/news", self._news, Role.SUBMIT),
            Route("GET", f"{job}/rows", self._rows, Role.SUBMIT),
            Route("GET", f"{job}/result", self._result, Role.SUBMIT),
        ]

    def _submit(self, request: JsonRequest) -> Answer:
        data = request.body if request.upload is None else request.upload.read_bytes()
        if not data:
            raise Refusal(400, "the body is empty; send a packed job, as `execution.target: remote` does")
        try:
            # the client says its own name, the token is known
            by = f"{request.query.get('client', 'a client')[:100]} with the token {request.caller.name!r}"
            seconds = wait_s(request) if "wait_s" in request.query else None
            return {"jobid": self._dispatcher.submit(data, by, seconds)}
        except DuplicateJob as error:
            raise Refusal(409, str(error)) from error
        except (DispatcherFenced, NotReady) as error:
            raise Refusal(503, str(error)) from error
        except StorageError as error:
            raise Refusal(503, f"the job is not stored: {error}", "send it again") from error
        except JobExecutionError as error:
            raise Refusal(422, error.reason, error.remedy) from error
        except RayflinkError as error:
            raise Refusal(422, "could not start", str(error)) from error

    def _list(self, request: JsonRequest) -> Answer:
        keys = ("jid", "name", "state", "timestamps")
        return {"jobs": [{key: status[key] for key in keys} for status in self._dispatcher.statuses()]}

    def _renewal(self, request: JsonRequest) -> Answer:
        """Return what a renewal would do."""
        job_id = hex_id(request, "jobid")
        try:
            plan = asked(lambda: self._dispatcher.renewal_plan(job_id))
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error
        except (JobHasEnded, JobExecutionError) as error:
            raise Refusal(409, str(error)) from error
        refusal = f"{plan.reason}; {plan.remedy}" if plan.reason else ""
        return {"starts": plan.starts, "refusal": refusal, "target-directory": plan.directory}

    def _renew(self, request: JsonRequest) -> Answer:
        job_id = hex_id(request, "jobid")
        directory = request.document().get("target-directory") or ""
        if not isinstance(directory, str):
            raise Refusal(400, f"found target-directory {directory!r}, wanted a string")
        try:
            renewal = asked(lambda: self._dispatcher.renew(job_id, directory))
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error
        except (JobHasEnded, JobExecutionError) as error:
            raise Refusal(409, str(error)) from error
        return {"savepoint": renewal.savepoint, "pause-ms": int(renewal.pause_s * 1000)}

    def _describe(self, request: JsonRequest) -> Answer:
        return self._dispatcher.describe()

    def _news(self, request: JsonRequest) -> Answer:
        job, timeout_s = self._finder.started(request, wait_s(request)), wait_s(request)
        if job is None:
            begins = self._finder.view(request).status()["state"] == JobStatus.INITIALIZING.value
            note = "accepted, waiting for processes" if begins else "is being brought back"
            return _binary({"note": note, "chunks": [], "has_ended": False})
        if isinstance(job, EndedJob):
            return _binary({"note": "", "chunks": [], **_end(job.view)})
        reads = request.query.get("output", "true") != "false"

        def take() -> bytes:
            news = job.news(timeout_s, reads)
            head = {"note": news.note, "chunks": news.chunks, "has_ended": news.result is not None}
            return _framed(head, news.result or b"")

        return self._numbered(request, "news", take)

    def _rows(self, request: JsonRequest) -> Answer:
        job, timeout_s = self._finder.started(request, wait_s(request)), wait_s(request)
        if job is None:
            return _binary({"are_more": True, "are_lost": False})
        if isinstance(job, EndedJob):
            return _binary({"are_more": False, "are_lost": True})

        def take() -> bytes:
            blocks = job.rows(timeout_s)
            return _framed({"are_more": blocks is not None, "are_lost": False}, *(blocks or ()))

        return self._numbered(request, "rows", take)

    def _result(self, request: JsonRequest) -> Answer:
        job, timeout_s = self._finder.started(request, wait_s(request)), wait_s(request)
        if job is None:
            return _binary({"has_ended": False})
        if isinstance(job, EndedJob):
            return _binary(_end(job.view))
        packed = asked(lambda: job.result(timeout_s))
        return _binary({"has_ended": packed is not None}, packed or b"")

    def _numbered(self, request: JsonRequest, what: str, take: Callable[[], bytes]) -> Answer:
        if "number" not in request.query:
            return _answer(asked(take))
        key = f"{what} {hex_id(request, 'jobid')}"
        return _answer(self._answers.answer(key, natural(request, "number"), lambda: asked(take)))


def _end(view: JobView) -> dict[str, Any]:
    """Return the end of a job whose result is gone, as far as it can be read."""
    return {"has_ended": True, "status": view.status(), "accumulators": view.accumulators()}


def _binary(head: dict[str, Any], *pieces: bytes) -> FileAnswer:
    return _answer(_framed(head, *(pieces or (b"",))))


def _framed(head: dict[str, Any], *pieces: bytes) -> bytes:
    return framed(json.dumps(head, default=str).encode(), *pieces)


def _answer(content: bytes) -> FileAnswer:
    return FileAnswer(content, "application/octet-stream")
