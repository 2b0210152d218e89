"""Assigns subtasks to slots: pure arithmetic.

Subtasks of different vertices of one slot sharing group share slots: slot i of the group takes subtask i of each. So
a group needs as many slots as its widest vertex has subtasks, and subtasks of equal index, co-located ones among
them, sit together.

Source: apache/flink SlotSharingGroup, CoLocationGroup.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rayflink.common.metrics.job_report import short
from rayflink.common.options.option_types import MemorySize
from rayflink.graph.job_graph import JobGraph, JobVertex

TITLE_NAME, TITLE_TASKS = 60, 240
"""Characters of a name, and of the tasks, in the title of a slot."""


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """Slot `index` of a slot sharing group."""

    group: str
    index: int

    def __str__(self) -> str:
        return f"{self.group}/{self.index}"


def slot_of(vertex: JobVertex, subtask: int) -> Slot:
    """Return the slot of a subtask."""
    return Slot(vertex.slot_sharing_group, subtask)


def slot_title(graph: JobGraph, slot: Slot) -> str:
    """Describe a slot for people: "counts: Source: in (1/2), Map -> Sink: out (1/2)"."""
    tasks = [
        f"{short(vertex.name, TITLE_NAME)} ({slot.index + 1}/{vertex.parallelism})"
        for vertex in graph.vertices
        if vertex.slot_sharing_group == slot.group and slot.index < vertex.parallelism
    ]
    return f"{short(graph.name, TITLE_NAME)}: {short(', '.join(tasks), TITLE_TASKS)}"


def required_slots(graph: JobGraph) -> tuple[Slot, ...]:
    """Return all slots of a job, ordered; over all groups the sum of their highest parallelism."""
    widest: dict[str, int] = {}
    for vertex in graph.vertices:
        widest[vertex.slot_sharing_group] = max(widest.get(vertex.slot_sharing_group, 0), vertex.parallelism)
    return tuple(Slot(group, index) for group, width in sorted(widest.items()) for index in range(width))


def bundle_of(graph: JobGraph, slot: Slot, cpus: float) -> dict[str, float]:
    """Return the resources that a slot requests from Ray: resource -> amount, memory in bytes.

    Args:
        cpus: of a slot whose group says nothing.
    """
    asked = dict(graph.slot_resources).get(slot.group)
    if asked is None:
        return {"CPU": cpus}
    bundle = {"CPU": asked.cpu_cores}
    if asked.memory_mb:
        bundle["memory"] = float(asked.memory_mb << 20)
    for name, amount in asked.extended:
        bundle["GPU" if name.lower() == "gpu" else name] = amount
    return bundle


def cpus_of(graph: JobGraph, cpus: float) -> int:
    """Return the cores that all slots and pools of a job need together, rounded up.

    Args:
        cpus: of a slot whose group says nothing.
    """
    slots = sum(bundle_of(graph, slot, cpus)["CPU"] for slot in required_slots(graph))
    operators = (operator for vertex in graph.vertices for operator in vertex.operators)
    return math.ceil(slots + sum(getattr(operator.factory, "pool_cpus", 0) for operator in operators))


def slots_asked(graph: JobGraph, cpus: float) -> str:
    """Describe the slots of a job for people: "2 slots of 1 CPU, 3 slots of 2 CPU and 1 GPU"."""
    return describe_bundles([bundle_of(graph, slot, cpus) for slot in required_slots(graph)])


def describe_bundles(bundles: Iterable[Mapping[str, float]]) -> str:
    """Describe slots for people, by the resources that they request from Ray."""
    kinds = Counter(map(_shown, bundles))
    return ", ".join(f"{count} slot{'s' * (count > 1)} of {kind}" for kind, count in kinds.items())


def more_bundles(before: JobGraph, after: JobGraph, cpus: float) -> list[dict[str, float]]:
    """Return the bundles that the slots of a job need beyond those of another layout.

    Args:
        cpus: of a slot whose group says nothing.
    """

    def asked(graph: JobGraph) -> Counter[tuple[tuple[str, float], ...]]:
        return Counter(tuple(sorted(bundle_of(graph, slot, cpus).items())) for slot in required_slots(graph))

    return [dict(bundle) for bundle in (asked(after) - asked(before)).elements()]


def too_much(bundles: Sequence[Mapping[str, float]], nodes: Iterable[Mapping[str, float]]) -> str:
    """Return why slots do not fit into a cluster, even if it were otherwise empty; "" where they do, or might.

    Args:
        bundles: what each slot asks of Ray.
        nodes: what each node has.

    >>> too_much([{"CPU": 1.0}] * 3, [{"CPU": 1.0}, {"CPU": 1.0}])
    '3 CPU in all, of which the cluster has 2'
    >>> too_much([{"CPU": 2.0}], [{"CPU": 1.0}, {"CPU": 1.0}])
    'a node with 2 CPU'
    """
    there = list(nodes)
    for name in sorted({name for bundle in bundles for name in bundle}):
        wanted, has = (sum(bundle.get(name, 0) for bundle in each) for each in (bundles, there))
        if wanted > has:
            return f"{_shown({name: wanted})} in all, of which the cluster has {has:g}"
    for bundle in bundles:
        if not any(all(node.get(name, 0) >= amount for name, amount in bundle.items()) for node in there):
            return f"a node with {_shown(bundle)}"
    return ""


def _shown(bundle: Mapping[str, float]) -> str:
    amounts = [
        f"{MemorySize(int(amount))} of memory" if name == "memory" else f"{amount:g} {name}"
        for name, amount in bundle.items()
    ]
    return " and ".join(amounts)


def tenants(graph: JobGraph) -> Counter[Slot]:
    """Return how many subtasks each slot of a job holds: they share its process and CPU."""
    return Counter(slot_of(vertex, subtask) for vertex in graph.vertices for subtask in range(vertex.parallelism))
