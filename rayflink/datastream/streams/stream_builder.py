"""Steps of a stream program that another front end adds, such as SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rayflink.common.functions.function_classes import KeyBy
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.graph import transformations as graph
from rayflink.graph.checks import endless_source
from rayflink.graph.partitioners import Broadcast, Global, KeyGroup, Partitioner
from rayflink.operators.factory import Factory

from .recording import record_multiple_inputs, record_operator, record_two_inputs
from .step import Step, transformation_of
from .stream import DataStream


class StreamBuilder:
    """Builds a stream program step by step, for front ends that choose the operators themselves.

    It stands for the output of one step. Methods that add a step return the builder of the new step; setters change the
    step and return the builder itself. Beyond `DataStream` it adds operators of any class, partitions rows without
    making a keyed stream of them, gives steps an identity, and keeps the parallelism of the step before where changes
    of a row must stay in order. `stream` is the same output as a `DataStream`.

    Args:
        stream: whose program the steps are added to.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> from rayflink.operators.stateless import MapOperator
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> numbers = StreamBuilder(env.from_collection([1, 2]))
    >>> doubled = numbers.single_partition().add_operator("Double", Factory(MapOperator, lambda n: 2 * n))
    >>> list(doubled.set_parallelism(1).set_description("twice each number").stream.execute_and_collect())
    [2, 4]
    """

    __slots__ = ("stream",)

    def __init__(self, stream: DataStream) -> None:
        self.stream = stream

    # the step

    @property
    def declared_type(self) -> Any:
        """Return the declared type of the records, None where unknown.

        Raises:
            MissingTypeError: a type was declared that cannot be determined.
        """
        return transformation_of(self.stream).declared_type()

    @property
    def parallelism(self) -> int | None:
        """Return the number of subtasks, of a union that of all inputs; None: the program's, or the inputs differ."""
        return _parallelism(transformation_of(self.stream))

    @property
    def step_id(self) -> int:
        """Return the id of the step; ids ascend in the order in which steps are added."""
        return transformation_of(self.stream).id

    def endless_source(self, limits: Collection[int] = ()) -> graph.Transformation | None:
        """Return a source upstream that has no end; None: all end.

        Args:
            limits: ids of steps that end their input, such as LIMIT; what is upstream of them does not count.
        """
        return endless_source([transformation_of(self.stream)], limits)

    # new steps

    def add_operator(
        self, name: str, factory: Factory, key_selector: KeyBy | None = None, identity: str | None = None
    ) -> StreamBuilder:
        """Add an operator on the stream's batches.

        Args:
            name: shown to people.
            factory: makes the operator.
            key_selector: by which its rows are partitioned, where it has keyed state.
            identity: see `set_identity`.
        """
        env = self.stream.get_execution_environment()
        step = record_operator(env, transformation_of(self.stream), name, factory, None, key_selector)
        step.identity = identity
        return self._after(step)

    def add_two_input_operator(
        self,
        other: StreamBuilder,
        name: str,
        factory: Factory,
        key_selectors: tuple[KeyBy | None, KeyBy | None] = (None, None),
        identity: str | None = None,
    ) -> StreamBuilder:
        """Add an operator on this stream, its first input, and another one; see `add_operator`."""
        steps = transformation_of(self.stream), transformation_of(other.stream)
        env = self.stream.get_execution_environment()
        step = record_two_inputs(env, steps, name, factory, None, key_selectors)
        step.identity = identity
        return self._after(step)

    def add_multiple_input_operator(
        self,
        others: Sequence[StreamBuilder],
        name: str,
        factory: Factory,
        key_selectors: Sequence[KeyBy | None],
        identity: str | None = None,
    ) -> StreamBuilder:
        """Add an operator on this stream, its first input, and on others, in their order; see `add_operator`."""
        steps = [transformation_of(builder.stream) for builder in (self, *others)]
        env = self.stream.get_execution_environment()
        step = record_multiple_inputs(env, steps, name, factory, key_selectors)
        step.identity = identity
        return self._after(step)

    def assign_watermarks(self, strategy: WatermarkStrategy) -> StreamBuilder:
        """Add a step that gives rows their event times, and emits watermarks."""
        return StreamBuilder(self.stream.assign_timestamps_and_watermarks(strategy))

    def hash_partition(self, key_selector: KeyBy) -> StreamBuilder:
        """Send rows of equal keys to the same subtask of the next step, by key group."""
        return self._partitioned(KeyGroup(key_selector))

    def single_partition(self) -> StreamBuilder:
        """Send all rows to the first subtask of the next step."""
        return self._partitioned(Global())

    def broadcast(self) -> StreamBuilder:
        """Send every row to all subtasks of the next step."""
        return self._partitioned(Broadcast())

    def union(self, *others: StreamBuilder) -> StreamBuilder:
        """Merge the stream with others of the same type."""
        return StreamBuilder(self.stream.union(*(other.stream for other in others)))

    def run_without_sink(self) -> None:
        """Make the step an end of the program, so that plans show it although nothing reads it."""
        self.stream.get_execution_environment().add(transformation_of(self.stream))

    def _partitioned(self, partitioner: Partitioner) -> StreamBuilder:
        return self._after(graph.Partition(transformation_of(self.stream), partitioner))

    def _after(self, step: graph.Transformation) -> StreamBuilder:
        return StreamBuilder(DataStream(self.stream.get_execution_environment(), step))

    # settings of the step

    def set_description(self, description: str) -> StreamBuilder:
        """Set the line that plans show."""
        self.stream.set_description(description)
        return self

    def set_parallelism(self, parallelism: int) -> StreamBuilder:
        """Set the number of subtasks, at least 1."""
        self.stream.set_parallelism(parallelism)
        return self

    def set_type(self, output_type: Any) -> StreamBuilder:
        """Declare the type of the records, which are taken as they are."""
        transformation_of(self.stream).output_type = output_type
        return self

    def keep_parallelism(self, before: StreamBuilder) -> StreamBuilder:
        """Give the step the parallelism of another one, unless it has its own; see `keep_parallelism`."""
        keep_parallelism(self.stream, before)
        return self

    def set_source_identity(self, identity: str, newest: int) -> StreamBuilder:
        """Set the identity of the sources upstream whose ids are above `newest`; others are the user's own."""
        _identify_sources(transformation_of(self.stream), identity, newest)
        return self


def keep_parallelism(step: Step, before: StreamBuilder) -> None:
    """Give a step, such as a sink, the parallelism of the one before it, unless it has its own: order is kept then.

    Source: apache/flink ExecNode: steps without state have the parallelism of their input.
    """
    transformation, parallelism = transformation_of(step), before.parallelism
    if parallelism is not None and transformation.parallelism is None:
        step.set_parallelism(parallelism)


def set_sink_identity(step: Step, identity: str) -> None:
    """Set the identity under which the state of a sink is found; a step that is no sink keeps its own."""
    transformation = transformation_of(step)
    if isinstance(transformation, graph.Sink):
        transformation.identity = identity


def _identify_sources(step: graph.Transformation, identity: str, newest: int) -> None:
    if step.id > newest:
        if isinstance(step, graph.Source):
            step.identity = identity
        for before in step.inputs:
            _identify_sources(before, identity, newest)


def _parallelism(step: graph.Transformation) -> int | None:
    if isinstance(step, graph.Union):
        numbers = {_parallelism(before) for before in step.inputs}
        return numbers.pop() if len(numbers) == 1 else None
    is_passed_on = isinstance(step, (graph.Partition, graph.SideOutput))
    return _parallelism(step.inputs[0]) if is_passed_on else step.parallelism


__all__ = ["StreamBuilder", "keep_parallelism", "set_sink_identity"]
