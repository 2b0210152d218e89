"""Queries of SQL whose state has a row for each key, on Ray, one after the other in one program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run(
    data_path: str,
    queries: Sequence[str],
    keys: int,
    sets: Sequence[tuple[str, int]],
    kept_in: str,
    parallelism: int = 2,
    target: str = "ray",
) -> dict[str, Any]:
    """Each query over each set of data; Ray is up, and the first set is there to warm up and to keep results.

    Args:
        data_path: the folder of the sets.
        keys: of a table of the larger sets.
        sets: names of their folders, and how many rows a table has.
        kept_in: the folder for the rows of the first set.
    """
    began = time.time()
    if target == "ray":
        from rayflink.actors.on_ray.driver.ray_connection import connect

        connect(parallelism, "rayflink")
    jobs = []
    for number, (name, rows) in enumerate(sets):
        for query in queries:
            folder, kept = Path(data_path) / name, None if number else Path(kept_in)
            job = job_of(query, folder, keys, kept, parallelism, target)
            if number:
                jobs.append({"query": query, "events": rows, **job})
    return {"seconds_total": time.time() - began, "jobs": jobs}


def job_of(
    query: str, folder: Path, keys: int, kept_in: Path | None, parallelism: int, target: str
) -> dict[str, float]:  # fmt: skip
    """Return seconds of a query from `execute_sql` to its end, and CPU seconds of all processes of the program."""
    from benchmarks.inputs.changing_rows import TABLES, options_of_ours, statements
    from benchmarks.inputs.nexmark import FOLD, SETTINGS
    from benchmarks.tables.ours_nexmark import CpuWatch, fold
    from rayflink.table import EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = t_env.get_config()
    options = {"execution.target": target, "parallelism.default": str(parallelism), "table.local-time-zone": "UTC"}
    for name, value in {**options, **SETTINGS, **options_of_ours(query, keys)}.items():
        config.set_string(name, value)
    *before, last = statements(query, kept_in, {})
    for statement in (*TABLES.replace("{path}", str(folder)).split(";"), *before):
        t_env.execute_sql(statement)
    with CpuWatch() as cpu:
        begun = time.time()
        if last.startswith(FOLD):
            fold(t_env, last)
        else:
            client = t_env.execute_sql(last).get_job_client()
            assert client is not None
            client.get_job_execution_result().result()
        seconds = time.time() - begun
    return {"seconds": seconds, "cpu_seconds": cpu.seconds}
