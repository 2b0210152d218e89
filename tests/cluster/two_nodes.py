"""Runs jobs on two nodes in one machine, and prints what went over the line; a script of its own.

The argument is an empty folder for spill files.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from rayflink.actors.ray_cluster import RayJob, RayOptions
from rayflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tests.cluster import watching
from tests.golden_jobs import GOLDEN_JOBS

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
WANTED = ("word count", "windowed count", "rebalance 2 to 3")


def main(folder: Path) -> None:
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        cluster.add_node(**NODE)
        ray.init(address=cluster.address, namespace="rayflink", log_to_driver=False, logging_level=logging.ERROR)
        cluster.wait_for_nodes()
        jobs = [run(golden) for golden in GOLDEN_JOBS if golden.name in WANTED]
        print(json.dumps({"jobs": jobs, "spilled": killed_batch_job(folder)}))
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


def killed_batch_job(folder: Path) -> dict:
    """What a batch job whose producers are killed on both nodes has spilled, and what of it is left at its end."""
    spills, gate = folder / "spills", folder / "gate"
    spills.mkdir()
    small = {"rayflink.blocking-partition.memory": "1 kb", "rayflink.batch.max-bytes": "4 kb"}
    env = StreamExecutionEnvironment({"parallelism.default": 2, "io.tmp.dirs": str(spills), **small})
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    texts = env.from_collection(range(20_000)).rebalance().map(str).key_by(lambda text: text)
    texts.map(watching.waiter(str(gate))).add_sink(lambda text: None)
    job = RayJob(env.get_job_graph("killed"), RayOptions(placement="SPREAD"))
    try:
        assert watching.eventually(lambda: job.status()["vertices"][2]["states"] == {"RUNNING": 2}, within_s=40)
        folders = len(list(spills.iterdir()))
        tasks = [task["metrics"] for task in job.status()["vertices"][1]["subtasks"]]
        for task in tasks:
            os.kill(task["pid"], signal.SIGKILL)
    finally:
        gate.touch()
    state = job.wait().status.value
    left = [str(path) for path in spills.iterdir()]
    return {"state": state, "nodes": len({task["node"] for task in tasks}), "folders": folders, "left": left}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
