"""Jobs between outside systems are killed, and so are those; `python -m tests.exactly_once.stream_kills` runs more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("psycopg")

from tests.exactly_once.stream_kills import PIPELINES, Servers, plan, run, servers

ONCE = "ALL-RECORDS-DELIVERED-ONCE "
VICTIMS = ("job", "function", "broker")


@pytest.fixture(scope="module")
def shared() -> Iterator[Servers]:
    """Servers of all campaigns here."""
    with servers() as found:
        yield found


def campaign(pipeline: str, shared: Servers, rounds: int, seed: int, folder: Path) -> str:
    """Run one that has to go well; its verdict."""
    said: list[str] = []
    assert run(pipeline, shared, rounds, seed, folder, said.append), said
    assert said[-1].startswith(ONCE), said
    return said[-1]


def test_the_first_rounds_take_each_victim_once():
    for seed in range(20):
        chosen = plan(50, random.Random(seed), VICTIMS)
        assert sorted(chosen[:3]) == sorted(VICTIMS) and set(chosen) == set(VICTIMS)
        assert chosen == plan(50, random.Random(seed), VICTIMS)
        assert len(plan(2, random.Random(seed), VICTIMS)) == 2


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_job_and_its_killed_broker_lose_and_repeat_nothing(shared: Servers, tmp_path: Path):
    assert "broker=1 function=1 job=1" in campaign("kafka-kafka", shared, 3, 4, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_kills_of_jobs_and_servers_lose_and_repeat_nothing(shared: Servers, tmp_path: Path, pipeline: str, seed: int):
    campaign(pipeline, shared, 8, seed, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("pipeline", ["kafka-kafka", "kafka-postgres"])
def test_partitions_whose_leader_is_killed_lose_and_repeat_nothing(tmp_path: Path, pipeline: str):
    """Three brokers, three copies, of which two have to be written; a killed one stays away until the job goes on."""
    with servers(brokers=3) as three:
        campaign(pipeline, three, 6, 1, tmp_path)
