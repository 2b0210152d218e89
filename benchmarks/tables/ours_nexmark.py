"""Nexmark's queries on Ray, one after the other in one program."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from csv import writer
from pathlib import Path
from typing import Any


def run(
    data_path: str,
    queries: Sequence[str],
    sets: Sequence[tuple[str, int]],
    kept_in: str,
    written_in: str,
    file_format: str = "csv",
    parallelism: int = 2,
    target: str = "ray",
) -> dict[str, Any]:
    """Each query over each set of data; Ray is up, and the first set is there to warm up and to keep results.

    Args:
        data_path: the folder of the sets.
        sets: names of their folders, and how many events they have.
        kept_in: the folder for the rows of the first set.
        written_in: the folder for files of the queries that write files in any case.
        file_format: of the sets.
    """
    began = time.time()
    if target == "ray":
        from rayflink.actors.on_ray.driver.ray_connection import connect

        connect(parallelism, "rayflink")
    jobs = []
    for number, (name, events) in enumerate(sets):
        for query in queries:
            before, insert = session_of(query, None if number else Path(kept_in), Path(written_in), file_format)
            before = [statement.replace("{path}", str(Path(data_path) / name)) for statement in before]
            job = job_of(before, insert, parallelism, target)
            if number:
                jobs.append({"query": query, "events": events, **job})
    return {"seconds_total": time.time() - began, "jobs": jobs}


def session_of(query: str, kept_in: Path | None, written_in: Path, file_format: str) -> tuple[list[str], str]:
    """Return the statements that come before that of a query, with {path} in them, and that one."""
    from benchmarks.inputs.nexmark import statements
    from benchmarks.inputs.nexmark_files import tables

    *before, insert = statements(query, kept_in, written_in)
    return [*tables(file_format).split(";"), *before], insert


def job_of(before: Sequence[str], insert: str, parallelism: int, target: str) -> dict[str, Any]:
    """Seconds of one query from `execute_sql` to its end, and CPU seconds of this process and those it has started."""
    from benchmarks.inputs.nexmark import FOLD, SETTINGS
    from rayflink.table import EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = t_env.get_config()
    config.set_string("execution.target", target)
    config.set_string("parallelism.default", str(parallelism))
    config.set_string("table.local-time-zone", "UTC")
    config.set_string("rayflink.ray.idle-process-timeout", "1 min")  # as TaskManagers of a session do
    for key, value in SETTINGS.items():
        config.set_string(key, value)
    for statement in before:
        t_env.execute_sql(statement)
    with CpuWatch() as cpu:
        begun = time.time()
        if insert.startswith(FOLD):
            fold(t_env, insert)
            return {"seconds": 0.0, "cpu_seconds": 0.0}
        client = t_env.execute_sql(insert).get_job_client()
        assert client is not None
        client.get_job_execution_result().result()
        seconds = time.time() - begun
    return {"seconds": seconds, "cpu_seconds": cpu.seconds}


def fold(t_env: Any, statement: str) -> None:
    """Apply the changes of a query, and write the rows that are left."""
    from rayflink.common.types import RowKind

    line, _, query = statement.partition("\n")
    path, rows = Path(line.split(" ")[-1]), Counter[tuple[Any, ...]]()
    for row in t_env.execute_sql(query).collect():
        is_gone = row.get_row_kind() in (RowKind.UPDATE_BEFORE, RowKind.DELETE)
        rows[tuple(row)] += -1 if is_gone else 1
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer(file).writerows(rows.elements())


class CpuWatch:
    """CPU seconds of this process and all it has started, also through others, while it is entered.

    Who has ended tells nobody, so all are looked at ten times a second.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[int, int], int] = {}
        self._last: dict[tuple[int, int], int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> CpuWatch:
        self._before = _ticks()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._last.update(_ticks())

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self._last.update(_ticks())

    @property
    def seconds(self) -> float:
        """Spent between entry and exit."""
        spent = sum(ticks - self._before.get(process, 0) for process, ticks in self._last.items())
        return spent / os.sysconf("SC_CLK_TCK")


def _ticks() -> dict[tuple[int, int], int]:
    """Clock ticks of user and system time by process id and start."""
    found: dict[int, tuple[int, int, int]] = {}
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        pid = int(stat.parent.name)
        found[pid] = int(fields[19]), int(fields[11]), int(fields[12])
        children.setdefault(int(fields[1]), []).append(pid)
    waiting, ticks = [os.getpid()], {}
    while waiting:
        one = waiting.pop()
        waiting += children.get(one, [])
        if one in found:
            start, user, system = found[one]
            ticks[one, start] = user + system
    return ticks
