"""How long a job with 1 GB of keyed state takes to come back: a slot's process killed, and a node's raylet.

The Ray has a node for the coordinator and one slot, one for the other slot, and when a node is to be lost a third one
that stands by.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from benchmarks.keyed_state.large_job import KEYED, LargeJob, Size, await_true, job_folder
from benchmarks.keyed_state.large_state import RayJob
from benchmarks.runs.contestants import ROOT
from benchmarks.runs.job_numbers import flat, medians

TARGETS_S = {"process": 10.0, "node": 15.0}
_NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
_WITHIN_S = 600.0


class Nodes:
    """A Ray on loopback: a head that stays, and nodes that can be lost."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._others: list[Any] = []

    def add(self) -> None:
        """One more node."""
        self._others.append(self._cluster.add_node(**_NODE))
        self._cluster.wait_for_nodes()

    def kill(self, node_id: str) -> list[psutil.Process]:
        """End the raylet of a node with signal 9, and then what it has started, as it is with a machine that is lost.

        Workers whose raylet alone is gone go on for some seconds. Gives their processes.
        """
        (node,) = [node for node in self._others if node.node_id == node_id]
        (raylet,) = node.all_processes["raylet"]
        children: list[psutil.Process] = psutil.Process(raylet.process.pid).children(recursive=True)
        os.kill(raylet.process.pid, signal.SIGKILL)
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        return children

    def remove(self, node_id: str) -> None:
        """Clear away what is left of a node that was killed."""
        (node,) = [node for node in self._others if node.node_id == node_id]
        self._others.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)


@contextmanager
def nodes() -> Iterator[Nodes]:
    """A Ray whose head has one CPU; programs join it by RAY_ADDRESS. It ends with the block."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = str(ROOT)
    cluster = Cluster(initialize_head=True, head_node_args={**_NODE, "include_dashboard": False})
    try:
        os.environ["RAY_ADDRESS"] = cluster.address
        ray.init(address=cluster.address, namespace="rayflink", log_to_driver=False, logging_level=logging.ERROR)
        yield Nodes(cluster)
    finally:
        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]
        os.environ.pop("RAY_ADDRESS", None)


def run(data_path: str | None, rounds: int = 3, **size: int) -> dict[str, Any]:
    """One job of two slots; in each round a process is killed, then a node.

    Args:
        rounds: whose medians are given.
        size: see `Size`.
    """
    began = time.time()
    losses: dict[str, list[dict[str, float]]] = {"process": [], "node": []}
    with job_folder() as folder, nodes() as cluster:
        job = RayJob(Size(**size), folder, 2, {"rayflink.ray.placement-strategy": "SPREAD"})
        try:
            await_true(lambda: bool(job.tasks()), _WITHIN_S, "coordinator")  # which is on the head so
            cluster.add()
            job.await_filled(_WITHIN_S)
            ready = time.time()
            for _ in range(rounds):
                losses["process"].append(lost_process(job))
                losses["node"].append(_lost_node(job, cluster))
            state_mb = job.state_mb()
            rows = job.output.reached
        finally:
            job.close()
    return {
        "rows": rows,
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "rounds": rounds,
        "state_mb": state_mb,
        **flat({loss: medians(measured) for loss, measured in losses.items()}),
        **{f"target_{loss}_s_at_most": most for loss, most in TARGETS_S.items()},
    }


def _away_from_source(job: LargeJob) -> Mapping[str, Any]:
    """What is known of the process of a task whose slot has no source."""
    source, keyed = job.status()["vertices"]
    away = [task for task in keyed["subtasks"] if task["metrics"]["pid"] != source["subtasks"][0]["metrics"]["pid"]]
    found: Mapping[str, Any] = away[0]["metrics"]
    return found


def lost_process(job: LargeJob) -> dict[str, float]:
    """Kill a process that has no source; seconds from then on."""
    pid = _away_from_source(job)["pid"]
    before = _Before(job)
    os.kill(pid, signal.SIGKILL)
    return before.recovered()


def _lost_node(job: LargeJob, cluster: Nodes) -> dict[str, float]:
    """The node without the head; there is another one in the end."""
    import ray

    cluster.add()
    head = ray.get_runtime_context().get_node_id()
    lost = next(task["metrics"]["node"] for task in job.tasks() if task["metrics"]["node"] != head)
    before = _Before(job)
    workers = cluster.kill(lost)
    numbers = before.recovered()
    psutil.wait_procs(workers, timeout=30)
    cluster.remove(lost)
    return numbers


class _Before:
    """The job as it was when something is killed, which is now."""

    def __init__(self, job: LargeJob) -> None:
        self._job = job
        job.await_checkpoints(1, _WITHIN_S)
        self._attempts = max(task["attempt"] for task in job.tasks())
        self._killed = time.time()

    def recovered(self) -> dict[str, float]:
        """Seconds from the kill."""
        job = self._job
        running = job.await_running(self._attempts + 1, _WITHIN_S)
        output = job.output.await_after(self._restarted(), _WITHIN_S)  # others go on until they are cancelled
        numbers = {"running_s": running - self._killed, "new_output_s": output - self._killed}
        numbers |= {"output_silent_s": job.output.longest_silence(self._killed)} | self._steps()
        job.await_checkpoints(2, _WITHIN_S)
        return numbers

    def _restarted(self) -> float:
        return float(self._job.status()["timestamps"]["RUNNING"]) / 1000

    def _steps(self) -> dict[str, float]:
        """When the loss was noticed, and when the last keyed task reached each state; seconds from the kill."""
        status = self._job.status()
        steps: dict[str, float] = {}
        failures = [failure["timestamp"] / 1000 - self._killed for failure in status["exceptions"]]
        steps["detected_s"] = min((after for after in failures if after > 0), default=0.0)
        steps["restarted_s"] = self._restarted() - self._killed
        steps["restarts"] = max(task["attempt"] for v in status["vertices"] for task in v["subtasks"]) - self._attempts
        keyed = [v for v in status["vertices"] if KEYED in v["name"]]
        for state in ("DEPLOYING", "INITIALIZING", "RUNNING"):
            reached = [
                task["timestamps"][state] for v in keyed for task in v["subtasks"] if state in task["timestamps"]
            ]
            if reached:
                steps[f"last_{state.lower()}_s"] = max(reached) / 1000 - self._killed
        told = status.get("recovery")
        if isinstance(told, Mapping):
            steps |= {f"told_{name}": value for name, value in told.items() if isinstance(value, int | float)}
        return steps
