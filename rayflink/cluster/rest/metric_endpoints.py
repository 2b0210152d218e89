"""The requests for metrics: of jobs, vertices and subtasks, by id, one by one or over several."""

from __future__ import annotations

import re

import msgspec

from rayflink.serving.json_requests import JsonRequest, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document
from .job_lookup import JobLookup, number
from .metric_values import (
    Aggregated,
    Aggregation,
    MetricEntry,
    aggregated,
    entries,
    job_metrics,
    subtask_metrics,
    vertex_metrics,
)
from .typed_requests import TypedEndpoint, bad_parameter, versioned

__all__ = ["MetricEndpoints"]

WATERMARK = "currentInputWatermark"
_ID = re.compile(r"[0-9a-fA-F]{32}")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class MetricQuery(msgspec.Struct, frozen=True):
    """The parameters of a request for metrics.

    Args:
        get: ids, with commas between them; None: all, without their values.
    """

    get: str | None = None

    @property
    def wanted(self) -> list[str] | None:
        """Return the ids."""
        return None if self.get is None else self.get.split(",")


class AggregatedQuery(MetricQuery, frozen=True):
    """The parameters of a request for metrics over several subtasks or jobs.

    Args:
        agg: any of min, max, avg, sum and skew, with commas between them; None: all.
    """

    agg: str | None = None

    def how(self) -> list[Aggregation]:
        """Return what is asked for of each metric.

        Raises:
            Refusal: one is unknown.
        """
        if self.agg is None:
            return list(Aggregation)
        chosen = []
        for name in self.agg.split(","):
            if name.upper() not in Aggregation.__members__:
                raise bad_parameter("query", "agg", name, "send any of min, max, avg, sum and skew")
            chosen.append(Aggregation[name.upper()])
        return chosen


class JobsQuery(AggregatedQuery, frozen=True):
    """The parameters of the request for metrics over jobs.

    Args:
        jobs: ids, with commas between them; None: all.
    """

    jobs: str | None = None

    def ids(self) -> frozenset[str] | None:
        """Return the ids of the jobs.

        Raises:
            Refusal: one is none.
        """
        if self.jobs is None:
            return None
        ids = self.jobs.split(",")
        for job_id in ids:
            if _ID.fullmatch(job_id) is None:
                raise bad_parameter("query", "jobs", job_id, "send ids of 32 hex digits")
        return frozenset(job_id.lower() for job_id in ids)


class SubtasksQuery(AggregatedQuery, frozen=True):
    """The parameters of the request for metrics over subtasks.

    Args:
        subtasks: numbers and ranges such as "0,2-5"; None: all.
    """

    subtasks: str | None = None

    def includes(self, index: int) -> bool:
        """Return whether a subtask is one of them; what is no range names none, as in Flink."""
        if self.subtasks is None:
            return True
        ranges = [match for text in self.subtasks.split(",") if (match := _RANGE.fullmatch(text)) is not None]
        return any(int(match[1]) <= index <= int(match[2] or match[1]) for match in ranges)


class MetricEndpoints:
    """Answers requests for metrics. What is not there has none, and is no error, as in Flink.

    Args:
        jobs: of the cluster.

    Source: apache/flink AbstractMetricsHandler, AbstractAggregatingMetricsHandler, JobVertexWatermarksHandler.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._jobs, self._lookup = jobs, JobLookup(jobs)

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        vertex = "/jobs/{jobid}/vertices/{vertexid}"
        endpoints = {
            "/jobs/metrics": TypedEndpoint(self._of_jobs, JobsQuery),
            "/jobs/{jobid}/metrics": TypedEndpoint(self._of_job, MetricQuery),
            f"{vertex}/metrics": TypedEndpoint(self._of_vertex, MetricQuery),
            f"{vertex}/watermarks": TypedEndpoint(self._watermarks),
            f"{vertex}/jm-operator-metrics": TypedEndpoint(self._of_coordinators, MetricQuery),
            f"{vertex}/subtasks/metrics": TypedEndpoint(self._of_subtasks, SubtasksQuery),
            f"{vertex}/subtasks/{{subtaskindex}}/metrics": TypedEndpoint(self._of_subtask, MetricQuery),
        }
        return [
            route for path, endpoint in endpoints.items() for route in versioned("GET", path, endpoint, Role.READ)
        ]

    def _of_jobs(self, request: JsonRequest, query: JobsQuery) -> list[Aggregated]:
        """Return metrics over all jobs, or over those that are named."""
        wanted, how, ids = query.wanted, query.how(), query.ids()
        chosen = [status for status in self._jobs.statuses() if ids is None or status["jid"] in ids]
        return aggregated(map(job_metrics, chosen), wanted, how)

    def _of_job(self, request: JsonRequest, query: MetricQuery) -> list[MetricEntry]:
        """Return the metrics of a job as a whole."""
        status = self._lookup.known_status(request)
        return entries({} if status is None else job_metrics(status), query.wanted)

    def _of_vertex(self, request: JsonRequest, query: MetricQuery) -> list[MetricEntry]:
        """Return the metrics of the subtasks of a vertex, each with the subtask's number before it."""
        vertex = self._lookup.known_vertex(request)
        return entries({} if vertex is None else vertex_metrics(vertex), query.wanted)

    def _of_subtasks(self, request: JsonRequest, query: SubtasksQuery) -> list[Aggregated]:
        """Return metrics over the subtasks of a vertex."""
        wanted, how = query.wanted, query.how()
        subtasks = _subtasks(self._lookup.known_vertex(request))
        chosen = [subtask for subtask in subtasks if query.includes(subtask["subtask"])]
        return aggregated(map(subtask_metrics, chosen), wanted, how)

    def _of_subtask(self, request: JsonRequest, query: MetricQuery) -> list[MetricEntry]:
        """Return the metrics of a subtask."""
        index = number(request, "subtaskindex", least=0)
        subtasks = [subtask for subtask in _subtasks(self._lookup.known_vertex(request)) if subtask["subtask"] == index]
        return entries(subtask_metrics(subtasks[0]) if subtasks else {}, query.wanted)

    def _of_coordinators(self, request: JsonRequest, query: MetricQuery) -> list[MetricEntry]:
        """Return the metrics of the coordinators of operators: there are none, sources report in their tasks."""
        self._lookup.known_vertex(request)
        return []

    def _watermarks(self, request: JsonRequest) -> list[MetricEntry]:
        """Return the watermark of each subtask of a vertex."""
        _, vertex = self._lookup.vertex(request)
        metrics = vertex_metrics(vertex)
        return entries(metrics, [f"{subtask['subtask']}.{WATERMARK}" for subtask in vertex["subtasks"]])


def _subtasks(vertex: Document | None) -> list[Document]:
    return [] if vertex is None else list(vertex["subtasks"])
