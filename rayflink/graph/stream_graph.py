"""The logical graph of a program: one node an operator, one edge a way between two.

Partition, Union, SideOutput, Split and Select are gone here: they are folded into the edges (`translation.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.functions.callables import SplitBy
from rayflink.common.functions.master_hook import MasterTriggerRestoreHook

from .attributes import DEFAULT_SLOT_SHARING_GROUP, ChainingStrategy, ExchangeMode, NodeKind, ResourceSpec
from .partitioners import Partitioner
from .transformations import KeySelector, OperatorFactory


@dataclass(frozen=True)
class StreamNode:
    """One operator with its attributes.

    Args:
        id: 1 for the operator the program created first, 2 for the second, ...
        name: "Source: " or "Sink: " and the name the program gave, or that name alone.
        max_parallelism: None until the job graph chooses.
        buffer_timeout_ms: of the batches it sends.
        iteration: number that head and tail of one iteration share, from 1, else None.
        iteration_wait_ms: accepted for Flink's sake.
        is_endless: whether the input of the iteration may have no end.
        key_selectors: one an input, None where the input is not keyed.
        output_selectors: one for each split of the operator's output.
        output_type: None where unknown.
        call_site: the line of the user's program that created the operator.
    """

    id: int
    name: str
    kind: NodeKind
    parallelism: int
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    identity: str | None = None
    slot_sharing_group: str = DEFAULT_SLOT_SHARING_GROUP
    co_location_group_key: str | None = None
    buffer_timeout_ms: int = 100
    min_resources: ResourceSpec | None = None
    preferred_resources: ResourceSpec | None = None
    chaining_strategy: ChainingStrategy = ChainingStrategy.ALWAYS
    description: str | None = None
    iteration: int | None = None
    iteration_wait_ms: int = 0
    is_endless: bool = False
    stoppable: bool = True
    operator_factory: OperatorFactory | None = field(default=None, compare=False, repr=False)
    key_selectors: tuple[KeySelector | None, ...] = field(default=(), compare=False, repr=False)
    output_selectors: tuple[SplitBy, ...] = field(default=(), compare=False, repr=False)
    output_type: TypeInformation | None = field(default=None, compare=False, repr=False)
    call_site: str = field(default="", compare=False, repr=False)

    @property
    def is_keyed(self) -> bool:
        """Return whether one of the inputs is keyed."""
        return any(selector is not None for selector in self.key_selectors)

    @property
    def label(self) -> str:
        """Return the name with the line that created the operator, for messages."""
        return f"{self.name!r} (created at {self.call_site})" if self.call_site else repr(self.name)


@dataclass(frozen=True)
class StreamEdge:
    """A way from one operator to another.

    Args:
        input_index: the number of the input of an operator with several, from 0 on.
        ordinal: position among the edges into the target, from 0.
        tag_id: the side output it carries; None for the main output.
        selected_names: only records that a split gave one of these names; empty for all.
        selector: position of that split's selector in `output_selectors` of the producer.
        iteration: number of the loop both ends stand in.
    """

    source: int
    target: int
    partitioner: Partitioner
    input_index: int = 0
    ordinal: int = 0
    tag_id: str | None = None
    selected_names: tuple[str, ...] = ()
    selector: int = 0
    exchange_mode: ExchangeMode = ExchangeMode.UNDEFINED
    iteration: int | None = None

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True)
class StreamGraph:
    """A program's operators and the ways between them, a value.

    Args:
        nodes: ascending by id.
        edges: grouped by target, in the order of its inputs.
        chaining: False keeps every operator in a task of its own.
        batch: True for batch mode (blocking results, lazy scheduling).
        max_parallelism: the job's default, None for a choice by parallelism.
        configuration: option key -> value, for the tasks.
        user_artifacts: distributed cache, (name, path).
        slot_resources: what a slot of a slot sharing group has, (group, resources).
        master_hooks: called in the coordinator at checkpoints.
    """

    name: str
    nodes: tuple[StreamNode, ...]
    edges: tuple[StreamEdge, ...]
    chaining: bool = True
    batch: bool = False
    max_parallelism: int | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)
    user_artifacts: tuple[tuple[str, str], ...] = ()
    slot_resources: tuple[tuple[str, ResourceSpec], ...] = ()
    master_hooks: tuple[MasterTriggerRestoreHook, ...] = ()

    @cached_property
    def _by_id(self) -> dict[int, StreamNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def _edges_by_end(self) -> tuple[dict[int, tuple[StreamEdge, ...]], dict[int, tuple[StreamEdge, ...]]]:
        into: dict[int, list[StreamEdge]] = {}
        out: dict[int, list[StreamEdge]] = {}
        for edge in self.edges:
            into.setdefault(edge.target, []).append(edge)
            out.setdefault(edge.source, []).append(edge)
        return {k: tuple(v) for k, v in into.items()}, {k: tuple(v) for k, v in out.items()}

    def node(self, node_id: int) -> StreamNode:
        """Return the operator with that id."""
        return self._by_id[node_id]

    def in_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        """Return the edges into an operator, in the order of its inputs."""
        return self._edges_by_end[0].get(node_id, ())

    def out_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        """Return the edges out of an operator, in the order in which their consumers were created."""
        return self._edges_by_end[1].get(node_id, ())

    @property
    def sources(self) -> tuple[StreamNode, ...]:
        """Return the operators without an input."""
        return tuple(node for node in self.nodes if node.kind.is_source)

    @property
    def sinks(self) -> tuple[StreamNode, ...]:
        """Return the operators that write records to the outside."""
        return tuple(node for node in self.nodes if node.kind.is_sink)

    def __str__(self) -> str:
        lines = [f"StreamGraph {self.name!r}"]
        for node in self.nodes:
            lines.append(f"  {node.id} {node.name} x{node.parallelism}")
            for edge in self.in_edges(node.id):
                tag = f" side output {edge.tag_id!r}" if edge.tag_id is not None else ""
                names = f" selecting {', '.join(edge.selected_names)}" if edge.selected_names else ""
                input_label = f" at input {edge.input_index}" if edge.input_index else ""
                lines.append(f"    <- {edge.source} {edge.partitioner}{tag}{names}{input_label}")
        return "\n".join(lines)
