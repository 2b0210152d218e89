"""Finds what the path of a request names: a job, a vertex, a subtask, an attempt; Flink's words where it is absent."""

from __future__ import annotations

import re
import time

from rayflink.serving.json_requests import JsonRequest, Refusal
from rayflink.state.storage.storage import StorageError

from ..jobs.cluster_job import ClusterJobs, Document, JobView, UnknownJob
from .typed_requests import bad_parameter, hex_id

__all__ = ["JobLookup", "now_ms", "number"]

_NUMBER = re.compile(r"-?[0-9]{1,18}")
NO_VERTEX = "No vertex with ID '{}' exists."
_LIST = "GET /jobs/overview shows the jobs that are known"


class JobLookup:
    """Finds jobs and their parts.

    Args:
        jobs: of the cluster.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._jobs = jobs

    def view(self, request: JsonRequest) -> JobView:
        """Return the job of a request.

        Raises:
            Refusal: its id is none, or no job has it; or its end cannot be read now.
        """
        job_id = hex_id(request, "jobid")
        try:
            return self._jobs.view(job_id)
        except UnknownJob as error:
            raise Refusal(404, f"Job {job_id} not found", _LIST) from error
        except StorageError as error:
            raise Refusal(503, str(error)) from error

    def status(self, request: JsonRequest) -> Document:
        """Return the status of the job of a request."""
        return self.view(request).status()

    def known_status(self, request: JsonRequest) -> Document | None:
        """Return the status of the job of a request; None: no job has its id."""
        try:
            return self.view(request).status()
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise

    def vertex(self, request: JsonRequest, is_missing: str = NO_VERTEX) -> tuple[Document, Document]:
        """Return the status of the job of a request, and in it that of the vertex.

        Args:
            is_missing: what to say where the job has no such vertex.

        Raises:
            Refusal: there is no such job or vertex.
        """
        status, vertex_id = self.status(request), hex_id(request, "vertexid")
        vertex = vertex_of(status, vertex_id)
        if vertex is None:
            raise Refusal(404, is_missing.format(vertex_id), "GET /jobs/:jobid shows the vertices of the job")
        return status, vertex

    def known_vertex(self, request: JsonRequest) -> Document | None:
        """Return the status of the vertex of a request; None: there is no such job or vertex."""
        status, vertex_id = self.known_status(request), hex_id(request, "vertexid")
        return None if status is None else vertex_of(status, vertex_id)

    def subtask(self, request: JsonRequest) -> tuple[Document, Document]:
        """Return the status of the job of a request, and in it that of the subtask.

        Raises:
            Refusal: there is no such job, vertex or subtask.
        """
        index = number(request, "subtaskindex", least=0)
        status, vertex = self.vertex(request)
        for subtask in vertex["subtasks"]:
            if subtask["subtask"] == index:
                return status, subtask
        remedy = f"it has the subtasks 0 to {len(vertex['subtasks']) - 1}"
        raise Refusal(404, f"Invalid subtask index for vertex {vertex['id']}", remedy)

    def attempt(self, request: JsonRequest) -> tuple[Document, Document]:
        """Return the status of the job of a request, and in it the attempt of a subtask, the present one or an earlier.

        Raises:
            Refusal: it is not known.
        """
        wanted = number(request, "attempt")
        status, subtask = self.subtask(request)
        attempts = [*subtask.get("earlier", ()), subtask]
        for attempt in attempts:
            if attempt["attempt"] == wanted:
                return status, attempt
        known = ", ".join(str(attempt["attempt"]) for attempt in attempts)
        raise Refusal(404, f"Invalid attempt num {wanted}", f"of this subtask the attempts {known} are known")


def vertex_of(status: Document, vertex_id: str) -> Document | None:
    """Return the vertex of a job with that id; None: there is none."""
    for vertex in status["vertices"]:
        if vertex["id"] == vertex_id:
            known: Document = vertex
            return known
    return None


def number(request: JsonRequest, name: str, least: int | None = None) -> int:
    """Return a number of the path.

    Raises:
        Refusal: it is none, or less than `least`.
    """
    text = request.parameters[name]
    if _NUMBER.fullmatch(text) is None or least is not None and int(text) < least:
        raise bad_parameter("path", name, text, "send a number" if least is None else f"send a number from {least} on")
    return int(text)


def now_ms() -> int:
    """Return the time, epoch milliseconds."""
    return int(time.time() * 1000)
