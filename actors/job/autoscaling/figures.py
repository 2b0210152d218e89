"""The figures that the autoscaler needs of what tasks report, and the facts that it needs of their job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.metrics import metric_names as names
from rayflink.graph.attributes import NodeKind
from rayflink.graph.job_graph import JobGraph, JobVertex
from rayflink.graph.partitioners import Global, KeyGroup

from ...messages.executions import Execution
from ...messages.states import ExecutionState
from ..rescaled_graph import joined_vertices, most_subtasks

MOST_PENDING = 1 << 63
"""No source has more records; a gauge of a program may say anything."""
_PARTITION = re.compile(r"\.topic\.(.+)\.partition\.(\d+)\.currentOffset$")


@dataclass(frozen=True, slots=True)
class SubtaskFigures:
    """The counters of one attempt as of its newest report; times in milliseconds.

    Args:
        reported_ms: when the coordinator received the report.
        records_in: received; of a source, read.
        records_out: sent to other tasks.
        pending: records that its source has still to read; None where it does not report them.
        bytes_in: bytes that its source has read; 0 where it does not report them.
        partitions: the partitions that its source reads, where it names them.
        memory: share of the managed memory of its slot in use.
    """

    reported_ms: int
    records_in: int
    records_out: int
    busy_ms: float
    back_pressured_ms: float
    pending: float | None = None
    bytes_in: int = 0
    partitions: frozenset[str] = frozenset()
    memory: float = 0.0


@dataclass(frozen=True, slots=True)
class VertexFacts:
    """The facts of a vertex that stay while its parallelism does.

    Args:
        inputs: ids of the vertices that it reads.
        outputs: number of the vertices that read it.
        is_keyed: its load is divided by key groups.
        most: subtasks that it can have at most.
        group: ids of the vertices that change with it, itself among them.
        is_fixed: its parallelism cannot change.
    """

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    inputs: tuple[str, ...]
    outputs: int
    is_source: bool
    is_keyed: bool
    most: int
    group: frozenset[str]
    is_fixed: bool = False


def figures_of(execution: Execution) -> SubtaskFigures | None:
    """Return the figures of an attempt; None before its first report."""
    metrics = execution.metrics
    if names.BUSY_TIME_TOTAL not in metrics:
        return None
    records_in, pending, bytes_in = metrics.get(names.NUM_RECORDS_IN, 0), None, 0
    partitions: frozenset[str] = frozenset()
    if execution.vertex.is_input and metrics.get("operators"):
        head: Mapping[str, Any] = metrics["operators"][0]
        records_in = head[names.NUM_RECORDS_OUT]
        pending = _number(head["metrics"].get(names.PENDING_RECORDS))
        bytes_in = head["metrics"].get(names.NUM_BYTES_IN, 0)
        matches = (_PARTITION.search(name) for name in head["metrics"])
        partitions = frozenset(f"{match[1]}-{match[2]}" for match in matches if match)
    total, used = metrics.get(names.MANAGED_MEMORY_TOTAL, 0), metrics.get(names.MANAGED_MEMORY_USED, 0)
    return SubtaskFigures(
        execution.metrics_ms,
        records_in,
        metrics.get(names.NUM_RECORDS_OUT, 0),
        metrics[names.BUSY_TIME_TOTAL],
        metrics.get(names.BACK_PRESSURED_TIME_TOTAL, 0),
        pending,
        bytes_in,
        partitions,
        used / total if total else 0.0,
    )


def _number(value: object) -> float | None:
    return float(min(value, MOST_PENDING)) if isinstance(value, int | float) and value >= 0 else None


def facts_of(graph: JobGraph) -> dict[str, VertexFacts]:
    """Return what the autoscaler has to know of each vertex, by its id; producers come before their consumers."""
    readers: dict[str, set[str]] = {vertex.id: set() for vertex in graph.vertices}
    for edge in graph.edges:
        readers[edge.source].add(edge.target)
    waiting = {vertex.id: vertex for vertex in graph.vertices}
    ordered: list[JobVertex] = []
    while waiting:
        ready = [each for each in waiting.values() if not any(edge.source in waiting for edge in each.inputs)]
        for vertex in ready or [next(iter(waiting.values()))]:  # a loop has to begin somewhere
            ordered.append(waiting.pop(vertex.id))
    return {vertex.id: _facts(graph, vertex, len(readers[vertex.id])) for vertex in ordered}


def _facts(graph: JobGraph, vertex: JobVertex, outputs: int) -> VertexFacts:
    return VertexFacts(
        vertex.id,
        vertex.name,
        vertex.parallelism,
        vertex.max_parallelism,
        tuple(dict.fromkeys(edge.source for edge in vertex.inputs)),
        outputs,
        vertex.is_input,
        any(isinstance(edge.partitioner, KeyGroup) for edge in vertex.inputs),
        most_subtasks(vertex)[0],
        frozenset(joined_vertices(graph, vertex)),
        any(node.kind in (NodeKind.ITERATION_HEAD, NodeKind.ITERATION_TAIL) for node in vertex.operators)
        or any(isinstance(edge.partitioner, Global) for edge in vertex.inputs),
    )


Sample = Mapping[str, Mapping[str, SubtaskFigures]]
"""Vertex id -> attempt -> its figures at one moment."""


def sample_of(executions: Iterable[Execution], unassigned: Mapping[str, int]) -> Sample | None:
    """Return the figures of all attempts; None while one does not run or has not reported.

    Attempts that have finished are left out: their share of the input has ended.

    Args:
        unassigned: operator -> bytes of its splits that no reader has yet; they are pending at the first of them, as
            many records a byte as the readers have found so far.
    """
    sample: dict[str, dict[str, SubtaskFigures]] = {}
    heads: dict[str, Execution] = {}
    for execution in executions:
        if execution.state is ExecutionState.FINISHED:
            continue
        figures = figures_of(execution) if execution.state is ExecutionState.RUNNING else None
        if figures is None:
            return None
        sample.setdefault(execution.vertex.id, {})[execution.attempt] = figures
        heads.setdefault(execution.vertex.id, execution)
    for execution in heads.values():
        readers, size = sample[execution.vertex.id], unassigned.get(execution.vertex.head.operator_id, 0)
        read = sum(each.bytes_in for each in readers.values())
        if size and read:
            own, records = readers[execution.attempt], sum(each.records_in for each in readers.values())
            readers[execution.attempt] = replace(own, pending=(own.pending or 0.0) + size * records / read)
    return sample


__all__ = ["Sample", "SubtaskFigures", "VertexFacts", "facts_of", "figures_of", "sample_of"]
