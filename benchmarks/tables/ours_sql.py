"""W2 and W3: SQL over a CSV file of bids on Ray, into a sink that forgets rows."""

from __future__ import annotations

import time
from typing import Any


def run(data_path: str, query: str = "w2", rows: int = 0, parallelism: int = 2, target: str = "ray") -> dict[str, Any]:
    """One job in a fresh process, Ray started for it.

    Args:
        query: w2 or w3.
        rows: of the file.
    """
    began = time.time()
    from benchmarks.inputs.bids import QUERIES, TABLES
    from rayflink.table import EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = t_env.get_config()
    config.set_string("execution.target", target)
    config.set_string("parallelism.default", str(parallelism))
    config.set_string("table.local-time-zone", "UTC")
    for statement in TABLES.replace("{path}", data_path).split(";"):
        t_env.execute_sql(statement)
    if target == "ray":
        from rayflink.actors.on_ray.driver.ray_connection import connect

        connect(parallelism, "rayflink")  # what is measured is the job, with Ray up
    ready = time.time()
    client = t_env.execute_sql(QUERIES[query]).get_job_client()
    assert client is not None
    result = client.get_job_execution_result().result()
    done = time.time()
    source = result.vertices[0]
    first = min(task["timestamps"]["RUNNING"] for task in source["subtasks"]) / 1000
    return {
        "rows": rows,
        "seconds_total": done - began,
        "seconds_startup": ready - began,
        "seconds_job": done - ready,
        "seconds_to_first_task": first - ready,
    }
