"""A job that spans two nodes gives the same answers, and knows what it received from which."""

from __future__ import annotations

import pytest

from rayflink.actors.on_ray.driver.ray_cluster import RayJob, RayOptions
from tests.golden_jobs import GOLDEN_JOBS, GoldenJob

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

SPREAD_OUT = ("word count", "windowed count", "rebalance 2 to 3")


@pytest.mark.spec("N04", "X66", "O33", "remote", "S03", "exchange")
def test_golden_jobs_span_two_nodes_with_remote_channels():
    jobs = [spread_out(golden) for golden in GOLDEN_JOBS if golden.name in SPREAD_OUT]
    assert len(jobs) == len(SPREAD_OUT)
    for job in jobs:
        assert job["nodes"] == 2
        assert job["numBytesInRemote"] > 0
        assert job["numBytesInLocal"] + job["numBytesInRemote"] == job["numBytesIn"]
    assert sum(job["numBytesInLocal"] for job in jobs) > 0


def spread_out(golden: GoldenJob) -> dict[str, int]:
    """On how many nodes the subtasks of a job were, and what they received from their own and from the other."""
    graph = golden.graph({"parallelism.default": 2})
    widest = max(vertex.parallelism for vertex in graph.vertices)
    result = RayJob(graph, RayOptions(slot_cpus=2 / (widest + widest % 2), placement="SPREAD")).wait()
    golden.check(result)
    metrics = [subtask["metrics"] for vertex in result.vertices for subtask in vertex["subtasks"]]
    sums = {name: sum(task[name] for task in metrics) for name in ("numBytesInLocal", "numBytesInRemote", "numBytesIn")}
    return {"nodes": len({task["node"] for task in metrics}), **sums}
