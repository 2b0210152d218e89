"""The requests for one vertex of a job: its subtasks and their attempts, processes, accumulators and back-pressure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from rayflink.common.metrics import metric_names as names
from rayflink.serving.json_requests import JsonRequest, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document
from .execution_figures import (
    EXECUTION_STATES,
    Aggregate,
    IoMetrics,
    aggregate_state,
    aggregates,
    all_timestamps,
    endpoint_of,
    io_metrics,
    process_id_of,
    state_counts,
    status_durations,
    subtask_times,
    together,
)
from .job_endpoints import UserAccumulator, user_accumulators
from .job_lookup import JobLookup, now_ms
from .typed_requests import TypedEndpoint, versioned

__all__ = ["VertexEndpoints"]

NOT_FOUND = "JobVertex {} not found"
LOW, HIGH = 0.1, 0.5
"""The shares of its time above which a subtask counts as back-pressured, and as much so."""

SubtaskDetails = TypedDict(
    "SubtaskDetails",
    {
        "subtask": int, "status": str, "attempt": int, "endpoint": str, "start-time": int, "end-time": int,
        "duration": int, "metrics": IoMetrics, "taskmanager-id": str, "status-duration": dict[str, int],
        "start_time": int,
    },
)  # fmt: skip
Aggregates = TypedDict("Aggregates", {"metrics": dict[str, Aggregate], "status-duration": dict[str, Aggregate]})


class VertexDetails(TypedDict):
    """A vertex with its subtasks."""

    id: str
    name: str
    parallelism: int
    maxParallelism: int
    now: int
    subtasks: list[SubtaskDetails]
    aggregated: Aggregates


VertexAccumulators = TypedDict("VertexAccumulators", {"id": str, "user-accumulators": list[UserAccumulator]})
AttemptAccumulators = TypedDict(
    "AttemptAccumulators",
    {"subtask": int, "attempt": int, "id": str, "user-accumulators": list[UserAccumulator]},
)
SubtaskAccumulators = TypedDict(
    "SubtaskAccumulators",
    {"subtask": int, "attempt": int, "endpoint": str, "user-accumulators": list[UserAccumulator]},
)


class AccumulatorsOfSubtasks(TypedDict):
    """The accumulators of each subtask of a vertex."""

    id: str
    parallelism: int
    subtasks: list[SubtaskAccumulators]


class SubtaskStamps(TypedDict):
    """The times at which a subtask came into its states."""

    subtask: int
    endpoint: str
    duration: int
    timestamps: dict[str, int]


class SubtaskTimes(TypedDict):
    """The times at which the subtasks of a vertex came into their states."""

    id: str
    name: str
    now: int
    subtasks: list[SubtaskStamps]


ProcessEntry = TypedDict(
    "ProcessEntry",
    {
        "endpoint": str, "status": str, "start-time": int, "end-time": int, "duration": int, "metrics": IoMetrics,
        "status-counts": dict[str, int], "taskmanager-id": str, "aggregated": Aggregates,
    },
)  # fmt: skip


class VertexProcesses(TypedDict):
    """The processes that run the subtasks of a vertex."""

    id: str
    name: str
    now: int
    taskmanagers: list[ProcessEntry]


SubtaskPressure = TypedDict(
    "SubtaskPressure",
    {
        "subtask": int, "backpressureLevel": str, "ratio": float, "idleRatio": float, "busyRatio": float,
        "backpressure-level": str,
    },
)  # fmt: skip
VertexPressure = TypedDict(
    "VertexPressure",
    {
        "status": str, "backpressureLevel": str, "end-timestamp": int, "subtasks": list[SubtaskPressure],
        "backpressure-level": str,
    }, total=False,
)  # fmt: skip


class VertexEndpoints:
    """Answers requests about one vertex.

    Args:
        jobs: of the cluster.

    Source: apache/flink JobVertexDetailsHandler, JobVertexTaskManagersHandler, JobVertexBackPressureHandler,
        SubtasksTimesHandler, SubtaskExecutionAttemptDetailsHandler and the handlers of accumulators.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._lookup = JobLookup(jobs)

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        functions = {
            "": self._details, "/accumulators": self._accumulators, "/backpressure": self._pressure,
            "/subtasktimes": self._times, "/taskmanagers": self._processes,
            "/subtasks/accumulators": self._accumulators_of_subtasks,
            "/subtasks/{subtaskindex}": self._subtask, "/subtasks/{subtaskindex}/attempts/{attempt}": self._attempt,
            "/subtasks/{subtaskindex}/attempts/{attempt}/accumulators": self._accumulators_of_attempt,
        }  # fmt: skip
        vertex = "/jobs/{jobid}/vertices/{vertexid}"
        return [
            route
            for path, function in functions.items()
            for route in versioned("GET", f"{vertex}{path}", TypedEndpoint(function), Role.READ)
        ]

    def _details(self, request: JsonRequest) -> VertexDetails:
        """Return a vertex with its subtasks."""
        view, now = self._lookup.view(request), now_ms()
        status, vertex = self._lookup.vertex(request, NOT_FOUND)
        described = {each["id"]: each["max_parallelism"] for each in view.description()["vertices"]}
        return {
            "id": vertex["id"],
            "name": vertex["name"],
            "parallelism": vertex["parallelism"],
            "maxParallelism": described.get(vertex["id"], -1),
            "now": now,
            "subtasks": [_subtask(subtask, _created_ms(status, subtask), now) for subtask in vertex["subtasks"]],
            "aggregated": _aggregated(status, vertex["subtasks"], now),
        }

    def _subtask(self, request: JsonRequest) -> SubtaskDetails:
        """Return the present attempt of a subtask."""
        status, subtask = self._lookup.subtask(request)
        return _subtask(subtask, _created_ms(status, subtask), now_ms())

    def _attempt(self, request: JsonRequest) -> SubtaskDetails:
        """Return an attempt of a subtask."""
        status, attempt = self._lookup.attempt(request)
        return _subtask(attempt, _created_ms(status, attempt), now_ms())

    def _accumulators(self, request: JsonRequest) -> VertexAccumulators:
        """Return the accumulators of a vertex."""
        _, vertex = self._lookup.vertex(request)
        return {"id": vertex["id"], "user-accumulators": user_accumulators(vertex["subtasks"])}

    def _accumulators_of_attempt(self, request: JsonRequest) -> AttemptAccumulators:
        """Return the accumulators of an attempt."""
        _, attempt = self._lookup.attempt(request)
        return {
            "subtask": attempt["subtask"],
            "attempt": attempt["attempt"],
            "id": attempt["id"],
            "user-accumulators": user_accumulators([attempt]),
        }

    def _accumulators_of_subtasks(self, request: JsonRequest) -> AccumulatorsOfSubtasks:
        """Return the accumulators of each subtask of a vertex."""
        _, vertex = self._lookup.vertex(request)
        subtasks: list[SubtaskAccumulators] = [
            {
                "subtask": subtask["subtask"],
                "attempt": subtask["attempt"],
                "endpoint": endpoint_of(subtask),
                "user-accumulators": user_accumulators([subtask]),
            }
            for subtask in vertex["subtasks"]
        ]
        return {"id": vertex["id"], "parallelism": vertex["parallelism"], "subtasks": subtasks}

    def _times(self, request: JsonRequest) -> SubtaskTimes:
        """Return when the subtasks of a vertex came into their states."""
        status, vertex = self._lookup.vertex(request)
        now = now_ms()
        subtasks = [_stamps(subtask, _created_ms(status, subtask), now) for subtask in vertex["subtasks"]]
        return {"id": vertex["id"], "name": vertex["name"], "now": now, "subtasks": subtasks}

    def _processes(self, request: JsonRequest) -> VertexProcesses:
        """Return the processes that run the subtasks of a vertex, each with the figures of its subtasks together."""
        status, vertex = self._lookup.vertex(request, NOT_FOUND)
        now = now_ms()
        by_process: dict[str, list[Document]] = {}
        for subtask in vertex["subtasks"]:
            by_process.setdefault(process_id_of(subtask), []).append(subtask)
        entries = [_process(status, process, subtasks, now) for process, subtasks in sorted(by_process.items())]
        return {"id": vertex["id"], "name": vertex["name"], "now": now, "taskmanagers": entries}

    def _pressure(self, request: JsonRequest) -> VertexPressure:
        """Return for what part of their time the subtasks of a vertex wait for room in their outputs."""
        vertex = self._lookup.known_vertex(request)
        if vertex is None:
            return {"status": "deprecated"}
        subtasks = [_subtask_pressure(subtask) for subtask in vertex["subtasks"]]
        level = _level(max((subtask["ratio"] for subtask in subtasks), default=0.0))
        return {
            "status": "ok",
            "backpressureLevel": level,
            "end-timestamp": _reported_ms(vertex["subtasks"]),
            "subtasks": subtasks,
            "backpressure-level": level,
        }


def _created_ms(status: Document, subtask: Document) -> int:
    """Return when an attempt was created: the first with its job, a later one when it was scheduled."""
    scheduled = subtask["timestamps"].get("SCHEDULED")
    with_job = min(status["timestamps"].values(), default=0)
    return int(with_job if not subtask["attempt"] or scheduled is None else scheduled)


def _subtask(subtask: Document, created_ms: int, now: int) -> SubtaskDetails:
    times = subtask_times(subtask, now)
    return {
        "subtask": subtask["subtask"],
        "status": subtask["state"],
        "attempt": subtask["attempt"],
        "endpoint": endpoint_of(subtask),
        **times,
        "metrics": io_metrics([subtask]),
        "taskmanager-id": process_id_of(subtask),
        "status-duration": status_durations(subtask, created_ms, now),
        "start_time": times["start-time"],
    }


def _aggregated(status: Document, subtasks: Sequence[Document], now: int) -> Aggregates:
    return {
        "metrics": aggregates([io_metrics([subtask]) for subtask in subtasks]),
        "status-duration": aggregates(
            [status_durations(subtask, _created_ms(status, subtask), now) for subtask in subtasks]
        ),
    }


def _stamps(subtask: Document, created_ms: int, now: int) -> SubtaskStamps:
    stamps = {"CREATED": created_ms, **subtask["timestamps"]}
    scheduled, ended = stamps.get("SCHEDULED"), subtask_times(subtask, now)["end-time"]
    return {
        "subtask": subtask["subtask"],
        "endpoint": endpoint_of(subtask),
        "duration": -1 if scheduled is None else (now if ended < 0 else ended) - scheduled,
        "timestamps": all_timestamps(stamps, EXECUTION_STATES),
    }


def _process(status: Document, process: str, subtasks: Sequence[Document], now: int) -> ProcessEntry:
    states = [subtask["state"] for subtask in subtasks]
    return {
        "endpoint": endpoint_of(subtasks[0]),
        "status": aggregate_state(states),
        **together([subtask_times(subtask, now) for subtask in subtasks], now),
        "metrics": io_metrics(subtasks),
        "status-counts": state_counts(states),
        "taskmanager-id": process,
        "aggregated": _aggregated(status, subtasks, now),
    }


def _subtask_pressure(subtask: Document) -> SubtaskPressure:
    ratio, idle, busy = (
        _share(subtask, name) for name in (names.BACK_PRESSURED_TIME, names.IDLE_TIME, names.BUSY_TIME)
    )
    level = _level(ratio)
    return {
        "subtask": subtask["subtask"],
        "backpressureLevel": level,
        "ratio": ratio,
        "idleRatio": idle,
        "busyRatio": busy,
        "backpressure-level": level,
    }


def _share(subtask: Document, name: str) -> float:
    """Return the part of its time that a running subtask spends so, in [0, 1]; 0.0 of one that does not run."""
    if subtask["state"] != "RUNNING":
        return 0.0
    return min(max(float(subtask["metrics"].get(name, 0)) / 1000, 0.0), 1.0)


def _level(ratio: float) -> str:
    return "ok" if ratio <= LOW else "low" if ratio <= HIGH else "high"


def _reported_ms(subtasks: Iterable[Document]) -> int:
    return max((int(subtask["metrics"].get("reportedMs", 0)) for subtask in subtasks), default=0) or now_ms()
