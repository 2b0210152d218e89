"""Builds the job graph from the stream graph: operators that chain are assembled into vertices.

Source: apache/flink StreamingJobGraphGenerator.createChain; same order of visits, recorded as `ChainCall`s.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.ids import JobID, JobVertexID, OperatorID
from rayflink.state.keys.key_groups import resolve_max_parallelism

from .attributes import ExchangeMode, ResultPartitionType, merge_resources
from .chaining import why_not_chained
from .errors import PlanError
from .job_graph import (
    ChainedOperator,
    ChainedOutput,
    IntermediateDataSet,
    JobEdge,
    JobGraph,
    JobVertex,
    NetworkOutput,
    ScheduleMode,
)
from .partitioners import KeyGroup, Partitioner
from .stream_graph import StreamEdge, StreamGraph
from .trampoline import run_nested
from .uids import digest, operator_ids


@dataclass(frozen=True)
class ChainCall:
    """One visit of an operator while chains are made.

    Args:
        start: node id of the head of its chain.
        current: node id of the operator.
        chainable: edges to operators of the same chain.
        non_chainable: edges to heads of other chains.
        transitive: edges by which the chain is left from this operator on.
    """

    start: int
    current: int
    chainable: tuple[StreamEdge, ...]
    non_chainable: tuple[StreamEdge, ...]
    transitive: tuple[StreamEdge, ...]

    @property
    def creates_vertex(self) -> bool:
        """Return whether this is the head, which becomes a vertex and connects its transitive edges."""
        return self.start == self.current


def job_graph(graph: StreamGraph, job_id: JobID | None = None) -> JobGraph:
    """Assemble the job graph; `job_id` None takes a random one.

    Raises:
        DuplicateUidError: two operators have one uid.
        PlanError: parallelism and max parallelism, or co-location and slot sharing, do not fit.
    """
    builder = _JobGraphBuilder(graph)
    builder.create_chains()
    return JobGraph(
        name=graph.name,
        vertices=builder.vertices(),
        id=JobID.new(os.urandom) if job_id is None else job_id,
        schedule_mode=ScheduleMode.LAZY_FROM_SOURCES if graph.batch else ScheduleMode.EAGER,
        configuration=dict(graph.configuration),
        user_artifacts=graph.user_artifacts,
        slot_resources=graph.slot_resources,
        master_hooks=graph.master_hooks,
    )


def chain_calls(graph: StreamGraph) -> tuple[ChainCall, ...]:
    """Return the visits that `job_graph` makes, in order."""
    return _JobGraphBuilder(graph).create_chains()


class _JobGraphBuilder:
    def __init__(self, graph: StreamGraph) -> None:
        self._graph = graph
        self._reasons = {edge: why_not_chained(graph, edge) for edge in graph.edges}
        self._chains: dict[int, list[int]] = {}
        self._exits: dict[int, tuple[StreamEdge, ...]] = {}
        self._names: dict[int, str] = {}
        self._calls: list[ChainCall] = []

    def create_chains(self) -> tuple[ChainCall, ...]:
        """Visit everything from the sources on."""
        for source in self._graph.sources:
            run_nested(self._create_chain(source.id, source.id))
        return tuple(self._calls)

    def _create_chain(self, start: int, current: int) -> Generator[Any, Any, list[StreamEdge]]:
        if start in self._exits:
            return []
        self._chains.setdefault(start, []).append(current)
        edges = self._graph.out_edges(current)
        chainable = tuple(edge for edge in edges if self._reasons[edge] is None)
        others = tuple(edge for edge in edges if self._reasons[edge] is not None)
        call = len(self._calls)
        self._calls.append(ChainCall(start, current, chainable, others, ()))
        transitive: list[StreamEdge] = []
        for edge in chainable:
            transitive.extend((yield self._create_chain(start, edge.target)))
        for edge in others:
            transitive.append(edge)
            yield self._create_chain(edge.target, edge.target)
        self._names[current] = self._chained_name(current, chainable)
        self._calls[call] = replace(self._calls[call], transitive=tuple(transitive))
        if start == current:
            self._exits[start] = tuple(transitive)
        return transitive

    def _chained_name(self, current: int, chainable: tuple[StreamEdge, ...]) -> str:
        name, after = self._graph.node(current).name, [self._names[edge.target] for edge in chainable]
        if not after:
            return name
        return f"{name} -> {after[0]}" if len(after) == 1 else f"{name} -> ({', '.join(after)})"

    def vertices(self) -> tuple[JobVertex, ...]:
        """Return all vertices, every producer before its consumers."""
        ids = operator_ids(self._graph)
        key_groups = {start: self._max_parallelism(start) for start in self._chains}
        self._check_co_location()
        datasets: dict[StreamEdge, IntermediateDataSet] = {}
        for start, exits in self._exits.items():
            for index, edge in enumerate(exits):
                identity = digest("data set", ids[start], str(index), ids[edge.target])
                kind = self._partition_type(edge)
                datasets[edge] = IntermediateDataSet(str(identity), JobVertexID(ids[start]), index, kind)
        return tuple(self._vertex(start, ids, key_groups[start], datasets) for start in self._producers_first())

    def _vertex(
        self,
        start: int,
        ids: dict[int, OperatorID],
        max_parallelism: int,
        datasets: dict[StreamEdge, IntermediateDataSet],
    ) -> JobVertex:
        nodes = [self._graph.node(node_id) for node_id in self._chains[start]]
        position = {node.id: index for index, node in enumerate(nodes)}
        head = nodes[0]
        return JobVertex(
            id=JobVertexID(ids[start]),
            name=self._names[start],
            operators=tuple(self._operator(node.id, position, ids, datasets) for node in nodes),
            parallelism=head.parallelism,
            max_parallelism=max_parallelism,
            inputs=tuple(
                self._job_edge(edge, gate, ids, max_parallelism, datasets[edge])
                for gate, edge in enumerate(self._graph.in_edges(start))
            ),
            outputs=tuple(datasets[edge] for edge in self._exits[start]),
            slot_sharing_group=head.slot_sharing_group,
            co_location_group_key=self._co_location(start),
            min_resources=merge_resources([node.min_resources for node in nodes]),
            preferred_resources=merge_resources([node.preferred_resources for node in nodes]),
            stoppable=head.stoppable,
            sets_max_parallelism=any(
                known is not None for known in (self._graph.max_parallelism, *(node.max_parallelism for node in nodes))
            ),
        )

    def _operator(
        self,
        node_id: int,
        position: dict[int, int],
        ids: dict[int, OperatorID],
        datasets: dict[StreamEdge, IntermediateDataSet],
    ) -> ChainedOperator:
        node = self._graph.node(node_id)
        inside, outside = [], []
        for edge in self._graph.out_edges(node_id):
            selection = edge.selected_names, edge.selector
            if self._reasons[edge] is None:
                inside.append(ChainedOutput(position[edge.target], edge.tag_id, edge.input_index, *selection))
            else:
                outside.append(NetworkOutput(datasets[edge].index, edge.tag_id, *selection))
        return ChainedOperator(
            node_id=node_id,
            operator_id=ids[node_id],
            name=node.name,
            kind=node.kind,
            uid=node.uid,
            description=node.description,
            chained_outputs=tuple(inside),
            network_outputs=tuple(outside),
            iteration=node.iteration,
            iteration_wait_ms=node.iteration_wait_ms,
            is_endless=node.is_endless,
            factory=node.operator_factory,
            key_selectors=node.key_selectors,
            output_selectors=node.output_selectors,
            output_type=node.output_type,
            call_site=node.call_site,
        )

    def _job_edge(
        self,
        edge: StreamEdge,
        gate: int,
        ids: dict[int, OperatorID],
        max_parallelism: int,
        dataset: IntermediateDataSet,
    ) -> JobEdge:
        partitioner: Partitioner = edge.partitioner
        if isinstance(partitioner, KeyGroup):
            partitioner = replace(partitioner, max_parallelism=max_parallelism)
        blocking = dataset.partition_type is ResultPartitionType.BLOCKING
        return JobEdge(
            dataset_id=dataset.id,
            source=dataset.producer,
            target=JobVertexID(ids[edge.target]),
            partitioner=partitioner,
            partition_type=dataset.partition_type,
            gate=gate,
            input_index=edge.input_index,
            buffer_timeout_ms=-1 if blocking else self._graph.node(edge.source).buffer_timeout_ms,
            tag_id=edge.tag_id,
            not_chained_because=self._reasons[edge] or "",
            iteration=edge.iteration,
        )

    def _partition_type(self, edge: StreamEdge) -> ResultPartitionType:
        undefined = edge.exchange_mode is ExchangeMode.UNDEFINED
        blocking = self._graph.batch if undefined else edge.exchange_mode is ExchangeMode.BATCH
        return ResultPartitionType.BLOCKING if blocking else ResultPartitionType.PIPELINED_BOUNDED

    def _producers_first(self) -> list[int]:
        """Return heads with every producer before its consumers: nodes are numbered so, and a chain starts at its
        lowest.
        """
        missing = {start: len(self._graph.in_edges(start)) for start in self._chains}
        ready = [start for start, count in missing.items() if not count]
        ordered: list[int] = []
        while ready:
            start = min(ready)
            ready.remove(start)
            ordered.append(start)
            for edge in self._exits[start]:
                missing[edge.target] -= 1
                if not missing[edge.target]:
                    ready.append(edge.target)
        return ordered

    def _max_parallelism(self, start: int) -> int:
        """Return the number of key groups of a chain: that of its first operator that sets one, else the job's, else
        the default.
        """
        nodes = [self._graph.node(node_id) for node_id in self._chains[start]]
        own = next((node.max_parallelism for node in nodes if node.max_parallelism is not None), None)
        parallelism, chosen = nodes[0].parallelism, own or self._graph.max_parallelism
        if chosen is not None and parallelism > chosen:
            raise PlanError(
                f"{nodes[0].name!r} has parallelism {parallelism} above its max parallelism {chosen}",
                "lower the parallelism or raise the max parallelism",
                nodes[0].call_site,
            )
        return resolve_max_parallelism(own or 0, self._graph.max_parallelism or 0, parallelism)

    def _co_location(self, start: int) -> str | None:
        keys = (self._graph.node(node_id).co_location_group_key for node_id in self._chains[start])
        return next((key for key in keys if key is not None), None)

    def _check_co_location(self) -> None:
        first: dict[str, int] = {}
        for start in self._chains:
            key = self._co_location(start)
            if key is None:
                continue
            first_node, other = self._graph.node(first.setdefault(key, start)), self._graph.node(start)
            if first_node.slot_sharing_group != other.slot_sharing_group:
                raise PlanError(
                    f"{first_node.name!r} and {other.name!r} share the co-location group {key!r} but not a slot "
                    f"sharing group: {first_node.slot_sharing_group!r} and {other.slot_sharing_group!r}",
                    "put both in one slot sharing group",
                    other.call_site,
                )
