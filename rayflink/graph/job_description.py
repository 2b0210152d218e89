"""The plan and the configuration of a job as JSON, in Flink's words."""

from __future__ import annotations

from typing import Any

from rayflink.common.configuration import shown_value
from rayflink.version import __version__

from .job_graph import JobEdge, JobGraph, JobVertex, ScheduleMode

__all__ = ["describe_graph"]


def describe_graph(graph: JobGraph) -> dict[str, Any]:
    """Return what does not change while a job runs, as JSON.

    Returns: "jid", "name", "version" (of rayflink in this process), "mode" (STREAMING or BATCH), "configuration"
        (option -> string, secrets masked), and "vertices", producers first. A vertex has "id", "name", "parallelism"
        (as submitted), "max_parallelism", "slot_sharing_group", "operators" and "inputs". An operator has "id",
        "name", "uid" (or null), "description", "line", the line of the program that made it, and "chained_to",
        positions of operators of the same vertex. An input has "id" (of the producer), "ship_strategy" and "exchange"
        (Flink's words), and "gate".
    """
    configuration = {key: shown_value(key, str(value)) for key, value in sorted(graph.configuration.items())}
    return {
        "jid": str(graph.id),
        "name": graph.name,
        "version": __version__,
        "mode": "STREAMING" if graph.schedule_mode is ScheduleMode.EAGER else "BATCH",
        "configuration": configuration,
        "vertices": [_vertex(vertex) for vertex in graph.vertices],
    }


def _vertex(vertex: JobVertex) -> dict[str, Any]:
    operators = [
        {
            "id": str(op.operator_id),
            "name": op.name,
            "uid": op.uid,
            "description": op.description or op.name,
            "line": op.call_site,
            "chained_to": [output.target for output in op.chained_outputs],
        }
        for op in vertex.operators
    ]
    return {
        "id": str(vertex.id),
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "max_parallelism": vertex.max_parallelism,
        "slot_sharing_group": vertex.slot_sharing_group,
        "operators": operators,
        "inputs": [_input(edge) for edge in vertex.inputs],
    }


def _input(edge: JobEdge) -> dict[str, Any]:
    return {
        "id": str(edge.source),
        "ship_strategy": edge.ship_strategy,
        "exchange": edge.partition_type.name.lower(),
        "gate": edge.gate,
    }
