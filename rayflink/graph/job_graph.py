"""The graph that a front end submits and the actors run: vertices of chained operators, joined by data sets.

All of it is values: printable, comparable, and picklable by cloudpickle. Functions (factories, selectors) and program
lines do not take part in comparison.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.functions.callables import SplitBy
from rayflink.common.functions.master_hook import MasterTriggerRestoreHook
from rayflink.common.ids import JobID, JobVertexID, OperatorID

from .attributes import NodeKind, ResourceSpec, ResultPartitionType
from .errors import JobGraphVersionMismatch
from .partitioners import DistributionPattern, Partitioner
from .transformations import KeySelector, OperatorFactory

JOB_GRAPH_VERSION = 1
"""Version of the layout of `JobGraph` and all its parts."""
_MAGIC = b"rayflink job graph "


class ScheduleMode(Enum):
    """The time at which vertices are deployed."""

    EAGER = "EAGER"
    """All at once."""
    LAZY_FROM_SOURCES = "LAZY_FROM_SOURCES"
    """Sources first, each consumer when its input can be read."""


@dataclass(frozen=True)
class ChainedOutput:
    """Operator -> operator of the same chain.

    Args:
        target: position in `JobVertex.operators`.
        tag_id: the side output taken; None for the main output.
        input_index: of the target.
        selected_names: only records that a split gave one of these names; empty for all.
        selector: position of that split's selector in `output_selectors` of the producer.
    """

    target: int
    tag_id: str | None = None
    input_index: int = 0
    selected_names: tuple[str, ...] = ()
    selector: int = 0


@dataclass(frozen=True)
class NetworkOutput:
    """Operator -> data set; `dataset` is a position in `JobVertex.outputs`, the rest as in `ChainedOutput`."""

    dataset: int
    tag_id: str | None = None
    selected_names: tuple[str, ...] = ()
    selector: int = 0


@dataclass(frozen=True)
class ChainedOperator:
    """One operator of a chain.

    Args:
        node_id: of its `StreamNode`.
        operator_id: the same in every submission of the program.
        factory: makes the operator of one subtask; None for head and tail of an iteration.
        key_selectors: one an input, None where the input is not keyed.
        output_selectors: one for each split of its output.
        iteration, iteration_wait_ms, is_endless: as in `StreamNode`.
    """

    node_id: int
    operator_id: OperatorID
    name: str
    kind: NodeKind
    uid: str | None = None
    description: str | None = None
    chained_outputs: tuple[ChainedOutput, ...] = ()
    network_outputs: tuple[NetworkOutput, ...] = ()
    iteration: int | None = None
    iteration_wait_ms: int = 0
    is_endless: bool = False
    factory: OperatorFactory | None = field(default=None, compare=False, repr=False)
    key_selectors: tuple[KeySelector | None, ...] = field(default=(), compare=False, repr=False)
    output_selectors: tuple[SplitBy, ...] = field(default=(), compare=False, repr=False)
    output_type: TypeInformation | None = field(default=None, compare=False, repr=False)
    call_site: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class IntermediateDataSet:
    """A data set that a vertex produces for exactly one consumer.

    Args:
        id: 32 hex digits.
        index: position among the outputs of its producer.
    """

    id: str
    producer: JobVertexID
    index: int
    partition_type: ResultPartitionType


@dataclass(frozen=True)
class JobEdge:
    """A data set and the vertex that reads it.

    Args:
        gate: position among the inputs of the target vertex.
        input_index: of the target's first operator, 0 or 1; several gates may share one (union).
        buffer_timeout_ms: how long a batch may wait to be filled; 0: never, -1: until it is full.
        not_chained_because: why its two operators are not in one task.
        iteration: number of the loop both ends stand in.
    """

    dataset_id: str
    source: JobVertexID
    target: JobVertexID
    partitioner: Partitioner
    partition_type: ResultPartitionType
    gate: int = 0
    input_index: int = 0
    buffer_timeout_ms: int = 100
    tag_id: str | None = None
    not_chained_because: str = ""
    iteration: int | None = None

    @property
    def pattern(self) -> DistributionPattern:
        """Describe how the subtasks at both ends are connected."""
        return self.partitioner.pattern

    @property
    def ship_strategy(self) -> str:
        """Return Flink's name of the partitioner."""
        return str(self.partitioner)

    @property
    def supports_unaligned(self) -> bool:
        """Return whether barriers may overtake the edge's data."""
        return self.partitioner.supports_unaligned


@dataclass(frozen=True)
class JobVertex:
    """Operators that run as one task, `parallelism` times.

    Args:
        id: the operator id of the head.
        name: the names of the operators, joined by " -> ".
        operators: the head first, every operator before its consumers.
        inputs: by gate.
        outputs: the data sets it gives, by index.
        max_parallelism: key groups, >= parallelism.
        min_resources, preferred_resources: sums over the chain; None where not known for every operator.
        stoppable: False when it starts with a source that cannot be asked to end.
        sets_max_parallelism: the program chose `max_parallelism`; else the job may take that of what it restores.
    """

    id: JobVertexID
    name: str
    operators: tuple[ChainedOperator, ...]
    parallelism: int
    max_parallelism: int
    inputs: tuple[JobEdge, ...] = ()
    outputs: tuple[IntermediateDataSet, ...] = ()
    slot_sharing_group: str = "default"
    co_location_group_key: str | None = None
    min_resources: ResourceSpec | None = None
    preferred_resources: ResourceSpec | None = None
    stoppable: bool = True
    sets_max_parallelism: bool = False

    @property
    def head(self) -> ChainedOperator:
        """Return the operator that reads the inputs, or the source."""
        return self.operators[0]

    @property
    def is_input(self) -> bool:
        """Return whether the vertex reads no data set."""
        return self.head.kind.is_source

    @property
    def is_output(self) -> bool:
        """Return whether the vertex produces no data set."""
        return not self.outputs

    def tail_first(self) -> tuple[ChainedOperator, ...]:
        """Return the operators from the last to the head, the order in which Flink lists and opens a chain."""
        return self.operators[::-1]


@dataclass(frozen=True)
class JobGraph:
    """A job as it is submitted.

    Args:
        id: of this submission; does not take part in comparison.
        vertices: every producer before its consumers.
        configuration: option key -> value.
        user_artifacts: distributed cache, (name, path).
        slot_resources: what a slot of a slot sharing group has, (group, resources); others have the defaults.
        master_hooks: called in the coordinator at checkpoints.
        version: of the format.
    """

    name: str
    vertices: tuple[JobVertex, ...]
    id: JobID = field(compare=False)
    schedule_mode: ScheduleMode = ScheduleMode.EAGER
    configuration: Mapping[str, Any] = field(default_factory=dict)
    user_artifacts: tuple[tuple[str, str], ...] = ()
    slot_resources: tuple[tuple[str, ResourceSpec], ...] = ()
    master_hooks: tuple[MasterTriggerRestoreHook, ...] = ()
    version: int = JOB_GRAPH_VERSION

    @cached_property
    def _by_id(self) -> dict[str, JobVertex]:
        return {vertex.id: vertex for vertex in self.vertices}

    @cached_property
    def _edge_by_dataset(self) -> dict[str, JobEdge]:
        return {edge.dataset_id: edge for vertex in self.vertices for edge in vertex.inputs}

    def vertex(self, vertex_id: str) -> JobVertex:
        """Return the vertex with that id."""
        return self._by_id[vertex_id]

    @property
    def edges(self) -> tuple[JobEdge, ...]:
        """Return all edges, by target and gate."""
        return tuple(edge for vertex in self.vertices for edge in vertex.inputs)

    def consumer_of(self, dataset_id: str) -> JobEdge:
        """Return the one edge that reads a data set."""
        return self._edge_by_dataset[dataset_id]

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.get("version") != JOB_GRAPH_VERSION:
            raise JobGraphVersionMismatch(state.get("version"), JOB_GRAPH_VERSION)
        self.__dict__.update(state)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def to_bytes(self) -> bytes:
        """Return the whole graph with its functions, for storage or another process; the format version stands
        first.
        """
        from rayflink.common.user_code import code_pickler

        return _MAGIC + b"%d\n" % self.version + code_pickler.dumps(self)

    @staticmethod
    def from_bytes(data: bytes) -> JobGraph:
        """Read what `to_bytes` wrote.

        Raises:
            JobGraphVersionMismatch: it has another format version, or is no job graph.
        """
        header, _, body = data.partition(b"\n")
        if header != _MAGIC + b"%d" % JOB_GRAPH_VERSION:
            written = header[len(_MAGIC) :].decode(errors="replace") if header.startswith(_MAGIC) else "unknown"
            raise JobGraphVersionMismatch(written, JOB_GRAPH_VERSION)
        graph = pickle.loads(body)
        assert isinstance(graph, JobGraph)
        return graph
