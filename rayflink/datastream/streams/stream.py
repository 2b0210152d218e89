"""Streams and the operations on their records. Every step returns a new stream; nothing runs before `execute`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, overload

from rayflink.common.connector_base.sink import Sink
from rayflink.common.errors import shorten
from rayflink.common.execution_config import ExecutionConfig
from rayflink.common.functions.callables import SplitBy, as_output_selector
from rayflink.common.functions.function_classes import KeyBy, KeyedProcessFunction, as_key_selector
from rayflink.common.functions.type_variables import Record, Result, Selected
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.print_form import PrintForm
from rayflink.common.typeinfo import Types
from rayflink.common.user_code.actor_pool import ActorPool, as_pool
from rayflink.common.watermarks import WatermarkStrategy, ensure_strategy
from rayflink.connectors.collected import DrawnSink
from rayflink.connectors.printing import PrintSink
from rayflink.graph import partitioners
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError
from rayflink.operators.async_io.pooled_batches import PooledBatchesOperator
from rayflink.operators.columnar import MapBatchesOperator
from rayflink.operators.event_time.watermark_operator import TimestampsAndWatermarksOperator
from rayflink.operators.factory import Factory
from rayflink.operators.global_commits import SinkWriterOperator
from rayflink.operators.process import ProcessOperator
from rayflink.operators.sinks import SinkFunctionOperator, SinkOperator
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator, ProjectOperator
from rayflink.user_types import TypeHint, UserCode

from ..data_stream_sink import DataStreamSink
from .closeable_iterator import CloseableIterator
from .fields import check_fields
from .recording import SAME_RECORDS, SAME_TYPE, record_operator
from .redistribution import Redistribution
from .selectors import field_selector
from .step import as_type
from .windows_of_all import WindowsOfAll

if TYPE_CHECKING:
    from rayflink.state.descriptors import MapStateDescriptor

    from ..environment import StreamExecutionEnvironment
    from .broadcast import BroadcastConnectedStream, BroadcastStream
    from .cached import CachedDataStream
    from .connected import ConnectedStreams
    from .function_types import (
        FieldForm,
        FilterForm,
        FlatMapForm,
        KeyForm,
        MapForm,
        ProcessForm,
        SelectForm,
        SinkForm,
    )
    from .iterations import IterativeStream
    from .joined import CoGroupedStreams, JoinedStreams
    from .keyed import KeyedStream
    from .split_stream import SplitStream


# Other kinds of streams derive from DataStream: methods that return one import its class when they are called.
class DataStream(Redistribution[Record], WindowsOfAll[Record], Generic[Record]):
    """A stream of records; of type checkers `DataStream[Click]` is one of records of the class Click.

    Args:
        env: the environment it belongs to.
        transformation: the step whose output it is.
    """

    def get_name(self) -> str:
        """Return the operator's name."""
        return self._transformation.name

    def get_type(self) -> Any:
        """Return the declared type of the records; `Types.PICKLED_BYTE_ARRAY()` where none was."""
        return self._transformation.output_type or Types.PICKLED_BYTE_ARRAY()

    def get_execution_config(self) -> ExecutionConfig:
        """Return the options of execution, as methods."""
        return self._env.get_config()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment the stream belongs to."""
        return self._env

    # record by record

    @overload
    def map(self, func: MapForm[Record, Result], output_type: None = None) -> DataStream[Result]: ...
    @overload
    def map(self, func: MapForm[Record, Any], output_type: TypeHint) -> DataStream: ...

    def map(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a function that returns one result for each record.

        Args:
            func: a callable or a MapFunction.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> env.from_collection(["a", "bc"]).map(len).execute_and_collect(limit=10)
        [1, 2]
        """
        return self._add_operator("Map", Factory(MapOperator, func), output_type)

    @overload
    def flat_map(self, func: FlatMapForm[Record, Result], output_type: None = None) -> DataStream[Result]: ...
    @overload
    def flat_map(self, func: FlatMapForm[Record, Any], output_type: TypeHint) -> DataStream: ...

    def flat_map(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a function that returns or yields any number of results for each record.

        Args:
            func: a callable or a FlatMapFunction.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._add_operator("Flat Map", Factory(FlatMapOperator, func), output_type)

    def filter(self, func: FilterForm[Record]) -> DataStream[Record]:
        """Keep the records for which `func` is true."""
        return self._add_operator("Filter", Factory(FilterOperator, func), SAME_RECORDS)

    def project(self, *field_indexes: int) -> DataStream[tuple[Any, ...]]:
        """Select some fields of each record, by position, as a tuple.

        Raises:
            ValueError: there is no position.
        """
        ProjectOperator(*field_indexes)  # refuses none at all here, in the user's line
        check_fields("project", field_indexes, self._transformation.declared_type())
        return self._add_operator("Projection", Factory(ProjectOperator, *field_indexes))

    def map_batches(
        self,
        func: UserCode,
        form: str | None = None,
        timestamp_column: str | None = None,
        concurrency: int | ActorPool | None = None,
    ) -> DataStream:
        """Apply a function to batches of columns, as Arrow, polars or pandas.

        How many rows a batch has depends on what is at hand; what the function sums up of one is a part of the whole.

        With `concurrency` it runs in processes of its own: Ray actors with the CPUs and GPUs that an `ActorPool` says,
        or threads of a local run. `func` may then be a class, such as that of a model, which each process makes an
        instance of. See docs/async.md.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> class Model:
        ...     def __init__(self):
        ...         self.weight = 3  # loaded once a process
        ...     def __call__(self, numbers):
        ...         return [self.weight * n for n in numbers]
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> list(env.from_collection([1, 2, 4]).map_batches(Model, "rows", concurrency=2).execute_and_collect())
        [3, 6, 12]

        Args:
            func: takes and returns a pyarrow RecordBatch or Table, or a polars or pandas DataFrame.
            form: "arrow", "table", "polars" or "pandas"; None: by the annotation of its parameter, else "arrow". With
                `concurrency` also "rows": a list of records in, a list of results out.
            timestamp_column: where it finds and returns the rows' timestamps; None: it returns as many rows as it got.
            concurrency: processes in all, or an `ActorPool`; None: it runs in the task.
        """
        if concurrency is not None:
            return self._map_in_pool(func, form, timestamp_column, as_pool(concurrency))
        MapBatchesOperator(func, form, timestamp_column)  # refuses a wrong form here, in the user's line
        return self._add_operator("Map Batches", Factory(MapBatchesOperator, func, form, timestamp_column))

    def _map_in_pool(
        self, func: UserCode, form: str | None, timestamp_column: str | None, pool: ActorPool
    ) -> DataStream:
        stream = self._add_operator("Map Batches", Factory(PooledBatchesOperator, func, pool, form, timestamp_column))
        return stream.set_parallelism(pool.size) if self._env.get_parallelism() > pool.size else stream

    @overload
    def process(self, func: ProcessForm[Record, Result], output_type: None = None) -> DataStream[Result]: ...
    @overload
    def process(self, func: ProcessForm[Record, Any], output_type: TypeHint) -> DataStream: ...

    def process(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a function with any number of results for each record, and side outputs: `yield tag, value`.

        Args:
            func: a ProcessFunction, or a callable of the record and its context.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.

        Raises:
            PlanError: it is a KeyedProcessFunction, which needs a keyed stream.
        """
        if isinstance(func, KeyedProcessFunction):
            problem = f"process was given the KeyedProcessFunction {type(func).__name__} on a stream without keys"
            raise PlanError(problem, "call key_by(...) before process(...)", graph.call_site())
        return self._add_operator("PROCESS", Factory(ProcessOperator, func), output_type)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream[Record]:
        """Give each record its event time, in epoch milliseconds, and the stream its watermarks.

        Raises:
            TypeError: it is no WatermarkStrategy.
            ValueError: the strategy is to be aligned with others, which only a source can be.
        """
        ensure_strategy(watermark_strategy)
        if watermark_strategy.alignment is not None:
            problem = f"the strategy is aligned with group {watermark_strategy.alignment.group!r}"
            raise ValueError(f"{problem}, and only a source can wait for others; give it to env.from_source(...)")
        factory = Factory(TimestampsAndWatermarksOperator, watermark_strategy)
        return self._add_operator("Timestamps/Watermarks", factory, SAME_TYPE)

    # several streams

    def union(self, *streams: DataStream[Record]) -> DataStream[Record]:
        """Merge this stream and `streams` into one of all their records.

        Raises:
            PlanError: their declared types differ.
            TypeError: one of them is no stream.
        """
        for stream in streams:
            ensure_stream(stream, "union")
        inputs = (self._transformation, *(stream._transformation for stream in streams))
        same = all(transformation.output_type == inputs[0].output_type for transformation in inputs)
        step = graph.Union(inputs, output_type=inputs[0].output_type if same else None)
        step.check()
        return DataStream(self._env, step)

    @overload
    def connect(self, ds: DataStream[Result]) -> ConnectedStreams[Record, Result]: ...
    @overload
    def connect(self, ds: BroadcastStream[Result]) -> BroadcastConnectedStream[Record, Result]: ...

    def connect(self, ds: Any) -> Any:
        """Connect this stream with another of any type, to be processed by one function with a method for each.

        Args:
            ds: a stream; or a broadcast one, all records of which every subtask gets and keeps in state.

        Raises:
            TypeError: it is neither.
        """
        from .broadcast import BroadcastConnectedStream, BroadcastStream  # which imports this module
        from .connected import ConnectedStreams  # which imports this module

        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        ensure_stream(ds, "connect")
        return ConnectedStreams(self, ds)

    def join(self, other: DataStream[Result]) -> JoinedStreams[Record, Result]:
        """Join this stream with another by key and window: each pair of records of equal keys and one window.

        Write `a.join(b).where(key of a).equal_to(key of b).window(assigner).apply(function)`.

        Raises:
            PlanError: the other stream is of another environment.
        """
        from .joined import JoinedStreams  # which imports this module

        return JoinedStreams(self, other)

    def co_group(self, other: DataStream[Result]) -> CoGroupedStreams[Record, Result]:
        """Process the records of this stream and another together by key and window, as two lists.

        Write `a.co_group(b).where(key of a).equal_to(key of b).window(assigner).apply(function)`.

        Raises:
            PlanError: the other stream is of another environment.
        """
        from .joined import CoGroupedStreams  # which imports this module

        return CoGroupedStreams(self, other)

    def get_side_output(self, output_tag: OutputTag[Result]) -> DataStream[Result]:
        """Return the stream of records that the operator sent to a side output.

        Raises:
            PlanError: this is not the output of an operator.
        """
        if not isinstance(output_tag, OutputTag):
            actual = f"{type(output_tag).__name__} {shorten(output_tag, 80)}"
            remedy = "give the tag that the function yields, as in OutputTag('late')"
            raise TypeError(f"get_side_output needs an OutputTag, found {actual}; {remedy}")
        self._operator("side output")
        step = graph.SideOutput(self._transformation, output_tag.tag_id, output_type=output_tag.type_info)
        return DataStream(self._env, step)

    def split(self, output_selector: SelectForm[Record]) -> SplitStream[Record]:
        """Name the outputs of each record; consumers then `select` by names. It is no step of the running job.

        Flink 2.x has side outputs instead, which also take records of other types.

        Args:
            output_selector: an OutputSelector or a callable, record -> names; called once a record.

        Raises:
            PlanError: when the program is run: what was selected of a split is split again.
        """
        from .split_stream import SplitStream  # which imports this module

        selector = SplitBy(as_output_selector(output_selector), graph.call_site())
        step = graph.Split(self._transformation, selector, output_type=self._transformation.output_type)
        return SplitStream(self._env, step)

    # who gets which record

    @overload
    def key_by(self, key_selector: FieldForm, key_type: TypeHint = None) -> KeyedStream[Record, Any]: ...
    @overload
    def key_by(
        self, key_selector: KeyForm[Record, Selected], key_type: TypeHint = None
    ) -> KeyedStream[Record, Selected]: ...

    def key_by(self, key_selector: UserCode, key_type: TypeHint = None) -> KeyedStream[Record, Any]:
        """Partition the stream by key: records of equal keys go to the same subtask.

        Args:
            key_selector: a function or KeySelector, a field name, an index, or a tuple of names or indexes.
            key_type: what every key must be, where the stream is then worked by key; None: any key.
        """
        from .keyed import KeyedStream  # which imports this module

        check_fields("key_by", key_selector, self._transformation.declared_type())
        selector = KeyBy(field_selector(key_selector), graph.call_site(), as_type(key_type))
        as_key_selector(selector)  # refuses what is no key selector here, in the user's line
        strategy = partitioners.KeyGroup(selector)
        step = graph.Partition(self._transformation, strategy, output_type=self._transformation.output_type)
        return KeyedStream(self._env, step, selector)

    @overload
    def broadcast(self) -> DataStream[Record]: ...
    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream[Record]: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream[Record] | BroadcastStream[Record]:
        """Send every record to every subtask; with state descriptors, return a stream to `connect` another one with.

        Args:
            broadcast_state_descriptor, other_broadcast_state_descriptors: of the states in which the function of the
                connected streams keeps the records.

        Raises:
            TypeError: one is no MapStateDescriptor.
            PlanError: two have one name, or one lets values expire.
        """
        everywhere = self._partitioned(partitioners.Broadcast())
        if broadcast_state_descriptor is None:
            return everywhere
        from .broadcast import BroadcastStream  # which imports this module

        return BroadcastStream(everywhere, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def cache(self) -> CachedDataStream[Record]:
        """Return this stream, computed by the first job that needs it and read by later ones of the same environment.

        Raises:
            PlanError: the stream has no end.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> squares = env.from_sequence(1, 3).map(lambda n: n * n).cache()
        >>> list(squares.execute_and_collect())
        [1, 4, 9]
        >>> list(squares.map(str).execute_and_collect())  # reads what was kept
        ['1', '4', '9']
        >>> env.close()
        """
        from .cached import cached  # which imports this module

        return cached(self._env, self._transformation)

    def iterate(self, max_wait_time_millis: int = 0) -> IterativeStream[Record]:
        """Return a stream into which a later step feeds records back: `close_with` says which.

        It ends when the stream has ended and no record is in the loop any more. Where all sources of the program end,
        event time waits for that, so that nothing that comes round is late; else it passes the loop. In batch mode the
        loop runs in supersteps: what is fed back in one is worked in the next, when all of the one is done. A process
        function in the loop may have a method `on_superstep_end(superstep, ctx)`, which gives results; on keyed streams
        it is called for each key that had a record in the superstep.

        Args:
            max_wait_time_millis: accepted for Flink's sake.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> numbers = env.from_collection([3, 17]).iterate()
        >>> halved = numbers.map(lambda n: n // 2)
        >>> back = numbers.close_with(halved.filter(lambda n: n > 1))
        >>> sorted(halved.filter(lambda n: n <= 1).execute_and_collect())
        [1, 1]
        """
        from .iterations import IterativeStream  # which imports this module

        return IterativeStream(self, max_wait_time_millis)

    # results

    def sink_to(self, sink: Sink[Record]) -> DataStreamSink:
        """Write the records to a `Sink`.

        Raises:
            TypeError: it is no `Sink`.
        """
        if not isinstance(sink, Sink):
            raise TypeError(f"sink_to needs a Sink, found {type(sink).__name__}; use add_sink for a function")
        sink = sink.for_type(self._transformation.declared_type())
        operator = SinkWriterOperator if sink.commits_globally else SinkOperator
        return self._sink(str(getattr(sink, "name", None) or "Writer"), Factory(operator, sink))

    def add_sink(self, sink_func: SinkForm[Record]) -> DataStreamSink:
        """Call a function, or `SinkFunction.invoke`, with each record; a `Sink` is taken as by `sink_to`."""
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        return self._sink("Unnamed", Factory(SinkFunctionOperator, sink_func))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records to the standard output of the tasks: `identifier:subtask> record`.

        A record of a declared type prints as Flink prints it: `(hi,1,null)` for a tuple, `+I[hi,1]` for a Row.
        """
        return self._sink("Print to Std. Out", Factory(SinkOperator, self._printing(sink_identifier, False)))

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records to the standard error of the tasks."""
        return self._sink("Print to Std. Err", Factory(SinkOperator, self._printing(sink_identifier, True)))

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None) -> CloseableIterator[Record]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Record]: ...
    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[Record] | list[Record]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[Record] | list[Record]:
        """Start the program and draw the stream's records while it runs.

        With checkpoints a record comes when the checkpoint that holds it is complete, and once, also where the job
        restarts; those of a checkpoint's interval wait in the memory of one task. Without them it comes at once, and
        a restart that would repeat records ends the iteration.

        Returns: an iterator, which waits for each record; closing it early cancels the job. With a limit a list.

        Raises:
            JobExecutionError: while records are drawn: the job has begun anew without checkpoints.

        Args:
            job_execution_name: of the job; None: the option `pipeline.name`.
            limit: the number of records at most; the job is cancelled when they are there.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> list(env.from_collection(["a", "b"]).execute_and_collect())
        ['a', 'b']
        >>> env.from_sequence(1, 1_000_000_000).execute_and_collect(limit=2)
        [1, 2]
        """
        self._sink("Collect", Factory(SinkOperator, DrawnSink())).set_parallelism(1).uid("rayflink collect")
        records = self._env.execute_and_draw(job_execution_name)
        if limit is None:
            return records
        with records:
            return list(islice(records, limit))

    def to_spark(self, spark: Any, schema: Any = None, job_execution_name: str | None = None) -> Any:
        """Run the program to its end; the stream's records become a Spark DataFrame, each once, also after failures.

        They are put as columns where Spark's workers read them: on Ray the object store of each node, which spills to
        disk. There they stay until Spark ends. Columns have their own types. Those of records are as declared, or as
        the values are; fields of tuples are f0, f1, ... and a single value is `value`. One task's records keep their
        order. See docs/spark.md.

        Args:
            spark: the `SparkSession`.
            schema: names and types: a StructType, a text like "id long, word string", a pyarrow Schema or a
                RowTypeInfo; None: as above, where a stream without any record is an error.
            job_execution_name: of the job; None: the option `pipeline.name`.

        Returns: a `pyspark.sql.DataFrame`.

        Raises:
            PlanError: the stream has no end.
            TypeMismatch: there is no schema and no record, records of different forms, or a type that Spark lacks.
            JobFailed: a function raised, or a record does not fit; names it.
        """
        from .results import to_spark  # which imports this module

        return to_spark(self, spark, schema, job_execution_name)

    def to_ray_dataset(self, schema: Any = None, job_execution_name: str | None = None) -> Any:
        """Run the program to its end; the stream's records become a Dataset of Ray Data, each once.

        As `to_spark`; the rows stay in the object stores as long as the Dataset, or one derived from it.

        Args:
            schema: a pyarrow Schema or a RowTypeInfo; None: as the records are.

        Returns: a `ray.data.Dataset`.
        """
        from .results import to_ray_dataset  # which imports this module

        return to_ray_dataset(self, schema, job_execution_name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from .keyed import KeyedStream  # which imports this module

            if hasattr(KeyedStream, name):
                raise AttributeError(f"{name}() needs a keyed stream; call key_by(...) before it", name=name, obj=self)
            near = difflib.get_close_matches(name, [known for known in dir(KeyedStream) if known[0] != "_"], 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"a {type(self).__name__} has no {name!r}{meant}", name=name, obj=self)

    def __iter__(self) -> Iterator[Record]:
        raise TypeError("a stream cannot be looped over before it has run; loop over execute_and_collect()")

    # how steps are recorded

    def _printing(self, identifier: str | None, stderr: bool) -> PrintSink:
        return PrintSink(identifier or "", stderr, PrintForm(self._transformation.declared_type()))

    def _add_operator(self, name: str, factory: Factory, output_type: TypeHint = None, key: Any = None) -> DataStream:
        step = record_operator(self._env, self._transformation, name, factory, output_type, key)
        return DataStream(self._env, step)

    def _sink(self, name: str, factory: Factory) -> DataStreamSink:
        factory()
        step = graph.Sink(self._transformation, factory, name=name)
        self._env.add(step)
        return DataStreamSink(self._env, step)

    def _partitioned(self, strategy: partitioners.Partitioner) -> DataStream[Record]:
        step = graph.Partition(self._transformation, strategy, output_type=self._transformation.output_type)
        return DataStream(self._env, step)


def ensure_stream(value: Any, step: str) -> None:
    """Check that a value is a stream.

    Raises: TypeError: it is no stream.
    """
    if not isinstance(value, DataStream):
        actual = f"{type(value).__name__} {shorten(value, 80)}"
        raise TypeError(f"{step} needs a DataStream, found {actual}; make one with from_collection() or a source")


__all__ = ["DataStream", "DataStreamSink", "PlanError"]
