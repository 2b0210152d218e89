"""A job that sets no max parallelism takes that of the checkpoint it begins with, since key groups cannot change.

Source: apache/flink Checkpoints.loadAndValidateCheckpoint.
"""

from __future__ import annotations

from dataclasses import replace

from rayflink.graph.job_graph import JobEdge, JobGraph, JobVertex
from rayflink.graph.partitioners import KeyGroup
from rayflink.state.storage.manifest import OperatorManifest

from .job_checkpoints import JobStart
from .restoring import is_keyed


def with_key_groups_of(start: JobStart | None, graph: JobGraph) -> JobGraph:
    """Return the job with the max parallelism of the checkpoint, where the program leaves it open."""
    if start is None or not start.completed:
        return graph
    manifest = start.completed[-1].manifest
    written = {operator.operator_id: operator for operator in manifest.operators if is_keyed(operator)}
    vertices = tuple(_adopted(vertex, written) for vertex in graph.vertices)
    return graph if vertices == graph.vertices else replace(graph, vertices=vertices)


def _adopted(vertex: JobVertex, written: dict[str, OperatorManifest]) -> JobVertex:
    snapshots = [written[node.operator_id] for node in vertex.operators if node.operator_id in written]
    if vertex.sets_max_parallelism or not snapshots or snapshots[0].max_parallelism == vertex.max_parallelism:
        return vertex
    groups = snapshots[0].max_parallelism
    if vertex.parallelism > groups:
        return vertex  # `Restoring` says so
    inputs = tuple(_repartitioned(edge, groups) for edge in vertex.inputs)
    return replace(vertex, max_parallelism=groups, inputs=inputs)


def _repartitioned(edge: JobEdge, groups: int) -> JobEdge:
    partitioner = edge.partitioner
    if not isinstance(partitioner, KeyGroup):
        return edge
    return replace(edge, partitioner=replace(partitioner, max_parallelism=groups))


__all__ = ["with_key_groups_of"]
