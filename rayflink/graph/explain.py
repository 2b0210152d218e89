"""A job graph as text for the terminal."""

from __future__ import annotations

from .execution_graph import execution_graph
from .job_graph import ChainedOperator, JobEdge, JobGraph, JobVertex

_ALIGNED_CHARACTERS = 48


def explain(job: JobGraph) -> str:
    """Return every vertex with its chain, its edges and why each did not chain; then the slots the job needs."""
    number = {str(vertex.id): position for position, vertex in enumerate(job.vertices, start=1)}
    parallel = execution_graph(job)
    lines = [
        f"Job {job.name!r}: {_count(len(job.vertices), 'vertex', 'vertices')}, {_count(parallel.task_count, 'task')}, "
        f"{_count(parallel.required_slots, 'slot')}, {job.schedule_mode.value}"
    ]
    for vertex in job.vertices:
        lines += ["", *_vertex(job, vertex, number)]
    groups = ", ".join(f"{group} {slots}" for group, slots in sorted(parallel.slots_by_group.items()))
    lines += ["", f"Slots by sharing group: {groups}"]
    return "\n".join(lines)


def _vertex(job: JobGraph, vertex: JobVertex, number: dict[str, int]) -> list[str]:
    group = f", co-located {vertex.co_location_group_key}" if vertex.co_location_group_key else ""
    lines = [
        f"[{number[vertex.id]}] {vertex.name}",
        f"    parallelism {vertex.parallelism} of at most {vertex.max_parallelism}, "
        f"slot sharing group {vertex.slot_sharing_group}{group}",
    ]
    depths = _depths(vertex)
    labels = [
        f"{'  ' * (depth - 1)}{'-> ' if depth else ''}{op.name}"
        for op, depth in zip(vertex.operators, depths, strict=True)
    ]
    width = min(max(map(len, labels)), _ALIGNED_CHARACTERS)
    for label, operator in zip(labels, vertex.operators, strict=True):
        lines.append(f"    {label:<{width}}  {_identity(operator)}".rstrip())
    for dataset in vertex.outputs:
        lines += _edge(job.consumer_of(dataset.id), number)
    return lines


def _depths(vertex: JobVertex) -> list[int]:
    depths = [0] * len(vertex.operators)
    for position, operator in enumerate(vertex.operators):
        for output in operator.chained_outputs:
            depths[output.target] = depths[position] + 1
    return depths


def _identity(operator: ChainedOperator) -> str:
    uid = f" (uid {operator.uid})" if operator.uid else ""
    site = f"  {operator.call_site}" if operator.call_site else ""
    return f"{operator.operator_id}{uid}{site}"


def _edge(edge: JobEdge, number: dict[str, int]) -> list[str]:
    tag = f" of side output {edge.tag_id!r}" if edge.tag_id is not None else ""
    input_label = f" at input {edge.input_index + 1}" if edge.input_index else ""
    return [
        f"    => [{number[edge.target]}]{input_label} {edge.ship_strategy}{tag}, "
        f"{edge.pattern.value}, {edge.partition_type.value}",
        f"       not chained: {edge.not_chained_because}",
    ]


def _count(number: int, singular: str, many: str = "") -> str:
    return f"{number} {singular if number == 1 else many or singular + 's'}"
