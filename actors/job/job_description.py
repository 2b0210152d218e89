"""A job's vertices and their subtasks as plain data, for people and for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rayflink.common.metrics.metric_names import BACK_PRESSURED_TIME_TOTAL, BUSY_TIME_TOTAL, IDLE_TIME_TOTAL
from rayflink.graph.job_graph import JobGraph, JobVertex, ScheduleMode

from ..messages.commands import JobResult
from ..messages.executions import ExceptionEntry, Execution
from ..messages.states import JobStatus
from .attempts import Attempts
from .autoscaling.autoscaler import Autoscaler
from .autoscaling.autoscaler_metrics import measure
from .failures.job_restarts import JobRestarts
from .history.job_history import JobHistory
from .job_accumulators import JobAccumulators
from .job_checkpoints import JobCheckpoints
from .job_lifecycle import JobLifecycle
from .job_metrics import JobMetrics
from .recovery_times import last_recovery

SUMMED = ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "busyTimeMs", "backPressuredTimeMs")
"""Counters of subtasks that are summed for their vertex."""
_OF_ENDED = frozenset(
    (*SUMMED, BUSY_TIME_TOTAL, IDLE_TIME_TOTAL, BACK_PRESSURED_TIME_TOTAL, "host", "pid", "begin", "node")
)
"""Metrics of an attempt that are remembered when the next one has taken its place."""


class JobReport:
    """A job as plain data, for its status, its result and its next coordinator; it reads the job's parts.

    Args:
        life: the status and the failures.
        attempts: the present ones, with the job's graph.
        checkpoints: of the job.
        restarts: of its tasks.
        accumulators: of the tasks that have finished.
        autoscaler: of the job.
    """

    def __init__(
        self,
        life: JobLifecycle,
        attempts: Attempts,
        checkpoints: JobCheckpoints,
        restarts: JobRestarts,
        accumulators: JobAccumulators,
        autoscaler: Autoscaler,
    ) -> None:
        self._life, self._attempts, self._checkpoints = life, attempts, checkpoints
        self._restarts, self._accumulators, self._autoscaler = restarts, accumulators, autoscaler
        graph = attempts.graph
        self.metrics = JobMetrics(graph.id, graph.name, graph.configuration)
        """The metrics of the job as a whole, as of `job_metrics`."""
        checkpoints.history.measure(self.metrics.group)
        measure(autoscaler, [vertex.id for vertex in graph.vertices], self.metrics.group)

    def describe(self) -> dict[str, Any]:
        """Return the job's status, timestamps, vertices, exceptions and metrics as plain data."""
        life, graph = self._life, self._attempts.graph
        known = (graph, life.status, life.timestamps, self._attempts, life.exceptions)
        restored_bytes, ended_ms = self._checkpoints.restored_bytes, self._restarts.ended_ms
        recovery = last_recovery(life.timestamps, self._attempts, restored_bytes, ended_ms)
        summary = job_summary(*known, recovery)
        described = {**summary, "rescales": life.rescales.describe(), **self.job_metrics()}
        autoscaler = self._autoscaler.describe()
        return described if autoscaler is None else {**described, "autoscaler": autoscaler}

    def job_metrics(self) -> dict[str, Any]:
        """Return the scope and the metrics of the job as of its newest event."""
        life = self._life
        self.metrics.update(life.status, life.timestamps, self._restarts.count, life.now_ms)
        metrics = self.metrics
        return {"scope": metrics.scope, "host": metrics.host, "metrics": metrics.group.snapshot()}

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators by name, merged over the subtasks that have finished.

        Raises:
            JobExecutionError: one does not give its value.
        """
        return self._accumulators.asked(self._attempts.graph.id)

    def result(self, totals: Mapping[str, Any]) -> JobResult:
        """Return the result of a job that has ended, with the values of its accumulators."""
        life, graph = self._life, self._attempts.graph
        return JobResult(
            *(graph.id, graph.name, life.status),
            life.runtime_ms,
            totals,
            tuple(vertex_summaries(graph.vertices, self._attempts)),
            life.failure if life.status is JobStatus.FAILED else None,
            life.failed_subtask,
            life.cancelled_by if life.status is JobStatus.CANCELED else "",
            self._checkpoints.left,
        )

    @property
    def past(self) -> JobHistory:
        """Return the history that the next coordinator of the job starts from."""
        life, decisions = self._life, self._autoscaler.history
        counts = self._restarts.count, self._attempts.highest
        return JobHistory(*counts, tuple(life.exceptions), decisions.as_json(), life.rescales.as_json())


def job_summary(
    graph: JobGraph,
    status: JobStatus,
    timestamps: Mapping[str, int],
    executions: Iterable[Execution],
    exceptions: Iterable[ExceptionEntry],
    recovery: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a job's id, name, mode, state, timestamps, vertices, last recovery, and failures, oldest first."""
    return {
        "jid": str(graph.id),
        "name": graph.name,
        "mode": "STREAMING" if graph.schedule_mode is ScheduleMode.EAGER else "BATCH",
        "state": status.value,
        "timestamps": dict(timestamps),
        "vertices": vertex_summaries(graph.vertices, executions),
        "recovery": recovery,
        "exceptions": [entry.describe() for entry in exceptions],
    }


def vertex_summaries(vertices: Iterable[JobVertex], executions: Iterable[Execution]) -> list[dict[str, Any]]:
    """Return for each vertex its id, name, parallelism, states, summed counters, and each subtask's report.

    A subtask that was started again has its earlier attempts under "earlier", the oldest first, without operators.
    """
    of_vertex: dict[str, list[Execution]] = {}
    for execution in executions:
        of_vertex.setdefault(execution.vertex.id, []).append(execution)
    return [_summary(vertex, of_vertex[vertex.id]) for vertex in vertices]


def _attempt(execution: Execution, metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "subtask": execution.subtask,
        "attempt": execution.number,
        "id": str(execution.attempt),
        "state": execution.state.value,
        "timestamps": dict(execution.timestamps),
        "metrics": metrics,
    }


def _ended_attempt(execution: Execution) -> dict[str, Any]:
    of_task = {name: value for name, value in execution.metrics.items() if name in _OF_ENDED}
    return _attempt(execution, of_task)


def _summary(vertex: JobVertex, mine: list[Execution]) -> dict[str, Any]:
    sums = {name: sum(e.metrics.get(name, 0) for e in mine) for name in SUMMED}
    states: dict[str, int] = {}
    for execution in mine:
        states[execution.state.value] = states.get(execution.state.value, 0) + 1
    subtasks = [
        _attempt(e, e.metrics) | ({"earlier": [_ended_attempt(ended) for ended in e.earlier]} if e.earlier else {})
        for e in mine
    ]
    head = {"id": str(vertex.id), "name": vertex.name, "parallelism": vertex.parallelism}
    return {**head, "states": states, **sums, "subtasks": subtasks}


__all__ = ["SUMMED", "JobReport", "job_summary", "vertex_summaries"]
