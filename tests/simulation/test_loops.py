"""Whole jobs with loops that take checkpoints, lose tasks and go on: what goes round counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from rayflink.connectors.collection import CollectSink
from rayflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.testing import (
    UNRELIABLE_NETWORK,
    CommittedSink,
    FreezeTask,
    KillCoordinator,
    KillTask,
    SimulatedDisk,
    StopWithSavepoint,
    simulate,
)
from rayflink.testing.faults import Fault
from tests.simulation.exactly_once import expected as committed_once
from tests.simulation.topologies import BY_NAME

OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "parallelism.default": "2",
    "execution.checkpointing.interval": "5 ms",
}
GIVEN = [(f"k{number % 5}", number % 7 + 1) for number in range(60)]
ROUNDS = Counter({key: sum(rounds for k, rounds in GIVEN if k == key) for key, _ in GIVEN})
FAULTS: list[tuple[Fault, ...]] = [
    (),
    (
        KillTask("Iteration", move=300),
        KillTask("Source", move=500),
        KillTask("Map", move=900),
        KillTask("Sink", move=1300),
    ),
    (FreezeTask("Map", move=400), *UNRELIABLE_NETWORK, KillTask("IterationSink", move=900)),
]


def environment(**options: Any) -> Any:
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return StreamExecutionEnvironment.get_execution_environment({**OPTIONS, **given})


def counted(stream: Any) -> None:
    stream.map(lambda pair: (pair[0], 1)).key_by(lambda pair: pair[0]).sum(1).sink_to(CollectSink())


def one_loop(env: Any) -> None:
    """Each record goes round as often as it says, and is counted each time."""
    loop = env.from_collection(GIVEN).rebalance().map(lambda pair: pair).iterate()
    step = loop.map(lambda pair: (pair[0], pair[1] - 1))
    loop.close_with(step.filter(lambda pair: pair[1] > 0))
    counted(step)


class Numbered(KeyedProcessFunction):
    """Numbers the records of a key as they come by, and counts what they have left down."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[tuple[str, int, int]]:
        self.seen.update((self.seen.value() or 0) + 1)
        yield value[0], value[1] - 1, self.seen.value()


def keyed_loop(env: Any) -> None:
    """As `one_loop`, but counted in keyed state of the loop's body."""
    loop = env.from_collection(GIVEN).rebalance().map(lambda pair: pair).iterate()
    step = loop.key_by(lambda pair: pair[0]).process(Numbered())
    loop.close_with(step.filter(lambda pair: pair[1] > 0))
    step.map(lambda pair: (pair[0], pair[2])).sink_to(CollectSink())


def two_loops(env: Any) -> None:
    """The second loop gets what the first has let go, and lets each record go round twice."""
    first = env.from_collection(GIVEN).rebalance().map(lambda pair: pair).iterate()
    step = first.map(lambda pair: (pair[0], pair[1] - 1))
    first.close_with(step.filter(lambda pair: pair[1] > 0))
    second = step.map(lambda pair: (pair[0], 2)).iterate()
    again = second.map(lambda pair: (pair[0], pair[1] - 1))
    second.close_with(again.filter(lambda pair: pair[1] > 0))
    counted(again.filter(lambda pair: pair[1] == 0))


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
PROGRAMS: list[Any] = [one_loop, keyed_loop, pytest.param(two_loops, marks=pytest.mark.slow)]


def expected() -> list[tuple[str, int]]:
    return sorted((key, count) for key, rounds in ROUNDS.items() for count in range(1, rounds + 1))


def kept(story: Any) -> int:
    """Batches that were on their way round, over all checkpoints."""
    parts = [ack for parts in story.acknowledged.values() for ack in parts.values()]
    snapshots = [snapshot for ack in parts for snapshot in ack.snapshots.values()]
    return sum(len(snapshot.lists["feedback"][1]) for snapshot in snapshots if "feedback" in snapshot.lists)


@pytest.mark.slow
@pytest.mark.spec("H48", "counts-once", "I13", "loops")
@pytest.mark.parametrize("faults", FAULTS, ids=["without faults", "kills", "silence"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_what_goes_round_counts_once_whatever_dies(seed: int, program: Any, faults: Sequence[Fault]) -> None:
    env = environment()
    program(env)
    story = simulate(env.get_job_graph(), seed, faults)
    assert sorted(story.collected()) == expected()
    assert len(story.acknowledged) > 1
    if not faults and program is one_loop:
        assert kept(story), "nothing was on its way round in any checkpoint"


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "at", "zombie_ms"), [(0, 150, 50), (0, 250, 50), (2, 250, 50)])
def test_a_new_coordinator_begins_with_an_empty_way_round(seed: int, at: int, zombie_ms: int) -> None:
    topology = BY_NAME["feedback"]
    wanted = committed_once(topology)
    try:
        simulate(topology.graph(2), seed, [KillTask("Map", at), KillCoordinator(at + 200, zombie_ms)])
        assert Counter(CommittedSink.records(topology.name)) == wanted
    finally:
        CommittedSink.forget(topology.name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_several_checkpoints_may_be_on_their_way_round(seed: int) -> None:
    often = {"execution__checkpointing__max_concurrent_checkpoints": "3", "execution__checkpointing__interval": "2 ms"}
    env = environment(**often)
    one_loop(env)
    kills = [KillTask("IterationSource", move=400 + 100 * seed), KillTask("Sink", move=1000)]
    assert sorted(simulate(env.get_job_graph(), seed, kills).collected()) == expected()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_at_least_once_loses_nothing_that_goes_round(seed: int) -> None:
    env = environment(execution__checkpointing__mode="AT_LEAST_ONCE")
    one_loop(env)
    counts = Counter(key for key, _ in simulate(env.get_job_graph(), seed, FAULTS[1]).collected())
    assert all(counts[key] >= rounds for key, rounds in ROUNDS.items())


def test_the_last_checkpoint_of_a_loop_does_not_wait_for_its_time() -> None:
    env = environment(execution__checkpointing__interval="1 h")
    one_loop(env)
    story = simulate(env.get_job_graph(), 1)
    ((number, parts),) = story.acknowledged.items()
    assert number == 1 and all(part.data_is_over for part in parts.values())
    assert sorted(story.collected()) == expected()


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("program", [one_loop, keyed_loop])
@pytest.mark.parametrize("at", [150, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_loop_that_a_savepoint_suspends_goes_on_at_any_parallelism(at: int, program: Any, width: int) -> None:
    env = environment(execution__checkpointing__interval="1 h")
    program(env)
    disk = SimulatedDisk()
    story = simulate(env.get_job_graph(), at, [StopWithSavepoint(move=at)], disk)
    path = story.stopped_with
    assert path and len(story.collected()) < len(expected())
    env = environment(parallelism__default=str(width), execution__state_recovery__path=path)
    program(env)
    assert sorted(simulate(env.get_job_graph(), at, disk=disk).collected()) == expected(), (
        "the sink's rows are in its state"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_savepoint_that_drains_the_job_waits_until_its_loops_are_empty(seed: int) -> None:
    at_once = {"taskmanager__network__memory__buffer_debloat__enabled": "false"}  # the source gives all at once
    env = environment(execution__checkpointing__interval="1 h", **at_once)
    one_loop(env)
    disk = SimulatedDisk()
    story = simulate(env.get_job_graph(), seed, [StopWithSavepoint(move=150, drain=True)], disk)
    path = story.stopped_with
    assert path and sorted(story.collected()) == expected(), "the source had given all it has"
    env = environment(execution__state_recovery__path=path)
    one_loop(env)
    again = simulate(env.get_job_graph(), seed, disk=disk)
    assert sorted(again.collected()) == expected() and not kept(again), "and nothing goes round again"
