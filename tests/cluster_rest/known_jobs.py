"""Jobs of the protocols in memory, for tests of requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rayflink.cluster.jobs.cluster_job import Document, JobHasEnded, UnknownJob
from rayflink.common.options.stop_mode import StopMode
from rayflink.serving.json_requests import FileAnswer, JsonRequest, Refusal, Route

RUNNING, ENDED, UNKNOWN = "a" * 32, "b" * 32, "0" * 32
SOURCE, SINK = "1" * 32, "2" * 32


@dataclass
class KnownJob:
    """A job that notes what it is asked for, and answers as the test has set."""

    job_id: str
    state: str = "RUNNING"
    directory: str = "/savepoints"
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def status(self) -> Document:
        vertices = [{"id": SOURCE, "name": "source", "parallelism": 1}, {"id": SINK, "name": "sink", "parallelism": 2}]
        for vertex in vertices:
            vertex |= {"subtasks": [], "states": {}}
        return {"jid": self.job_id, "name": "words", "state": self.state, "timestamps": {}, "vertices": vertices}

    def description(self) -> Document:
        options = {"execution.checkpointing.savepoint-dir": self.directory} if self.directory else {}
        vertices = [{"id": SOURCE, "max_parallelism": 128}, {"id": SINK, "max_parallelism": 4}]
        return {"jid": self.job_id, "configuration": options, "vertices": vertices}

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        return None

    def accumulators(self) -> Document:
        return {}

    def cancel(self, by: str = "the user") -> None:
        self.calls.append(("cancel", by))

    def stop(self) -> None:
        self.calls.append(("stop",))

    def savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float
    ) -> tuple[str, str] | None:
        return self._answer("savepoint", request_id, directory, stop)

    def checkpoint(self, request_id: str, timeout_s: float) -> tuple[int, str] | None:
        return self._answer("checkpoint", request_id)

    def rescale(self, request_id: str, parallelism: Mapping[str, int], timeout_s: float) -> tuple[int, str] | None:
        return self._answer("rescale", dict(parallelism))

    def _answer(self, name: str, *arguments: Any) -> Any:
        self.calls.append((name, *arguments))
        return self.answers[name]


class KnownJobs:
    """One job that runs and one that has ended."""

    def __init__(self) -> None:
        self.job = KnownJob(RUNNING)
        self.ended = KnownJob(ENDED, "FINISHED")

    def statuses(self) -> list[Document]:
        return [self.job.status(), self.ended.status()]

    def view(self, job_id: str) -> KnownJob:
        jobs = {RUNNING: self.job, ENDED: self.ended}
        if job_id not in jobs:
            raise UnknownJob(job_id)
        return jobs[job_id]

    def running(self, job_id: str) -> KnownJob:
        job = self.view(job_id)
        if job.state != "RUNNING":
            raise JobHasEnded(job_id, job.state)
        return job

    def cancel(self, job_id: str, by: str) -> None:
        self.running(job_id).cancel(by)


class Requests:
    """Sends requests to routes, without a server."""

    def __init__(self, *routes: Route) -> None:
        self._routes = routes

    def send(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Return the status, and the answer as JSON, or the errors."""
        import msgspec

        for route in self._routes:
            parameters = _matched(route.pattern, path) if route.method == method else None
            if parameters is None:
                continue
            data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            try:
                answer = route.answer(JsonRequest(path, parameters, query or {}, data, names))
            except Refusal as refusal:
                return refusal.status, list(refusal.messages)
            if isinstance(answer, FileAnswer):
                is_json = answer.media_type == "application/json"
                return answer.status, msgspec.json.decode(answer.content) if is_json else answer.content
            return 200, msgspec.to_builtins(answer) if not isinstance(answer, bytes) else msgspec.json.decode(answer)
        return 404, [f"Not found: {path}"]


def _matched(pattern: str, path: str) -> dict[str, str] | None:
    names, values = pattern.strip("/").split("/"), path.strip("/").split("/")
    if len(names) != len(values):
        return None
    pairs = list(zip(names, values, strict=True))
    if any(name != value for name, value in pairs if not name.startswith("{")):
        return None
    return {name.strip("{}"): value for name, value in pairs if name.startswith("{")}
