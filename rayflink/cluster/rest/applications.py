"""Flink's applications: here each job is one, of the same id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from rayflink.actors.messages.states import JobStatus
from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document, JobHasEnded, UnknownJob
from .execution_figures import job_times
from .job_lookup import now_ms
from .job_operations import BY
from .overview_endpoints import JobEntry, job_entry
from .typed_requests import EMPTY, Empty, TypedEndpoint, hex_id, versioned

__all__ = ["ApplicationEndpoints"]

STATES = ("CREATED", "RUNNING", "FAILING", "FAILED", "CANCELING", "CANCELED", "FINISHED")
_OF_JOB = {
    JobStatus.INITIALIZING: "CREATED", JobStatus.FAILING: "FAILING", JobStatus.FAILED: "FAILED",
    JobStatus.CANCELLING: "CANCELING", JobStatus.CANCELED: "CANCELED", JobStatus.FINISHED: "FINISHED",
}  # fmt: skip
"""State of a job -> that of its application; in all others it runs."""
Application = TypedDict(
    "Application",
    {
        "id": str, "name": str, "start-time": int, "end-time": int, "duration": int, "status": str,
        "jobs": Mapping[str, int],
    },
)  # fmt: skip
ApplicationDetails = TypedDict(
    "ApplicationDetails",
    {
        "id": str, "name": str, "status": str, "start-time": int, "end-time": int, "duration": int,
        "timestamps": Mapping[str, int], "jobs": list[JobEntry],
    },
)  # fmt: skip


class Applications(TypedDict):
    """The applications of a cluster."""

    applications: list[Application]


class History(TypedDict):
    """The failures of an application itself, which none here has: they are those of its job."""

    entries: list[Empty]


class ApplicationExceptions(TypedDict):
    exceptionHistory: History


class ApplicationEndpoints:
    """Answers requests about applications.

    Args:
        jobs: of the cluster.

    Source: apache/flink package org.apache.flink.runtime.rest.handler.application.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._jobs = jobs

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        application = "/applications/{applicationid}"
        return [
            *versioned("GET", "/applications/overview", TypedEndpoint(self._overview), Role.READ),
            *versioned("GET", application, TypedEndpoint(self._details), Role.READ),
            *versioned("GET", f"{application}/exceptions", TypedEndpoint(self._exceptions), Role.READ),
            *versioned("POST", f"{application}/cancel", TypedEndpoint(self._cancel, status=202), Role.OPERATE),
        ]

    def _overview(self, request: JsonRequest) -> Applications:
        """Return every application with its times and the states of its jobs."""
        return {"applications": [_application(status) for status in self._jobs.statuses()]}

    def _details(self, request: JsonRequest) -> ApplicationDetails:
        """Return an application with its jobs."""
        status = self._status(request)
        stamps: dict[str, int] = dict.fromkeys(STATES, 0)
        for state, stamp in status["timestamps"].items():
            name = _OF_JOB.get(JobStatus(state), "RUNNING")
            stamps[name] = min(stamps[name] or stamp, stamp)
        now = now_ms()
        return {
            "id": status["jid"],
            "name": _name(status),
            "status": _state(status),
            **job_times(status, now),
            "timestamps": stamps,
            "jobs": [job_entry(status, now)],
        }

    def _exceptions(self, request: JsonRequest) -> ApplicationExceptions:
        """Return the failures of an application beside those of its jobs: none."""
        self._status(request)
        return {"exceptionHistory": {"entries": []}}

    def _cancel(self, request: JsonRequest) -> Empty:
        """Cancel the job of an application."""
        job_id = hex_id(request, "applicationid")
        try:
            self._jobs.cancel(job_id, BY)
        except UnknownJob as error:
            raise Refusal(404, "Application could not be found.") from error
        except JobHasEnded as error:
            if error.state != "CANCELED":
                problem = "Application cancellation failed because it has already reached another terminal state"
                raise Refusal(409, f"{problem} ({error.state}).") from error
        return EMPTY

    def _status(self, request: JsonRequest) -> Document:
        job_id = hex_id(request, "applicationid")
        try:
            return self._jobs.view(job_id).status()
        except UnknownJob as error:
            raise Refusal(404, f"Could not find Flink application ({job_id})") from error


def _application(status: Document) -> Application:
    times = job_times(status, now_ms())
    return {
        "id": status["jid"], "name": _name(status), **times, "status": _state(status),
        "jobs": {str(status["state"]): 1},
    }  # fmt: skip


def _name(status: Document) -> str:
    return f"SingleJobApplication({status['name']})"


def _state(status: Document) -> str:
    return _OF_JOB.get(JobStatus(status["state"]), "RUNNING")
