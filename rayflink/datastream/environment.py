"""The entry point of a stream program: sources, options, and execution."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.execution_config import ExecutionConfig
from rayflink.common.functions.master_hook import MasterTriggerRestoreHook
from rayflink.common.options import registry as options
from rayflink.common.options.option_sources import given_options, under_program
from rayflink.common.user_code.python_archives import PythonArchive, listed_archives
from rayflink.common.user_code.python_executable import check_executable
from rayflink.common.user_code.python_files import check_python_file, put_on_path
from rayflink.common.user_code.python_requirements import PythonRequirements
from rayflink.graph import transformations as graph
from rayflink.graph.checks import endless_source
from rayflink.graph.errors import PlanError
from rayflink.graph.job_graph import JobGraph
from rayflink.graph.job_graph_builder import job_graph
from rayflink.graph.plan_json import plan_json
from rayflink.graph.stream_graph import StreamGraph
from rayflink.graph.translation import PlanSettings, stream_graph
from rayflink.graph.uids import refuse_missing_uids
from rayflink.state.storage.local_storage import folder_of
from rayflink.state.storage.storage_schemes import from_root

from .fault_tolerance import FaultTolerance
from .launcher import launcher
from .sources import Sources
from .streams.closeable_iterator import CloseableIterator
from .time_characteristic import TimeCharacteristic

RuntimeExecutionMode = options.RuntimeMode
DEFAULT_JOB_NAME = "Flink Streaming Job"

Interceptor = Callable[[StreamGraph, JobGraph], Any]
_interceptors: list[Interceptor] = []
_watchers: list[dict[StreamExecutionEnvironment, str]] = []


@contextmanager
def intercepted(interceptor: Interceptor) -> Iterator[None]:
    """Run nothing by `execute` within the block: `interceptor` is given the graphs, its answer is the job client."""
    _interceptors.append(interceptor)
    try:
        yield
    finally:
        _interceptors.remove(interceptor)


@contextmanager
def written_steps() -> Iterator[Mapping[StreamExecutionEnvironment, str]]:
    """Note the environments in which steps are written within the block.

    It yields each of them with the line of its first step, or "" once it has made a plan, to run it or to show it.
    """
    written: dict[StreamExecutionEnvironment, str] = {}
    _watchers.append(written)
    try:
        yield written
    finally:
        _watchers.remove(written)


class StreamExecutionEnvironment(FaultTolerance, Sources):
    """The entry point of a program, which creates its streams and runs them.

    Args:
        configuration: options, by key; those of files, environment and command line are not read here, but by
            `get_execution_environment`.

    >>> StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).get_parallelism()
    2
    """

    def __init__(self, configuration: Configuration | Mapping[str, Any] | None = None) -> None:
        settings = configuration or {}
        self._configuration = settings if isinstance(settings, Configuration) else Configuration.from_dict(settings)
        self._sinks: list[graph.Transformation] = []
        self._cached_files: list[tuple[str, str]] = []
        self._slot_resources = {}
        self._master_hooks: list[MasterTriggerRestoreHook] = []
        self._time_characteristic = TimeCharacteristic.EventTime
        self._cached_streams: list[graph.Cached] = []
        self._default_local_parallelism: int | None = None
        self._follows_local_default = False

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | Mapping[str, Any] | None = None,
    ) -> StreamExecutionEnvironment:
        """Return an environment with the options that were set from outside, and over them those passed here.

        From outside come those of a file, of the environment and of the command line of `rayflink run`, and later ones
        win: see `rayflink.common.options.option_sources`.

        Raises:
            ConfigError: an option does not parse.
        """
        program_options = StreamExecutionEnvironment(configuration).get_configuration()
        whole = under_program(given_options(), program_options)
        whole.check()
        return StreamExecutionEnvironment(whole)

    @staticmethod
    def create_local_environment(
        parallelism: int | None = None, configuration: Configuration | Mapping[str, Any] | None = None
    ) -> StreamExecutionEnvironment:
        """Return an environment whose jobs run in this process, whatever `execution.target` says elsewhere.

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
        """Return the options, which may still be changed."""
        return self._configuration

    def configure(self, configuration: Configuration | Mapping[str, Any]) -> StreamExecutionEnvironment:
        """Add options."""
        additions = (
            configuration if isinstance(configuration, Configuration) else Configuration.from_dict(configuration)
        )
        self._configuration.add_all(additions)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of subtasks of operators that set none themselves, at least 1."""
        self._configuration.set(options.PARALLELISM, parallelism)
        self._follows_local_default = False
        return self

    def get_parallelism(self) -> int:
        """Return the number of subtasks of operators that set none themselves."""
        return self._configuration.get(options.PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of key groups of operators that set none themselves, in [1, 32768]."""
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups of operators that set none themselves; -1: chosen by parallelism."""
        return self._configuration.get(options.MAX_PARALLELISM)

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Set how long records wait for a fuller batch.

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
        """Return how long records wait for a fuller batch, in milliseconds, or -1 for full batches only."""
        if not self._configuration.get(options.BUFFER_TIMEOUT_ENABLED):
            return -1
        return self._configuration.get(options.BUFFER_TIMEOUT).to_millis()

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Run every operator as a task of its own."""
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Return whether operators may share a task."""
        return self._configuration.get(options.OPERATOR_CHAINING)

    def set_runtime_mode(self, execution_mode: options.RuntimeMode) -> StreamExecutionEnvironment:
        """Set the mode: STREAMING runs all tasks at once; BATCH starts a task when its input is complete."""
        self._configuration.set(options.RUNTIME_MODE, execution_mode)
        return self

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Have every process with tasks copy a file: `runtime_context.get_distributed_cache().get_file(name)`.

        The copy lies in a folder of the job in `io.tmp.dirs`, is made beside the task from its start on, and goes with
        the job. `get_file` waits for it, and says which file could not be copied, for which task, and why.

        Args:
            file_path: of a file or folder, which every node sees.
            name: under which tasks ask for it.
            executable: accepted for Flink's sake; a copy has the mode of the file.
        """
        del executable  # copies keep the mode
        self._cached_files.append((name, os.path.abspath(file_path)))

    def add_master_hook(self, hook: MasterTriggerRestoreHook) -> None:
        """Have a hook called in the job's coordinator at each checkpoint, and when the job starts from one.

        Raises:
            TypeError: it is no hook.
            ValueError: another hook has its identifier.
        """
        if not isinstance(hook, MasterTriggerRestoreHook):
            actual = type(hook).__name__
            raise TypeError(f"a MasterTriggerRestoreHook is wanted, found a {actual}; derive from that class")
        name = hook.get_identifier()
        if any(known.get_identifier() == name for known in self._master_hooks):
            raise ValueError(f"a master hook {name!r} is registered already; give each an identifier of its own")
        self._master_hooks.append(hook)

    def get_config(self) -> ExecutionConfig:
        """Return the options of execution, as methods."""
        return ExecutionConfig(self._configuration)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return True: operators are chained whatever their max parallelism."""
        return True

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Set the time characteristic of Flink 1.x.

        ProcessingTime turns periodic watermarks off, the other two send them every 200 ms. With IngestionTime, sources
        made from now on without a strategy give their records the time of reading. `time_window` and `time_window_all`
        follow it from now on; for other windows and timers the assigner or the registration says which time they use.
        """
        self._time_characteristic = characteristic
        interval_ms = 0 if characteristic is TimeCharacteristic.ProcessingTime else 200
        self._configuration.set(options.AUTO_WATERMARK_INTERVAL, interval_ms)

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Return the characteristic that was set, EventTime where none was."""
        return self._time_characteristic

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the number of subtasks of operators that set none themselves, at least 1.

        It holds where nothing else sets a parallelism.
        """
        parallelism = options.PARALLELISM.read(parallelism)
        if not self._configuration.contains_key(options.PARALLELISM.key) or self._follows_local_default:
            self.set_parallelism(parallelism)
            self._follows_local_default = True
        self._default_local_parallelism = parallelism

    def get_default_local_parallelism(self) -> int:
        """Return the default that was set; else the parallelism, which is 1 where nothing sets it.

        It is not the number of cores.
        """
        return self._default_local_parallelism or self.get_parallelism()

    # what a program takes along

    def add_jars(self, *jars_path: str) -> None:
        """Take the jars of Flink's connectors and formats, which need none here: the job warns when it starts.

        Raises: ConfigError: another jar: there is no JVM.
        """
        self._configuration.set(options.PIPELINE_JARS, list(jars_path))

    def add_classpaths(self, *classpaths: str) -> None:
        """Refuse classpaths, as there is no JVM.

        Raises: ConfigError: always: there is no JVM in the data path.
        """
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
        """Install the packages of a requirements file for the tasks when a job starts.

        pip installs them once, on this machine; on Ray they are copied to every node. A local run installs nothing
        where this interpreter has them all. Packages that rayflink runs on stay as the nodes have them.

        Args:
            requirements_file_path: as of pip.
            requirements_cache_dir: folder with the packages, made by `pip download`; None: pip asks its index.

        Raises:
            ConfigError: a file is not there, or a line is no requirement.
        """
        requirements = PythonRequirements.of(requirements_file_path, requirements_cache_dir)
        self._configuration.set(options.PYTHON_REQUIREMENTS, str(requirements))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive where tasks run: functions find its files by a relative path.

        On Ray it is unpacked in the current folder of the processes of a job; in a local run a link in the current
        folder leads to its files while the program runs.

        Args:
            archive_path: a zip or tar file.
            target_dir: the folder into which it is unpacked; None: it has the name of the file.

        Raises:
            ConfigError: it is no archive, or is not there; the folder is no relative path, or has another archive.
        """
        archive = PythonArchive.of(archive_path, target_dir)
        before = self._configuration.get(options.PYTHON_ARCHIVES)
        listed = f"{before},{archive}" if before else str(archive)
        listed_archives(listed)
        self._configuration.set(options.PYTHON_ARCHIVES, listed)

    def set_python_executable(self, python_exec: str) -> None:
        """Run functions on Ray by another interpreter, on every node or in an archive; local runs have their own.

        Raises:
            ConfigError: it is not there, has another version of Python or Ray, or no rayflink.
        """
        check_executable(python_exec)
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)

    # plans and execution

    def get_stream_graph(self, job_name: str | None = None) -> StreamGraph:
        """Return the logical graph of what has been written so far.

        Raises:
            EmptyProgramError: nothing has.
            PlanError: the program asks for something no graph can be made of.
        """
        for written in _watchers:
            written[self] = ""
        get = self._configuration.get
        self._configuration.check()
        mode = self._mode()
        settings = PlanSettings(
            name=job_name or get(options.PIPELINE_NAME) or DEFAULT_JOB_NAME,
            parallelism=self.get_parallelism(),
            max_parallelism=max(0, get(options.MAX_PARALLELISM)) or None,
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
        """Return the mode of the program as it is now: AUTOMATIC is BATCH where all sources end."""
        wanted, endless = self._configuration.get(options.RUNTIME_MODE), endless_source(self._sinks)
        if wanted is RuntimeExecutionMode.BATCH and endless is not None:
            problem = f"source {endless.name!r} has no end, and {options.RUNTIME_MODE.key} is BATCH"
            raise PlanError(problem, "set it to STREAMING or AUTOMATIC, or give the source an end", endless.call_site)
        if wanted is RuntimeExecutionMode.AUTOMATIC:
            return RuntimeExecutionMode.STREAMING if endless is not None else RuntimeExecutionMode.BATCH
        return wanted

    def _places(self) -> dict[str, str]:
        """Return the paths of checkpoints, savepoints and databases, with one meaning in every process of the job."""
        wanted = (
            options.CHECKPOINT_DIRECTORY, options.SAVEPOINT_DIRECTORY, options.HA_STORAGE_DIR, options.RESTORE_PATH,
        )  # fmt: skip
        path_options = ((option.key, self._configuration.get(option)) for option in wanted)
        folder_options = Configuration()
        for option in (options.ROCKSDB_DIRS, options.TMP_DIRS):
            if folders := self._configuration.get(option):
                folder_options.set(option, [str(folder_of(folder)) for folder in folders])
        return {**{key: from_root(path) for key, path in path_options if path}, **folder_options.to_dict()}

    def _chosen(self, mode: RuntimeExecutionMode) -> dict[str, str]:
        """Return the mode that was chosen automatically, as options for the tasks."""
        is_open = self._configuration.get(options.RUNTIME_MODE) is RuntimeExecutionMode.AUTOMATIC
        return {options.RUNTIME_MODE.key: mode.name} if is_open else {}

    def get_job_graph(self, job_name: str | None = None) -> JobGraph:
        """Return the graph of chained vertices that `execute` runs."""
        return job_graph(self.get_stream_graph(job_name))

    def get_execution_plan(self) -> str:
        """Return the plan in Flink's JSON form."""
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
        """Start the program and return a `JobClient`.

        A local job (execution.target) runs while the program waits for its result, draws its rows or asks for its
        status.
        """
        return self._submit(job_name, self._configuration)

    def execute_and_draw(self, job_name: str | None = None) -> CloseableIterator:
        """Start a program with a `DrawnSink`, whose job ends with this process; `execute_and_collect` calls it."""
        attached = Configuration(self._configuration).set(options.SHUTDOWN_ON_ATTACHED_EXIT, True)
        return CloseableIterator(self._submit(job_name, attached))

    def _submit(self, job_name: str | None, configuration: Configuration) -> Any:
        stream = self.get_stream_graph(job_name)
        job = job_graph(stream)
        cached_results = self._results_to_keep(stream)
        self._sinks.clear()
        if _interceptors:
            return _interceptors[-1](stream, job)
        return launcher().submit(job, configuration, cached_results)

    def close(self) -> None:
        """Give up the records of all cached streams."""
        for transformation in self._cached_streams:
            transformation.result.discard()

    def _results_to_keep(self, stream: StreamGraph) -> list[tuple[Any, int]]:
        """Return the cached results that the job writes, each with the parallelism of its writer."""
        writers = {id(node.operator_factory): node.parallelism for node in stream.nodes}
        results = [transformation.result for transformation in self._cached_streams]
        return [(result, writers[id(result.writer)]) for result in results if id(result.writer) in writers]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Write and run a program of its own within the block, which leaves the steps written before alone."""
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
