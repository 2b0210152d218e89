"""The parallel graph of a job: every vertex as its subtasks, every data set as its partitions, and who reads what.

It is static: attempts, states and places belong to those who run it. The runtime wires itself from `channels_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from rayflink.common.ids import JobID, JobVertexID

from .distribution import pointwise_consumers, pointwise_producers
from .errors import DuplicateVertexError, ForwardParallelismError, PlanError
from .job_graph import IntermediateDataSet, JobEdge, JobGraph, JobVertex
from .partitioners import DistributionPattern, Forward


@dataclass(frozen=True)
class ExecutionVertex:
    """One subtask of a vertex.

    Args:
        vertex_id: of its job vertex.
        task_name: of its job vertex.
        subtask: index in [0, parallelism).
    """

    vertex_id: JobVertexID
    task_name: str
    subtask: int
    parallelism: int

    @property
    def name(self) -> str:
        """Return "X (1/3)": the task with the subtask counted from one."""
        return f"{self.task_name} ({self.subtask + 1}/{self.parallelism})"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class IntermediateResultPartition:
    """The part of a data set that one subtask produces."""

    dataset_id: str
    producer: ExecutionVertex

    @property
    def number(self) -> int:
        """Return the position in the result: the index of the producer."""
        return self.producer.subtask


@dataclass(frozen=True)
class IntermediateResult:
    """A data set as the partitions its producers give, by subtask."""

    dataset: IntermediateDataSet
    partitions: tuple[IntermediateResultPartition, ...]


@dataclass(frozen=True)
class ExecutionEdge:
    """One partition read by one subtask, at a gate of it."""

    source: IntermediateResultPartition
    target: ExecutionVertex
    gate: int


@dataclass(frozen=True)
class ExecutionJobVertex:
    """A job vertex at the parallelism it runs with.

    Args:
        tasks: by subtask.
        results: one a data set, by index.
    """

    job_vertex: JobVertex
    parallelism: int
    max_parallelism: int
    tasks: tuple[ExecutionVertex, ...]
    results: tuple[IntermediateResult, ...]

    @property
    def id(self) -> JobVertexID:
        """Return the id of the job vertex."""
        return self.job_vertex.id

    @property
    def name(self) -> str:
        """Return the name of the job vertex."""
        return self.job_vertex.name


@dataclass(frozen=True)
class InputChannel:
    """The input of a subtask: one subpartition of one producer."""

    producer: JobVertexID
    producer_subtask: int
    subpartition: int


@dataclass(frozen=True)
class InputGate:
    """The channels of one subtask that belong to one job edge, by channel index."""

    edge: JobEdge
    channels: tuple[InputChannel, ...]


@dataclass(frozen=True)
class Subpartition:
    """The reader of one subpartition: channel `channel` at gate `gate` of a consumer's subtask."""

    consumer: JobVertexID
    consumer_subtask: int
    gate: int
    channel: int


@dataclass(frozen=True)
class ResultPartition:
    """The subpartitions one subtask writes for one data set, by index; at least one."""

    dataset: IntermediateDataSet
    edge: JobEdge
    subpartitions: tuple[Subpartition, ...]


@dataclass(frozen=True)
class Channels:
    """All ways into and out of one subtask: gates by index, results by data set index."""

    gates: tuple[InputGate, ...]
    results: tuple[ResultPartition, ...]


@dataclass(frozen=True)
class ExecutionGraph:
    """A job in parallel.

    Args:
        vertices: every producer before its consumers.
    """

    job_id: JobID = field(compare=False)
    name: str
    vertices: tuple[ExecutionJobVertex, ...]

    @cached_property
    def _by_id(self) -> dict[str, ExecutionJobVertex]:
        return {vertex.id: vertex for vertex in self.vertices}

    @cached_property
    def _consumers(self) -> dict[str, JobEdge]:
        return {edge.dataset_id: edge for vertex in self.vertices for edge in vertex.job_vertex.inputs}

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def vertex(self, vertex_id: str) -> ExecutionJobVertex:
        """Return the vertex with that id."""
        return self._by_id[vertex_id]

    @property
    def task_count(self) -> int:
        """Return the number of subtasks in all vertices."""
        return sum(vertex.parallelism for vertex in self.vertices)

    @property
    def stoppable(self) -> bool:
        """Return whether all sources can be asked to end."""
        return all(vertex.job_vertex.stoppable for vertex in self.vertices if vertex.job_vertex.is_input)

    @property
    def slots_by_group(self) -> dict[str, int]:
        """Return the slots of each slot sharing group: the largest parallelism in it."""
        slots: dict[str, int] = {}
        for vertex in self.vertices:
            group = vertex.job_vertex.slot_sharing_group
            slots[group] = max(slots.get(group, 0), vertex.parallelism)
        return slots

    @property
    def required_slots(self) -> int:
        """Return the number of slots that must be free before the job can run whole."""
        return sum(self.slots_by_group.values())

    def edges_into(self, vertex_id: str, subtask: int) -> tuple[ExecutionEdge, ...]:
        """Return the channels that a subtask reads, by gate, then by channel."""
        target = self.vertex(vertex_id).tasks[subtask]
        return tuple(
            ExecutionEdge(self._partition(gate.edge, channel.producer_subtask), target, gate.edge.gate)
            for gate in self.channels_of(vertex_id, subtask).gates
            for channel in gate.channels
        )

    def channels_of(self, vertex_id: str, subtask: int) -> Channels:
        """Return the channels a subtask reads and the subpartitions it writes."""
        vertex = self.vertex(vertex_id)
        gates = tuple(InputGate(edge, self._channels(edge, subtask)) for edge in vertex.job_vertex.inputs)
        results = []
        for result in vertex.results:
            edge = self._consumers[result.dataset.id]
            results.append(ResultPartition(result.dataset, edge, self._subpartitions(edge, subtask)))
        return Channels(gates, tuple(results))

    def _partition(self, edge: JobEdge, producer_subtask: int) -> IntermediateResultPartition:
        results = self.vertex(edge.source).results
        result = next(result for result in results if result.dataset.id == edge.dataset_id)
        return result.partitions[producer_subtask]

    def _channels(self, edge: JobEdge, subtask: int) -> tuple[InputChannel, ...]:
        producers, consumers = self.vertex(edge.source).parallelism, self.vertex(edge.target).parallelism
        if edge.pattern is DistributionPattern.ALL_TO_ALL:
            return tuple(InputChannel(edge.source, producer, subtask) for producer in range(producers))
        return tuple(
            InputChannel(edge.source, producer, subtask - pointwise_consumers(producer, producers, consumers).start)
            for producer in pointwise_producers(subtask, producers, consumers)
        )

    def _subpartitions(self, edge: JobEdge, subtask: int) -> tuple[Subpartition, ...]:
        producers, consumers = self.vertex(edge.source).parallelism, self.vertex(edge.target).parallelism
        if edge.pattern is DistributionPattern.ALL_TO_ALL:
            return tuple(Subpartition(edge.target, consumer, edge.gate, subtask) for consumer in range(consumers))
        return tuple(
            Subpartition(
                edge.target, consumer, edge.gate, subtask - pointwise_producers(consumer, producers, consumers).start
            )
            for consumer in pointwise_consumers(subtask, producers, consumers)
        )

    def __str__(self) -> str:
        """Return every subtask with what it reads: [vertex] producer's subtask[subpartition]."""
        lines = [f"ExecutionGraph {self.name!r}: tasks {self.task_count}, slots {self.required_slots}"]
        number = {vertex.id: position for position, vertex in enumerate(self.vertices, start=1)}
        for vertex in self.vertices:
            for task in vertex.tasks:
                lines.append(f"  [{number[vertex.id]}] {task.name}")
                for gate in self.channels_of(vertex.id, task.subtask).gates:
                    read = ", ".join(f"{c.producer_subtask + 1}[{c.subpartition}]" for c in gate.channels)
                    lines.append(f"    <- {gate.edge.ship_strategy} [{number[gate.edge.source]}] {read}")
        return "\n".join(lines)


def execution_graph(job: JobGraph, parallelism: Mapping[str, int] | None = None) -> ExecutionGraph:
    """Unfold a job graph.

    Args:
        parallelism: vertex id -> subtasks, for those that run otherwise than the program says (rescaling).

    Raises:
        DuplicateVertexError: two vertices, or two data sets, have one id.
        ForwardParallelismError: a forward edge would join different parallelisms.
        PlanError: an edge reads a data set without a producer or with another reader, or a parallelism is out of range.
    """
    wanted = dict(parallelism or {})
    vertices: dict[str, ExecutionJobVertex] = {}
    unread: dict[str, IntermediateResult] = {}
    for vertex in job.vertices:
        unfolded = _unfold(vertex, wanted.pop(vertex.id, vertex.parallelism))
        if vertex.id in vertices:
            raise DuplicateVertexError("job vertices", vertex.id, vertices[vertex.id].name, vertex.name)
        vertices[vertex.id] = unfolded
        for edge in vertex.inputs:
            _connect(edge, unread, vertices)
        for result in unfolded.results:
            other = unread.get(result.dataset.id)
            if other is not None:
                raise DuplicateVertexError(
                    "intermediate data set",
                    result.dataset.id,
                    vertices[other.dataset.producer].name,
                    vertex.name,
                )
            unread[result.dataset.id] = result
    if wanted:
        raise PlanError(f"no vertex has the id {', '.join(sorted(wanted))}", "take ids from the vertices of the job")
    if unread:
        raise PlanError(f"no vertex reads the data set {', '.join(sorted(unread))}", "give each data set one edge")
    return ExecutionGraph(job.id, job.name, tuple(vertices.values()))


def _unfold(vertex: JobVertex, parallelism: int) -> ExecutionJobVertex:
    if not 1 <= parallelism <= vertex.max_parallelism:
        raise PlanError(
            f"parallelism {parallelism} of {vertex.name!r} is not in [1, max parallelism {vertex.max_parallelism}]",
            "choose one in that range",
            vertex.head.call_site,
        )
    tasks = tuple(ExecutionVertex(vertex.id, vertex.name, subtask, parallelism) for subtask in range(parallelism))
    results = tuple(
        IntermediateResult(dataset, tuple(IntermediateResultPartition(dataset.id, task) for task in tasks))
        for dataset in vertex.outputs
    )
    resized = replace(vertex, parallelism=parallelism)
    return ExecutionJobVertex(resized, parallelism, vertex.max_parallelism, tasks, results)


def _connect(edge: JobEdge, unread: dict[str, IntermediateResult], vertices: Mapping[str, ExecutionJobVertex]) -> None:
    """Check that an edge reads a result given before it and read by no other edge."""
    if edge.dataset_id not in unread:
        raise PlanError(
            "Cannot connect this job graph to the previous graph. "
            f"No previous intermediate result found for ID {edge.dataset_id}",
            "list every vertex after its producers, and give each data set one reader",
        )
    del unread[edge.dataset_id]
    up, down = vertices[edge.source], vertices[edge.target]
    if isinstance(edge.partitioner, Forward) and up.parallelism != down.parallelism:
        raise ForwardParallelismError(up.name, up.parallelism, down.name, down.parallelism)
