"""A storage that takes the metadata of a checkpoint and never answers: the job goes on, or ends, all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import CancelRequested, PublishCheckpoint
from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch import raise_if_failed
from rayflink.state.clock import ManualClock

TIMEOUT_MS, RECORDS = 5_000, 1_000


class Hung(InProcessCluster):
    """Its storage never answers for the second checkpoint, which is begun after 0.2 s."""

    hung_at: int | None = None

    def publish_checkpoint(self, command: PublishCheckpoint) -> None:
        if command.checkpoint_id == 2:
            self.hung_at = self.clock.now_ms()
        else:
            super().publish_checkpoint(command)

    def until_it_hangs(self) -> None:
        while self.hung_at is None:
            if not self.turn():
                self.pause()


@pytest.fixture
def cluster(tmp_path: Path) -> Hung:
    config = {
        "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.timeout": f"{TIMEOUT_MS} ms",
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.tolerable-failed-checkpoints": "3",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(config)
    numbers = env.from_source(DataGeneratorSource(lambda n: (n % 5, 1), RECORDS, 100), None, "numbers")
    numbers.key_by(lambda pair: pair[0]).sum(1).sink_to(CollectSink("out"))
    clock = ManualClock()
    return Hung(env.get_job_graph(), clock, clock.advance, {})


@pytest.mark.slow
def test_the_job_takes_its_next_checkpoints_and_ends(cluster: Hung) -> None:
    result = raise_if_failed(cluster.run())
    assert Counter(result.accumulators["out"]) == Counter((n % 5, n // 5 + 1) for n in range(RECORDS))
    history = cluster.job.checkpoints.history.overview()
    assert history["counts"]["failed"] == 1
    assert "the storage did not answer within 5000 ms" in history["latest"]["failed"]["failure_message"]
    assert history["latest"]["completed"]["id"] > 2


def test_a_cancelled_job_ends_when_the_time_of_the_checkpoint_is_over(cluster: Hung) -> None:
    cluster.until_it_hangs()
    cluster.post(CancelRequested("its user"))
    assert cluster.run().status is JobStatus.CANCELED
    assert cluster.hung_at is not None
    assert cluster.hung_at + TIMEOUT_MS <= cluster.clock.now_ms() < cluster.hung_at + TIMEOUT_MS + 1_000


@pytest.mark.slow
def test_a_lost_task_starts_again_from_the_checkpoint_before(cluster: Hung) -> None:
    cluster.until_it_hangs()
    cluster.kill(next(iter(cluster.tasks)), "its process died")
    result = raise_if_failed(cluster.run())
    assert Counter(result.accumulators["out"]) == Counter((n % 5, n // 5 + 1) for n in range(RECORDS))
    history = cluster.job.checkpoints.history.overview()
    assert history["latest"]["restored"]["id"] == 1
