"""The entry point of a stream program: sources, options, and execution."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rayflink.common import options
from rayflink.common.callables import ensure_takes
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, shorten
from rayflink.common.execution_config import ExecutionConfig
from rayflink.common.functions import SourceFunction
from rayflink.common.master_hook import MasterTriggerRestoreHook
from rayflink.common.option_sources import given_options, under_program
from rayflink.common.python_files import check_python_file, put_on_path
from rayflink.common.source import Source
from rayflink.common.watermarks import WatermarkStrategy, ensure_strategy
from rayflink.connectors.collection import CollectionSource, check_elements
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.connectors.iteration import IteratorSource
from rayflink.connectors.text_files import TextFileSource
from rayflink.graph import transformations as graph
from rayflink.graph.assembly import job_graph
from rayflink.graph.boundedness import endless_source
from rayflink.graph.errors import PlanError
from rayflink.graph.job_graph import JobGraph
from rayflink.graph.plan_json import plan_json
from rayflink.graph.stream_graph import StreamGraph
from rayflink.graph.translation import PlanSettings, stream_graph
from rayflink.graph.uids import refuse_missing_uids
from rayflink.operators.factory import SourceFactory
from rayflink.state.storages import from_root

from .closeable_iterator import CloseableIterator
from .fault_tolerance import FaultTolerance
from .step import as_type
from .streams import DataStream
from .time_characteristic import TimeCharacteristic

RuntimeExecutionMode = options.RuntimeMode
DEFAULT_JOB_NAME = "Flink Streaming Job"

Interceptor = Callable[[StreamGraph, JobGraph], Any]
_interceptors: list[Interceptor] = []
_watchers: list[dict[StreamExecutionEnvironment, str]] = []


@contextmanager
def intercepted(interceptor: Interceptor) -> Iterator[None]:
    """Within the block `execute` runs nothing: `interceptor` is given the graphs, and its answer is the job client."""
    _interceptors.append(interceptor)
    try:
        yield
    finally:
        _interceptors.remove(interceptor)


@contextmanager
def written_steps() -> Iterator[Mapping[StreamExecutionEnvironment, str]]:
    """Notes the environments in which steps are written within the block.

    Gives each of them with the line of its first step, or "" once it has made a plan, to run it or to show it.
    """
    written: dict[StreamExecutionEnvironment, str] = {}
    _watchers.append(written)
    try:
        yield written
    finally:
        _watchers.remove(written)


class StreamExecutionEnvironment(FaultTolerance):
    """Where a program gets its streams from and by which it is run.

    Args:
        configuration: options, by key; those of files, environment and command line are not read here, but by
            `get_execution_environment`.

    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env = env.set_parallelism(2)
    >>> env.get_parallelism()
    2
    """

    def __init__(self, configuration: Configuration | Mapping[str, Any] | None = None) -> None:
        given = configuration or {}
        self._configuration = given if isinstance(given, Configuration) else Configuration.from_dict(given)
        self._sinks: list[graph.Transformation] = []
        self._cached_files: list[tuple[str, str]] = []
        self._slot_resources = {}
        self._master_hooks: list[MasterTriggerRestoreHook] = []
        self._time_characteristic = TimeCharacteristic.EventTime
        self._cached_streams: list[graph.Cached] = []

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | Mapping[str, Any] | None = None,
    ) -> StreamExecutionEnvironment:
        """An environment with the options that were given from outside, and over them those given here.

        From outside come those of a file, of the environment and of the command line of `rayflink run`, and later ones
        win: see `rayflink.common.option_sources`.

        Raises:
            ConfigError: an option does not parse.
        """
        given = configuration or {}
        given = given if isinstance(given, Configuration) else Configuration.from_dict(given)
        whole = under_program(given_options(), given)
        whole.check()
        return StreamExecutionEnvironment(whole)

    @staticmethod
    def create_local_environment(
        parallelism: int | None = None, configuration: Configuration | Mapping[str, Any] | None = None
    ) -> StreamExecutionEnvironment:
        """An environment whose jobs run in this process, whatever `execution.target` says elsewhere.

        Args:
            parallelism: subtasks of operators that set none themselves, at least 1; None: as the options say.
            configuration: options, as for `get_execution_environment`.

        Raises:
            ConfigError: an option does not parse, or the parallelism is below 1.

        >>> env = StreamExecutionEnvironment.create_local_environment(2)
        >>> sorted(env.from_sequence(1, 3).execute_and_collect())
        [1, 2, 3]
        """
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env._configuration.set(options.TARGET, "local")
        if parallelism is not None:
            env.set_parallelism(parallelism)
        env._configuration.check()
        return env

    # options

    def get_configuration(self) -> Configuration:
        """The options, which may still be changed."""
        return self._configuration

    def configure(self, configuration: Configuration | Mapping[str, Any]) -> StreamExecutionEnvironment:
        """Add options."""
        given = configuration if isinstance(configuration, Configuration) else Configuration.from_dict(configuration)
        self._configuration.add_all(given)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Subtasks of operators that set none themselves, at least 1."""
        self._configuration.set(options.PARALLELISM, parallelism)
        return self

    def get_parallelism(self) -> int:
        """Subtasks of operators that set none themselves."""
        return self._configuration.get(options.PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Key groups of operators that set none themselves, in [1, 32768]."""
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Key groups of operators that set none themselves; -1: chosen by parallelism."""
        return self._configuration.get(options.MAX_PARALLELISM)

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """How long records wait for a fuller batch.

        Args:
            timeout_millis: milliseconds; 0: not at all; -1: until the batch is full. 100 where nothing sets it.

        Raises:
            ConfigError: it is below -1.
        """
        if timeout_millis < -1:
            raise ConfigError("buffer timeout", f"{timeout_millis} ms", "-1, 0 or more", "use -1 for full batches only")
        self._configuration.set(options.BUFFER_TIMEOUT_ENABLED, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set(options.BUFFER_TIMEOUT, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """Milliseconds, or -1 for full batches only."""
        if not self._configuration.get(options.BUFFER_TIMEOUT_ENABLED):
            return -1
        return self._configuration.get(options.BUFFER_TIMEOUT).to_millis()

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Run every operator as a task of its own."""
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators may share a task."""
        return self._configuration.get(options.OPERATOR_CHAINING)

    def set_runtime_mode(self, execution_mode: options.RuntimeMode) -> StreamExecutionEnvironment:
        """STREAMING runs all tasks at once; BATCH starts a task when its input is complete."""
        self._configuration.set(options.RUNTIME_MODE, execution_mode)
        return self

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Make a file known to every task: `runtime_context.get_distributed_cache().get_file(name)`.

        Args:
            file_path: a path that every node sees.
            name: under which tasks ask for it.
            executable: accepted for Flink's sake; a file keeps the mode it has.
        """
        del executable  # files keep the mode they have
        self._cached_files.append((name, os.path.abspath(file_path)))

    def add_master_hook(self, hook: MasterTriggerRestoreHook) -> None:
        """Have a hook called in the job's coordinator at each checkpoint, and when the job starts from one.

        Raises:
            TypeError: it is no hook.
            ValueError: another hook has its identifier.
        """
        if not isinstance(hook, MasterTriggerRestoreHook):
            found = type(hook).__name__
            raise TypeError(f"a MasterTriggerRestoreHook is wanted, found a {found}; derive from that class")
        name = hook.get_identifier()
        if any(known.get_identifier() == name for known in self._master_hooks):
            raise ValueError(f"a master hook {name!r} is registered already; give each an identifier of its own")
        self._master_hooks.append(hook)

    def get_config(self) -> ExecutionConfig:
        """The options of execution, as methods."""
        return ExecutionConfig(self._configuration)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """True: operators are chained whatever their max parallelism."""
        return True

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """As in Flink 1.x: ProcessingTime turns periodic watermarks off, the other two send them every 200 ms.

        With IngestionTime, sources made from now on without a strategy give their records the time of reading.
        Which time a window or a timer goes by, its assigner or its registration says.
        """
        self._time_characteristic = characteristic
        interval_ms = 0 if characteristic is TimeCharacteristic.ProcessingTime else 200
        self._configuration.set(options.AUTO_WATERMARK_INTERVAL, interval_ms)

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """What was set, EventTime where nothing was."""
        return self._time_characteristic

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Subtasks of operators that set none themselves, at least 1, where `set_parallelism` is not called."""
        if not self._configuration.contains_key(options.PARALLELISM.key):
            self.set_parallelism(parallelism)

    def get_default_local_parallelism(self) -> int:
        """Subtasks of operators that set none themselves; 1 where nothing sets it, not the number of cores."""
        return self.get_parallelism()

    # what a program takes along

    def add_jars(self, *jars_path: str) -> None:
        """Raises: ConfigError: always: there is no JVM in the data path."""
        self._configuration.set(options.PIPELINE_JARS, list(jars_path))

    def add_classpaths(self, *classpaths: str) -> None:
        """Raises: ConfigError: always: there is no JVM in the data path."""
        self._configuration.set(options.PIPELINE_CLASSPATHS, list(classpaths))

    def add_python_file(self, file_path: str) -> None:
        """Let the program and its tasks import from a .py file, a folder, a package, or a .zip or .egg file.

        It is found from now on in this process, and copied to every node when a job starts on Ray.

        Raises:
            ConfigError: it is none of them, or is not there.
        """
        path = check_python_file(file_path)
        before = self._configuration.get(options.PYTHON_FILES)
        self._configuration.set(options.PYTHON_FILES, f"{path},{before}" if before else path)
        put_on_path([path])

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Raises: ConfigError: always: packages are installed where the nodes are made."""
        remedy = "`pip install -r` it on every node, or give runtime_env={'pip': ...} to `ray job submit`"
        raise ConfigError("python requirements", requirements_file_path, "packages that every node has", remedy)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Raises: ConfigError: always: tasks of a process share its working directory."""
        remedy = "register_cached_file() gives each task its path, or `ray job submit --working-dir` takes it along"
        raise ConfigError("python archive", archive_path, "a file of the distributed cache", remedy)

    def set_python_executable(self, python_exec: str) -> None:
        """Raises: ConfigError: another interpreter than this one; Ray wants the same Python on every node."""
        if os.path.realpath(python_exec) != os.path.realpath(sys.executable):
            remedy = "run the program, and Ray on every node, with that interpreter"
            raise ConfigError("python executable", python_exec, sys.executable, remedy)

    # sources

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Custom Source",
        type_info: Any = None,
    ) -> DataStream:
        """A stream of what a `Source` reads, with timestamps and watermarks by the strategy.

        Args:
            source: what to read.
            watermark_strategy: None: no timestamps but the source's own, and no watermarks but these; ingestion time
                where `set_stream_time_characteristic` chose it.
            source_name: shown as "Source: name".
            type_info: the type that the records are said to have; None: any.

        Raises:
            TypeError: `source` is no `rayflink.common.source.Source`, or the strategy is none.
        """
        if not isinstance(source, Source):
            raise TypeError(f"from_source needs a Source, found {type(source).__name__}; use from_collection for lists")
        if watermark_strategy is not None:
            ensure_strategy(watermark_strategy)
        elif self._time_characteristic is TimeCharacteristic.IngestionTime:
            watermark_strategy = WatermarkStrategy.for_ingestion_time()
        factory = SourceFactory(source, watermark_strategy)
        if not isinstance(source, CollectionSource):  # its elements, which may be many, have been looked at
            factory()  # what cannot travel is refused here, in the user's line
        stream = DataStream(self, graph.Source(factory, name=f"Source: {source_name}", output_type=type_info))
        widest = source.max_parallelism
        return stream if widest is None else stream.set_parallelism(widest)

    def from_collection(self, collection: Iterable[Any], type_info: Any = None) -> DataStream:
        """A stream of the elements, in order, read by one subtask.

        Args:
            type_info: type of all elements, which then have its form: a tuple declared as ROW becomes a Row.

        Raises:
            TypeMismatch: an element is not of the type.
            NotSerializable: an element cannot be sent to a task.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> env.from_collection([1, 2]).map(lambda x: x + 1).execute_and_collect(limit=10)
        [2, 3]
        """
        declared = as_type(type_info)
        if not hasattr(collection, "__iter__") and not hasattr(collection, "__getitem__"):
            found = f"{type(collection).__name__} {shorten(collection, 80)}"
            raise TypeError(f"from_collection needs an iterable, found {found}; give a list of the records")
        values = list(collection)
        if declared is not None:
            values = list(declared.convert_batch(values, "element of the collection", graph.call_site()))
        check_elements(values)
        return self.from_source(CollectionSource(values), None, "Collection Source", declared)

    def add_source(
        self,
        source_func: SourceFunction | Callable[[], Iterable[Any]],
        source_name: str = "Custom Source",
        type_info: Any = None,
    ) -> DataStream:
        """A stream of what a generator function, or `SourceFunction.run`, yields; one subtask runs it.

        Args:
            source_func: called without arguments once the job runs; an async generator function serves as well.
            source_name: shown as "Source: name".
            type_info: the type that the records are said to have; None: any.
        """
        if isinstance(source_func, SourceFunction):
            ensure_takes(0, source_func.run, "add_source: run, which yields the records,")
        elif callable(source_func):
            ensure_takes(0, source_func, "add_source")
        return self.from_source(IteratorSource(source_func), None, source_name, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The numbers start to end, both included, dealt to all subtasks."""
        return self.from_source(NumberSequenceSource(start, end), None, "Sequence Source")

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a file, without their ends; large files are read in parallel.

        Args:
            file_path: a path that every node sees.
            charset_name: the encoding of the text.
        """
        source = TextFileSource(file_path, encoding=charset_name)
        return self.from_source(source, None, f"Text File Source ({os.path.basename(file_path)})")

    def from_spark(
        self,
        df: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Spark",
        path: str | None = None,
    ) -> DataStream:
        """A bounded stream of a Spark DataFrame's rows, which Spark computes now.

        They stay columns: Spark's workers put record batches where the stream reads them, with the schema's types and
        nulls. On Ray that is the object store of each node, which spills to disk what does not fit. The rows stay
        there as long as this program or a job that began to read them lives, also when Spark has ended; but they are
        lost with their node. With `path` they go to Parquet files instead, which a job finds again in a new cluster.

        A partition is a split: its rows keep their order. Functions on records see `Row` objects.

        Args:
            df: a `pyspark.sql.DataFrame`.
            watermark_strategy: as in `from_source`; a column with the time is told by `with_timestamp_column`.
            source_name: shown as "Source: name".
            path: a new folder that Spark and all nodes see.

        Raises:
            TypeMismatch: it is no DataFrame, or Arrow has no type for one of its columns.
            SparkFailed: Spark could not compute it.
        """
        from rayflink.connectors.spark_frames import source_of

        source = source_of(df, path, lambda: self._launch().frame_store(self._configuration))
        return self.from_source(source, watermark_strategy, source_name)

    def from_ray_dataset(
        self, dataset: Any, watermark_strategy: WatermarkStrategy | None = None, source_name: str = "Ray Data"
    ) -> DataStream:
        """A bounded stream of the rows of a Dataset of Ray Data, which is computed now.

        Its blocks go to the object store as columns, and stay there as those of `from_spark` do. A block is a split;
        blocks are dealt in their order. Functions on records see `Row` objects.

        Args:
            dataset: a `ray.data.Dataset`.
            watermark_strategy: as in `from_source`; a column with the time is told by `with_timestamp_column`.
            source_name: shown as "Source: name".

        Raises:
            TypeMismatch: it is none.
            ray.exceptions.RayError: Ray Data could not compute it.
        """
        source = self._launch().dataset_source(dataset, self._configuration)
        return self.from_source(source, watermark_strategy, source_name)

    # plans and execution

    def get_stream_graph(self, job_name: str | None = None) -> StreamGraph:
        """The logical graph of what has been written so far.

        Raises:
            EmptyProgramError: nothing has.
            PlanError: the program asks for something no graph can be made of.
        """
        for written in _watchers:
            written[self] = ""
        get = self._configuration.get
        widest = get(options.MAX_PARALLELISM)
        self._configuration.check()
        mode = self._mode()
        settings = PlanSettings(
            name=job_name or get(options.PIPELINE_NAME) or DEFAULT_JOB_NAME,
            parallelism=self.get_parallelism(),
            max_parallelism=widest if widest > 0 else None,
            buffer_timeout_ms=self.get_buffer_timeout(),
            chaining=self.is_chaining_enabled(),
            batch=mode is RuntimeExecutionMode.BATCH,
            configuration={**self._configuration.to_dict(), **self._places(), **self._chosen(mode)},
            user_artifacts=tuple(self._cached_files),
            slot_resources=tuple(sorted(self._slot_resources.items())),
            master_hooks=tuple(self._master_hooks),
        )
        plan = stream_graph(self._sinks, settings)
        if not get(options.AUTO_GENERATED_UIDS):
            refuse_missing_uids(plan)
        return plan

    def _mode(self) -> RuntimeExecutionMode:
        """The mode of the program as it is now: AUTOMATIC is BATCH where all sources end."""
        wanted, endless = self._configuration.get(options.RUNTIME_MODE), endless_source(self._sinks)
        if wanted is RuntimeExecutionMode.BATCH and endless is not None:
            problem = f"source {endless.name!r} has no end, and {options.RUNTIME_MODE.key} is BATCH"
            raise PlanError(problem, "set it to STREAMING or AUTOMATIC, or give the source an end", endless.call_site)
        if wanted is RuntimeExecutionMode.AUTOMATIC:
            return RuntimeExecutionMode.STREAMING if endless is not None else RuntimeExecutionMode.BATCH
        return wanted

    def _places(self) -> dict[str, str]:
        """Where checkpoints and savepoints are, as paths that mean the same in every process of the job."""
        wanted = (
            options.CHECKPOINT_DIRECTORY, options.SAVEPOINT_DIRECTORY, options.HA_STORAGE_DIR, options.RESTORE_PATH,
        )  # fmt: skip
        given = ((option.key, self._configuration.get(option)) for option in wanted)
        return {key: from_root(path) for key, path in given if path}

    def _chosen(self, mode: RuntimeExecutionMode) -> dict[str, str]:
        """What the tasks are told of the mode where it was left to us."""
        is_open = self._configuration.get(options.RUNTIME_MODE) is RuntimeExecutionMode.AUTOMATIC
        return {options.RUNTIME_MODE.key: mode.name} if is_open else {}

    def get_job_graph(self, job_name: str | None = None) -> JobGraph:
        """The graph of chained vertices that `execute` runs."""
        return job_graph(self.get_stream_graph(job_name))

    def get_execution_plan(self) -> str:
        """The plan in Flink's JSON form."""
        return plan_json(self.get_stream_graph())

    def execute(self, job_name: str | None = None) -> Any:
        """Run the program and wait for its end; the streams written so far are then forgotten.

        Where `execution.attached` is set to false (`rayflink run --detached`), the job goes on alone instead.

        Returns: a `JobExecutionResult`; of a job that goes on alone it knows the id only.
        Raises:
            JobFailed: a function of the program raised.
            JobCancelled: somebody cancelled the job.
            RayflinkError: it could not be run.
        """
        client = self.execute_async(job_name)
        attached = self._configuration.get(options.ATTACHED, True)
        return client.get_job_execution_result().result() if attached else client.detach()

    def execute_async(self, job_name: str | None = None) -> Any:
        """Start the program; returns a `JobClient`.

        A local job (execution.target) runs while somebody waits for its result, draws its rows or asks how it stands.
        """
        return self._submit(job_name, self._configuration)

    def execute_and_draw(self, job_name: str | None = None) -> CloseableIterator:
        """Start a program with a `DrawnSink`, whose job ends with this process; `execute_and_collect` calls it."""
        attached = Configuration(self._configuration).set(options.SHUTDOWN_ON_ATTACHED_EXIT, True)
        return CloseableIterator(self._submit(job_name, attached))

    def _submit(self, job_name: str | None, configuration: Configuration) -> Any:
        stream = self.get_stream_graph(job_name)
        job = job_graph(stream)
        kept = self._results_to_keep(stream)
        self._sinks.clear()
        if _interceptors:
            return _interceptors[-1](stream, job)
        return self._launch().submit(job, configuration, kept)

    @staticmethod
    def _launch() -> Any:
        """What meets those who run jobs."""
        from rayflink import launch

        return launch

    def close(self) -> None:
        """Give up the records of all cached streams."""
        for transformation in self._cached_streams:
            transformation.result.discard()

    def _results_to_keep(self, stream: StreamGraph) -> list[tuple[Any, int]]:
        """Cached results that the job writes, each with the parallelism of its writer."""
        writers = {id(node.operator_factory): node.parallelism for node in stream.nodes}
        results = [transformation.result for transformation in self._cached_streams]
        return [(result, writers[id(result.writer)]) for result in results if id(result.writer) in writers]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within the block a program of its own is written and run, which leaves the steps written before alone."""
        before, self._sinks = self._sinks, []
        unseen = [written for written in _watchers if self not in written]
        try:
            yield
        finally:
            self._sinks = before
            for written in unseen:  # steps that were only shown, as by EXPLAIN, are not forgotten ones
                written.pop(self, None)

    def add_cached(self, transformation: graph.Cached) -> None:
        """Register a cached stream, which `close` gives up; front ends call it."""
        self._cached_streams.append(transformation)

    def add(self, transformation: graph.Transformation) -> None:
        """Register a step that has an operator; front ends call it."""
        self._sinks.append(transformation)
        for written in _watchers:
            written.setdefault(self, transformation.call_site)
