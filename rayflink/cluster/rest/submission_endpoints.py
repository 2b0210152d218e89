"""The requests of `execution.target: remote`: submit a job, follow it, draw its rows, wait for its result.

They are rayflink's own: Flink's clients send serialized Java.
"""

from __future__ import annotations

import msgspec

from rayflink.serving.framing import framed
from rayflink.serving.json_requests import Answer, FileAnswer, JsonRequest, Refusal, Role, Route

from ..dispatcher.dispatcher import Dispatcher, NotReady
from ..jobs.cluster_job import UnknownJob
from ..registry.job_registry import DuplicateJob
from ..registry.leadership import DispatcherFenced
from ..runners.runner import StartedJob

__all__ = ["SubmissionEndpoints"]

MOST_WAIT_S = 20.0
"""The longest time that a request waits for news, rows or a result."""


class SubmissionEndpoints:
    """Answers the requests of clients that have programs of their own.

    Args:
        dispatcher: of the cluster.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def routes(self) -> list[Route]:
        """Return the functions of all requests."""
        job = "/rayflink/jobs/{jobid}"
        return [
            Route("POST", "/rayflink/jobs", self._submit, Role.SUBMIT, takes_upload=True),
            Route("GET", "/rayflink/jobs", self._list, Role.READ),
            Route("GET", "/rayflink/dispatcher", self._describe, Role.READ),
            Route("GET", f"{job}/news", self._news, Role.SUBMIT),
            Route("GET", f"{job}/rows", self._rows, Role.SUBMIT),
            Route("GET", f"{job}/result", self._result, Role.SUBMIT),
        ]

    def _submit(self, request: JsonRequest) -> Answer:
        data = request.body if request.upload is None else request.upload.read_bytes()
        if not data:
            raise Refusal(400, "the body is empty; send a packed job, as `execution.target: remote` does")
        try:
            return {"jobid": self._dispatcher.submit(data, request.caller.name or "a client")}
        except DuplicateJob as error:
            raise Refusal(409, str(error)) from error
        except (DispatcherFenced, NotReady) as error:
            raise Refusal(503, str(error)) from error

    def _list(self, request: JsonRequest) -> Answer:
        keys = ("jid", "name", "state", "timestamps")
        return {"jobs": [{key: status[key] for key in keys} for status in self._dispatcher.statuses()]}

    def _describe(self, request: JsonRequest) -> Answer:
        return self._dispatcher.describe()

    def _news(self, request: JsonRequest) -> Answer:
        reads = request.query.get("output", "true") != "false"
        news = self._job(request).news(_timeout_s(request), reads)
        head = {"note": news.note, "chunks": news.chunks, "has_ended": news.result is not None}
        return _binary(msgspec.json.encode(head), news.result or b"")

    def _rows(self, request: JsonRequest) -> Answer:
        blocks = self._job(request).rows(_timeout_s(request))
        head = msgspec.json.encode({"are_more": blocks is not None})
        return _binary(head, *(blocks or ()))

    def _result(self, request: JsonRequest) -> Answer:
        packed = self._job(request).result(_timeout_s(request))
        return _binary(msgspec.json.encode({"has_ended": packed is not None}), packed or b"")

    def _job(self, request: JsonRequest) -> StartedJob:
        try:
            return self._dispatcher.client(request.parameters["jobid"].lower())
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error


def _binary(*pieces: bytes) -> FileAnswer:
    return FileAnswer(framed(*pieces), "application/octet-stream")


def _timeout_s(request: JsonRequest) -> float:
    text = request.query.get("wait_s", "1")
    try:
        return min(max(float(text), 0.0), MOST_WAIT_S)
    except ValueError as error:
        raise Refusal(400, f"found wait_s={text!r}, wanted seconds") from error
