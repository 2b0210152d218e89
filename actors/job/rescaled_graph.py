"""Changes the parallelism of a job graph: which vertices that concerns, and whether it is possible. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from rayflink.common.errors import PlanError
from rayflink.graph.attributes import NodeKind
from rayflink.graph.job_graph import JobGraph, JobVertex
from rayflink.graph.partitioners import Forward
from rayflink.state.storage.manifest import CheckpointManifest


def rescaled_graph(graph: JobGraph, wanted: Mapping[str, int]) -> JobGraph:
    """Return the job with other parallelisms.

    Operators of one chain have one parallelism, and so have vertices that are joined by forward edges: naming one of
    them means all.

    Args:
        wanted: operator or vertex -> subtasks; by uid, by name, or by the beginning of its id.

    Raises:
        PlanError: there is no such operator, or several are; or it cannot have that many subtasks.
    """
    chosen: dict[str, int] = {}
    for name, parallelism in wanted.items():
        if not isinstance(name, str) or type(parallelism) is not int:
            problem = f"found {name!r}: {parallelism!r}, wanted the name of an operator and its number of subtasks"
            raise PlanError(problem, "write it as in {'counts': 2}")
        for vertex_id in joined_vertices(graph, _meant(graph, name)):
            known = chosen.setdefault(vertex_id, parallelism)
            if known != parallelism:
                vertex = graph.vertex(vertex_id)
                raise PlanError(
                    f"{vertex.name!r} should have {known} and {parallelism} subtasks: the operators named are joined",
                    "name one of them",
                    vertex.head.call_site,
                )
    vertices = []
    for vertex in graph.vertices:
        parallelism = chosen.get(vertex.id, vertex.parallelism)
        if parallelism != vertex.parallelism:
            _check(vertex, parallelism)
        vertices.append(replace(vertex, parallelism=parallelism))
    return replace(graph, vertices=tuple(vertices))


def as_it_ran(graph: JobGraph, manifest: CheckpointManifest) -> JobGraph:
    """Return the job with the parallelisms it had when a checkpoint was taken: it may have been rescaled since."""
    ran = {operator.operator_id: operator.parallelism for operator in manifest.operators}
    vertices = []
    for vertex in graph.vertices:
        parallelism = ran.get(vertex.head.operator_id, vertex.parallelism)
        vertices.append(replace(vertex, parallelism=parallelism))
    return replace(graph, vertices=tuple(vertices))


def _meant(graph: JobGraph, name: str) -> JobVertex:
    named: dict[str, JobVertex] = {}
    exact: dict[str, JobVertex] = {}
    for vertex in graph.vertices:
        known = {vertex.name, *(node.uid or "" for node in vertex.operators)}
        for node in vertex.operators:
            known |= {node.name, node.name.removeprefix("Source: ").removeprefix("Sink: ")}
        ids = (vertex.id, *(node.operator_id for node in vertex.operators))
        named |= {label: vertex for label in known if label}
        if name in known or (len(name) >= 4 and any(node_id.startswith(name) for node_id in ids)):
            exact[vertex.id] = vertex
    if len(exact) == 1:
        return next(iter(exact.values()))
    if exact:
        several = ", ".join(vertex.name for vertex in exact.values())
        raise PlanError(f"{name!r} means {len(exact)} vertices: {several}", "name one by its uid")
    near = difflib.get_close_matches(name, named, 3, 0.4)
    meant = f"did you mean {', '.join(map(repr, near))}?" if near else "`rayflink status` shows its vertices"
    raise PlanError(f"the job {graph.name!r} has no operator {name!r}", meant)


def joined_vertices(graph: JobGraph, vertex: JobVertex) -> set[str]:
    """Return the ids of the vertex and of those connected with it by forward edges: they have one parallelism."""
    joined: set[str] = {vertex.id}
    before = 0
    while len(joined) > before:
        before = len(joined)
        for edge in graph.edges:
            if isinstance(edge.partitioner, Forward) and joined & {edge.source, edge.target}:
                joined |= {edge.source, edge.target}
    return joined


def _check(vertex: JobVertex, parallelism: int) -> None:
    head = vertex.head
    if any(node.kind in (NodeKind.ITERATION_HEAD, NodeKind.ITERATION_TAIL) for node in vertex.operators):
        problem = f"{vertex.name!r} is an end of a loop, whose parallelism is that of the loop"
        remedy = "stop the job with a savepoint and start it with another parallelism"
        raise PlanError(problem, remedy, head.call_site)
    most, why = most_subtasks(vertex)
    if not 1 <= parallelism <= most:
        raise PlanError(
            f"{vertex.name!r} cannot have {parallelism} subtasks", f"choose from 1 to {most}, {why}", head.call_site
        )


def most_subtasks(vertex: JobVertex) -> tuple[int, str]:
    """Return how many subtasks a vertex can have at most, and why."""
    head = vertex.head
    most, why = vertex.max_parallelism, "its max parallelism, which cannot change"
    if head.kind.is_source and head.factory is not None:
        own = head.factory().source.max_parallelism
        if own is not None and own < most:
            most, why = own, "what its source can have"
    for node in vertex.operators:
        sink = getattr(node.factory, "sink", None)
        if sink is not None and sink.max_parallelism is not None and sink.max_parallelism < most:
            most, why = sink.max_parallelism, f"what {node.name!r} can have"
    return most, why


__all__ = ["as_it_ran", "joined_vertices", "most_subtasks", "rescaled_graph"]
