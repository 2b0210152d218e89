"""Whatever goes wrong, and at whatever parallelism a job goes on: what its sink has committed is each record once."""

from __future__ import annotations

import os

import pytest

from tests.simulation.exactly_once import run
from tests.simulation.topologies import TOPOLOGIES

FEW = 3
MANY = int(os.environ.get("RAYFLINK_SEEDS", "300"))

every_topology = pytest.mark.parametrize("name", [topology.name for topology in TOPOLOGIES])


@every_topology
@pytest.mark.parametrize("seed", range(FEW))
def test_a_few_seeds_commit_each_record_once(name, seed):
    run(name, seed)
