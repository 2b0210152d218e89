"""Who runs: our engine and each peer, as a command that prints one JSON line."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from benchmarks.inputs import bids, cep_events, changing_rows, kafka_events, nexmark, nexmark_files, sql_events
from benchmarks.keyed_state import state_large
from benchmarks.keyed_state.large_job import PROMPT
from benchmarks.runs.environments import Environment, Unavailable

BENCHMARKS = Path(__file__).parent.parent
ROOT = BENCHMARKS.parent
_FLINK = Environment("flink", ("apache-flink-libraries==2.3.0",), dependencies=False)
_PYFLINK = Environment("pyflink", ("apache-flink==2.3.0",))
_BYTEWAX = Environment("bytewax", ("bytewax==0.21.1",))
_PATHWAY = Environment("pathway", ("pathway==0.33.0",))
_STATE_HEAP_MB = 1024
_SQL_STATE = "sql-state"
FLINK_CHECKPOINTS = "flink-checkpoints"
"""The folder under the cache into which Flink's checkpoints go."""
_LESS_WAITING: dict[str, tuple[str, Mapping[str, str]]] = {
    "recovery": ("restarts and heartbeats as ours", PROMPT),
    "rescale_pause": (
        "no cool-down between rescales",
        {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 s"},
    ),
}
_OPENED = ("lang", "net", "io", "nio", "text", "time", "util", "util.concurrent")


class Contestant(Protocol):
    """One line of a report. `divisor`: it works 1/divisor of the words, where the whole would take too long."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def divisor(self) -> int: ...

    def command(self, cache: Path, data: Path | None) -> list[str]:
        """The command of one run; sets up what it needs the first time. Raises: Unavailable."""


@dataclass(frozen=True)
class PythonModule:
    """A module with the `run` of `run_one`, in its own environment or, with None, in this interpreter."""

    name: str
    about: str
    module: str
    environment: Environment | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    divisor: int = 1

    def command(self, cache: Path, data: Path | None) -> list[str]:
        if importlib.util.find_spec(self.module) is None:
            raise Unavailable(f"there is no {self.module.replace('.', '/')}.py")
        python = str(self.environment.python(cache)) if self.environment else sys.executable
        return [python, "-m", "benchmarks.runs.run_one", self.module, str(data or ""), json.dumps(dict(self.params))]


@dataclass(frozen=True)
class FlinkJvm:
    """A program of `flink/` on a local cluster in one JVM.

    Args:
        program: `flink/<program>.java`, whose class has this name.
        arguments: of the program, behind the data file where there is one.
        heap_mb: most of the heap; None leaves it to the JVM.
        page_cache_bytes: see `page_cache`; None for no bound.
        folder: a directory under the cache that the program gets as its last argument; None for none.
        jar: cache -> a jar that the program needs beside Flink's own; None for none.
    """

    name: str
    about: str
    program: str
    arguments: tuple[str, ...] = ()
    divisor: int = 1
    heap_mb: int | None = None
    page_cache_bytes: int | None = None
    folder: str | None = None
    jar: Callable[[Path], Path] | None = None

    def command(self, cache: Path, data: Path | None) -> list[str]:
        heap = [] if self.heap_mb is None else [f"-Xmx{self.heap_mb}m"]
        arguments = [*([str(data)] if data else []), *self.arguments]
        arguments += [str(cache / self.folder)] if self.folder else []
        java = _flink_java(self.program, cache)
        if self.jar is not None:
            java[-1] += f":{self.jar(cache)}"
        run = [*java, *heap, self.program, *arguments]
        if self.page_cache_bytes is None:
            return run
        return [sys.executable, "-m", "benchmarks.runs.page_cache", str(self.page_cache_bytes), *run]


@dataclass(frozen=True)
class FlinkCluster:
    """`peers/large_state_flink.py`: a JobManager and TaskManagers on loopback, each a JVM of its own.

    Args:
        benchmark: the one of ours beside which it runs.
        options: of Flink, where they are not its defaults.
        params: of the benchmark.
    """

    name: str
    about: str
    benchmark: str
    options: Mapping[str, str]
    params: Mapping[str, object]
    divisor: int = 1

    def command(self, cache: Path, data: Path | None) -> list[str]:
        given = {"benchmark": self.benchmark, "java": _flink_java("LargeState", cache), "options": dict(self.options)}
        module = "benchmarks.peers.large_state_flink"
        return PythonModule(self.name, self.about, module, params={**given, **self.params}).command(cache, data)


def _flink_java(program: str, cache: Path) -> list[str]:
    """Java with Flink's jars and `flink/<program>.java`, which is compiled the first time; a class is to follow.

    `flink/<program>.factories`, where there is one, names the program's classes that create tables.

    Raises: Unavailable: there is no JDK, or it refuses the program.
    """
    java, javac = _jdk_tool("java"), _jdk_tool("javac")
    jars = f"{_FLINK.site_packages(cache) / 'pyflink' / 'lib'}/*"
    source = BENCHMARKS / "flink" / f"{program}.java"
    classes = cache / f"classes-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not (classes / f"{program}.class").exists():
        compile_it = [javac, "-nowarn", "-cp", jars, "-d", str(classes), str(source)]
        compiled = subprocess.run(compile_it, capture_output=True, text=True)
        if compiled.returncode:
            raise Unavailable(f"javac refused {source.name}: {compiled.stderr.strip()[-400:]}")
    factories = source.with_suffix(".factories")
    if factories.exists():
        services = classes / "META-INF" / "services" / "org.apache.flink.table.factories.Factory"
        services.parent.mkdir(parents=True, exist_ok=True)
        services.write_text(factories.read_text())
    opens = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
    return [java, *opens, "-Dlog4j2.level=ERROR", "-cp", f"{classes}:{jars}"]


def _jdk_tool(tool: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(tool, path=f"{home}/bin") if home else shutil.which(tool)
    if found is None:
        where = f"$JAVA_HOME/bin ({home}/bin)" if home else "PATH"
        raise Unavailable(f"no {tool} on {where}: install a JDK 17 (openjdk-17-jdk-headless) or set JAVA_HOME")
    return found


def ours(benchmark: str, params: Mapping[str, object]) -> PythonModule:
    """Our engine: the module `ours_<benchmark>.py` in one of the folders of `benchmarks/`."""
    room = next((path.parent.name for path in BENCHMARKS.glob(f"*/ours_{benchmark}.py")), "streams")
    return PythonModule("ours", "rayflink", f"benchmarks.{room}.ours_{benchmark}", params=params)


def _bytewax(name: str, about: str, workers: int) -> PythonModule:
    return PythonModule(name, about, "benchmarks.peers.w1_bytewax", _BYTEWAX, {"workers": workers}, divisor=4)


def flink_state_large(
    keys: int = state_large.KEYS,
    warm_seconds: float = state_large.WARM_SECONDS,
    window_seconds: float = state_large.WINDOW_SECONDS,
) -> FlinkJvm:
    """The peer of `state_large`, with the same caps."""
    return FlinkJvm(
        "flink",
        "Flink 2.3 JVM",
        "StateCount",
        (str(keys), str(warm_seconds), str(window_seconds), str(state_large.MANAGED_MB)),
        heap_mb=_STATE_HEAP_MB,
        page_cache_bytes=state_large.PAGE_CACHE_MB << 20,
        folder="flink-state",
    )


def flink_large_state(benchmark: str, params: Mapping[str, object]) -> list[Contestant]:
    """The peers of `recovery`, `rescale_pause` and `checkpoint_sync`: Flink as it comes, then with less waiting."""
    ways: list[Contestant] = [FlinkCluster("flink", "Flink 2.3, its defaults", benchmark, {}, params)]
    if benchmark in _LESS_WAITING:
        about, options = _LESS_WAITING[benchmark]
        ways.append(FlinkCluster("flink-prompt", f"Flink 2.3, {about}", benchmark, options, params))
    return ways


def checkpoint_cost(engine: str, interval_ms: int) -> tuple[Contestant, Contestant]:
    """W1 without and with checkpoints, of "ours" or "flink"."""
    without, taking = "no checkpoints", f"a checkpoint each {interval_ms / 1000:g} s"
    if engine == "ours":
        module, plain = "benchmarks.streams.ours_w1", {"parallelism": 2}
        return (
            PythonModule("ours", f"rayflink, {without}", module, params=plain),
            PythonModule("ours-taking", f"rayflink, {taking}", module, params={**plain, "checkpoint_ms": interval_ms}),
        )
    named, jobs = "Flink 2.3 JVM, warm, readFile", ("read-file", "4")
    folder = FLINK_CHECKPOINTS
    return (
        FlinkJvm("flink", f"{named}, {without}", "WordCount", jobs),
        FlinkJvm("flink-taking", f"{named}, {taking}", "WordCount", (*jobs, str(interval_ms)), folder=folder),
    )


def sql(query: str, rows: int, flink: bool) -> list[Contestant]:
    """W2 or W3 over so many bids: ours, and Flink's SQL in one JVM."""
    label = f"{rows / 1e6:g} M rows"
    ways: list[Contestant] = [
        PythonModule(
            "ours", f"rayflink, {query}, {label}", "benchmarks.tables.ours_sql", params={"query": query, "rows": rows}
        )
    ]
    if flink:
        arguments = (bids.TABLES, bids.QUERIES[query], str(rows))
        ways.append(FlinkJvm("flink", f"Flink SQL 2.3, {query}, {label}", "SqlJob", arguments))
    return ways


def kafka_sql(servers: str, events: int, flink: bool) -> list[Contestant]:
    """A window over the bids of a topic: ours, the bare client library, and Flink's SQL in one JVM."""
    given = {"servers": servers, "events": events}
    read = f"{events / 1e6:g} M messages"
    ways: list[Contestant] = [
        PythonModule("ours", f"rayflink, {read}", "benchmarks.tables.ours_kafka_sql", params=given),
        PythonModule(
            "client", f"client library alone, {read}", "benchmarks.connectors.ours_kafka_consumer", params=given
        ),
    ]
    if flink:
        tables = kafka_events.TABLES.replace("{servers}", servers)
        arguments = ("", tables, kafka_events.QUERY, str(events))
        jar = kafka_events.connector_jar
        ways.insert(1, FlinkJvm("flink", f"Flink SQL 2.3, {read}", "SqlJob", arguments, jar=jar))
    return ways


def sql_latency(flink: bool) -> list[Contestant]:
    """Windows of a second and groups at a fixed rate: ours, and Flink's SQL with and without mini-batches."""
    label = f"{sql_events.RATE} bids a second"
    ways: list[Contestant] = [PythonModule("ours", f"rayflink, {label}", "benchmarks.tables.ours_sql_latency")]
    for batches, mini in (("true", "with"), ("false", "without")) if flink else ():
        arguments = (sql_events.table(), sql_events.QUERY, str(sql_events.WARM_WINDOWS), batches, sql_events.FIRST,
                     sql_events.CHANGES, str(sql_events.WARM_SECONDS), sql_events.BUFFER_TIMEOUT)  # fmt: skip
        ways.append(FlinkJvm(f"flink-{mini}", f"Flink SQL 2.3, {label}, {mini} mini-batches", "SqlLatency", arguments))
    return ways


def in_flight(costs_ms: Sequence[float], hops: Sequence[int], seconds: int, flink: bool) -> list[Contestant]:
    """Functions that sleep, behind one or more exchanges: ours on both runners, Flink with debloating and without."""
    ways: list[Contestant] = []
    for cost, width in ((cost, width) for width in hops for cost in costs_ms):
        job = f"{cost:g} ms, {width} {'exchange' if width == 1 else 'exchanges'}"
        params = {"cost_ms": cost, "hops": width, "seconds": seconds}
        for target in ("local", "ray"):
            module = "benchmarks.streams.ours_in_flight"
            ways.append(PythonModule(f"ours-{target}", f"{job}: {target}", module, params={**params, "target": target}))
        for name, debloats in (("flink", "true"), ("flink-plain", "false")) if flink else ():
            if debloats == "false" and cost > 1:
                continue  # its savepoint takes minutes, or hours
            arguments = (f"{cost * 1000:.0f}", str(width), str(seconds), "2", debloats)
            about = f"{job}: Flink 2.3, {'with' if debloats == 'true' else 'no'} debloating"
            ways.append(FlinkJvm(name, about, "InFlight", arguments, folder="flink-in-flight"))
    return ways


def cep_ways(cases: Sequence[str], sizes: Sequence[int], keys: int, cache: Path, flink: bool) -> list[Contestant]:
    """Patterns of three steps over events: ours and Flink's, each in one process; then the memory of partial matches.

    Args:
        sizes: events of a job to warm up, then of two that are measured.
        keys: with a partial match each.
    """
    jobs = []
    for case in cases:
        share = cep_events.SHARES[case.partition("-")[2]]
        for number, events in enumerate(sizes):
            is_query = case.startswith("sql")
            path = str(cep_events.event_file(cache / "data", events, share)) if is_query else ""
            jobs.append((case, str(events), str(share), path, "measured" if number else "warm"))
    memory = f"{keys / 1e6:g} M partial matches"
    ways: list[Contestant] = [
        PythonModule("ours", "rayflink", "benchmarks.streams.ours_cep", params={"jobs": jobs}),
        PythonModule("ours-memory", f"rayflink, {memory}", "benchmarks.streams.ours_cep_memory", params={"keys": keys}),
    ]
    if flink:
        numbers = (cep_events.ACCOUNTS, cep_events.EVENTS_A_MS, cep_events.WITHIN_S)
        arguments = (*map(str, numbers), cep_events.TABLE, cep_events.QUERY)
        timed = (*arguments, *(part for job in jobs for part in job))
        ways.insert(1, FlinkJvm("flink", "Flink 2.3", "CepJobs", timed))
        memorized = (*arguments, "memory", str(keys), "0", "", "measured")
        ways.append(FlinkJvm("flink-memory", f"Flink 2.3, {memory}", "CepJobs", memorized))
    return ways


def debloating_cost(params: Mapping[str, object]) -> list[PythonModule]:
    """Jobs with debloating and without it, in pairs within one process: each case in this process and on Ray."""
    return [
        PythonModule(
            f"{case}-{target}",
            f"{case}, {target}",
            "benchmarks.streams.ours_debloating_cost",
            params={"case": case, "target": target, **params},
        )
        for case in ("w1", "int64x4", "string_int64")
        for target in ("local", "ray")
    ]


@dataclass(frozen=True)
class FlinkSession:
    """Queries in one JVM, one after the other.

    Args:
        queries: their names.
        sets: folders of events under the data, and how many they have; the first one to warm up and to keep results.
        tables: their declarations.
        statements: of a query; its rows are kept in the folder, or forgotten.
        benchmark: to which the script belongs, and the rows that are kept.
    """

    name: str
    about: str
    queries: tuple[str, ...]
    sets: Sequence[tuple[str, int]]
    tables: str
    statements: Callable[[str, Path | None], list[str]]
    benchmark: str = "nexmark"
    divisor: int = 1

    def command(self, cache: Path, data: Path | None) -> list[str]:
        assert data is not None
        kept_in = kept_rows_folder(cache, self.name, self.benchmark)
        scripts = [self._script(cache, folder) for folder in (kept_in, None)]
        arguments: list[str] = []
        for number, (name, events) in enumerate(self.sets):
            arguments += [str(scripts[min(number, 1)]), str(data / name), str(events)]
        return [*_flink_java("SqlSession", cache), "SqlSession", *arguments]

    def _script(self, cache: Path, kept_in: Path | None) -> Path:
        """Tables, then each query, as the program wants them."""
        parts = [f"{statement}\n;;\n" for statement in self.tables.split(";")]
        for query in self.queries:
            statements = self.statements(query, kept_in)
            parts += [f"== {query}\n", *(f"{statement}\n;;\n" for statement in statements)]
        script = cache / f"{self.benchmark}-{self.name}-{'measured' if kept_in is None else 'kept'}.sql"
        script.write_text("".join(parts))
        return script


def kept_rows_folder(cache: Path, contestant: str, benchmark: str = "nexmark") -> Path:
    """Where a contestant keeps the rows of each query."""
    return cache / f"{benchmark}-rows" / contestant


def sql_state_ways(
    queries: Sequence[str], keys: int, updates: int, cache: Path, flink: bool
) -> list[Contestant]:  # fmt: skip
    """Ours, and Flink's SQL, over tables of `keys` rows that change: a few to warm up, each key once, and updates.

    Args:
        updates: of the larger set, for each key.
        cache: where the sets are made, in `data`.
    """
    sizes = ((keys // 50, keys // 10), (keys, 0), (keys, updates * keys))
    sets = [(changing_rows.row_files(cache / "data", *size).name, sum(size)) for size in sizes]
    given: dict[str, object] = {"queries": list(queries), "keys": keys, "sets": sets}
    given["kept_in"] = str(kept_rows_folder(cache, "ours", _SQL_STATE))
    ways: list[Contestant] = [PythonModule("ours", "rayflink", "benchmarks.tables.ours_sql_state", params=given)]

    def statements(query: str, kept_in: Path | None) -> list[str]:
        return changing_rows.statements(query, kept_in, changing_rows.options_of_flink(query, keys))

    if flink:
        tables = changing_rows.TABLES
        ways.append(FlinkSession("flink", "Flink 2.3", tuple(queries), sets, tables, statements, _SQL_STATE))
    return ways


def written_files_folder(cache: Path, contestant: str) -> Path:
    """Return the folder into which a contestant writes the files of q10 where they are not compared."""
    return cache / "nexmark-written" / contestant


def nexmark_ways(
    queries: Sequence[str], sizes: Sequence[int], cache: Path, peers: Sequence[str], file_format: str = "csv"
) -> list[Contestant]:
    """Ours, and Flink's SQL with one file for each table, and with two, of which each subtask reads one.

    Args:
        sizes: events of a set of data to warm up, then of two that are measured.
        cache: where the sets are made, in `data`.
        file_format: of the sets.
    """
    warming, *measured = sizes

    def sets(parts: int) -> list[tuple[str, int]]:
        given = [(warming, 1), *((events, parts) for events in measured)]
        return [
            (nexmark.event_files(cache / "data", events, files, file_format=file_format).name, events)
            for events, files in given
        ]

    given: dict[str, object] = {
        "queries": list(queries), "sets": sets(1), "file_format": file_format,
        "kept_in": str(kept_rows_folder(cache, "ours")), "written_in": str(written_files_folder(cache, "ours")),
    }  # fmt: skip
    ways: list[Contestant] = [PythonModule("ours", "rayflink", "benchmarks.tables.ours_nexmark", params=given)]
    tables = nexmark_files.tables(file_format, nexmark_files.FLINK_SIDE_OPTIONS)
    for name, about, parts in (
        ("flink", "Flink 2.3, one reader", 1),
        ("flink-2", "Flink 2.3, two files: two readers", 2),
    ):
        if "flink" in peers:
            written_in = written_files_folder(cache, name)
            statements = partial(nexmark.statements, written_in=written_in)
            ways.append(FlinkSession(name, about, tuple(queries), sets(parts), tables, statements))
    return ways


W1_PEERS: dict[str, tuple[Contestant, ...]] = {
    "flink": (
        FlinkJvm("flink", "Flink 2.3 JVM, warm; FileSource: one reader a file", "WordCount", ("file-source", "4")),
        FlinkJvm("flink-split", "Flink 2.3 JVM, warm; readFile: both subtasks read", "WordCount", ("read-file", "4")),
    ),
    "pyflink": (
        PythonModule("pyflink", "PyFlink 2.3, thread mode", "benchmarks.peers.w1_pyflink", _PYFLINK, divisor=16),
    ),
    "bytewax": (
        _bytewax("bytewax", "Bytewax 0.21.1, 1 worker", workers=1),
        _bytewax("bytewax-2", "Bytewax 0.21.1, 2 workers", workers=2),
    ),
    "pathway": (PythonModule("pathway", "Pathway 0.33, 1 thread", "benchmarks.peers.w1_pathway", _PATHWAY, divisor=4),),
}
"""Peers of W1 by the name that `--peers` takes; one peer may have several ways to run."""
