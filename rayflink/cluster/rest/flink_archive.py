"""The archive of a job as Flink's history server reads it: the answers to all requests about it, by their paths."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

import msgspec

from rayflink.serving.json_requests import Answer, FileAnswer, JsonRequest, Refusal, Route, StreamAnswer

from ..jobs.cluster_job import Document, JobHasEnded, JobView, RunningJob
from .reading_endpoints import ReadingEndpoints

__all__ = ["flink_archive"]

_PARAMETER = re.compile(r"\{(\w+)\}")


class _OneJob:
    """A cluster with one job, which has ended."""

    def __init__(self, view: JobView, status: Document) -> None:
        self._view, self._status = view, status

    def statuses(self) -> list[Document]:
        return [self._status]

    def view(self, job_id: str) -> JobView:
        return self._view

    def running(self, job_id: str) -> RunningJob:
        raise JobHasEnded(job_id, str(self._status["state"]))

    def cancel(self, job_id: str, by: str) -> None:
        self.running(job_id)


def flink_archive(view: JobView) -> bytes:
    """Return the archive of a job that has ended, as JSON.

    Source: apache/flink FsJsonArchivist, HistoryServerArchiveFetcher.
    """
    status = view.status()
    entries = []
    for route in ReadingEndpoints(_OneJob(view, status), is_history=True).routes():
        if route.method == "GET" and (route.pattern == "/jobs/overview" or route.pattern.startswith("/jobs/{jobid}")):
            for path, parameters in _paths(route.pattern, view, status):
                json = _answer(route, path, parameters)
                if json is not None:
                    entries.append({"path": path, "json": json})
    return msgspec.json.encode({"archive": entries})


def _answer(route: Route, path: str, parameters: Mapping[str, str]) -> str | None:
    """Return the answer to a request, as JSON; None: it is refused."""
    try:
        answer: Answer = route.answer(JsonRequest(path, parameters, {}))
    except Refusal:  # as of a job without checkpoints
        return None
    if isinstance(answer, StreamAnswer):
        return None
    content = answer.content if isinstance(answer, FileAnswer) else answer
    return (content if isinstance(content, bytes) else msgspec.json.encode(content)).decode()


def _paths(pattern: str, view: JobView, status: Document) -> Iterator[tuple[str, dict[str, str]]]:
    """Return the paths of a pattern with the ids of a job, each with its parameters."""
    names = _PARAMETER.findall(pattern)
    if {"subtaskindex", "attempt"} & set(names):
        choices = [
            {"vertexid": str(vertex["id"]), "subtaskindex": str(subtask["subtask"]), "attempt": str(attempt["attempt"])}
            for vertex in status["vertices"]
            for subtask in vertex["subtasks"]
            for attempt in ([*subtask.get("earlier", ()), subtask] if "attempt" in names else [subtask])
        ]
    else:
        vertices = [str(vertex["id"]) for vertex in status["vertices"]] if "vertexid" in names else [""]
        checkpoints = _checkpoint_ids(view) if "checkpointid" in names else [""]
        choices = [
            {"vertexid": vertex, "checkpointid": number} for vertex, number in itertools.product(vertices, checkpoints)
        ]
    for choice in choices:
        parameters = {name: {**choice, "jobid": str(status["jid"])}.get(name, "") for name in names}
        if all(parameters.values()):
            yield _PARAMETER.sub(lambda match, known=parameters: known[match[1]], pattern), parameters  # type: ignore[misc]


def _checkpoint_ids(view: JobView) -> list[str]:
    statistics = view.checkpoints() or {}
    latest = [entry for entry in (statistics.get("latest") or {}).values() if entry]
    return sorted({str(entry["id"]) for entry in [*statistics.get("history", ()), *latest]})
