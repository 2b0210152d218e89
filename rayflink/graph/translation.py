"""Translation of a recorded program to its stream graph.

Inputs are translated before what consumes them, each transformation once. A transformation that is logical becomes a
virtual node; when an edge is drawn to its consumer, the walk up to the real producer gathers what the virtual nodes
say, and what stands nearest to the consumer wins.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.functions.master_hook import MasterTriggerRestoreHook
from rayflink.common.options import registry as options
from rayflink.operators.broadcast_first import BroadcastFirst
from rayflink.operators.factory import Factory
from rayflink.operators.global_commits import GlobalCommitterOperator
from rayflink.operators.keyed.sorted_input import SortedInput

from .attributes import DEFAULT_SLOT_SHARING_GROUP, ChainingStrategy, ExchangeMode, NodeKind, ResourceSpec
from .checks import endless_source, ensure_distinct_destinations
from .errors import EmptyProgramError, ForwardParallelismError, PlanError, UnknownTransformationError
from .iteration_bodies import IterationBodies, iteration_bodies
from .partitioners import Forward, GlobalInOrder, Partitioner, Rebalance
from .stream_graph import StreamEdge, StreamGraph, StreamNode
from .trampoline import run_nested
from .transformations import (
    Cached,
    CoFeedback,
    Feedback,
    MultipleInput,
    OneInput,
    Partition,
    Select,
    SideOutput,
    Sink,
    Source,
    Split,
    Transformation,
    TwoInput,
    Union,
)

Key = tuple[int, int]
"""A node while the graph is built: (id of its transformation, 0), or 1 and up for the others made of the same one."""
Ids = tuple[Key, ...]
Steps = Generator[Generator[Any, Any, Ids], Ids, Ids]


@dataclass(frozen=True)
class PlanSettings:
    """The settings of the environment for the whole program.

    Args:
        name: of the job.
        parallelism: of operators that set none, >= 1.
        max_parallelism: of operators that set none; None for a choice by parallelism.
        buffer_timeout_ms: of operators that set none.
        chaining: False keeps every operator in a task of its own.
        batch: True for batch mode.
        configuration: option key -> value, for the tasks.
        user_artifacts: distributed cache, (name, path).
        slot_resources: what a slot of a slot sharing group has, (group, resources).
        master_hooks: called in the coordinator at checkpoints.
    """

    name: str = "Flink Streaming Job"
    parallelism: int = 1
    max_parallelism: int | None = None
    buffer_timeout_ms: int = 100
    chaining: bool = True
    batch: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)
    user_artifacts: tuple[tuple[str, str], ...] = ()
    slot_resources: tuple[tuple[str, ResourceSpec], ...] = ()
    master_hooks: tuple[MasterTriggerRestoreHook, ...] = ()


def stream_graph(transformations: Iterable[Transformation], settings: PlanSettings | None = None) -> StreamGraph:
    """Translate a program.

    Args:
        transformations: at least those without a consumer; inputs are found from them.
        settings: of the environment.

    Raises:
        EmptyProgramError: there is no transformation.
        UnknownTransformationError: a kind outside `transformations.py`.
        ForwardParallelismError: a forward edge between different parallelisms.
        MissingTypeError: a declared output type cannot be determined.
        PlanError: an attribute is out of range, or a cycle does not go through a Feedback.
    """
    return _Translation(settings or PlanSettings()).graph(tuple(transformations))


@dataclass(frozen=True)
class _Virtual:
    """A logical step between `upstream` and whoever consumes it."""

    upstream: Key
    partitioner: Partitioner | None = None
    exchange_mode: ExchangeMode = ExchangeMode.UNDEFINED
    tag_id: str | None = None
    selected_names: tuple[str, ...] = ()
    selector: int | None = None
    """The position of a split's selector in the producer's list."""
    call_site: str = ""


@dataclass(frozen=True)
class _Wanted:
    """An edge asked for; who the producer is and how it ships is found when all nodes are known."""

    upstream: Key
    target: Key
    input_index: int


class _Translation:
    def __init__(self, settings: PlanSettings) -> None:
        self._settings = settings
        self._done: dict[int, Ids] = {}
        self._open: set[int] = set()
        self._nodes: dict[Key, StreamNode] = {}
        self._virtual: dict[Key, _Virtual] = {}
        self._edges: list[_Wanted] = []
        self._loops: list[Feedback | CoFeedback] = []
        self._iterations = 0
        self._is_endless = False

    def graph(self, transformations: tuple[Transformation, ...]) -> StreamGraph:
        if not transformations:
            raise EmptyProgramError()
        self._is_endless = endless_source(transformations) is not None
        for transformation in transformations:
            run_nested(self._translate(transformation))
        while self._loops:
            run_nested(self._close(self._loops.pop(0)))
        number = {key: position for position, key in enumerate(sorted(self._nodes), start=1)}
        edges: dict[int, list[StreamEdge]] = {}
        for wanted in self._edges:
            into = edges.setdefault(number[wanted.target], [])
            into.append(self._resolve(wanted, number, len(into)))
        settings = self._settings
        drawn = tuple(edge for target in sorted(edges) for edge in edges[target])
        nodes = tuple(replace(self._nodes[key], id=number[key]) for key in sorted(self._nodes))
        ensure_distinct_destinations(nodes)
        looping = iteration_bodies(nodes, drawn)
        return StreamGraph(
            name=settings.name,
            nodes=self._in_batches(nodes, looping) if settings.batch else nodes,
            edges=tuple(_in_its_loop(edge, looping, settings.batch) for edge in drawn),
            chaining=settings.chaining,
            batch=settings.batch,
            max_parallelism=settings.max_parallelism,
            configuration=dict(settings.configuration),
            user_artifacts=settings.user_artifacts,
            slot_resources=settings.slot_resources,
            master_hooks=settings.master_hooks,
        )

    def _translate(self, transformation: Transformation) -> Steps:
        known = self._done.get(transformation.id)
        if known is not None:
            return known
        if transformation.id in self._open:
            remedy = "send records back with iterate() and close_with()"
            raise PlanError(f"{transformation.name!r} is an input of itself", remedy, transformation.call_site)
        self._open.add(transformation.id)
        transformation.check()
        ids = yield self._steps_of(transformation)
        self._open.discard(transformation.id)
        self._done[transformation.id] = ids
        return ids

    def _steps_of(self, transformation: Transformation) -> Steps:
        match transformation:
            case Source():
                return self._operator(transformation, NodeKind.SOURCE, ())
            case OneInput(key_selector=selector):
                return self._operator(transformation, NodeKind.ONE_INPUT, (selector,))
            case TwoInput(key_selector1=first, key_selector2=second):
                return self._operator(transformation, NodeKind.TWO_INPUT, (first, second))
            case MultipleInput(key_selectors=selectors):
                return self._operator(transformation, NodeKind.MULTIPLE_INPUT, selectors)
            case Sink():
                return self._sink(transformation)
            case Union():
                return self._union(transformation)
            case Partition(partitioner=partitioner, exchange_mode=mode):
                return self._logical(transformation, partitioner=partitioner, exchange_mode=mode)
            case SideOutput(tag_id=tag_id):
                return self._logical(transformation, tag_id=tag_id)
            case Select(selected_names=names):
                return self._logical(transformation, selected_names=tuple(names), call_site=transformation.call_site)
            case Cached():
                return self._cached(transformation)
            case Split():
                return self._split(transformation)
            case Feedback() | CoFeedback():
                return self._feedback(transformation)
        raise UnknownTransformationError(repr(transformation))

    def _operator(self, transformation: Any, kind: NodeKind, key_selectors: tuple[Any, ...]) -> Steps:
        inputs = []
        for source in transformation.inputs:
            inputs.append((yield self._translate(source)))
        key = (transformation.id, 0)
        prefix = {NodeKind.SOURCE: "Source: ", NodeKind.SINK: "Sink: "}.get(kind, "")
        settings = self._settings
        self._nodes[key] = StreamNode(
            id=0,
            name=transformation.name if transformation.name.startswith(prefix) else prefix + transformation.name,
            kind=kind,
            parallelism=settings.parallelism if transformation.parallelism is None else transformation.parallelism,
            max_parallelism=transformation.max_parallelism,
            uid=transformation.uid,
            uid_hash=transformation.uid_hash,
            identity=transformation.identity,
            slot_sharing_group=self._group(transformation.slot_sharing_group, [key for keys in inputs for key in keys]),
            co_location_group_key=transformation.co_location_group_key,
            buffer_timeout_ms=self._buffer_timeout_ms(transformation),
            min_resources=transformation.min_resources,
            preferred_resources=transformation.preferred_resources,
            chaining_strategy=transformation.chaining_strategy,
            description=transformation.description,
            stoppable=transformation.stoppable if isinstance(transformation, Source) else True,
            operator_factory=transformation.operator_factory,
            key_selectors=key_selectors,
            output_type=transformation.declared_type(),
            call_site=transformation.call_site,
        )
        for input_index, keys in enumerate(inputs):
            self._edges.extend(_Wanted(upstream, key, input_index) for upstream in keys)
        return (key,)

    def _sink(self, transformation: Sink) -> Steps:
        """Translate a sink, one with a global committer into its writers and that committer."""
        sink = getattr(transformation.operator_factory, "sink", None)
        keys = yield from self._operator(transformation, NodeKind.SINK, (transformation.key_selector,))
        if sink is None or not sink.commits_globally:
            return keys
        writer, edge, committer = (transformation.id, 0), (transformation.id, 1), (transformation.id, 2)
        node = self._nodes[writer]
        self._nodes[writer] = replace(node, name=f"{node.name}: Writer", kind=NodeKind.ONE_INPUT)
        names = {name: getattr(node, name) for name in ("uid", "uid_hash", "identity")}
        own = next((f"Global Committer: {name}" for name in names.values() if name is not None), None)
        self._nodes[committer] = replace(
            node,
            name=f"{node.name}: Global Committer",
            parallelism=1,
            max_parallelism=None,
            uid=None if names["uid"] is names["uid_hash"] is None else own,
            uid_hash=None,
            identity=None if names["identity"] is None else own,
            co_location_group_key=None,
            operator_factory=Factory(GlobalCommitterOperator, sink.create_global_committer),
            key_selectors=(None,),
        )
        self._virtual[edge] = _Virtual(writer, GlobalInOrder())
        self._edges.append(_Wanted(edge, committer, 0))
        return (committer,)

    def _buffer_timeout_ms(self, transformation: Transformation) -> int:
        """Return the operator's buffer timeout, else the environment's; -1 leaves it unset, as in Flink."""
        own = transformation.buffer_timeout_ms
        return self._settings.buffer_timeout_ms if own is None or own < 0 else own

    def _in_batches(self, nodes: tuple[StreamNode, ...], looping: IterationBodies) -> tuple[StreamNode, ...]:
        """Sort a keyed input and read a broadcast one first in batch mode; not in loops, whose records come bit by
        bit.
        """
        sorts = Configuration.from_dict(dict(self._settings.configuration)).get(options.SORTED_INPUTS)
        inside = frozenset().union(*looping.values())

        def made(node: StreamNode) -> StreamNode:
            if node.operator_factory is None or node.id in inside:
                return node
            if sorts and node.is_keyed:
                return replace(node, operator_factory=SortedInput(node.operator_factory))
            if node.kind is NodeKind.TWO_INPUT:
                return replace(node, operator_factory=BroadcastFirst(node.operator_factory))
            return node

        return tuple(map(made, nodes))

    def _union(self, union: Union) -> Steps:
        if not union.sources:
            raise PlanError("a union of no streams", "pass at least one stream", union.call_site)
        together: list[Key] = []
        for transformation in union.sources:
            together.extend((yield self._translate(transformation)))
        return tuple(together)

    def _logical(self, transformation: Any, **says: Any) -> Steps:
        upstream = yield self._translate(transformation.input)
        keys = tuple((transformation.id, position) for position in range(len(upstream)))
        self._virtual.update((key, _Virtual(real, **says)) for key, real in zip(keys, upstream, strict=True))
        return keys

    def _split(self, split: Split) -> Steps:
        upstream = yield self._translate(split.input)
        places: dict[Key, int] = {}
        for key in dict.fromkeys(map(self._producer, upstream)):
            node = self._nodes[key]
            places[key] = len(node.output_selectors)
            self._nodes[key] = replace(node, output_selectors=(*node.output_selectors, split.selector))
        keys = tuple((split.id, position) for position in range(len(upstream)))
        for key, real in zip(keys, upstream, strict=True):
            self._virtual[key] = _Virtual(real, selector=places[self._producer(real)], call_site=split.call_site)
        return keys

    def _cached(self, transformation: Cached) -> Steps:
        """Return a source that reads the result an earlier job has kept; else the stream itself, with a sink that keeps
        it.
        """
        if transformation.result.is_complete:
            return (
                self._cache_node(
                    (transformation.id, 0), transformation, NodeKind.SOURCE, transformation.result.partitions
                ),
            )
        upstream = yield self._translate(transformation.input)
        if transformation.result.is_wanted:
            before = self._nodes[self._producer(upstream[0])]
            sink = self._cache_node((transformation.id, 1), transformation, NodeKind.SINK, before.parallelism)
            self._nodes[sink] = replace(self._nodes[sink], slot_sharing_group=before.slot_sharing_group)
            self._edges.extend(_Wanted(key, sink, 0) for key in upstream)
        return upstream

    def _cache_node(self, key: Key, transformation: Cached, kind: NodeKind, parallelism: int) -> Key:
        is_source = kind is NodeKind.SOURCE
        self._nodes[key] = StreamNode(
            id=0,
            name="Source: Cache" if is_source else "Sink: Cache",
            kind=kind,
            parallelism=parallelism,
            buffer_timeout_ms=self._settings.buffer_timeout_ms,
            operator_factory=transformation.result.reader if is_source else transformation.result.writer,
            key_selectors=() if is_source else (None,),
            output_type=transformation.declared_type() if is_source else None,
            call_site=transformation.call_site,
        )
        return key

    def _feedback(self, transformation: Feedback | CoFeedback) -> Steps:
        """Translate the head of an iteration; no edge joins it to the tail, so that the graph has no cycle."""
        if not transformation.feedback_edges:
            raise PlanError(
                f"Iteration {transformation.name!r} does not have any feedback edges.",
                "call close_with()",
                transformation.call_site,
            )
        head = (transformation.id, 0)
        inputs: Ids = ()
        if isinstance(transformation, Feedback):
            inputs = yield self._translate(transformation.input)
        self._iterations += 1
        parallelism = transformation.parallelism
        if parallelism is None:
            parallelism = self._nodes[self._producer(inputs[0])].parallelism if inputs else self._settings.parallelism
        opened = StreamNode(
            id=0,
            name=f"IterationSource-{transformation.name}",
            kind=NodeKind.ITERATION_HEAD,
            parallelism=parallelism,
            max_parallelism=transformation.max_parallelism,
            co_location_group_key=transformation.co_location_group_key or f"iteration-{self._iterations}",
            buffer_timeout_ms=self._settings.buffer_timeout_ms,
            slot_sharing_group=self._group(transformation.slot_sharing_group, list(inputs)),
            chaining_strategy=ChainingStrategy.NEVER,
            iteration=self._iterations,
            iteration_wait_ms=transformation.wait_ms,
            is_endless=self._is_endless,
            call_site=transformation.call_site,
        )
        self._nodes[head] = opened
        self._loops.append(transformation)
        return (*inputs, head)

    def _close(self, loop: Feedback | CoFeedback) -> Steps:
        """Translate the tail of an iteration, once everything else is translated."""
        fed_back: list[Key] = []
        for transformation in loop.feedback_edges:
            fed_back.extend((yield self._translate(transformation)))
        head, tail = (loop.id, 0), (loop.id, 1)
        opened = self._nodes[head]
        for key in fed_back:
            node = self._nodes[self._producer(key)]
            if node.parallelism != opened.parallelism:
                raise PlanError(
                    f"feedback from {node.label} has parallelism {node.parallelism}, "
                    f"the iteration {opened.parallelism}",
                    _one_parallelism(node.parallelism, opened.parallelism),
                    loop.call_site,
                )
        group = self._group(loop.slot_sharing_group, fed_back)
        self._nodes[head] = replace(opened, slot_sharing_group=group)
        self._nodes[tail] = replace(self._nodes[head], name=f"IterationSink-{loop.name}", kind=NodeKind.ITERATION_TAIL)
        self._edges.extend(_Wanted(key, tail, 0) for key in fed_back)
        return (tail,)

    def _producer(self, key: Key) -> Key:
        while (virtual := self._virtual.get(key)) is not None:
            key = virtual.upstream
        return key

    def _group(self, own: str | None, inputs: list[Key]) -> str:
        """Return the own slot sharing group, else the one all inputs share, else the default."""
        if own is not None:
            return own
        groups = {self._nodes[self._producer(key)].slot_sharing_group for key in inputs}
        return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_SHARING_GROUP

    def _resolve(self, wanted: _Wanted, number: Mapping[Key, int], ordinal: int) -> StreamEdge:
        key = wanted.upstream
        partitioner: Partitioner | None = None
        mode = ExchangeMode.UNDEFINED
        tag_id: str | None = None
        selection: list[_Virtual] = []
        while (virtual := self._virtual.get(key)) is not None:
            key = virtual.upstream
            if partitioner is None:
                partitioner, mode = virtual.partitioner, virtual.exchange_mode
            tag_id = virtual.tag_id if tag_id is None else tag_id
            if virtual.selected_names or virtual.selector is not None:
                selection.append(virtual)
        producer, consumer = self._nodes[key], self._nodes[wanted.target]
        same = producer.parallelism == consumer.parallelism
        if partitioner is None:
            partitioner = Forward() if same else Rebalance()
        if isinstance(partitioner, Forward) and not same:
            raise ForwardParallelismError(producer.name, producer.parallelism, consumer.name, consumer.parallelism)
        return StreamEdge(
            number[key],
            number[wanted.target],
            partitioner,
            wanted.input_index,
            ordinal,
            tag_id,
            *_selected(selection),
            mode,
        )


def _selected(steps: list[_Virtual]) -> tuple[tuple[str, ...], int]:
    """Return the names that a consumer gets of a split, and the position of the split's selector.

    Args:
        steps: the selections and splits between the consumer and its producer, from the consumer up; of selections one
            behind the other the nearest counts.

    Raises:
        PlanError: what was selected of a split is split again.
    """
    splits = [index for index, step in enumerate(steps) if step.selector is not None]
    names = steps[0].selected_names if steps else ()
    if len(splits) > 1 and splits[1] > splits[0] + 1:
        problem = "what was selected of a split stream is split again"
        remedy = "put a step between them, such as map(lambda value: value), or use side outputs"
        raise PlanError(problem, remedy, steps[splits[0]].call_site)
    return names, (steps[splits[0]].selector or 0) if splits else 0


def _one_parallelism(parallelism: int, wanted: int) -> str:
    """Bring the step that is fed back and the iteration to one parallelism."""
    if parallelism > wanted:
        deal = ".rebalance().map(lambda value: value)"
        return (
            f"call set_parallelism({wanted}) on the step that is fed back; "
            f"or, for {parallelism} subtasks, put {deal} in front of iterate(), as iterate() has the parallelism of "
            "its input"
        )
    return f"call set_parallelism({wanted}) on the step that is fed back"


def _in_its_loop(edge: StreamEdge, looping: IterationBodies, batch: bool) -> StreamEdge:
    """Return the edge with the loop it belongs to; in batch mode too the steps of a loop run at the same time."""
    inside = [number for number, nodes in looping.items() if edge.source in nodes and edge.target in nodes]
    if not inside:
        return edge
    return replace(edge, iteration=inside[0], exchange_mode=ExchangeMode.PIPELINED if batch else edge.exchange_mode)
