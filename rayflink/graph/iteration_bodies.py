"""The body of an iteration: the steps between its head and its tail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .attributes import NodeKind
from .errors import PlanError
from .stream_graph import StreamEdge, StreamNode

IterationBodies = Mapping[int, frozenset[int]]
"""Iteration id -> ids of the nodes of its body, head and tail included."""


def iteration_bodies(nodes: Sequence[StreamNode], edges: Sequence[StreamEdge]) -> IterationBodies:
    """Return the nodes of each iteration.

    Raises:
        PlanError: one iteration stands within another, or they share a step.
    """
    after, before = _steps(edges), _steps(edges, back=True)
    bodies: dict[int, frozenset[int]] = {}
    for head in nodes:
        if head.kind is not NodeKind.ITERATION_HEAD or head.iteration is None:
            continue
        tails = [n.id for n in nodes if n.kind is NodeKind.ITERATION_TAIL and n.iteration == head.iteration]
        inside = _reached([head.id], after) & _reached(tails, before)
        for other, theirs in bodies.items():
            if inside & theirs:
                shared = next(node.label for node in nodes if node.id in inside & theirs)
                problem = f"step {shared} stands in iterations {other} and {head.iteration}, which is not possible"
                raise PlanError(problem, "let one iteration end before the other begins", head.call_site)
        bodies[head.iteration] = inside
    return bodies


def _steps(edges: Iterable[StreamEdge], back: bool = False) -> dict[int, list[int]]:
    steps: dict[int, list[int]] = {}
    for edge in edges:
        source, target = (edge.target, edge.source) if back else (edge.source, edge.target)
        steps.setdefault(source, []).append(target)
    return steps


def _reached(start: Iterable[int], steps: Mapping[int, list[int]]) -> frozenset[int]:
    reached: set[int] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += steps.get(node, ())
    return frozenset(reached)


__all__ = ["IterationBodies", "iteration_bodies"]
