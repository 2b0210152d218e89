"""Jobs of a dispatcher on Ray whose coordinators share a process: it is lost, and one job ends without the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.actors.on_ray.coordinators.find_coordinator import find_coordinator, job_names
from rayflink.actors.on_ray.coordinators.hosted_coordinator import HostedCoordinator
from rayflink.actors.on_ray.coordinators.job_places import JobPlaces
from rayflink.actors.on_ray.driver.ray_cluster import attach, list_jobs
from rayflink.cluster.dispatcher.dispatcher import Dispatcher
from rayflink.cluster.runners.ray_runner import RayRunner
from rayflink.common.errors import JobExecutionError
from rayflink.state.storage.local_storage import LocalStorage
from tests.cluster import watching
from tests.cluster_rest.restarts.lines_jobs import LinesJob

pytestmark = [pytest.mark.ray, pytest.mark.slow]
WITHIN_S = 60


class TwoJobs:
    """A dispatcher in this process with two jobs on Ray, which run."""

    def __init__(self, folder: Path) -> None:
        self.runner = RayRunner(watching.NAMESPACE)
        self.dispatcher = Dispatcher(LocalStorage(folder / "registry"), self.runner)
        self.dispatcher.start("http://here")
        self.lines = {}
        for name in ("first", "second"):
            own = folder / name
            own.mkdir()
            lines = LinesJob(own, records=2_000)
            self.lines[self.dispatcher.submit(lines.scored(0.0, name).encode(), "me")] = lines

    def reached(self, job_id: str, *states: str) -> bool:
        return bool(
            watching.eventually(lambda: self.dispatcher.view(job_id).status()["state"] in states, within_s=WITHIN_S)
        )

    def go_on(self, job_id: str) -> bool:
        """Whether a job completes another two checkpoints."""
        least = self.lines[job_id].newest_checkpoint() + 2
        return bool(watching.eventually(lambda: self.lines[job_id].newest_checkpoint() >= least, WITHIN_S))

    def finish(self) -> None:
        for job_id, lines in self.lines.items():
            lines.release()
            assert self.reached(job_id, "FINISHED", "FAILED")
            assert lines.verdict().is_exact, lines.verdict().report()

    def close(self) -> None:
        self.dispatcher.close()
        for job_id in self.lines:
            self.runner.suspend(job_id)
        self.runner.close()


@pytest.fixture
def jobs(cluster: str, tmp_path: Path) -> Iterator[TwoJobs]:
    jobs = TwoJobs(tmp_path)
    try:
        yield jobs
    finally:
        jobs.close()


def coordinator_of(job_id: str) -> HostedCoordinator:
    found = find_coordinator(job_id, watching.NAMESPACE)
    assert isinstance(found, HostedCoordinator)
    return found


def process_of(job_id: str) -> int:
    """The process of the coordinator of a job, in which that of the other one is too."""
    from ray._private.state import actors

    place = JobPlaces.of_cluster(watching.NAMESPACE).find(job_id)
    (actor,) = [actor for actor in actors().values() if place is not None and actor["Name"] == place.host]
    return int(actor["Pid"])


def test_jobs_that_share_a_process_outlive_it_and_one_ends_without_the_other(jobs: TwoJobs) -> None:
    first, second = jobs.lines
    assert all(jobs.reached(job_id, "RUNNING") and jobs.go_on(job_id) for job_id in (first, second))
    assert coordinator_of(first).host == coordinator_of(second).host
    assert set(job_names(watching.NAMESPACE)) == {*jobs.lines}
    assert {job["jid"] for job in list_jobs()} == {*jobs.lines} and attach(first).status()["jid"] == first

    os.kill(process_of(first), signal.SIGKILL)
    assert all(jobs.go_on(job_id) for job_id in (first, second))
    for job_id in (first, second):
        assert "coordinator was lost" in str(attach(job_id).status()), attach(job_id).status()

    kept, suspended = coordinator_of(first), coordinator_of(second)
    jobs.runner.suspend(second)
    assert not [actor for actor in watching.actors() if actor["Name"].startswith(f"{second}/")]
    with pytest.raises(JobExecutionError, match="is not on this cluster"):
        attach(second)
    assert jobs.go_on(first) and coordinator_of(first) == kept
    assert watching.eventually(lambda: find_coordinator(second, watching.NAMESPACE), WITHIN_S), "it is brought back"
    assert coordinator_of(second) != suspended and jobs.go_on(second)
    jobs.finish()
