"""Whole jobs that take checkpoints, lose tasks and go on: every record counts once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import FreezeTask, KillTask, simulate
from rayflink.testing.faults import Fault
from rayflink.testing.simulation import SimulatedCluster

OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "parallelism.default": "2",
    "execution.checkpointing.interval": "5 ms",
}
RECORDS = 120
EXPECTED = sorted((f"k{key}", count) for key in range(5) for count in range(1, RECORDS // 5 + 1))
FAULTS: list[tuple[Fault, ...]] = [
    (),
    (KillTask("Sink", move=300), KillTask("Source", move=500), KillTask("Map (2/2)", move=700)),
    (FreezeTask("Map", move=250), KillTask("Source", move=900)),
]


def counting(**options: Any) -> JobGraph:
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    env = StreamExecutionEnvironment.get_execution_environment({**OPTIONS, **given})
    pairs = env.from_collection([(f"k{number % 5}", 1) for number in range(RECORDS)]).map(lambda pair: pair)
    pairs.key_by(lambda pair: pair[0]).sum(1).sink_to(CollectSink())
    return env.get_job_graph()


@pytest.mark.spec("H20", "reset", "H21", "H22", "once", "H45", "restored", "A10", "exactly-once", "X33", "exactly-once")
@pytest.mark.parametrize("mode", ["in memory", "in files"])
@pytest.mark.parametrize("faults", FAULTS, ids=["without faults", "kills", "silence"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_whatever_dies_every_record_counts_once(seed: int, faults: Sequence[Fault], mode: str) -> None:
    directory = {"execution__checkpointing__dir": "/checkpoints"} if mode == "in files" else {}
    story = simulate(counting(**directory), seed, faults)
    assert sorted(story.collected()) == EXPECTED
    assert story.acknowledged, "no checkpoint was taken"


@pytest.mark.spec("H15", "complete", "H26", "H42", "way")
def test_the_last_checkpoint_comes_after_the_end_of_data_without_waiting():
    story = simulate(counting(execution__checkpointing__interval="1 h"), 1)
    ((number, parts),) = story.acknowledged.items()
    assert number == 1 and len(parts) == 5
    assert all(part.data_is_over for part in parts.values())
    assert sorted(story.collected()) == EXPECTED


@pytest.mark.spec("U08")
def test_the_checkpoints_of_a_job_are_in_its_metrics() -> None:
    cluster = SimulatedCluster(counting(execution__checkpointing__dir="/checkpoints"), 2)
    cluster.run()
    metrics = cluster.job.report.job_metrics()["metrics"]
    assert metrics["numberOfCompletedCheckpoints"] > 0
    assert metrics["totalNumberOfCheckpoints"] >= len(cluster.story.acknowledged)
    assert metrics["numberOfInProgressCheckpoints"] == 0
    assert metrics["lastCheckpointSize"] > 0
    assert (metrics["numRestarts"], metrics["uptime"]) == (0, -1), "the job has ended"
    assert metrics["lastCheckpointExternalPath"].startswith("/checkpoints/")
