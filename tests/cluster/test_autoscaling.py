"""A job on a Ray that grows: load up, slots and nodes come; load down, they go. Real processes, every record once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.fake_nodes import growing_cluster
from tests.cluster.head import ROOT

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROGRAM = """
import json, sys, time
import ray
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing.load_curves import LoadCurve, LoadCurveSource
from tests.cluster.watching import eventually

def slow(number):
    time.sleep(0.02)
    return number

curve = LoadCurve.steps((6, 10), (24, 100), (300, 10))
env = StreamExecutionEnvironment({
    "execution.target": "ray",
    "parallelism.default": "1",
    "job.autoscaler.enabled": "true",
    "autoscaler.standalone.control-loop.interval": "1 s",
    "job.autoscaler.metrics.window": "5 s",
    "job.autoscaler.stabilization.interval": "2 s",
    "job.autoscaler.catch-up.duration": "20 s",
    "job.autoscaler.restart.time": "2 s",
    "job.autoscaler.scale-down.interval": "5 s",
    "job.autoscaler.scale-down.max-factor": "1.0",
    "job.autoscaler.vertex.max-parallelism": "3",
    "rayflink.batch.max-rows": "16",
})
numbers = env.from_source(LoadCurveSource(curve, int(time.time() * 1000)), source_name="in")
numbers.key_by(lambda number: number).map(slow).name("Slow").sink_to(CollectSink("all"))
client = env.execute_async("scaled")
nodes, widths = [], []

def runs():
    status = client.status()
    alive = sum(node["Alive"] for node in ray.nodes())
    width = max(vertex["parallelism"] for vertex in status["vertices"])
    for values, value in ((nodes, alive), (widths, width)):
        if not values or values[-1] != value:
            values.append(value)
    return all(set(vertex["states"]) == {"RUNNING"} for vertex in status["vertices"])

has_grown = eventually(lambda: runs() and widths[-1] > 1 and nodes[-1] > 1, within_s=90)
assert has_grown, (widths, nodes, client.status()["autoscaler"])
has_shrunk = eventually(lambda: runs() and widths[-1] == 1 and nodes[-1] < max(nodes), within_s=120)
assert has_shrunk, (widths, nodes, client.status()["autoscaler"])
status = client.status()
client.stop_with_savepoint(True, sys.argv[1]).result()
result = client.get_job_execution_result().result()
everything = sorted(result.get_accumulator_result("all"))
parts = [[number for number in everything if number % 16 == part] for part in range(16)]
complete = all(part == list(range(index, index + 16 * len(part), 16)) for index, part in enumerate(parts))
print(json.dumps({"nodes": nodes, "widths": widths, "complete": complete, "count": len(everything),
                  "autoscaler": status["autoscaler"]}))
"""


@pytest.mark.spec("S02", "asks", "S02", "idle")
@pytest.mark.timeout(300)
def test_nodes_come_with_the_load_and_go_with_it(tmp_path: Path) -> None:
    program = tmp_path / "scaled.py"
    program.write_text(PROGRAM, encoding="utf-8")
    with growing_cluster(tmp_path, idle_s=2) as environment:
        command = [sys.executable, str(program), str(tmp_path / "savepoints")]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-4_000:]
    seen = json.loads(run.stdout.splitlines()[-1])
    assert seen["complete"] and seen["count"] > 2_460, "records are lost or repeated"
    assert max(seen["widths"]) >= 2 and seen["widths"][0] == seen["widths"][-1] == 1, seen
    assert max(seen["nodes"]) >= 2 and seen["nodes"][-1] < max(seen["nodes"]), seen
    outcomes = [decision["outcome"] for decision in seen["autoscaler"]["decisions"]]
    assert outcomes.count("done") >= 2 and "failed" not in outcomes


REACTIVE = """
import json, os, sys, time
from collections import defaultdict
import ray
from ray.cluster_utils import Cluster
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing.load_curves import LoadCurve, LoadCurveSource
from tests.cluster.watching import eventually

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
os.environ["RAY_ADDRESS"] = cluster.address
env = StreamExecutionEnvironment({
    "execution.target": "ray",
    "scheduler-mode": "reactive",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "1 s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1 s",
    "execution.checkpointing.interval": "1 s",
    "execution.checkpointing.dir": f"file://{sys.argv[1]}/checkpoints",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "100",
    "restart-strategy.fixed-delay.delay": "100 ms",
    "pipeline.max-parallelism": "16",
})
env.set_parallelism(1)
curve = LoadCurve.steps((600, 40))
numbers = env.from_source(LoadCurveSource(curve, int(time.time() * 1000)), source_name="in")
counts = numbers.map(lambda number: (number % 16, 1)).key_by(lambda pair: pair[0]).sum(1).name("Count")
counts.sink_to(CollectSink("all"))
client = env.execute_async("reactive")
widths = []

def completed():
    return client.status()["metrics"]["lastCompletedCheckpointId"]

def run_with(width):  # until all its tasks run, and have taken two checkpoints
    def runs():
        vertices = client.status()["vertices"]
        seen = max(vertex["parallelism"] for vertex in vertices)
        if not widths or widths[-1] != seen:
            widths.append(seen)
        return seen == width and all(set(vertex["states"]) == {"RUNNING"} for vertex in vertices)
    assert eventually(runs, within_s=60), (widths, client.status()["exceptions"])
    before = completed()
    assert eventually(lambda: completed() >= before + 2, within_s=60), client.status()["metrics"]

run_with(1)
node = cluster.add_node(**NODE)
run_with(2)
cluster.remove_node(node, allow_graceful=False)
run_with(1)
client.stop_with_savepoint(True, f"{sys.argv[1]}/savepoints").result()
counts_of = defaultdict(list)
for key, count in client.get_job_execution_result().result().get_accumulator_result("all"):
    counts_of[key].append(count)
once = all(sorted(counts) == list(range(1, len(counts) + 1)) for counts in counts_of.values())
print(json.dumps({"widths": widths, "keys": len(counts_of), "once": once,
                  "count": sum(map(len, counts_of.values()))}))
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_a_reactive_job_grows_with_a_node_and_shrinks_when_it_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "reactive.py"
    program.write_text(REACTIVE, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    run = subprocess.run([sys.executable, str(program), str(tmp_path)], env={**environment, "PYTHONPATH": str(ROOT)},
                         capture_output=True, text=True, timeout=230)  # fmt: skip
    assert run.returncode == 0, run.stderr[-4_000:]
    seen = json.loads(run.stdout.splitlines()[-1])
    assert seen["widths"] == [1, 2, 1], seen
    assert seen["once"] and seen["keys"] == 16 and seen["count"] > 400, seen
