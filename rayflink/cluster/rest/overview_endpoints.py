"""The requests for what a cluster has: its processes, its jobs with their states, and what its pages have to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict

from rayflink.serving.json_requests import JsonRequest, Role, Route
from rayflink.version import __version__

from ..jobs.cluster_job import ClusterJobs, Document
from ..jobs.cluster_process import ClusterProcesses
from .execution_figures import ENDED_JOB_STATES, EXECUTION_STATES, job_times, process_id_of
from .job_lookup import now_ms
from .typed_requests import TypedEndpoint, versioned

__all__ = ["SCHEDULER", "JobEntry", "OverviewEndpoints", "job_entry", "job_type"]

SCHEDULER = "Adaptive"
"""Flink's scheduler that changes the parallelism of a job that runs, as every job here can."""
_REVISION = "rayflink"
_LOWER = {state: state.lower() for state in EXECUTION_STATES}
_NO_TASKS = {"total": 0, **dict.fromkeys(_LOWER.values(), 0)}

ClusterOverview = TypedDict(
    "ClusterOverview",
    {
        "taskmanagers": int, "slots-total": int, "slots-available": int, "jobs-running": int, "jobs-finished": int,
        "jobs-cancelled": int, "jobs-failed": int, "flink-version": str, "flink-commit": str,
    },
)  # fmt: skip
Features = TypedDict(
    "Features", {"web-submit": bool, "web-cancel": bool, "web-rescale": bool, "web-history": bool}
)  # fmt: skip
DashboardConfiguration = TypedDict(
    "DashboardConfiguration",
    {
        "refresh-interval": int, "timezone-name": str, "timezone-offset": int, "flink-version": str,
        "flink-revision": str, "features": Features,
    },
)  # fmt: skip


class JobState(TypedDict):
    """A job and its state."""

    id: str
    status: str


class JobStates(TypedDict):
    """The jobs of a cluster, in short."""

    jobs: list[JobState]


JobEntry = TypedDict(
    "JobEntry",
    {
        "jid": str, "name": str, "jobType": str, "schedulerType": str, "start-time": int, "end-time": int,
        "duration": int, "state": str, "last-modification": int, "tasks": dict[str, int], "pending-operators": int,
    },
)  # fmt: skip


class JobEntries(TypedDict):
    """The jobs of a cluster, those that began last first."""

    jobs: list[JobEntry]


class OverviewEndpoints:
    """Answers requests about the cluster as a whole.

    Args:
        jobs: of the cluster.
        refresh_ms: the time between two looks of a page.
        processes: that run tasks; None: those of which subtasks that run have reported.
        is_history: whether the cluster only has jobs that have ended.

    Source: apache/flink ClusterOverviewHandler, DashboardConfigHandler, JobIdsHandler, JobsOverviewHandler.
    """

    def __init__(
        self,
        jobs: ClusterJobs,
        refresh_ms: int = 3_000,
        processes: ClusterProcesses | None = None,
        is_history: bool = False,
    ) -> None:
        self._jobs, self._processes, self._refresh_ms, self._is_history = jobs, processes, refresh_ms, is_history

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        return [
            *versioned("GET", "/overview", TypedEndpoint(self._overview), Role.READ),
            *versioned("GET", "/config", TypedEndpoint(self._configuration), Role.READ),
            *versioned("GET", "/jobs", TypedEndpoint(self._states), Role.READ),
            *versioned("GET", "/jobs/overview", TypedEndpoint(self._entries), Role.READ),
        ]

    def _overview(self, request: JsonRequest) -> ClusterOverview:
        """Return the numbers of processes, slots and jobs of the cluster."""
        statuses = self._jobs.statuses()
        counts = Counter(status["state"] for status in statuses)
        processes, slots, free = _slots(self._processes, statuses)
        return {
            "taskmanagers": processes,
            "slots-total": slots,
            "slots-available": free,
            "jobs-running": sum(count for state, count in counts.items() if state not in ENDED_JOB_STATES),
            "jobs-finished": counts["FINISHED"],
            "jobs-cancelled": counts["CANCELED"],
            "jobs-failed": counts["FAILED"],
            "flink-version": __version__,
            "flink-commit": _REVISION,
        }

    def _configuration(self, request: JsonRequest) -> DashboardConfiguration:
        """Return what pages have to know of the cluster."""
        now = datetime.now().astimezone()
        offset = now.utcoffset()
        may_change = not self._is_history
        return {
            "refresh-interval": self._refresh_ms,
            "timezone-name": now.tzname() or "UTC",
            "timezone-offset": 0 if offset is None else int(offset.total_seconds() * 1000),
            "flink-version": __version__,
            "flink-revision": _REVISION,
            "features": {
                "web-submit": False, "web-cancel": may_change, "web-rescale": may_change,
                "web-history": self._is_history,
            },
        }  # fmt: skip

    def _states(self, request: JsonRequest) -> JobStates:
        """Return the id and the state of every job."""
        return {"jobs": [{"id": status["jid"], "status": status["state"]} for status in self._jobs.statuses()]}

    def _entries(self, request: JsonRequest) -> JobEntries:
        """Return every job with its times and the states of its tasks."""
        now = now_ms()
        return {"jobs": [job_entry(status, now) for status in self._jobs.statuses()]}


def job_type(status: Document) -> str:
    """Return "STREAMING" or "BATCH"."""
    return str(status.get("mode", "STREAMING"))


def _slots(processes: ClusterProcesses | None, statuses: Iterable[Document]) -> tuple[int, int, int]:
    """Return the numbers of processes, of slots, and of free slots."""
    if processes is not None:
        known = processes.list()
        return len(known), sum(process.slots for process in known), sum(process.free_slots for process in known)
    reported = {
        process_id_of(subtask)
        for status in statuses
        for vertex in status["vertices"]
        for subtask in vertex["subtasks"]
        if subtask["state"] == "RUNNING"
    }
    return len(reported), len(reported), 0


def job_entry(status: Document, now: int) -> JobEntry:
    tasks = dict(_NO_TASKS)
    for vertex in status["vertices"]:
        for state, count in vertex["states"].items():
            tasks[_LOWER[state]] += count
            tasks["total"] += count
    return {
        "jid": status["jid"],
        "name": status["name"],
        "jobType": job_type(status),
        "schedulerType": SCHEDULER,
        **job_times(status, now),
        "state": status["state"],
        "last-modification": max(status["timestamps"].values(), default=now),
        "tasks": tasks,
        "pending-operators": 0,
    }
