"""What a job remembers when its coordinator is lost: whenever that is, the list of its failures goes on."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.testing import KillCoordinator, KillTask
from rayflink.testing.simulation import SimulatedCluster
from tests.simulation.test_checkpoints import EXPECTED, counting
from tests.simulation.test_rescaling import SMALL, Rescale


def run(*faults: Any) -> SimulatedCluster:
    graph = counting(execution__checkpointing__dir="/checkpoints", **SMALL)
    always = (KillTask("Map", move=60), Rescale("up", (("Keyed Aggregation", 3),), 150))
    cluster = SimulatedCluster(graph, 3, [*always, *faults])
    cluster.run()
    assert sorted(cluster.story.collected()) == EXPECTED
    return cluster


@pytest.mark.slow
@pytest.mark.parametrize("zombie_ms", [0, 50])
@pytest.mark.parametrize("move", range(20, 420, 45))
def test_a_lost_coordinator_forgets_nothing(move: int, zombie_ms: int) -> None:
    began = SimulatedCluster(counting(), 3).clock.now_ms()
    cluster = run(KillCoordinator(move=move, zombie_ms=zombie_ms), KillCoordinator(move=move + 200))
    described = cluster.job.report.describe()
    assert described["timestamps"]["INITIALIZING"] == began, "the job began once"
    failures = [(entry["kind"], entry["task"]) for entry in described["exceptions"]]
    lost = [task for kind, task in failures if kind == "CoordinatorLost"]
    assert len(lost) == cluster.story.coordinators, failures
    of_tasks = [entry for entry in described["exceptions"] if entry["task"].startswith("Map")]
    assert all(entry["place"] is not None for entry in of_tasks)
    if move > 120:
        assert of_tasks, "the first coordinator has seen the loss of the task"
    counts = described["rescales"]["counts"]
    assert counts["IN_PROGRESS"] == 0
    states = [change["state"] for change in described["rescales"]["history"]]
    assert sum(counts.values()) == len(states)
    widths = {vertex.name: vertex.parallelism for vertex in cluster.job.graph.vertices}
    if widths["Keyed Aggregation -> Sink: Collect"] == 3:  # else no checkpoint came between the change and the loss
        assert "COMPLETED" in states
