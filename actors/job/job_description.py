"""A job's vertices and their subtasks as plain data, for people and for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rayflink.graph.job_graph import JobGraph, JobVertex

from ..messages.executions import ExceptionEntry, Execution
from ..messages.states import JobStatus

SUMMED = ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "busyTimeMs", "backPressuredTimeMs")
"""Counters of subtasks that are summed for their vertex."""


def job_summary(
    graph: JobGraph,
    status: JobStatus,
    timestamps: Mapping[str, int],
    executions: Iterable[Execution],
    exceptions: Iterable[ExceptionEntry],
    recovery: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a job's id, name, state, timestamps, vertices, last recovery, and failures, oldest first."""
    return {
        "jid": graph.id,
        "name": graph.name,
        "state": status.value,
        "timestamps": dict(timestamps),
        "vertices": vertex_summaries(graph.vertices, executions),
        "recovery": recovery,
        "exceptions": [entry.describe() for entry in exceptions],
    }


def vertex_summaries(vertices: Iterable[JobVertex], executions: Iterable[Execution]) -> list[dict[str, Any]]:
    """Return for each vertex its id, name, parallelism, states, summed counters, and each subtask's report."""
    of_vertex: dict[str, list[Execution]] = {}
    for execution in executions:
        of_vertex.setdefault(execution.vertex.id, []).append(execution)
    return [_summary(vertex, of_vertex[vertex.id]) for vertex in vertices]


def _summary(vertex: JobVertex, mine: list[Execution]) -> dict[str, Any]:
    sums = {name: sum(e.metrics.get(name, 0) for e in mine) for name in SUMMED}
    states: dict[str, int] = {}
    for execution in mine:
        states[execution.state.value] = states.get(execution.state.value, 0) + 1
    subtasks = [
        {
            "subtask": e.subtask,
            "attempt": e.number,
            "id": e.attempt,
            "state": e.state.value,
            "timestamps": dict(e.timestamps),
            "metrics": e.metrics,
        }
        for e in mine
    ]
    head = {"id": vertex.id, "name": vertex.name, "parallelism": vertex.parallelism}
    return {**head, "states": states, **sums, "subtasks": subtasks}


__all__ = ["SUMMED", "job_summary", "vertex_summaries"]
