"""One seed of a topology: faults without end, savepoints and new parallelisms, and what the sink has committed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from rayflink.actors.messages.states import JobStatus
from rayflink.testing import Fault, StopWithSavepoint, random_faults, simulate
from rayflink.testing.simulated_storage import SimulatedDisk
from tests.simulation.topologies import BY_NAME, Topology

WIDTHS = ((2,), (2, 3), (2, 3, 1), (2, 3, 1), (1, 2), (3, 1, 2))
MOVES = 700
DRAWN = {
    "state.backend.type": ("hashmap", "hashmap", "rocksdb"),
    "execution.checkpointing.data-inline-threshold": ("0 b", "20 kb"),
    "execution.checkpointing.num-retained": ("1", "3"),
    "execution.checkpointing.interval": ("1 ms", "3 ms", "8 ms"),
    "taskmanager.network.memory.buffers-per-channel": ("1", "2"),
}
"""Options drawn from the seed, anew for each run."""
_OVERTAKING = {"execution.checkpointing.unaligned.enabled": "true", "execution.checkpointing.unaligned.forced": "true"}
BARRIERS = (
    {"execution.checkpointing.max-concurrent-checkpoints": "1"},
    {"execution.checkpointing.max-concurrent-checkpoints": "3"},
    _OVERTAKING,
    {**_OVERTAKING, "execution.checkpointing.aligned-checkpoint-timeout": "4 ms"},
)
"""How barriers go, of which each run draws one."""


@dataclass
class Tally:
    """What happened in many runs."""

    seeds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    checkpoints: int = 0
    restarts: int = 0
    coordinators: int = 0
    rescales: int = 0
    in_place: int = 0
    moves: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Sum up."""
        self.seeds += other.seeds
        self.faults.update(other.faults)
        self.checkpoints += other.checkpoints
        self.restarts += other.restarts
        self.coordinators += other.coordinators
        self.rescales += other.rescales
        self.in_place += other.in_place
        self.moves += other.moves
        self.failures += other.failures


@cache
def expected(topology: Topology) -> Counter[object]:
    """What a run without faults commits."""
    topology.forget()
    story = simulate(topology.graph(2))
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    found = Counter(topology.committed())
    topology.forget()
    assert found
    return found


def run(name: str, seed: int, faults: Iterable[Fault] | None = None, more: tuple[tuple[str, str], ...] = ()) -> Tally:
    """Run a topology, perhaps with `more` options, from a seed to its end, perhaps over several parallelisms.

    Raises:
        AssertionError: the committed records are not those of a run without faults; says the topology and the seed.
    """
    topology = BY_NAME[name]
    wanted = expected(topology)
    draw = random.Random(f"{name} {seed}")
    tally, disk, path = Tally(1), SimulatedDisk(), ""
    topology.forget()
    widths = draw.choice(WIDTHS)
    told: list[str] = []
    try:
        for run, width in enumerate(widths):
            options = {key: draw.choice(values) for key, values in DRAWN.items()}
            options |= draw.choice(BARRIERS) | dict(more)
            if path:
                options["execution.state-recovery.path"] = path
            graph = topology.graph(width, options)
            plan = [*random_faults(draw.getrandbits(32), graph, MOVES)]
            if run + 1 < len(widths):
                plan.append(StopWithSavepoint(move=draw.randrange(MOVES // 2)))
            told.append(f"at parallelism {width}{f' from {path}' if path else ''} with {plan}")
            story = simulate(graph, draw.getrandbits(32), plan if faults is None else [*faults], disk)
            tally.faults.update(type(fault).__name__ for fault in plan)
            tally.checkpoints += len(story.completed)
            tally.restarts += story.restarts
            tally.coordinators += story.coordinators
            tally.in_place += story.rescales
            tally.moves += story.happenings[-1].move
            if story.status is not JobStatus.FINISHED:
                raise AssertionError(story.describe(f"the job is {story.status.value}: {story.failure}"))
            if not story.stopped_with:
                break
            path = story.stopped_with
            tally.rescales += 1
        found = Counter(topology.committed())
        if found != wanted:
            lost, more = wanted - found, found - wanted
            raise AssertionError(
                story.describe(f"{lost.total()} records are lost and {more.total()} too many: {lost} and {more}")
            )
    except AssertionError as error:
        runs = "\n".join(f"  run {number} {each}" for number, each in enumerate(told, 1))
        raise AssertionError(f"topology {name!r}, seed {seed}: {error}\nthe runs:\n{runs}") from error
    finally:
        topology.forget()
    return tally
