"""Every golden job gives its answer: from many seeds, on a rough network, and on the in-process runner."""

from __future__ import annotations

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.state.clock import ManualClock
from rayflink.testing import UNRELIABLE_NETWORK, CancelJob, SlowSink, simulate
from tests.golden_jobs import GOLDEN_JOBS, GoldenJob

SEEDS = 1
MANY_SEEDS = 60

every_job = pytest.mark.parametrize("job", GOLDEN_JOBS, ids=lambda job: job.name)


def check_seeds(job: GoldenJob, seeds: range) -> None:
    graph = job.graph()
    for seed in seeds:
        faults = [*UNRELIABLE_NETWORK, SlowSink(ms=20)] if seed % 2 else []
        if job.cancelled_midway:
            faults.append(CancelJob(move=200))
        story = simulate(graph, seed, faults)
        assert story.result is not None
        try:
            job.check(story.result)
        except AssertionError as error:
            raise AssertionError(story.describe(str(error))) from error


@pytest.mark.slow
@every_job
def test_it_gives_its_answer_from_a_few_seeds(job):
    check_seeds(job, range(SEEDS))


@pytest.mark.soak
@pytest.mark.slow
@every_job
def test_it_gives_its_answer_from_many_seeds(job):
    check_seeds(job, range(SEEDS, MANY_SEEDS))


IN_BATCHES = [job for job in GOLDEN_JOBS if not job.cancelled_midway and not job.streaming_only]


@pytest.mark.parametrize("job", IN_BATCHES, ids=lambda job: job.name)
@pytest.mark.slow
def test_it_gives_its_answer_as_a_batch_job(job, tmp_path):
    graph = job.graph({"execution.runtime-mode": "BATCH", "io.tmp.dirs": str(tmp_path)})
    for seed in range(2):
        story = simulate(graph, seed, UNRELIABLE_NETWORK if seed else ())
        assert story.result is not None
        job.check(story.result, batch=True)
        assert list(tmp_path.iterdir()) == [], "spill files stayed behind"


@every_job
@pytest.mark.parametrize("options", [{}, {"pipeline.operator-chaining.enabled": "false"}], ids=["chained", "apart"])
def test_it_gives_its_answer_in_process(job, options):
    clock = ManualClock(1_000_000)
    cluster = InProcessCluster(job.graph(options), clock, lambda ms: clock.advance(max(int(ms), 1)))
    rounds = 0

    def cancel_midway() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 30 and job.cancelled_midway:
            cluster.cancel()

    job.check(cluster.run(cancel_midway))
