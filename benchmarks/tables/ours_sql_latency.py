"""How long after the end of a window its results are there, at a fixed rate of events, on Ray."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from benchmarks.inputs.sql_events import (
    BUFFER_TIMEOUT,
    CHANGES,
    FIRST,
    QUERY,
    SECONDS,
    WARM_SECONDS,
    WARM_WINDOWS,
    table,
)
from benchmarks.streams.ours_latency import bucket, quantile

if TYPE_CHECKING:
    from rayflink.table import TableEnvironment


def run(data_path: str, seconds: int = SECONDS, parallelism: int = 2, target: str = "ray") -> dict[str, Any]:
    """One job in a fresh process.

    Args:
        seconds: of events.
    Returns:
        Milliseconds from the end of a window to when its results were made, and from the time of a row to the change
        that it made in its group; seconds from the call that runs a query without windows to its first row, Ray up.
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
    changes = _changes(t_env)
    return {
        "results": sum(delays.values()),
        "p50_ms": quantile(delays, 0.5),
        "p99_ms": quantile(delays, 0.99),
        "max_ms": max(delays),
        "first_row_s": first,
        "changes": sum(changes.values()),
        "changes_p50_ms": quantile(changes, 0.5),
        "changes_p99_ms": quantile(changes, 0.99),
        "changes_max_ms": max(changes),
    }


def _changes(t_env: TableEnvironment) -> Counter[int]:
    """Return the milliseconds from the time of a row to the change that it made, and how often."""
    from rayflink.common.types import RowKind

    delays: Counter[int] = Counter()
    measured_from: datetime | None = None
    t_env.get_config().set_string("execution.buffer-timeout.interval", BUFFER_TIMEOUT)
    for row in t_env.execute_sql(CHANGES).collect():
        if row.get_row_kind() is RowKind.UPDATE_BEFORE:
            continue
        latest, changed, _ = row
        measured_from = measured_from or latest + timedelta(seconds=WARM_SECONDS)
        if latest >= measured_from:
            delays[bucket(round((changed - latest).total_seconds() * 1e3))] += 1
    return delays
