"""The requests for one job: its details, plan, configuration, state, accumulators and result, and its resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import TypedDict

from rayflink.actors.job.failures.restarts import RestartStrategy
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.execution_config import ExecutionConfig
from rayflink.common.metrics.accumulator_entries import ACCUMULATORS, merged_entries
from rayflink.common.options import registry as options
from rayflink.common.options.option_values import RestartStrategyType
from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document, JobView
from .exception_endpoints import failure_stack
from .execution_figures import (
    ENDED_JOB_STATES,
    JOB_STATES,
    IoMetrics,
    aggregate_state,
    all_timestamps,
    io_metrics,
    job_times,
    slot_sharing_group,
    state_counts,
    subtask_times,
    together,
)
from .java_throwable import FailureCause, failure_cause
from .job_lookup import JobLookup, now_ms
from .overview_endpoints import SCHEDULER, job_type
from .plan_document import JobPlan, plan_document
from .typed_requests import TypedEndpoint, versioned

__all__ = ["JobEndpoints", "UserAccumulator", "user_accumulators"]

VertexEntry = TypedDict(
    "VertexEntry",
    {
        "id": str, "slotSharingGroupId": str, "name": str, "maxParallelism": int, "parallelism": int, "status": str,
        "start-time": int, "end-time": int, "duration": int, "tasks": dict[str, int], "metrics": IoMetrics,
    },
)  # fmt: skip
JobDetails = TypedDict(
    "JobDetails",
    {
        "jid": str, "application-id": str, "name": str, "isStoppable": bool, "state": str, "job-type": str,
        "schedulerType": str, "start-time": int, "end-time": int, "duration": int, "maxParallelism": int, "now": int,
        "timestamps": dict[str, int], "vertices": list[VertexEntry], "status-counts": dict[str, int], "plan": JobPlan,
        "pending-operators": int,
    },
)  # fmt: skip


class PlanAnswer(TypedDict):
    """The plan of a job."""

    plan: JobPlan


ExecutionSettings = TypedDict(
    "ExecutionSettings",
    {"restart-strategy": str, "job-parallelism": int, "object-reuse-mode": bool, "user-config": dict[str, str]},
)
JobConfiguration = TypedDict(
    "JobConfiguration", {"jid": str, "name": str, "execution-config": ExecutionSettings}
)


class JobState(TypedDict):
    """The state of a job."""

    status: str


class UserAccumulator(TypedDict):
    """An accumulator of a program."""

    name: str
    type: str
    value: str


JobAccumulators = TypedDict(
    "JobAccumulators",
    {
        "job-accumulators": list[UserAccumulator], "user-task-accumulators": list[UserAccumulator],
        "serialized-user-task-accumulators": dict[str, str],
    },
)  # fmt: skip
JobResult = TypedDict(
    "JobResult",
    {
        "id": str, "name": str, "application-status": str, "accumulator-results": dict[str, str], "net-runtime": int,
        "failure-cause": FailureCause, "application-id": str, "start-time": int, "end-time": int,
    }, total=False,
)  # fmt: skip


class ResultState(TypedDict):
    """COMPLETED for a job that has ended, IN_PROGRESS for one that has not."""

    id: str


ResultAnswer = TypedDict("ResultAnswer", {"status": ResultState, "job-execution-result": JobResult}, total=False)


class Bounds(TypedDict):
    """The numbers of subtasks that a vertex may have."""

    lowerBound: int
    upperBound: int


class VertexRequirements(TypedDict):
    """The resources of a vertex."""

    parallelism: Bounds


class JobEndpoints:
    """Answers requests about one job.

    Args:
        jobs: of the cluster.

    Source: apache/flink JobDetailsHandler, JobPlanHandler, JobConfigHandler, JobStatusHandler, JobAccumulatorsHandler,
        JobExecutionResultHandler, JobResourceRequirementsHandler.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._jobs, self._lookup = jobs, JobLookup(jobs)

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        functions = {
            "": self._details, "/plan": self._plan, "/config": self._configuration, "/status": self._state,
            "/accumulators": self._accumulators, "/execution-result": self._result,
            "/resource-requirements": self._requirements,
        }  # fmt: skip
        return [
            route
            for path, function in functions.items()
            for route in versioned("GET", f"/jobs/{{jobid}}{path}", TypedEndpoint(function), Role.READ)
        ]

    def _details(self, request: JsonRequest) -> JobDetails:
        """Return a job with its times, its vertices and its plan."""
        view = self._lookup.view(request)
        return _details(view.status(), view.description(), now_ms())

    def _plan(self, request: JsonRequest) -> PlanAnswer:
        """Return the plan of a job."""
        view = self._lookup.view(request)
        return {"plan": plan_document(view.status(), view.description())}

    def _configuration(self, request: JsonRequest) -> JobConfiguration:
        """Return the settings with which a job runs."""
        view = self._lookup.view(request)
        status = view.status()
        return {
            "jid": status["jid"],
            "name": status["name"],
            "execution-config": _settings(view.description()["configuration"], status),
        }

    def _state(self, request: JsonRequest) -> JobState:
        """Return the state of a job."""
        return {"status": self._lookup.status(request)["state"]}

    def _accumulators(self, request: JsonRequest) -> JobAccumulators:
        """Return the accumulators of a job."""
        return {
            "job-accumulators": [],
            "user-task-accumulators": _job_accumulators(self._lookup.view(request)),
            "serialized-user-task-accumulators": {},
        }

    def _result(self, request: JsonRequest) -> ResultAnswer:
        """Return how a job has ended, or that it has not."""
        status = self._lookup.status(request)
        if status["state"] not in ENDED_JOB_STATES:
            return {"status": {"id": "IN_PROGRESS"}}
        return {"status": {"id": "COMPLETED"}, "job-execution-result": _job_result(status)}

    def _requirements(self, request: JsonRequest) -> dict[str, VertexRequirements]:
        """Return the numbers of subtasks that each vertex of a running job may have."""
        status = self._lookup.status(request)
        if status["state"] in ENDED_JOB_STATES:
            remedy = f"it has ended ({status['state']}), and has no resources"
            raise Refusal(404, f"Job {status['jid']} not found", remedy)
        return {
            vertex["id"]: {"parallelism": {"lowerBound": 1, "upperBound": vertex["parallelism"]}}
            for vertex in status["vertices"]
        }


def user_accumulators(of_subtasks: Iterable[Document]) -> list[UserAccumulator]:
    """Return the accumulators of subtasks together, as they have reported them."""
    entries = merged_entries(subtask["metrics"].get(ACCUMULATORS, ()) for subtask in of_subtasks)
    return [{"name": entry["name"], "type": entry["type"], "value": str(entry["value"])} for entry in entries]


def _job_accumulators(view: JobView) -> list[UserAccumulator]:
    """Return those that have been reported and, where all tasks have ended, those that no task reports meanwhile."""
    status = view.status()
    reported = user_accumulators(subtask for vertex in status["vertices"] for subtask in vertex["subtasks"])
    if status["state"] not in ENDED_JOB_STATES:
        return reported
    known = {entry["name"] for entry in reported}
    others: list[UserAccumulator] = [
        {"name": name, "type": type(value).__name__, "value": str(value)}
        for name, value in view.accumulators().items()
        if name not in known
    ]
    return sorted([*reported, *others], key=lambda entry: entry["name"])


def _details(status: Document, description: Document, now: int) -> JobDetails:
    described, times = {vertex["id"]: vertex for vertex in description["vertices"]}, job_times(status, now)
    vertices = [_vertex(vertex, described.get(vertex["id"], {}), status["jid"], now) for vertex in status["vertices"]]
    return {
        "jid": status["jid"],
        "application-id": status["jid"],
        "name": status["name"],
        "isStoppable": False,
        "state": status["state"],
        "job-type": job_type(status),
        "schedulerType": SCHEDULER,
        **times,
        "maxParallelism": -1,
        "now": now,
        "timestamps": all_timestamps({"INITIALIZING": times["start-time"], **status["timestamps"]}, JOB_STATES),
        "vertices": vertices,
        "status-counts": state_counts(vertex["status"] for vertex in vertices),
        "plan": plan_document(status, description),
        "pending-operators": 0,
    }


def _vertex(vertex: Document, described: Mapping[str, object], job_id: str, now: int) -> VertexEntry:
    subtasks = vertex["subtasks"]
    states = [subtask["state"] for subtask in subtasks]
    return {
        "id": vertex["id"],
        "slotSharingGroupId": slot_sharing_group(job_id, str(described.get("slot_sharing_group", "default"))),
        "name": vertex["name"],
        "maxParallelism": _whole(described.get("max_parallelism", -1)),
        "parallelism": vertex["parallelism"],
        "status": aggregate_state(states),
        **together([subtask_times(subtask, now) for subtask in subtasks], now),
        "tasks": state_counts(states),
        "metrics": io_metrics(subtasks),
    }


def _whole(value: object) -> int:
    return value if isinstance(value, int) else -1


def _settings(configuration: Mapping[str, str], status: Document) -> ExecutionSettings:
    typed = Configuration.from_dict(configuration)
    try:
        strategy = _restart_strategy(typed)
        parallelism, reuses = typed.get(options.PARALLELISM), typed.get(options.OBJECT_REUSE)
        parameters = ExecutionConfig(typed).get_global_job_parameters()
    except ConfigError as error:  # a value that is hidden, as a secret
        strategy, parallelism, reuses, parameters = str(error), 0, False, {}
    highest = max((vertex["parallelism"] for vertex in status["vertices"]), default=1)
    return {
        "restart-strategy": strategy,
        "job-parallelism": parallelism or highest,
        "object-reuse-mode": reuses,
        "user-config": parameters,
    }


def _restart_strategy(configuration: Configuration) -> str:
    """Return what restarts a job, in Flink's words for the two that most jobs have."""
    get = configuration.get
    kind, takes_checkpoints = get(options.RESTART_STRATEGY), get(options.CHECKPOINT_INTERVAL) is not None
    if kind is RestartStrategyType.FIXED_DELAY:
        delay = get(options.FIXED_DELAY_DELAY)
        return f"Restart with fixed delay ({delay}). #{get(options.FIXED_DELAY_ATTEMPTS)} restart attempts."
    if kind is RestartStrategyType.NONE or kind is None and not takes_checkpoints:
        return "Restart deactivated."
    return str(RestartStrategy.of(configuration.to_dict(), takes_checkpoints, Random(0)))


def _job_result(status: Document) -> JobResult:
    state, times = status["state"], job_times(status, now_ms())
    result: JobResult = {
        "id": status["jid"],
        "name": status["name"],
        "application-status": "SUCCEEDED" if state == "FINISHED" else str(state),
        "accumulator-results": {},
        "net-runtime": times["duration"],
        "application-id": status["jid"],
        "start-time": times["start-time"],
        "end-time": times["end-time"],
    }
    failures = status["exceptions"]
    if state == "FAILED" and failures:
        newest = next((entry for entry in reversed(failures) if not entry.get("concurrent")), failures[-1])
        result["failure-cause"] = failure_cause(newest.get("kind", "JobExecutionError"), failure_stack(newest))
    return result
