"""Subtasks to slots: pure arithmetic.

Subtasks of different vertices of one slot sharing group share slots: slot i of the group takes subtask i of each. So
a group needs as many slots as its widest vertex has subtasks, and subtasks of equal index, co-located ones among
them, sit together.

Source: apache/flink SlotSharingGroup, CoLocationGroup.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rayflink.graph.job_graph import JobGraph, JobVertex


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """Slot `index` of a slot sharing group."""

    group: str
    index: int

    def __str__(self) -> str:
        return f"{self.group}/{self.index}"


def slot_of(vertex: JobVertex, subtask: int) -> Slot:
    """Where a subtask runs."""
    return Slot(vertex.slot_sharing_group, subtask)


def required_slots(graph: JobGraph) -> tuple[Slot, ...]:
    """All slots of a job, ordered; over all groups the sum of their highest parallelism."""
    widest: dict[str, int] = {}
    for vertex in graph.vertices:
        widest[vertex.slot_sharing_group] = max(widest.get(vertex.slot_sharing_group, 0), vertex.parallelism)
    return tuple(Slot(group, index) for group, width in sorted(widest.items()) for index in range(width))


def tenants(graph: JobGraph) -> Counter[Slot]:
    """How many subtasks each slot of a job holds: they share its process and CPU."""
    return Counter(slot_of(vertex, subtask) for vertex in graph.vertices for subtask in range(vertex.parallelism))
