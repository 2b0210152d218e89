"""The requests for changes of a job's parallelism: their numbers, how long they took, each with its vertices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from rayflink.actors.messages.settings import JobSettings
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.serving.json_requests import Answer, JsonRequest, Refusal, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document, JobView
from .checkpoint_endpoints import Spread, spread
from .execution_figures import slot_sharing_group
from .job_lookup import JobLookup
from .typed_requests import TypedEndpoint, hex_id, versioned

__all__ = ["RescaleEndpoints"]

BY_REQUEST = "UPDATE_REQUIREMENT"
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


class RescaleConfiguration(TypedDict):
    """The settings of changes of parallelism; times in milliseconds, 0 for what there is not."""

    rescaleHistoryMax: int
    schedulerExecutionMode: str | None
    submissionResourceWaitTimeoutInMillis: int
    submissionResourceStabilizationTimeoutInMillis: int
    slotIdleTimeoutInMillis: int
    executingCooldownTimeoutInMillis: int
    executingResourceStabilizationTimeoutInMillis: int
    maximumDelayForTriggeringRescaleInMillis: int
    rescaleOnFailedCheckpointCount: int


class RescaleCounts(TypedDict):
    """The numbers of changes."""

    ignored: int
    inProgress: int
    completed: int
    failed: int


class RescaledVertex(TypedDict):
    """A vertex and its parallelisms."""

    jobVertexId: str
    jobVertexName: str
    slotSharingGroupId: str
    slotSharingGroupName: str
    desiredParallelism: int
    sufficientParallelism: int
    preRescaleParallelism: int
    postRescaleParallelism: int


class ResourceProfile(TypedDict):
    """The resources of a slot; -1: any."""

    cpuCores: float
    taskHeapMemory: int
    taskOffHeapMemory: int
    managedMemory: int
    networkMemory: int
    extendedResources: dict[str, float]


class RescaledSlots(TypedDict):
    """The slots of a group."""

    slotSharingGroupId: str
    slotSharingGroupName: str
    requestResourceProfile: ResourceProfile
    desiredSlots: int
    minimalRequiredSlots: int
    preRescaleSlots: int
    postRescaleSlots: int
    acquiredResourceProfile: ResourceProfile


class SchedulerSpan(TypedDict):
    """A time that a change took."""

    state: str
    enterTimestampInMillis: int
    leaveTimestampInMillis: int | None
    durationInMillis: int
    stringifiedException: str | None


class Rescale(TypedDict):
    """A change of parallelism; its vertices and times only where it was asked for alone."""

    rescaleUuid: str
    resourceRequirementsUuid: str
    rescaleAttemptId: int
    vertices: dict[str, RescaledVertex]
    slots: dict[str, RescaledSlots]
    schedulerStates: list[SchedulerSpan]
    startTimestampInMillis: int
    endTimestampInMillis: int | None
    terminalState: str | None
    triggerCause: str
    terminatedReason: str | None


class LatestRescales(TypedDict):
    """The newest change of each end."""

    completed: Rescale | None
    failed: Rescale | None
    ignored: Rescale | None


class RescaleOverview(TypedDict):
    """The numbers of changes, and the newest."""

    rescalesCounts: RescaleCounts
    latest: LatestRescales


class RescaleSummary(TypedDict):
    """The numbers of changes, and how long they took."""

    rescalesCounts: RescaleCounts
    rescalesDurationStatsInMillis: Spread
    completedRescalesDurationStatsInMillis: Spread
    ignoredRescalesDurationStatsInMillis: Spread
    failedRescalesDurationStatsInMillis: Spread


class RescaleEndpoints:
    """Answers requests about changes of parallelism.

    Args:
        jobs: of the cluster.

    Source: apache/flink JobRescaleConfigHandler, JobRescalesOverviewHandler, JobRescalesSummaryHandler,
        JobRescalesHistoryHandler, JobRescaleDetailsHandler.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._lookup = JobLookup(jobs)

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        functions: dict[str, Callable[[JsonRequest], Answer]] = {
            "config": self._configuration, "overview": self._overview, "summary": self._summary,
            "history": self._history, "details/{rescaleuuid}": self._details,
        }  # fmt: skip
        return [
            route
            for path, function in functions.items()
            for route in versioned("GET", f"/jobs/{{jobid}}/rescales/{path}", TypedEndpoint(function), Role.READ)
        ]

    def _configuration(self, request: JsonRequest) -> RescaleConfiguration:
        """Return the settings of changes of parallelism."""
        return _configuration(self._lookup.view(request).description()["configuration"])

    def _overview(self, request: JsonRequest) -> RescaleOverview:
        """Return the numbers of changes, and the newest of each end."""
        rescales = _known(self._lookup.view(request))
        ended = {state: _newest(rescales["history"], state) for state in ("COMPLETED", "FAILED", "IGNORED")}
        return {
            "rescalesCounts": _counts(rescales),
            "latest": {
                "completed": ended["COMPLETED"], "failed": ended["FAILED"], "ignored": ended["IGNORED"],
            },
        }  # fmt: skip

    def _summary(self, request: JsonRequest) -> RescaleSummary:
        """Return the numbers of changes, and how long those took that are remembered."""
        rescales = _known(self._lookup.view(request))
        ended = [record for record in rescales["history"] if record["ended"] is not None]

        def durations(*states: str) -> Spread:
            return _durations([record for record in ended if record["state"] in states])

        return {
            "rescalesCounts": _counts(rescales),
            "rescalesDurationStatsInMillis": durations("COMPLETED", "FAILED", "IGNORED"),
            "completedRescalesDurationStatsInMillis": durations("COMPLETED"),
            "ignoredRescalesDurationStatsInMillis": durations("IGNORED"),
            "failedRescalesDurationStatsInMillis": durations("FAILED"),
        }

    def _history(self, request: JsonRequest) -> list[Rescale]:
        """Return the changes that are remembered, the newest first."""
        return [_rescale(record) for record in _known(self._lookup.view(request))["history"]]

    def _details(self, request: JsonRequest) -> Rescale:
        """Return a change with its vertices, its slots and its times."""
        wanted, view = hex_id(request, "rescaleuuid"), self._lookup.view(request)
        status = view.status()
        for record in _known(view)["history"]:
            if record["id"] == wanted:
                return _with_details(_rescale(record), record, status, view.description())
        remedy = f"the newest are remembered, as many as {options.RESCALE_HISTORY.key} says"
        raise Refusal(404, f"Rescale {wanted} not found for job {status['jid']}.", remedy)


def _known(view: JobView) -> Document:
    """Return the changes of a job that are remembered.

    Raises:
        Refusal: none are to be.
    """
    status = view.status()
    if not _settings(view.description()["configuration"]).rescale_history:
        option = f"the value of configuration option `{options.RESCALE_HISTORY.key}`"
        problem = f"The job `{status['jid']}` remembers no changes: {option} has not been set to greater than `0`."
        raise Refusal(404, problem, f"set {options.RESCALE_HISTORY.key} when the job is submitted")
    known: Document = status.get("rescales", {"counts": {}, "history": []})
    return known


def _counts(rescales: Document) -> RescaleCounts:
    counts: Mapping[str, int] = rescales["counts"]
    return {
        "ignored": counts.get("IGNORED", 0),
        "inProgress": counts.get("IN_PROGRESS", 0),
        "completed": counts.get("COMPLETED", 0),
        "failed": counts.get("FAILED", 0),
    }


def _newest(history: Sequence[Document], state: str) -> Rescale | None:
    return next((_rescale(record) for record in history if record["state"] == state), None)


def _rescale(record: Document) -> Rescale:
    has_ended = record["ended"] is not None
    return {
        "rescaleUuid": record["id"],
        "resourceRequirementsUuid": record["id"],
        "rescaleAttemptId": 1,
        "vertices": {},
        "slots": {},
        "schedulerStates": [],
        "startTimestampInMillis": record["began"],
        "endTimestampInMillis": record["ended"],
        "terminalState": record["state"] if has_ended else None,
        "triggerCause": BY_REQUEST,
        "terminatedReason": record["reason"] if has_ended else None,
    }


def _with_details(rescale: Rescale, record: Document, status: Document, description: Document) -> Rescale:
    names = {vertex["id"]: vertex["name"] for vertex in status["vertices"]}
    groups = {vertex["id"]: vertex["slot_sharing_group"] for vertex in description["vertices"]}
    reached = record["after"] if record["state"] == "COMPLETED" else record["before"]
    for vertex, before in record["before"].items():
        group, after = groups.get(vertex, "default"), record["after"][vertex]
        group_id = slot_sharing_group(status["jid"], group)
        rescale["vertices"][vertex] = {
            "jobVertexId": vertex,
            "jobVertexName": names.get(vertex, ""),
            "slotSharingGroupId": group_id,
            "slotSharingGroupName": group,
            "desiredParallelism": after,
            "sufficientParallelism": after,
            "preRescaleParallelism": before,
            "postRescaleParallelism": reached[vertex],
        }
        known = rescale["slots"].get(group_id)
        slots = (0, 0, 0) if known is None else _slots_of(known)
        wanted, had, has = max(slots[0], after), max(slots[1], before), max(slots[2], reached[vertex])
        rescale["slots"][group_id] = {
            "slotSharingGroupId": group_id,
            "slotSharingGroupName": group,
            "requestResourceProfile": _any_resources(),
            "desiredSlots": wanted,
            "minimalRequiredSlots": wanted,
            "preRescaleSlots": had,
            "postRescaleSlots": has,
            "acquiredResourceProfile": _any_resources(),
        }
    rescale["schedulerStates"] = _spans(record)
    return rescale


def _slots_of(slots: RescaledSlots) -> tuple[int, int, int]:
    return slots["desiredSlots"], slots["preRescaleSlots"], slots["postRescaleSlots"]


def _any_resources() -> ResourceProfile:
    return {
        "cpuCores": -1.0, "taskHeapMemory": -1, "taskOffHeapMemory": -1, "managedMemory": -1, "networkMemory": -1,
        "extendedResources": {},
    }  # fmt: skip


def _spans(record: Document) -> list[SchedulerSpan]:
    """Return the times before the old tasks were cancelled, and from then until the new ones ran."""
    began, cancelled, ended = record["began"], record["cancelled"], record["ended"]
    spans = [_span("Executing", began, ended if cancelled is None else cancelled)]
    if cancelled is not None:
        spans.append(_span("Restarting", cancelled, ended))
    return spans


def _span(state: str, entered: int, left: int | None) -> SchedulerSpan:
    duration = 0 if left is None else left - entered
    return {
        "state": state,
        "enterTimestampInMillis": entered,
        "leaveTimestampInMillis": left,
        "durationInMillis": duration,
        "stringifiedException": None,
    }


def _durations(records: Sequence[Document]) -> Spread:
    ascending = sorted(record["ended"] - record["began"] for record in records)
    if not ascending:
        return spread({}, is_measured=False)
    last = len(ascending) - 1
    quantiles = {name: float(ascending[math.ceil(fraction * last)]) for name, fraction in _QUANTILES.items()}
    average = sum(ascending) / len(ascending)
    return spread({"min": ascending[0], "max": ascending[-1], "avg": average, **quantiles}, is_measured=True)


def _settings(configuration: Mapping[str, str]) -> JobSettings:
    try:
        return JobSettings.of(configuration)
    except ConfigError:  # a value that is hidden, as a secret
        return JobSettings()


def _configuration(configuration: Mapping[str, str]) -> RescaleConfiguration:
    settings = _settings(configuration)
    return {
        "rescaleHistoryMax": settings.rescale_history,
        "schedulerExecutionMode": None,
        "submissionResourceWaitTimeoutInMillis": settings.slot_timeout_ms,
        "submissionResourceStabilizationTimeoutInMillis": 0,
        "slotIdleTimeoutInMillis": settings.idle_process_ms,
        "executingCooldownTimeoutInMillis": 0,
        "executingResourceStabilizationTimeoutInMillis": 0,
        "maximumDelayForTriggeringRescaleInMillis": 0,
        "rescaleOnFailedCheckpointCount": 0,
    }
