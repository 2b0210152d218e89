"""How long after the end of a window its results are there, at a fixed rate of events, on Ray."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from benchmarks.inputs.sql_events import FIRST, QUERY, SECONDS, WARM_WINDOWS, table
from benchmarks.streams.ours_latency import bucket, quantile


def run(data_path: str, seconds: int = SECONDS, parallelism: int = 2, target: str = "ray") -> dict[str, Any]:
    """One job in a fresh process.

    Args:
        seconds: of events.
    Returns:
        Milliseconds from the end of a window to when its results were made, and seconds from the call that runs a
        query without windows to its first row, with Ray up.
    """
    from rayflink.table import EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = t_env.get_config()
    for key, value in (("execution.target", target), ("parallelism.default", str(parallelism)),
                       ("table.local-time-zone", "UTC")):  # fmt: skip
        config.set_string(key, value)
    if target == "ray":
        from rayflink.actors.on_ray.driver.ray_connection import connect

        connect(parallelism, "rayflink")
    t_env.execute_sql(table(seconds))
    began = time.time()
    with t_env.execute_sql(FIRST).collect() as rows_there:
        next(rows_there)
        first = time.time() - began
    delays: Counter[int] = Counter()
    measured_from: datetime | None = None
    for window_end, told, _ in t_env.execute_sql(QUERY).collect():
        measured_from = measured_from or window_end + timedelta(seconds=WARM_WINDOWS)
        if window_end >= measured_from:
            delays[bucket(round((told - window_end).total_seconds() * 1e3))] += 1
    return {
        "results": sum(delays.values()),
        "p50_ms": quantile(delays, 0.5),
        "p99_ms": quantile(delays, 0.99),
        "max_ms": max(delays),
        "first_row_s": first,
    }
