"""A law of whole jobs: what is in flight to a task is worked off in about the target time, whatever records cost."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import SlowRecords, Story, simulate
from rayflink.testing.faults import Fault

TARGET_MS = 200
OPTIONS = {
    "parallelism.default": "2",
    "pipeline.max-parallelism": "12",
    "taskmanager.network.memory.buffer-debloat.target": f"{TARGET_MS} ms",
    "taskmanager.network.memory.buffer-debloat.period": "40 ms",
    "execution.checkpointing.interval": "500 ms",
}
DEBLOATING = "taskmanager.network.memory.buffer-debloat.enabled"


def skewed(records: int, hops: int, hot: float, draw: random.Random, **options: Any) -> JobGraph:
    """Keyed maps one behind the other; a part `hot` of the records has one key."""
    env = StreamExecutionEnvironment({**OPTIONS, **options})
    keys = [0 if draw.random() < hot else number for number in range(records)]
    stream = env.from_collection(keys)
    for hop in range(hops):
        stream = stream.key_by(lambda key: key).map(lambda key: key).name(f"hop {hop}")
    stream.sink_to(CollectSink())
    return env.get_job_graph()


def slowest_barrier_ms(story: Story) -> int:
    """The longest time of a checkpoint, over all: until its source began it, or from there to the last barrier."""
    slowest = 0
    for parts in story.acknowledged.values():
        begun = min(part.metrics.start_delay_ms for name, part in parts.items() if name.startswith("Source"))
        last = max(part.metrics.start_delay_ms + part.metrics.alignment_ms for part in parts.values())
        slowest = max(slowest, begun, last - begun)
    return slowest


def run(seed: int, enabled: str = "true") -> tuple[Story, int, int]:
    """The story of a job of random size, skew and costs, its hops, and the most that a record may cost."""
    draw = random.Random(seed)
    hops, most_ms = draw.choice((1, 2)), draw.choice((2, 10, 40))
    graph = skewed(12_000 // most_ms, hops, draw.choice((0.0, 0.5, 0.99)), draw, **{DEBLOATING: enabled})
    faults: list[Fault] = [SlowRecords(f"hop {hop}", 0, most_ms) for hop in range(hops)]
    return simulate(graph, seed, faults), hops, most_ms


@pytest.mark.spec("O31", "latency")
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_a_barrier_comes_through_within_three_targets_a_hop(seed: int) -> None:
    story, hops, most_ms = run(seed)
    assert story.acknowledged
    assert slowest_barrier_ms(story) <= hops * (3 * TARGET_MS + 2 * most_ms)


def test_without_debloating_it_does_not() -> None:
    story, hops, most_ms = run(0, "false")
    assert slowest_barrier_ms(story) > hops * (3 * TARGET_MS + 2 * most_ms)
