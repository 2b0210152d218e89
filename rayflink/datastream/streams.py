"""Streams: what can be done with records of any kind. Every step returns a new stream; nothing runs before `execute`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rayflink.common.functions import as_key_selector, as_partitioner
from rayflink.common.output_tag import OutputTag
from rayflink.common.sink import Sink
from rayflink.common.time import Duration, to_millis
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.printing import PrintSink
from rayflink.graph import partitioners
from rayflink.graph import transformations as graph
from rayflink.graph.attributes import ChainingStrategy
from rayflink.graph.errors import PlanError
from rayflink.operators.process import ProcessOperator
from rayflink.operators.sinks import SinkFunctionOperator, SinkOperator
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from rayflink.operators.watermarks import TimestampsAndWatermarksOperator

from .selectors import field_selector

if TYPE_CHECKING:
    from .environment import StreamExecutionEnvironment
    from .keyed import KeyedStream


class Factory:
    """Makes an operator from its class and arguments; pickles as those."""

    def __init__(self, operator: Callable[..., Any], *arguments: Any) -> None:
        self._operator, self._arguments = operator, arguments

    def __call__(self) -> Any:
        return self._operator(*self._arguments)


class DataStream:
    """A stream of records.

    Args:
        env: the environment it belongs to.
        transformation: the step whose output it is.
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: graph.Transformation) -> None:
        self._env = env
        self._transformation = transformation

    # attributes of the step just written

    def name(self, name: str) -> DataStream:
        """Name the operator."""
        self._transformation.name = name
        return self

    def get_name(self) -> str:
        """The operator's name."""
        return self._transformation.name

    def uid(self, uid: str) -> DataStream:
        """Give the operator an identity that outlives changes of the program; state is found by it."""
        self._transformation.uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> DataStream:
        """Set the operator id itself, 32 hex digits."""
        self._transformation.uid_hash = uid_hash
        return self

    def set_description(self, description: str) -> DataStream:
        """A longer text for plans."""
        self._transformation.description = description
        return self

    def set_parallelism(self, parallelism: int) -> DataStream:
        """Run the operator in so many subtasks, at least 1."""
        self._transformation.parallelism = parallelism
        return self

    def set_max_parallelism(self, max_parallelism: int) -> DataStream:
        """Give the operator so many key groups, in [1, 32768]."""
        self._transformation.max_parallelism = max_parallelism
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> DataStream:
        """How long the operator's output waits for a fuller batch: ms, 0 not at all, -1 until it is full."""
        self._transformation.buffer_timeout_ms = timeout_millis
        return self

    def slot_sharing_group(self, group: str) -> DataStream:
        """Share slots only with operators of this group."""
        self._transformation.slot_sharing_group = group
        return self

    def start_new_chain(self) -> DataStream:
        """Begin a task with this operator."""
        self._transformation.chaining_strategy = ChainingStrategy.HEAD
        return self

    def disable_chaining(self) -> DataStream:
        """Run this operator in a task of its own."""
        self._transformation.chaining_strategy = ChainingStrategy.NEVER
        return self

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment the stream belongs to."""
        return self._env

    # record by record

    def map(self, func: Any, output_type: Any = None) -> DataStream:
        """One result for each record.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> env.from_collection(["a", "bc"]).map(len).execute_and_collect()
        [1, 2]
        """
        return self._one_input("Map", Factory(MapOperator, func), output_type)

    def flat_map(self, func: Any, output_type: Any = None) -> DataStream:
        """Any number of results for each record: `func` returns or yields them."""
        return self._one_input("Flat Map", Factory(FlatMapOperator, func), output_type)

    def filter(self, func: Any) -> DataStream:
        """The records for which `func` is true."""
        return self._one_input("Filter", Factory(FilterOperator, func), self._transformation.output_type)

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        """Any number of results for each record, and side outputs: `yield tag, value`."""
        return self._one_input("PROCESS", Factory(ProcessOperator, func), output_type)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give each record its event time, and the stream its watermarks."""
        from rayflink.common import options

        interval = self._env.get_configuration().get(options.AUTO_WATERMARK_INTERVAL).to_millis()
        factory = Factory(TimestampsAndWatermarksOperator, watermark_strategy, interval)
        return self._one_input("Timestamps/Watermarks", factory, self._transformation.output_type)

    # several streams

    def union(self, *streams: DataStream) -> DataStream:
        """All records of this stream and of `streams`."""
        inputs = (self._transformation, *(stream._transformation for stream in streams))
        return DataStream(self._env, graph.Union(inputs))

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """What the operator sent to a side output."""
        return DataStream(self._env, graph.SideOutput(self._transformation, output_tag.tag_id))

    # who gets which record

    def key_by(self, key_selector: Any, key_type: Any = None) -> KeyedStream:
        """Records of equal keys to the same subtask.

        Args:
            key_selector: a function or KeySelector, a field name, an index, or a tuple of names or indexes.
        """
        from .keyed import KeyedStream

        selector = as_key_selector(field_selector(key_selector)).call
        strategy = partitioners.KeyGroup(selector)
        return KeyedStream(self._env, graph.Partition(self._transformation, strategy), selector)

    def shuffle(self) -> DataStream:
        """Each record to a subtask drawn at random."""
        return self._partitioned(partitioners.Shuffle())

    def rebalance(self) -> DataStream:
        """To all subtasks in turn."""
        return self._partitioned(partitioners.Rebalance())

    def rescale(self) -> DataStream:
        """In turn to a few subtasks near by."""
        return self._partitioned(partitioners.Rescale())

    def forward(self) -> DataStream:
        """To the subtask of the same index; needs equal parallelism."""
        return self._partitioned(partitioners.Forward())

    def broadcast(self) -> DataStream:
        """Every record to every subtask."""
        return self._partitioned(partitioners.Broadcast())

    def global_(self) -> DataStream:
        """Everything to the first subtask."""
        return self._partitioned(partitioners.Global())

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """To the subtask that `partitioner(key, number of subtasks)` names."""
        choose = as_partitioner(partitioner).call
        key_of = as_key_selector(field_selector(key_selector)).call
        return self._partitioned(partitioners.Custom(choose, key_of))

    # results

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the records to a `Sink`."""
        if not isinstance(sink, Sink):
            raise TypeError(f"sink_to needs a Sink, found {type(sink).__name__}; use add_sink for a function")
        name = sink.name if getattr(sink, "name", None) else "Writer"
        return self._sink(str(name), Factory(SinkOperator, sink))

    def add_sink(self, sink_func: Any) -> DataStreamSink:
        """Call a function, or `SinkFunction.invoke`, with each record."""
        return self._sink("Unnamed", Factory(SinkFunctionOperator, sink_func))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records to the standard output of the tasks, as Flink does."""
        return self._sink("Print to Std. Out", Factory(SinkOperator, PrintSink(sink_identifier or "")))

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records to the standard error of the tasks."""
        return self._sink("Print to Std. Err", Factory(SinkOperator, PrintSink(sink_identifier or "", True)))

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> list[Any]:
        """Run the program and return the stream's records.

        Args:
            limit: return at most so many.
        """
        self._sink("Collect", Factory(SinkOperator, CollectSink("collect"))).set_parallelism(1)
        rows = self._env.execute(job_execution_name).get_accumulator_result("collect") or []
        return list(rows) if limit is None else list(rows)[:limit]

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a stream is not iterable before it has run; use execute_and_collect()")

    # how steps are recorded

    def _one_input(self, name: str, factory: Factory, output_type: Any = None, key: Any = None) -> DataStream:
        step = graph.OneInput(self._transformation, factory, key, name=name, output_type=output_type)
        self._env.add(step)
        return DataStream(self._env, step)

    def _sink(self, name: str, factory: Factory) -> DataStreamSink:
        label = name if name.startswith("Sink: ") else f"Sink: {name}"
        step = graph.Sink(self._transformation, factory, name=label)
        self._env.add(step)
        return DataStreamSink(step)

    def _partitioned(self, strategy: partitioners.Partitioner) -> DataStream:
        return DataStream(self._env, graph.Partition(self._transformation, strategy))


class DataStreamSink:
    """The end of a stream; its operator can still be named and sized."""

    def __init__(self, transformation: graph.Sink) -> None:
        self._transformation = transformation

    def name(self, name: str) -> DataStreamSink:
        """Name the sink; shown as "Sink: name"."""
        self._transformation.name = f"Sink: {name}"
        return self

    def uid(self, uid: str) -> DataStreamSink:
        """Give the sink an identity that outlives changes of the program."""
        self._transformation.uid = uid
        return self

    def set_parallelism(self, parallelism: int) -> DataStreamSink:
        """Write in so many subtasks."""
        self._transformation.parallelism = parallelism
        return self

    def slot_sharing_group(self, group: str) -> DataStreamSink:
        """Share slots only with operators of this group."""
        self._transformation.slot_sharing_group = group
        return self

    def disable_chaining(self) -> DataStreamSink:
        """Run the sink in a task of its own."""
        self._transformation.chaining_strategy = ChainingStrategy.NEVER
        return self


def millis(duration: int | Duration | timedelta) -> int:
    """Milliseconds of a duration; an int is milliseconds already."""
    return duration if isinstance(duration, int) else to_millis(duration)


__all__ = ["DataStream", "DataStreamSink", "Factory", "PlanError", "millis"]
