"""A job goes on where its coordinator, or its whole cluster, is lost; and of two coordinators one is fenced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from rayflink.actors.job.history.history_files import read_history
from rayflink.actors.on_ray.driver.ray_cluster import attach
from rayflink.state.storage.local_storage import LocalStorage
from tests.cluster import watching
from tests.exactly_once.running import RunningJob, TwoNodes, processes, two_nodes

pytestmark = [pytest.mark.ray, pytest.mark.slow]
WITHIN_S = 60
RECORDS = 12_000
OFTEN = ["execution.checkpointing.interval=300 ms"]
ADVISED = [
    "job.autoscaler.enabled=true", "job.autoscaler.scaling.enabled=false",
    "autoscaler.standalone.control-loop.interval=1 s", "job.autoscaler.metrics.window=2 s",
    "job.autoscaler.stabilization.interval=100 ms",
    "job.autoscaler.utilization.target=0.0002", "job.autoscaler.utilization.max=0.0003",
    "job.autoscaler.utilization.min=0.0001",
]  # fmt: skip
"""Options with which the autoscaler finds any task too busy, and says so each second."""


@contextmanager
def restored(job: RunningJob, *given: str) -> Iterator[subprocess.Popen[str]]:
    """`rayflink run --restore latest` of what is stored of the job."""
    (stored,) = (job.folder / "checkpoints-1").iterdir()
    command = [sys.executable, "-m", "rayflink", "run", "--restore", "latest", *given, str(stored)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield driver
    finally:
        driver.kill()
        driver.wait()


@contextmanager
def under_way(job: RunningJob) -> Iterator[TwoNodes]:
    """The job on a Ray of two nodes, its coordinator on the first; two checkpoints are complete."""
    with two_nodes() as nodes:
        job.start()
        try:
            nodes.join_worker(WITHIN_S)
            job.await_tasks(WITHIN_S)
            job.await_checkpoint(2, WITHIN_S)
            yield nodes
        finally:
            job.kill()


def ended(driver: subprocess.Popen[str]) -> tuple[int, str]:
    """The code it ended with, and what it printed."""
    said, _ = driver.communicate(timeout=WITHIN_S)
    return driver.returncode, said


@pytest.mark.spec("H73", "S11", "S12", "S01", "one", "checkpoints", "S13", "next", "S14", "coordinator", "I38", "store")
def test_a_coordinator_that_was_killed_comes_back_and_loses_nothing(tmp_path: Path):
    job = RunningJob(tmp_path, RECORDS, [*OFTEN, *ADVISED])
    with under_way(job):
        ((name, pid),) = processes("coordinator")
        handle = attach(name.partition("/")[0], watching.NAMESPACE)
        advised = watching.eventually(lambda: stored_advice(job), WITHIN_S)
        assert advised, handle.status()["autoscaler"]
        os.kill(pid, signal.SIGKILL)
        assert watching.eventually(lambda: not psutil.pid_exists(pid), 10)
        killed_ms = time.time() * 1000
        status = handle.status()  # waits until it is back
        assert advised <= advice_in(status), "what was decided outlives the coordinator"
        assert watching.eventually(lambda: max(advice_in(handle.status())) > killed_ms, WITHIN_S), "it decides on"
        assert status["metrics"]["numRestarts"] == 1
        assert status["exceptions"][-1]["exception"].startswith("the job's coordinator was lost (epoch 1); another")
        assert attempts(status) == {1}
        job.await_checkpoint(102, WITHIN_S)
        job.finish(WITHIN_S)
    assert job.verdict()[0], job.verdict()[1]
    assert list((tmp_path / "checkpoints-1").rglob("*")) == [], "a job that has finished leaves nothing"


def stored_advice(job: RunningJob) -> set[int]:
    """When the autoscaler has decided, by the history that is stored beside the checkpoints."""
    folders = list((job.folder / "checkpoints-1").iterdir())
    decided = [read_history(LocalStorage(folder)).autoscaling.get("decisions", ()) for folder in folders]
    return {decision["decided_ms"] for decisions in decided for decision in decisions}


def advice_in(status: dict[str, Any]) -> set[int]:
    """When it has decided, by the status of the job."""
    decisions = status["autoscaler"]["decisions"]
    assert {decision["outcome"] for decision in decisions} == {"advice"}
    return {decision["timestamp"] for decision in decisions}


def attempts(status: dict[str, Any]) -> set[int]:
    """The numbers of the present attempts."""
    return {subtask["attempt"] for vertex in status["vertices"] for subtask in vertex["subtasks"]}


@pytest.mark.spec("H63", "S10", "A11", "storage")
def test_a_job_goes_on_in_a_new_cluster(tmp_path: Path):
    job = RunningJob(tmp_path, RECORDS, OFTEN)
    with under_way(job):
        pass
    with two_nodes() as nodes, restored(job) as driver:
        nodes.join_worker(WITHIN_S)
        assert watching.eventually(lambda: job.newest_checkpoint() > 100, WITHIN_S)
        (job.folder / "release").touch()
        code, said = ended(driver)
        assert code == 0, said
        assert "continues from its newest checkpoint" in said
    assert job.verdict()[0], job.verdict()[1]


@pytest.mark.spec("A11", "leader", "S13", "leader")
def test_of_two_coordinators_the_first_is_fenced_and_the_output_is_exact(tmp_path: Path):
    job = RunningJob(tmp_path, RECORDS, OFTEN)
    with under_way(job), restored(job, "--local") as second:
        assert job._driver.wait(WITHIN_S) == 1
        assert "leads the job with the checkpoints in" in job._log()
        assert "epoch 2 has begun" in job._log()
        (job.folder / "release").touch()
        code, said = ended(second)
        assert code == 0, said
    assert job.verdict()[0], job.verdict()[1]


def is_described_as_waiting(status: dict[str, Any]) -> bool:
    """Whether the status says that slots of a lost node are missing, and whether any task of the job runs."""
    state = "CREATED" if status["slots"] == "waiting for 2 slots" else "RUNNING"
    reason = "waiting for slots in the place of those of a lost node"
    return status["state"] == state and status["waiting"].startswith(reason)


@pytest.mark.spec("S02", "waits", "S03", "offers", "S08", "X45", "waits", "S14", "workers")
def test_a_lost_node_is_found_in_seconds_and_its_tasks_wait_for_another(tmp_path: Path):
    job = RunningJob(tmp_path, RECORDS, OFTEN)
    with under_way(job) as nodes:
        (name,) = (name for name, _ in processes("coordinator"))
        handle = attach(name.partition("/")[0], watching.NAMESPACE)
        (raylet,) = nodes.worker.all_processes["raylet"]
        os.kill(raylet.process.pid, signal.SIGKILL)  # and nobody tells Ray, which takes 15 s to see it
        assert watching.eventually(lambda: len(handle.status()["exceptions"]) > 0, 5), handle.status()
        assert "is lost: no process answered at port" in handle.status()["exceptions"][0]["exception"]
        assert watching.eventually(lambda: handle.status()["slots"].startswith("waiting for"), 10)
        assert watching.eventually(lambda: is_described_as_waiting(handle.status()), 10), handle.status()
        nodes.cluster.remove_node(nodes.worker, allow_graceful=False)
        nodes.join_worker(WITHIN_S)
        assert watching.eventually(lambda: handle.status()["slots"] == "granted", WITHIN_S)
        job.await_checkpoint(job.newest_checkpoint() + 2, WITHIN_S)
        status = handle.status()
        assert status["metrics"]["numRestarts"] >= 1
        assert status["recovery"]["total_ms"] >= status["recovery"]["deployed_ms"] > 0
        job.finish(WITHIN_S)
    assert job.verdict()[0], job.verdict()[1]
