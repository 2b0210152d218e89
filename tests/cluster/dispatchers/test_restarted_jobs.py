"""Dispatchers of jobs on Ray: a failed job starts again as a new one, and a process without its job is ended."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.actors.on_ray.coordinators.job_places import JobPlaces
from rayflink.cluster.dispatcher.dispatcher import Dispatcher
from rayflink.cluster.dispatcher.restarted_submission import RestartChanges
from rayflink.cluster.runners.ray_runner import RayRunner
from rayflink.state.storage.local_storage import LocalStorage
from tests.cluster import watching
from tests.cluster_rest.restarts.lines_jobs import LinesJob

pytestmark = [pytest.mark.ray, pytest.mark.slow]
NEW = "1" * 32
DIES_BETWEEN = """
import os, signal, sys
from pathlib import Path

import ray

from rayflink.actors.on_ray.driver.dispatched_jobs import DispatchedJob
from rayflink.cluster.dispatcher.dispatcher import Dispatcher
from rayflink.cluster.runners.ray_runner import RayRunner
from rayflink.state.storage.local_storage import LocalStorage

def die(job, submission):
    process = getattr(job._coordinator, "host", job._coordinator)
    ray.get(process.__ray_ready__.remote())  # it is there, and waits for the job
    os.kill(os.getpid(), signal.SIGKILL)

DispatchedJob.begin = die
ray.init(address=os.environ["RAY_ADDRESS"], namespace="rayflink", log_to_driver=False, logging_level="error")
dispatcher = Dispatcher(LocalStorage(Path(sys.argv[1])), RayRunner("rayflink"))
dispatcher.start("http://there")
dispatcher.submit(Path(sys.argv[2]).read_bytes(), "me")
"""


class DispatchedJobs:
    """A dispatcher in this process, whose jobs run on Ray; their processes end with the test."""

    def __init__(self, registry: Path) -> None:
        self._runner = RayRunner(watching.NAMESPACE)
        self._dispatcher = Dispatcher(LocalStorage(registry), self._runner)

    @property
    def dispatcher(self) -> Dispatcher:
        """Return the dispatcher, which leads from the first call on."""
        if not self._dispatcher.epoch:
            self._dispatcher.start("http://here")
        return self._dispatcher

    def reached(self, job_id: str, *states: str) -> bool:
        """Wait until a job is in one of these states."""
        return bool(
            watching.eventually(lambda: self.dispatcher.view(job_id).status()["state"] in states, within_s=60)
        )

    def close(self) -> None:
        """End the dispatcher, and the processes that would keep the results of ended jobs for clients."""
        jobs = [str(status["jid"]) for status in self._dispatcher.statuses()]
        self._dispatcher.close()
        for job_id in jobs:
            self._runner.suspend(job_id)


@pytest.fixture
def jobs(cluster: str, tmp_path: Path) -> Iterator[DispatchedJobs]:
    jobs = DispatchedJobs(tmp_path / "registry")
    yield jobs
    jobs.close()


def test_a_failed_job_goes_on_from_its_newest_checkpoint_on_ray(jobs: DispatchedJobs, tmp_path: Path) -> None:
    lines = LinesJob(tmp_path)
    dispatcher = jobs.dispatcher
    job_id = dispatcher.submit(lines.priced().encode(), "me")
    assert jobs.reached(job_id, "FAILED")
    offered = dispatcher.restarts.offer
    assert watching.eventually(lambda: offered(job_id).points, within_s=20)
    lines.prices.touch()
    started = dispatcher.restarts.restart(job_id, NEW, None, RestartChanges(parallelism={"price": 2}), "me")
    assert started.start_from == offered(job_id).points[0].path
    assert jobs.reached(NEW, "RUNNING")
    lines.release()
    assert jobs.reached(NEW, "FINISHED", "FAILED")
    ended = dispatcher.view(NEW).status()
    sizes = {vertex["name"]: vertex["parallelism"] for vertex in ended["vertices"]}
    assert (ended["state"], sizes["price"]) == ("FINISHED", 2), ended["exceptions"]
    assert lines.verdict().is_exact, lines.verdict().report()


@pytest.mark.parametrize("shares", [False, True])
def test_a_process_that_never_got_its_job_is_ended_and_the_job_starts(
    jobs: DispatchedJobs, tmp_path: Path, caplog: pytest.LogCaptureFixture, shares: bool
) -> None:
    lines = LinesJob(tmp_path, options={"rayflink.ray.share-coordinators": str(shares).lower()})
    submission = lines.scored(0.0)
    program, packed = tmp_path / "dispatcher.py", tmp_path / "packed"
    program.write_text(DIES_BETWEEN, encoding="utf-8")
    packed.write_bytes(submission.encode())
    command = [sys.executable, str(program), str(tmp_path / "registry"), str(packed)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    place = JobPlaces.of_cluster(watching.NAMESPACE).find(submission.job_id)
    assert (place is not None) == shares
    without_job = place.token if place is not None else watching.pid_of(submission.job_id)

    with caplog.at_level(logging.WARNING):
        assert jobs.reached(submission.job_id, "RUNNING")  # such a process ends by itself after two minutes
    assert "a process had no job, and is ended" in caplog.text
    place = JobPlaces.of_cluster(watching.NAMESPACE).find(submission.job_id)
    assert (place.token if place is not None else watching.pid_of(f"{submission.job_id}/coordinator")) != without_job
    lines.release()
    assert jobs.reached(submission.job_id, "FINISHED", "FAILED")
    assert lines.verdict().is_exact, lines.verdict().report()
