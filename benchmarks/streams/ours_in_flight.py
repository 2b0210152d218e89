"""In-flight data before functions that sleep: its size, and times of checkpoints, savepoints, stop and cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.runs.ray_bounded import bounded_ray

START_SECONDS = 120.0
"""Tasks must run by then."""
WARM_SECONDS = 3
"""Checkpoints that began earlier do not count."""
TARGET_MS = 1000
"""Of buffer debloating, by default."""


def sleeper(cost_ms: float) -> Callable[[int], int]:
    """The user's function."""

    def work(number: int) -> int:
        time.sleep(cost_ms / 1000)
        return number

    return work


def submit(target: str, cost_ms: float, hops: int, parallelism: int, folder: str, **options: Any) -> Any:
    """Begin the job: integers, then `hops` times an exchange and a function that sleeps; its client."""
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream.environment import StreamExecutionEnvironment

    given = {
        "execution.target": target,
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": f"{folder}/checkpoints",
        **options,
    }
    env = StreamExecutionEnvironment.get_execution_environment(given)
    env.set_parallelism(parallelism)
    stream = env.from_sequence(0, 1 << 40)
    for _ in range(hops):
        stream = stream.rebalance().map(sleeper(cost_ms))
    stream.sink_to(DiscardingSink())
    client = env.execute_async("in-flight data")
    if target == "local":  # a local job runs while somebody waits for it
        threading.Thread(target=_wait, args=(client,), daemon=True).start()
    return client


def _wait(client: Any) -> None:
    try:
        client.get_job_execution_result().result()
    except Exception:  # it is cancelled or stopped in the end
        return


def _cancel(client: Any) -> None:
    client.cancel().result()
    _wait(client)


def records_in_flight(client: Any) -> int:
    """Between all tasks, by their last reports."""
    tasks = (task for vertex in client.status().get("vertices", ()) for task in vertex.get("subtasks", ()))
    return sum(task.get("metrics", {}).get("recordsInFlight", 0) for task in tasks)


def _wait_until_all_run(client: Any) -> None:
    """Return when every task runs.

    Raises:
        TimeoutError: some do not within `START_SECONDS`.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        states = [task["state"] for vertex in client.status().get("vertices", ()) for task in vertex["subtasks"]]
        if states and set(states) == {"RUNNING"}:
            return
        time.sleep(0.1)
    raise TimeoutError(f"not all tasks run after {START_SECONDS} s")


def _timed(call: Callable[[], Any]) -> float:
    began = time.monotonic()
    call()
    return (time.monotonic() - began) * 1000


def run(
    data_path: str | None,
    cost_ms: float = 1.0,
    hops: int = 1,
    target: str = "ray",
    seconds: int = 12,
    parallelism: int = 2,
    **options: Any,
) -> dict[str, Any]:
    """One job that is watched and then stopped with a savepoint, and one that is cancelled.

    Args:
        cost_ms: what the functions sleep for each record.
        hops: exchanges, each before a function that sleeps.
        seconds: how long it is watched, more than `WARM_SECONDS`.
    Returns:
        Milliseconds of checkpoints (end to end), a savepoint, a stop with savepoint and a cancel; the most records in
        flight; the bound of three targets an exchange and a record.
    """
    ray: AbstractContextManager[Any] = bounded_ray(parallelism) if target == "ray" else nullcontext()
    with ray, TemporaryDirectory(prefix="rayflink-bench-") as folder:
        client = submit(target, cost_ms, hops, parallelism, folder, **options)
        _wait_until_all_run(client)
        began = time.time()
        most = 0
        while time.time() < began + seconds:
            time.sleep(0.5)
            if time.time() > began + WARM_SECONDS:
                most = max(most, records_in_flight(client))
        history = client.checkpoints()["history"]
        took = [
            each["end_to_end_duration"]
            for each in history
            if each["status"] == "COMPLETED" and each["trigger_timestamp"] > (began + WARM_SECONDS) * 1000
        ]
        savepoint_ms = _timed(client.trigger_savepoint(f"{folder}/savepoints").result)
        stop_ms = _timed(client.stop_with_savepoint(False, f"{folder}/savepoints").result)
        client = submit(target, cost_ms, hops, parallelism, folder, **options)
        _wait_until_all_run(client)
        time.sleep(WARM_SECONDS)
        cancel_ms = _timed(lambda: _cancel(client))
    return {
        "records_in_flight": most,
        "checkpoints": len(took),
        "checkpoint_p50_ms": float(median(took)) if took else float("nan"),
        "checkpoint_max_ms": max(took, default=float("nan")),
        "savepoint_ms": savepoint_ms,
        "stop_ms": stop_ms,
        "cancel_ms": cancel_ms,
        "bound_ms": 3 * TARGET_MS * hops + cost_ms,
    }
