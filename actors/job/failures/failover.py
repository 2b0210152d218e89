"""Failover strategies: which subtasks restart when one of them fails. Pure; linear in subtasks and pointwise channels.

Source: apache/flink RestartPipelinedRegionFailoverStrategy, RestartAllFailoverStrategy, PipelinedRegionComputeUtil.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeAlias

from rayflink.common.configuration import Configuration
from rayflink.common.ids import JobVertexID
from rayflink.common.options import registry as options
from rayflink.graph.distribution import pointwise_consumers, pointwise_producers
from rayflink.graph.job_graph import JobEdge, JobGraph, JobVertex
from rayflink.graph.partitioners import DistributionPattern

Place: TypeAlias = tuple[JobVertexID, int]
"""A subtask, whatever its attempt: its vertex and its index."""
IsLost: TypeAlias = Callable[[str, int], bool]
"""(id of a blocking data set, subtask of its producer) -> whether that result can no longer be read."""


class Failover:
    """The regions of a job, and the subtasks that restart when one fails.

    A region is what is connected by pipelined edges, by one co-location group or by the head and tail of one loop: its
    subtasks live and die together. Regions on a cycle of blocking edges are not joined as in Flink: each consumes what
    another gives, so they restart together anyway.

    Args:
        graph: the job, with the parallelisms it runs with.
        whole: all subtasks restart, whichever fails.
    """

    def __init__(self, graph: JobGraph, whole: bool = False) -> None:
        self._graph = graph
        self._whole = whole

    @classmethod
    def of(cls, graph: JobGraph) -> Failover:
        """Create the strategy that `jobmanager.execution.failover-strategy` of the job names."""
        strategy = Configuration.from_dict(graph.configuration).get(options.FAILOVER_STRATEGY)
        return cls(graph, strategy is options.FailoverStrategy.FULL)

    @cached_property
    def regions(self) -> tuple[tuple[Place, ...], ...]:
        """Return the pipelined regions, and the subtasks of each, in the order of vertices and indexes."""
        members: dict[Place, list[Place]] = defaultdict(list)
        joined = _joined(self._graph)
        for place in _places(self._graph):
            members[joined.root(place)].append(place)
        return tuple(tuple(region) for region in members.values())

    @cached_property
    def _region_of(self) -> dict[Place, int]:
        return {place: number for number, region in enumerate(self.regions) for place in region}

    def restarting(self, failed: Place, is_lost: IsLost) -> tuple[Place, ...]:
        """Return the subtasks that restart, in the order of vertices and indexes.

        These are the region of the failed one; regions that made a blocking result which a restarting one reads and
        which is lost; and all that read what a restarting one gives, whether or not they have run or finished yet.
        """
        if self._whole:
            return tuple(_places(self._graph))
        involved = {self._region_of[failed]}
        to_visit = list(involved)
        asked: set[tuple[str, int]] = set()
        while to_visit:
            for place in self.regions[to_visit.pop()]:
                for other in self._drawn_in(place, is_lost, asked):
                    region = self._region_of[other]
                    if region not in involved:
                        involved.add(region)
                        to_visit.append(region)
        return tuple(place for place in _places(self._graph) if self._region_of[place] in involved)

    def _drawn_in(self, place: Place, is_lost: IsLost, asked: set[tuple[str, int]]) -> Iterable[Place]:
        """Yield the subtasks that restart because this one does; those in `asked` were handled for another one."""
        vertex, subtask = self._graph.vertex(place[0]), place[1]
        for edge in vertex.inputs:
            if edge.partition_type.is_pipelined:
                continue
            for producer in self._neighbours(edge, subtask, upstream=True, asked=asked):
                if is_lost(edge.dataset_id, producer):
                    yield edge.source, producer
        for dataset in vertex.outputs:
            edge = self._graph.consumer_of(dataset.id)
            if not edge.partition_type.is_pipelined:
                for consumer in self._neighbours(edge, subtask, upstream=False, asked=asked):
                    yield edge.target, consumer

    def _neighbours(self, edge: JobEdge, subtask: int, upstream: bool, asked: set[tuple[str, int]]) -> Iterable[int]:
        producers = self._graph.vertex(edge.source).parallelism
        consumers = self._graph.vertex(edge.target).parallelism
        if edge.pattern is DistributionPattern.POINTWISE:
            ends = pointwise_producers if upstream else pointwise_consumers
            return ends(subtask, producers, consumers)
        if (edge.dataset_id, upstream) in asked:  # all at this end have the same neighbours
            return ()
        asked.add((edge.dataset_id, upstream))
        return range(producers if upstream else consumers)


class _Joined:
    """Disjoint sets of subtasks, with paths halved."""

    def __init__(self) -> None:
        self._parent: dict[Place, Place] = {}

    def root(self, place: Place) -> Place:
        parent = self._parent
        while (above := parent.setdefault(place, place)) != place:
            parent[place] = parent[above]
            place = parent[place]
        return place

    def join(self, places: Iterable[Place]) -> None:
        """Merge the sets of two subtasks."""
        rest = iter(places)
        first = self.root(next(rest))
        for place in rest:
            self._parent[self.root(place)] = first


def _places(graph: JobGraph) -> Iterable[Place]:
    return ((vertex.id, subtask) for vertex in graph.vertices for subtask in range(vertex.parallelism))


def _joined(graph: JobGraph) -> _Joined:
    joined = _Joined()
    for edge in graph.edges:
        if not edge.partition_type.is_pipelined:
            continue
        producers, consumers = graph.vertex(edge.source).parallelism, graph.vertex(edge.target).parallelism
        if edge.pattern is DistributionPattern.ALL_TO_ALL:
            ends = ((edge.source, producers), (edge.target, consumers))
            joined.join((vertex, subtask) for vertex, width in ends for subtask in range(width))
        else:
            for consumer in range(consumers):
                sources = pointwise_producers(consumer, producers, consumers)
                joined.join([(edge.target, consumer), *((edge.source, producer) for producer in sources)])
    for group in _held_together(graph):
        for subtask in range(max(vertex.parallelism for vertex in group)):
            joined.join((vertex.id, subtask) for vertex in group if subtask < vertex.parallelism)
    return joined


def _held_together(graph: JobGraph) -> Iterable[list[JobVertex]]:
    """Return the vertices whose subtasks of one index are one region though no edge connects them."""
    groups: dict[str | int, list[JobVertex]] = defaultdict(list)
    for vertex in graph.vertices:
        if vertex.co_location_group_key is not None:
            groups[vertex.co_location_group_key].append(vertex)
        for loop in {operator.iteration for operator in vertex.operators} - {None}:
            assert loop is not None
            groups[loop].append(vertex)
    return groups.values()
