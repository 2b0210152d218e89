"""Every golden job, stopped midway by a savepoint at parallelism 2, goes on at 3 and at 1 and gives the same rows.

Source: ArroyoSystems/arroyo, whose SQL tests run each query straight, then checkpointed, stopped and restored rescaled.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import SavepointRequested
from rayflink.actors.messages.states import JobStatus
from rayflink.common.options.stop_mode import StopMode
from rayflink.state.clock import ManualClock
from rayflink.testing import UNRELIABLE_NETWORK, SimulatedDisk, StopWithSavepoint, simulate
from tests.golden_jobs import GOLDEN_JOBS, Environment, GoldenJob

JOBS = [job for job in GOLDEN_JOBS if job.status is JobStatus.FINISHED]
PER_SUBTASK = {"broadcast state": "known"}
"""Sinks of jobs that get a row from each subtask, so that their rows depend on the parallelism."""
BY_NAME = {
    job.name: replace(job, collected={n: rows for n, rows in job.collected.items() if n != PER_SUBTASK.get(job.name)})
    for job in JOBS
}


@cache
def moves_of(name: str) -> int:
    """How many moves a run takes that is not stopped."""
    return simulate(at_parallelism(BY_NAME[name], 2), 1).happenings[-1].move


def at_parallelism(job: GoldenJob, width: int, path: str = "") -> object:
    """The job's graph; where its program asks for 2 or 3 subtasks it gets `width`."""
    options = {"execution.checkpointing.interval": "1 h", "pipeline.max-parallelism": "12"}
    if path:
        options["execution.state-recovery.path"] = path

    def write(env: Environment) -> object:
        ask = env.set_parallelism
        env.set_parallelism = lambda asked: ask(width if asked > 1 else asked)  # type: ignore[method-assign]
        return job.write(env)

    return replace(job, write=write).graph(options)


@pytest.mark.slow
@pytest.mark.parametrize("width", [3, 1])
@pytest.mark.parametrize("name", BY_NAME)
def test_a_job_stopped_midway_goes_on_at_another_parallelism(name, width):
    job, disk = BY_NAME[name], SimulatedDisk()
    stopped = []
    for seed, part in enumerate((0.3, 0.6)):
        at = int(moves_of(name) * part)
        faults = [StopWithSavepoint(move=at), *UNRELIABLE_NETWORK[: 4 * seed]]
        story = simulate(at_parallelism(job, 2), seed, faults, disk)
        if story.stopped_with:
            stopped.append(story.stopped_with)
            story = simulate(at_parallelism(job, width, story.stopped_with), seed, (), disk)
        assert story.result is not None
        try:
            job.check(story.result)
        except AssertionError as error:
            raise AssertionError(story.describe(str(error))) from error
    assert stopped or moves_of(name) < 300, "no savepoint came before the job's end"


def locally(graph: object, stop_after: int | None = None, directory: str = "") -> tuple[InProcessCluster, int]:
    """The local runner, and how many rounds it took, by a clock that only waits move on; a savepoint may stop it."""
    clock = ManualClock(1_000_000)
    cluster = InProcessCluster(graph, clock, lambda ms: clock.advance(max(int(ms), 1)))
    rounds = 0
    while cluster.result is None:
        if rounds == stop_after:
            cluster.request(SavepointRequested("stop", directory, StopMode.SUSPEND))
        if not cluster.turn():
            cluster.pause()
        rounds += 1
    return cluster, rounds


LOCALLY = ("word count", "windowed count", "window of windows", "connect", "interval join", "collatz", "async lookups")


@pytest.mark.slow
@pytest.mark.parametrize("width", [3, 1])
@pytest.mark.parametrize("name", LOCALLY)
def test_a_job_stopped_midway_on_the_local_runner_resumes_at_another_parallelism(name, width, tmp_path):
    job, places = BY_NAME[name], []
    _, whole = locally(at_parallelism(job, 2))
    for part in (0.3, 0.5):
        cluster, _ = locally(at_parallelism(job, 2), int(whole * part), str(tmp_path))
        answer = cluster.answers["stop"]
        if not answer.failure:
            places.append(answer.location)
            cluster, _ = locally(at_parallelism(job, width, answer.location))
        assert cluster.result is not None
        job.check(cluster.result)
    assert places and all(Path(place, "_metadata").exists() for place in places)
