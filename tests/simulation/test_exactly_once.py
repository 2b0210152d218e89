"""Whatever goes wrong, and at whatever parallelism a job goes on: what its sink has committed is each record once."""

from __future__ import annotations

import pytest

from rayflink.testing import random_faults, simulate
from tests.simulation.exactly_once import run
from tests.simulation.seeds import run_all, table
from tests.simulation.topologies import BY_NAME, TOPOLOGIES

FEW = 2
MANY = 40
"""Seeds of each topology here; `python -m tests.simulation.seeds` runs as many as wanted."""

every_topology = pytest.mark.parametrize("name", [topology.name for topology in TOPOLOGIES])


@every_topology
@pytest.mark.parametrize("seed", range(FEW))
def test_a_few_seeds_commit_each_record_once(name, seed):
    run(name, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.spec("X33")
def test_hundreds_of_seeds_commit_each_record_once():
    check([*BY_NAME])


def check(names: list[str]) -> None:
    """Run the seeds of topologies."""
    tallies = run_all(names, range(FEW, FEW + MANY), processes=2)
    print(table(tallies))
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    assert not failures, f"{len(failures)} seeds failed, the first:\n{failures[0]}"
    assert all(tally.restarts and tally.checkpoints and tally.rescales for tally in tallies.values())


@every_topology
def test_two_runs_of_one_seed_have_one_trace(name):
    graph = BY_NAME[name].graph(2)
    traces = []
    for _ in range(2):
        BY_NAME[name].forget()
        traces.append([str(each) for each in simulate(graph, 5, random_faults(11, graph, 500)).happenings])
    BY_NAME[name].forget()
    assert traces[0] == traces[1] and len(traces[0]) > 100
