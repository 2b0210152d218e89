"""A Spark session on Ray through RayDP that starts whole or says why not, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayflink.actors.on_ray.driver.ray_connection import connect
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.option_sources import given_options, under_program
from rayflink.common.options.option_types import MemorySize
from rayflink.common.text_output.logs import get_logger
from rayflink.connectors.frames.spark_frames import reason_of

from .errors import SparkCannotStart
from .interrupts import heed_interrupts, orderly_end, own_interrupts
from .java import OPENS, find_java, java_version, nodes_without_java, with_java
from .packages import ensure_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_logger(__name__)

PROBE_S = 60.0
"""Time that the nodes may take to report which Java they have."""
END_S = 30.0
"""Time that the processes of a Spark may take to end before they are killed, and after."""
LEAST_MEMORY = 450 << 20
"""Spark refuses executors with less: it keeps 300 MiB for itself, and wants half as much again."""
ENDING_S = 5.0
"""Time for which a Spark that has ended may be in Ray's list of actors."""
_LOOKS_EVERY_S = 0.05
_MASTER = "_SPARK_MASTER"
LOGGING = "log4j2.properties"
_LOGGING = """
status = off
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p Spark %c{1}: %m%n%ex
logger.host.name = org.apache.spark.util.Utils
logger.host.level = error
logger.folders.name = org.apache.spark.SparkConf
logger.folders.level = error
logger.hadoop.name = org.apache.hadoop.util.NativeCodeLoader
logger.hadoop.level = error
"""
"""Warnings of the driver's JVM, but for those that each start on Ray would print."""
T = TypeVar("T")


@dataclass(frozen=True)
class SparkSize:
    """The resources that a Spark takes of a cluster.

    Args:
        executors: their number.
        cores: CPUs of one, and the tasks it runs at once.
        memory: of one: a heap in bytes.
    """

    executors: int
    cores: int
    memory: int

    @property
    def cpus(self) -> int:
        """Return the CPUs of all executors."""
        return self.executors * self.cores

    def __str__(self) -> str:
        each = f"{self.cores} CPU{'s' if self.cores != 1 else ''} and {self.memory >> 20:,} MiB"
        return f"{self.executors} executor{'s' if self.executors != 1 else ''} of {each}"


@contextmanager
def spark_session(
    app_name: str = "rayflink",
    num_executors: int = 1,
    executor_cores: int = 1,
    executor_memory: str | int = "1g",
    *,
    stream_cpus: int | None = None,
    ray_data: bool = False,
    configs: Mapping[str, str] | None = None,
    start_timeout_s: float = 120.0,
    configuration: Configuration | Mapping[str, Any] | None = None,
) -> Iterator[SparkSession]:
    """Return a `SparkSession` whose executors are actors of the running Ray cluster, else of a Ray started on this
    machine.

    The executors' CPUs and memory are reserved in a placement group before Spark starts. When the block ends, in
    whatever way, Spark and all its processes and files have ended; Ctrl-C and SIGTERM end it as an exception does. A
    DataFrame that `env.from_spark` has read stays.

    >>> with spark_session() as spark:                                       # doctest: +SKIP
    ...     spark.range(3).selectExpr("sum(id)").collect()
    [Row(sum(id)=3)]

    Args:
        app_name: shown by Spark; Ray's actors have it in their names.
        num_executors: number of executors, spread over the nodes.
        executor_cores: CPUs of one executor.
        executor_memory: of one executor: bytes, or a text like "2g".
        stream_cpus: CPUs that must remain for streams; None: as many as this machine has where Ray is started here,
            else none.
        ray_data: let `ray.data.from_spark(df)` work, for which Spark's driver joins Ray too: it starts a second or two
            later. `env.from_spark` and `Dataset.to_spark` do without.
        configs: Spark's own options, which go before those set here.
        start_timeout_s: seconds in which the executors must run.
        configuration: rayflink's options, of which the Ray namespace is read.

    Raises:
        SparkCannotStart: PySpark, RayDP or Java 17 is missing or of another version, the cluster has not the CPUs or
            memory, a Spark of this program runs already, or it does not start in time.
        ConfigError, RayCannotStart: there is no Ray.
    """
    size = SparkSize(num_executors, executor_cores, _bytes_of(executor_memory))
    if min(size.executors, size.cores) < 1 or size.memory < LEAST_MEMORY:
        wanted = f"at least one executor, of at least one CPU and {LEAST_MEMORY >> 20} MiB"
        raise SparkCannotStart(str(size), wanted, "ask for more")
    program_options = (
        configuration if isinstance(configuration, Configuration) else Configuration.from_dict(configuration or {})
    )
    settings = under_program(given_options(), program_options)
    ensure_packages()
    ensure_none_runs()
    namespace = settings.get(options.RAY_NAMESPACE)
    spare = (os.cpu_count() or 1) if stream_cpus is None else stream_cpus
    with ExitStack() as undone:
        undone.enter_context(_environment(with_java(find_java(), os.environ)))
        _join(size, spare, stream_cpus or 0, namespace)
        ensure_alone()
        run = _Run(f"{app_name}-{os.urandom(4).hex()}", size, ray_data)
        undone.callback(run.end)
        undone.enter_context(own_interrupts())
        undone.enter_context(orderly_end())
        yield run.begin(dict(configs or {}), start_timeout_s)


def ensure_none_runs() -> None:
    """Check that no Spark runs in the program: there is one at a time.

    Raises:
        SparkCannotStart: one runs.
    """
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        actual = f"the Spark {SparkContext._active_spark_context.appName!r} of this program"
        raise SparkCannotStart(actual, "no other in the program", "stop() it, or use it: a program has one at a time")


def _bytes_of(memory: str | int) -> int:
    try:
        size = memory if isinstance(memory, int) else MemorySize.parse(memory).get_bytes()
    except ValueError as error:
        wanted, remedy = "a size of memory", "give bytes, or a text like '2g'"
        raise SparkCannotStart(f"executor_memory={memory!r}", wanted, remedy) from error
    return size >> 20 << 20  # Spark counts in MiB


def _join(size: SparkSize, spare: int, must_remain: int, namespace: str) -> None:
    """Join the cluster, or start Ray with room for Spark and streams.

    Raises:
        SparkCannotStart: the cluster is too small, or a node has no Java 17.
    """
    if ray.util.client.ray.is_connected():  # type: ignore[no-untyped-call]
        raise SparkCannotStart(
            "a connection by Ray Client (ray://)", "a program on a node of the cluster", "run it by `ray job submit`"
        )
    before = ray.is_initialized()
    started = connect(size.cpus + spare, f"{namespace}-{os.urandom(4).hex()}")
    total: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    problem = too_small(total, size, must_remain)
    if problem is None and (before or not started):
        problem = nodes_without_java(on_nodes(nodes(), _java_there))
    if problem is not None:
        raise problem


def ensure_alone() -> None:
    """Check that no other Spark runs in the Ray namespace of this program: RayDP's actors have the same names in each.

    Raises:
        SparkCannotStart: one does, and this program had joined Ray before, in that namespace.
    """
    namespace = ray.get_runtime_context().namespace
    if not await_true(lambda: not spark_actors(), ENDING_S):
        actual = f"the Spark of another program in the Ray namespace {namespace!r}"
        wanted, remedy = "a namespace of its own", "begin spark_session before anything else that joins Ray"
        raise SparkCannotStart(actual, wanted, remedy)


def spark_actors() -> list[str]:
    """Return the names of the actors of a Spark in the Ray namespace of this program."""
    namespace = ray.get_runtime_context().namespace
    named = ray.util.list_named_actors(all_namespaces=True)
    names = [actor["name"] for actor in named if actor["namespace"] == namespace]
    return [name for name in names if name.endswith((_MASTER, "RAY_APP_MASTER")) or name.startswith("raydp-executor-")]


def too_small(total: Mapping[str, float], size: SparkSize, must_remain: int) -> SparkCannotStart | None:
    """Return the error where a cluster lacks resources that a Spark and streams need, or None.

    Args:
        total: the cluster's resources.
        must_remain: CPUs for streams.
    """
    cpus, memory = total.get("CPU", 0), total.get("memory", 0)
    if cpus < size.cpus + must_remain:
        wanted = f"{size.cpus} CPUs for {size}" + (f", and {must_remain} for streams" if must_remain else "")
        remedy = "ask for fewer executors or cores, or add nodes"
        return SparkCannotStart(f"a cluster of {cpus:g} CPUs", wanted, remedy)
    if memory < size.executors * size.memory:
        actual = f"a cluster with {int(memory) >> 20:,} MiB for actors"
        return SparkCannotStart(actual, str(size), "ask for less executor_memory, or add nodes")
    return None


def nodes() -> list[str]:
    """Return the ids of the nodes of the cluster."""
    return [node["NodeID"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def on_nodes(node_ids: Sequence[str], work: Callable[..., T], *arguments: Any) -> list[tuple[str, T]]:
    """Call a function on nodes of the cluster: each node and what it gave.

    Raises:
        SparkCannotStart: one does not answer.
    """
    if not node_ids:
        return []
    called: Any = ray.remote(num_cpus=0, max_retries=0)(work)
    places = {node: NodeAffinitySchedulingStrategy(node, soft=False) for node in node_ids}
    asked = {called.options(scheduling_strategy=place).remote(*arguments): node for node, place in places.items()}
    done, late = ray.wait(list(asked), num_returns=len(asked), timeout=PROBE_S)
    if late:
        actual = f"no answer from {len(late)} nodes within {PROBE_S:g} s"
        raise SparkCannotStart(actual, "nodes that run tasks", "see `ray status`")
    return [(asked[task], ray.get(task)) for task in done]


def _java_there() -> int | None:
    return java_version(Path("java"))


def _make(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)  # where two nodes are one machine


@dataclass
class _Run:
    """One Spark: what was begun of it, to be ended in any case.

    Args:
        name: of the application, which no other has.
        ray_data: Spark's driver joins Ray.
    """

    name: str
    size: SparkSize
    ray_data: bool
    group: Any = None
    folder: str = ""
    session: Any = None
    _late: bool = field(default=False, init=False)

    def begin(self, configs: dict[str, str], timeout_s: float) -> SparkSession:
        """Start it.

        Raises:
            SparkCannotStart: it does not start in time.
        """
        import raydp

        until = time.monotonic() + timeout_s
        self._reserve(timeout_s)
        self.folder = tempfile.mkdtemp(prefix="rayflink-spark-")
        on_nodes(self._others(), _make, self.folder)
        Path(self.folder, LOGGING).write_text(_LOGGING, encoding="utf-8")
        watchdog = threading.Timer(max(1.0, until - time.monotonic()), self._give_up)
        watchdog.daemon = True
        watchdog.start()
        try:
            self.session = raydp.init_spark(
                self.name,
                self.size.executors,
                self.size.cores,
                f"{self.size.memory >> 20}m",
                fault_tolerant_mode=self.ray_data,
                placement_group=self.group,
                configs={**self._configs(), **configs},
            )
            heed_interrupts()
            context = self.session.sparkContext  # whose python3 of the PATH may be another Python
            context.pythonExec = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
            self._await_executors(until, timeout_s)
        except SparkCannotStart:
            raise
        except Exception as error:  # of Ray's, of py4j's, or whatever the JVM's end causes
            actual = f"no Spark after {timeout_s:g} s" if self._late else reason_of(error)
            remedy = "see raydp-java-*.log and java-worker-*.log in the logs of Ray, and what Spark has printed above"
            raise SparkCannotStart(actual, str(self.size), remedy) from error
        finally:
            watchdog.cancel()
        session: SparkSession = self.session
        return session

    def end(self) -> None:
        """End every part of Spark that exists, and check that it has ended."""
        import raydp

        try:
            in_time(raydp.stop_spark)
        except Exception as error:  # whatever a Spark says of which parts have died; they are ended below
            log.warning("Spark did not end by itself: %s", reason_of(error))
        finally:
            with suppress(RayError):  # what is on a Ray that has ended has ended with it
                kill_actors()
                if self.group is not None and ray.is_initialized():
                    ray.util.remove_placement_group(self.group)
            end_gateway()
            if self.folder:
                clear(self.folder)
                with suppress(SparkCannotStart, RayError):  # a node that is lost has lost it, too
                    on_nodes(self._others() if ray.is_initialized() else (), clear, self.folder)

    def _reserve(self, timeout_s: float) -> None:
        each = {"CPU": self.size.cores, "memory": self.size.memory}
        self.group = ray.util.placement_group([dict(each) for _ in range(self.size.executors)], strategy="SPREAD")
        if not self.group.wait(timeout_s):
            free: Mapping[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
            cpus, memory = free.get("CPU", 0), int(free.get("memory", 0)) >> 20
            actual = f"{cpus:g} CPUs and {memory:,} MiB free on all nodes together after {timeout_s:g} s"
            remedy = "end what holds the others (`ray status` shows it), or ask for less"
            raise SparkCannotStart(actual, str(self.size), remedy)

    def _configs(self) -> dict[str, str]:
        java = f"{OPENS} -Djava.io.tmpdir={self.folder}"
        packages = [path for path in sys.path if path and os.path.exists(path)]
        return {
            "spark.driver.extraJavaOptions": java,
            "spark.executor.extraJavaOptions": java,
            "spark.ray.raydp_app_master.extraJavaOptions": java,
            "spark.ray.raydp_spark_master.actor.resource.CPU": "0",
            "spark.pyspark.python": sys.executable,
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(packages),
            "spark.log4j.config.file.name": os.path.join(self.folder, LOGGING),
            "spark.local.dir": self.folder,
            "spark.sql.warehouse.dir": os.path.join(self.folder, "warehouse"),
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        }

    def _await_executors(self, until: float, timeout_s: float) -> None:
        status = self.session.sparkContext._jsc.sc().getExecutorMemoryStatus
        there = 0

        def all_there() -> bool:
            nonlocal there
            there = status().size() - 1  # the driver is one of them
            return bool(there >= self.size.executors)

        if not await_true(all_there, until - time.monotonic()):
            actual = f"{there} of {self.size.executors} executors after {timeout_s:g} s"
            raise SparkCannotStart(actual, str(self.size), "see java-worker-*.log in the logs of Ray")

    def _give_up(self) -> None:
        """Let what waits for the start of Spark fail."""
        self._late = True
        kill_actors()
        end_gateway()

    @staticmethod
    def _others() -> list[str]:
        here = ray.get_runtime_context().get_node_id()
        return [node for node in nodes() if node != here]


def kill_actors() -> None:
    """Kill the actors of this program's Spark that have not ended."""
    for name in spark_actors() if ray.is_initialized() else ():
        with suppress(ValueError):  # it has ended meanwhile
            ray.kill(ray.get_actor(name, ray.get_runtime_context().namespace))


def clear(folder: str) -> None:
    """Wait until the processes of this machine have ended whose command names a folder, then remove that.

    Those that do not end in time are killed.
    """
    if not await_true(lambda: not processes_of(folder), END_S):
        for process in processes_of(folder):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        await_true(lambda: not processes_of(folder), END_S)
    shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: str) -> list[int]:
    """Return the ids of the processes of this machine whose command names a folder."""
    process_ids = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            if folder.encode() in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                process_ids.append(int(entry.parent.name))
    return process_ids


def end_gateway() -> None:
    """End the JVM of this process's PySpark, which would else live until the process ends."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    with suppress(Exception):  # whatever a JVM says that has ended already
        gateway.shutdown()
    if process is not None:
        process.stdin.close()  # at which the JVM ends
        if not await_true(lambda: process.poll() is not None, END_S):
            process.kill()
            process.wait()


def in_time(work: Callable[[], object], limit_s: float = END_S) -> None:
    """Let work be done, by a thread that is left alone when it takes too long; its error is raised."""
    errors: list[BaseException] = []

    def do() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=do, name="end of Spark", daemon=True)
    thread.start()
    thread.join(limit_s)
    if errors:
        raise errors[0]


def await_true(said: Callable[[], bool], limit_s: float) -> bool:
    """Wait until something is so; whether it was within the limit."""
    until = time.monotonic() + limit_s
    while not said():
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOKS_EVERY_S)
    return True


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


__all__ = ["SparkSize", "await_true", "end_gateway", "ensure_none_runs", "in_time", "spark_session", "too_small"]
