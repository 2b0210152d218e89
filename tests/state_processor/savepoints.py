"""Real savepoints of small jobs, taken when all records of a script have been processed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rayflink.common.job_client import JobClient
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import PAUSE, Pause, ScriptedSource

NEVER = Pause(10**9)
"""The source has nothing more to give, and does not end."""
BACKENDS = ("hashmap", "rocksdb")


def environment(folder: Path, backend: str = "hashmap", **options: str) -> StreamExecutionEnvironment:
    given = {
        "execution.target": "local",
        "parallelism.default": "2",
        "state.backend.type": backend,
        "execution.checkpointing.savepoint-dir": str(folder),
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()},
    }
    return StreamExecutionEnvironment.get_execution_environment(given)


def scripted(items: Sequence[Any]) -> ScriptedSource:
    """Return a source of these items that then waits."""
    return ScriptedSource([*items, NEVER])


def savepoint_after(env: StreamExecutionEnvironment, is_there: Callable[[Mapping[str, Any]], bool]) -> str:
    """Run the job of `env` until its status is as wanted, then stop it with a savepoint; its path."""
    client = env.execute_async("job of a test")
    wait_until(client, is_there)
    return client.stop_with_savepoint(False).result()


def wait_until(client: JobClient, is_there: Callable[[Mapping[str, Any]], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_there(client.status()):
        assert time.monotonic() < deadline, "the job did not get there in time"
        client.get_job_status()


def worked(vertex: str, records: int) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether the vertices with that in their names have read that many records together."""

    def is_there(status: Mapping[str, Any]) -> bool:
        from rayflink.common.metrics.job_report import records_in

        return sum(records_in(one) or 0 for one in status["vertices"] if vertex in one["name"]) >= records

    return is_there


__all__ = ["BACKENDS", "NEVER", "PAUSE", "environment", "savepoint_after", "scripted", "wait_until", "worked"]
