"""Runs golden jobs on two nodes in one machine, and prints what went over the line; a script of its own."""

from __future__ import annotations

import json
import logging

import ray
from ray.cluster_utils import Cluster

from rayflink.actors.ray_cluster import RayJob, RayOptions
from tests.golden_jobs import GOLDEN_JOBS

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
WANTED = ("word count", "windowed count", "rebalance 2 to 3")


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        cluster.add_node(**NODE)
        ray.init(address=cluster.address, namespace="rayflink", log_to_driver=False, logging_level=logging.ERROR)
        cluster.wait_for_nodes()
        print(json.dumps([run(golden) for golden in GOLDEN_JOBS if golden.name in WANTED]))
    finally:
        ray.shutdown()
        cluster.shutdown()


def run(golden) -> dict:
    """Where the subtasks of a job were, and what they received from their own node and from the other."""
    options = {"parallelism.default": 2}
    graph = golden.graph(options)
    widest = max(vertex.parallelism for vertex in graph.vertices)
    result = RayJob(graph, RayOptions(slot_cpus=2 / (widest + widest % 2), placement="SPREAD")).wait()
    golden.check(result)
    metrics = [subtask["metrics"] for vertex in result.vertices for subtask in vertex["subtasks"]]
    sums = {name: sum(task[name] for task in metrics) for name in ("numBytesInLocal", "numBytesInRemote", "numBytesIn")}
    return {"name": golden.name, "nodes": len({task["node"] for task in metrics}), **sums}


if __name__ == "__main__":
    main()
