"""Whole jobs whose tasks die and that begin anew: without checkpoints, from the start of their input."""

from __future__ import annotations

import pytest

from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import FreezeTask, KillTask, simulate

OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "parallelism.default": "2",
}


def counting() -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment(OPTIONS)
    pairs = env.from_collection([(f"k{number % 5}", 1) for number in range(40)]).map(lambda pair: pair)
    pairs.key_by(lambda pair: pair[0]).sum(1).sink_to(CollectSink())
    return env.get_job_graph()


@pytest.mark.slow
@pytest.mark.spec("X32")
@pytest.mark.parametrize("seed", range(12))
def test_a_job_without_checkpoints_begins_anew(seed):
    faults = [KillTask("Sink", move=seed * 7), KillTask("Source", move=seed * 20), FreezeTask("Map", move=seed * 13)]
    expected = sorted((f"k{key}", count) for key in range(5) for count in range(1, 9))
    assert sorted(simulate(counting(), seed, faults).collected()) == expected
