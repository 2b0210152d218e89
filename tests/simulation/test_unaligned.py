"""Whole jobs whose barriers overtake records: every record counts once, however slow the sink is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from rayflink.connectors.collection import CollectSink
from rayflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import (
    UNRELIABLE_NETWORK,
    CancelJob,
    FreezeTask,
    KillTask,
    SimulatedDisk,
    SlowTask,
    Story,
    simulate,
)
from rayflink.testing.faults import Fault
from tests.simulation.exactly_once import run
from tests.simulation.topologies import TOPOLOGIES

OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "parallelism.default": "2",
    "pipeline.max-parallelism": "12",
    "execution.checkpointing.interval": "5 ms",
    "execution.checkpointing.dir": "/checkpoints",
    "execution.checkpointing.unaligned.enabled": "true",
    "rayflink.batch.max-rows": "2",
    "taskmanager.network.memory.buffers-per-channel": "1",
    "taskmanager.network.memory.floating-buffers-per-gate": "1",
}
RECORDS = 120
EXPECTED = sorted((f"k{key}", count) for key in range(5) for count in range(1, RECORDS // 5 + 1))
FAULTS: list[tuple[Fault, ...]] = [
    (SlowTask("Sink", 8), KillTask("Sink", move=350), KillTask("Source", move=500)),
    (SlowTask("Map", 5), FreezeTask("Map", move=250), KillTask("Aggregation", move=900)),
    (*UNRELIABLE_NETWORK, SlowTask("Aggregation", 10), KillTask("Map", move=400)),
]


def environment(**options: Any) -> Any:
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return StreamExecutionEnvironment.get_execution_environment({**OPTIONS, **given})


def counting(**options: Any) -> JobGraph:
    """Counts by key between two exchanges in turn."""
    env = environment(**options)
    pairs = env.from_collection([(f"k{number % 5}", 1) for number in range(RECORDS)]).rebalance().map(lambda pair: pair)
    counts = pairs.key_by(lambda pair: pair[0]).sum(1).rebalance().map(lambda pair: pair)
    counts.sink_to(CollectSink())
    return env.get_job_graph()


def bytes_in_flight(story: Story) -> int:
    return sum(ack.metrics.in_flight_bytes for parts in story.acknowledged.values() for ack in parts.values())


@pytest.mark.parametrize("timeout", ["0 ms", "10 ms"])
@pytest.mark.parametrize("faults", FAULTS, ids=["slow sink", "slow map", "rough network"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
@pytest.mark.slow
def test_whatever_dies_every_record_counts_once(seed: int, faults: Sequence[Fault], timeout: str) -> None:
    # a step of the slow sink works a barrier or a few records: it has time for more than the barriers
    options = {"execution__checkpointing__interval": "60 ms"} if faults is FAULTS[0] else {}
    job = counting(execution__checkpointing__aligned_checkpoint_timeout=timeout, **options)
    story = simulate(job, seed, faults)
    assert sorted(story.collected()) == EXPECTED
    assert story.completed and bytes_in_flight(story)


@pytest.mark.slow
@pytest.mark.soak
def test_behind_a_slow_sink_unaligned_checkpoints_meet_the_time_that_aligned_miss() -> None:
    given = {
        "execution__checkpointing__timeout": "1500 ms",
        "execution__checkpointing__interval": "100 ms",
        "execution__checkpointing__tolerable_failed_checkpoints": "1000",
        "taskmanager__network__memory__buffer_debloat__enabled": "false",
    }
    slow = [SlowTask("Sink", 300)]
    overtaking = simulate(counting(**given), 4, slow)
    aligned = simulate(counting(**given, execution__checkpointing__unaligned__enabled="false"), 4, slow)
    in_time = simulate(counting(**given, execution__checkpointing__aligned_checkpoint_timeout="200 ms"), 4, slow)
    for story in (overtaking, aligned, in_time):
        assert sorted(story.collected()) == EXPECTED
    assert len(overtaking.completed) > 4 * max(1, len(aligned.completed)), (overtaking.completed, aligned.completed)
    assert len(in_time.completed) > 2 * max(1, len(aligned.completed)), (in_time.completed, aligned.completed)
    assert not bytes_in_flight(aligned)


class InOrder(KeyedProcessFunction):
    """Lets the numbers of a key pass when each is the next one."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[Any]:
        last = self.last.value() or 0
        self.last.update(value[1])
        yield value if value[1] == last + 1 else f"{value} came behind {last}"


def in_order(**options: Any) -> JobGraph:
    env = environment(**options)
    numbers = env.from_collection([(f"k{number % 5}", number // 5 + 1) for number in range(RECORDS)])
    numbers.key_by(lambda pair: pair[0]).process(InOrder()).rebalance().map(lambda pair: pair).sink_to(CollectSink())
    return env.get_job_graph()


@pytest.mark.parametrize("width", ["1", "2", "3", "5"])
@pytest.mark.parametrize("program", [counting, in_order])
@pytest.mark.parametrize("at", [200, *(pytest.param(at, marks=pytest.mark.slow) for at in (260, 330))])
@pytest.mark.slow
def test_in_flight_records_find_their_way_when_rescaled_and_keys_keep_their_order(
    at: int, program: Any, width: str
) -> None:
    kept = {
        "execution__checkpointing__externalized_checkpoint_retention": "RETAIN_ON_CANCELLATION",
    }
    for moment in range(at, at + 300, 30):  # the first one whose newest checkpoint has records in flight
        disk = SimulatedDisk()
        story = simulate(program(**kept), at, [SlowTask("Map", 10), CancelJob(move=moment)], disk)
        newest = story.acknowledged[story.completed[-1]] if story.completed else {}
        if any(ack.metrics.in_flight_bytes for ack in newest.values()):
            break
    else:
        pytest.fail("no checkpoint had records in flight")
    (path,) = (name.rpartition("/")[0] for name in disk.files if name.endswith(f"chk-{story.completed[-1]}/_metadata"))
    again = program(parallelism__default=width, execution__state_recovery__path=path)
    assert sorted(simulate(again, at, disk=disk).collected()) == EXPECTED


UNALIGNED = (
    ("execution.checkpointing.unaligned.enabled", "true"),
    ("execution.checkpointing.unaligned.forced", "true"),
    ("execution.checkpointing.max-concurrent-checkpoints", "1"),
    ("taskmanager.network.memory.buffers-per-channel", "1"),
    ("taskmanager.network.memory.floating-buffers-per-gate", "1"),
)


@pytest.mark.slow
@pytest.mark.parametrize("timeout", ["0 ms", "4 ms"])
@pytest.mark.parametrize("name", [topology.name for topology in TOPOLOGIES])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 8))])
def test_every_topology_commits_each_record_once(name: str, seed: int, timeout: str) -> None:
    run(name, seed, more=(*UNALIGNED, ("execution.checkpointing.aligned-checkpoint-timeout", timeout)))


@pytest.mark.slow
def test_barriers_overtake_in_a_job_with_a_loop_only_where_that_is_asked_for() -> None:
    def looping(**options: Any) -> JobGraph:
        env = environment(**options)
        loop = env.from_collection(range(60)).rebalance().map(lambda n: n % 7).iterate()
        step = loop.map(lambda n: n - 1)
        loop.close_with(step.filter(lambda n: n > 0))
        step.rebalance().map(lambda n: n).sink_to(CollectSink())
        return env.get_job_graph()

    slow = [SlowTask("Sink", 20)]
    assert not bytes_in_flight(simulate(looping(), 2, slow))
    forced = simulate(looping(execution__checkpointing__unaligned__forced="true"), 2, slow)
    assert bytes_in_flight(forced)
    assert sorted(forced.collected()) == sorted(simulate(looping(), 2, slow).collected())
