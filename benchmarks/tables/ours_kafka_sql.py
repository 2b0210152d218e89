"""Bids of a topic as JSON through a window of 10 s in SQL, in this process or on Ray."""

from __future__ import annotations

import time
from typing import Any


def run(
    data_path: str | None, servers: str, events: int, target: str = "local", parallelism: int = 2
) -> dict[str, Any]:
    """Run one job in a fresh process.

    Args:
        servers: the address of the broker.
        events: in the topic.
    """
    began = time.time()
    from benchmarks.inputs.kafka_events import QUERY, TABLES
    from rayflink.table import EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = t_env.get_config()
    config.set_string("execution.target", target)
    config.set_string("parallelism.default", str(parallelism))
    config.set_string("table.local-time-zone", "UTC")
    for statement in TABLES.replace("{servers}", servers).split(";"):
        t_env.execute_sql(statement)
    if target == "ray":
        from rayflink.actors.on_ray.driver.ray_connection import connect

        connect(parallelism, "rayflink")
    ready, cpu = time.time(), time.process_time()
    t_env.execute_sql(QUERY).wait()
    done = time.time()
    figures = {
        "rows": events, "seconds_total": done - began, "seconds_startup": ready - began, "seconds_job": done - ready,
    }  # fmt: skip
    return {**figures, "cpu_seconds_job": time.process_time() - cpu} if target == "local" else figures
