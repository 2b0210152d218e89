"""Jobs whose parallelism changes while they run, also when tasks die meanwhile: every record counts once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rayflink.actors.messages.commands import RescaleRequested, SavepointRequested
from rayflink.actors.messages.states import JobStatus
from rayflink.common.options.stop_mode import StopMode
from rayflink.testing import KillTask
from rayflink.testing.faults import ClusterFault
from rayflink.testing.simulation import SimulatedCluster
from tests.simulation.test_checkpoints import EXPECTED, counting

SMALL = {"rayflink__batch__max_rows": "3"}
"""Batches so small that a run has many moves."""


@dataclass(frozen=True)
class Rescale(ClusterFault):
    """Somebody asks for other parallelisms before move `at`."""

    number: str
    wanted: tuple[tuple[str, int], ...]
    at: int

    def inject(self, cluster: Any, move: int) -> bool:
        if move >= self.at:
            cluster.request(RescaleRequested(self.number, dict(self.wanted)))
        return move >= self.at


@pytest.mark.spec("H08")
@pytest.mark.parametrize("interval", ["5 ms", "1 h"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.slow
def test_every_record_counts_once_whatever_the_parallelism_becomes(seed: int, interval: str) -> None:
    faults = [
        Rescale("up", (("Keyed Aggregation", 3),), 40 + 10 * seed),
        KillTask("Sink", move=200 + 30 * seed),
        Rescale("down", (("Keyed Aggregation", 1), ("Map", 1)), 450 + 20 * seed),
    ]
    cluster = SimulatedCluster(counting(execution__checkpointing__interval=interval, **SMALL), seed, faults)
    cluster.run()
    assert sorted(cluster.story.collected()) == EXPECTED
    up, down = cluster.answers["up"], cluster.answers.get("down")
    widths = {vertex.name: vertex.parallelism for vertex in cluster.job.graph.vertices}
    expected = {"Map": 2, "Keyed Aggregation -> Sink: Collect": 2 if up.failure else 3}
    if down is not None and not down.failure:
        expected = dict.fromkeys(expected, 1)
    assert {name: widths[name] for name in expected} == expected


def test_a_job_without_checkpoints_takes_one_to_be_rescaled() -> None:
    graph = counting(execution__checkpointing__interval="1 h", **SMALL)
    cluster = SimulatedCluster(graph, 3, [Rescale("up", (("Keyed Aggregation", 4),), 45)])
    cluster.run()
    assert sorted(cluster.story.collected()) == EXPECTED
    assert cluster.answers["up"].failure == ""
    assert {v.name: v.parallelism for v in cluster.job.graph.vertices}["Keyed Aggregation -> Sink: Collect"] == 4


def test_a_job_that_has_the_wanted_parallelism_runs_on() -> None:
    same = (("Keyed Aggregation", 2), ("Map", 2))
    cluster = SimulatedCluster(counting(**SMALL), 3, [Rescale("same", same, 60)])
    cluster.run()
    assert (cluster.answers["same"].pause_ms, cluster.answers["same"].failure) == (0, "")
    assert cluster.job.restarts.count == 0 and sorted(cluster.story.collected()) == EXPECTED


@dataclass(frozen=True)
class Ask(ClusterFault):
    """Somebody asks for these, in this order, before move `at`."""

    requests: tuple[RescaleRequested | SavepointRequested, ...]
    at: int

    def inject(self, cluster: Any, move: int) -> bool:
        if move >= self.at:
            for request in self.requests:
                cluster.request(request)
        return move >= self.at


UP = RescaleRequested("up", {"Keyed Aggregation": 3})
STOP = SavepointRequested("stop", "/savepoints", StopMode.SUSPEND)


@pytest.mark.parametrize("requests", [(UP, STOP), (STOP, UP)], ids=["stop after rescale", "rescale after stop"])
@pytest.mark.parametrize("seed", range(6))
def test_a_job_that_stops_with_a_savepoint_is_not_rescaled_with_it(
    seed: int, requests: tuple[RescaleRequested | SavepointRequested, ...]
) -> None:
    cluster = SimulatedCluster(counting(execution__checkpointing__interval="1 h", **SMALL), seed, [Ask(requests, 100)])
    result = cluster.run()
    assert result.status is JobStatus.FINISHED
    stopped, rescaled = cluster.answers["stop"], cluster.answers["up"]
    assert stopped.location.startswith("/savepoints/") and not stopped.failure
    assert rescaled.failure == ("it stops with a savepoint" if requests[0] is STOP else "the job is FINISHED")
    assert {v.parallelism for v in cluster.job.graph.vertices if v.name.startswith("Keyed")} == {2}
