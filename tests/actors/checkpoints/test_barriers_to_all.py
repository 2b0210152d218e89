"""A barrier goes into every channel of a job, and each task meets one on each of its inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from rayflink.actors.exchange.frames import BufferResponse, Envelope
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import DeployTask, SavepointRequested
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.clock import ManualClock


class Watched(InProcessCluster):
    """Counts the barriers that come to each input channel of each task."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.barriers: Counter[tuple[str, int]] = Counter()
        self.channels: set[tuple[str, int]] = set()

    def deliver(self, envelope: Envelope) -> None:
        for frame in envelope.frames:
            if isinstance(frame, BufferResponse) and isinstance(frame.event, CheckpointBarrier):
                self.barriers[envelope.receiver, frame.receiver] += 1
        super().deliver(envelope)

    def deploy_tasks(self, commands: Sequence[DeployTask]) -> None:
        for deployment in (command.deployment for command in commands):
            self.channels |= {(deployment.attempt, channel) for channel in range(len(deployment.inputs))}
        super().deploy_tasks(commands)


def states(cluster: InProcessCluster) -> list[str]:
    return [execution.state.value for execution in cluster.job.executions.values()]


@pytest.mark.spec("H12", "all-channels", "one-per-input", "H11", "broadcast", "H37")
def test_every_input_channel_of_every_task_gets_one_barrier(tmp_path: Any) -> None:
    env = StreamExecutionEnvironment({"execution.target": "local", "pipeline.operator-chaining.enabled": "false"})
    numbers = env.from_sequence(1, 20_000).set_parallelism(2)
    mapped = numbers.rebalance().map(lambda n: n).set_parallelism(3)
    mapped.key_by(lambda n: n % 7).reduce(max).set_parallelism(2).add_sink(lambda n: None).set_parallelism(2)
    mapped.union(numbers.map(lambda n: n).set_parallelism(2)).broadcast().add_sink(lambda n: None).set_parallelism(2)
    clock = ManualClock(0)
    cluster = Watched(env.get_job_graph(), clock, lambda ms: clock.advance(max(1, int(ms))))
    while cluster.result is None:
        if not cluster.answers and set(states(cluster)) == {"RUNNING"}:
            cluster.request(SavepointRequested("stop", str(tmp_path), StopMode.SUSPEND))
        if not cluster.turn():
            cluster.pause()
    assert not cluster.answers["stop"].failure
    assert len(cluster.channels) == 2 * 3 + 2 + 3 * 2 + 2 + 2 * (3 + 2), "of the map, its twin, reduce and both sinks"
    assert cluster.barriers == Counter(dict.fromkeys(cluster.channels, 1))
