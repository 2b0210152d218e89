"""A job on a Ray that grows: load up, slots and nodes come; load down, they go. Real processes, every record once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.fake_nodes import growing_cluster

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PROGRAM = """
import json, sys, time
import ray
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing.load_curves import LoadCurve, LoadCurveSource

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
nodes, widths, status = [], [], {}
while client.get_job_status().result().name in ("CREATED", "RUNNING", "RESTARTING", "INITIALIZING"):
    status = client.status()
    alive = sum(node["Alive"] for node in ray.nodes())
    width = max(vertex["parallelism"] for vertex in status["vertices"])
    for values, value in ((nodes, alive), (widths, width)):
        if not values or values[-1] != value:
            values.append(value)
    runs = all(set(vertex["states"]) == {"RUNNING"} for vertex in status["vertices"])
    if runs and widths[-1] == 1 < max(widths) and nodes[-1] < max(nodes):
        client.stop_with_savepoint(True, sys.argv[1]).result()
    time.sleep(0.5)
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
