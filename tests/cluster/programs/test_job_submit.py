"""A cluster as users have it, by `ray start --head`, with token authentication: `ray job submit`, the metrics port."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.head import ROOT, Head, head_node
from tests.cluster.watching import eventually

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    """A head node on loopback with two CPUs and its dashboard."""
    with head_node(tmp_path_factory.mktemp("head")) as running:
        yield running


@pytest.mark.spec("S06", "S01", "graph", "S05", "sequence")
@pytest.mark.timeout(400)  # what the dashboard needs is installed once
def test_the_demo_is_submitted_to_a_cluster_and_looked_at_from_another_terminal(head: Head, tmp_path: Path) -> None:
    out = tmp_path / "out"
    entrypoint = [head.python, "-m", "rayflink.cli.main", "run", "flight_delays.py", "--", "--out", str(out)]
    working = ["--working-dir", str(ROOT / "examples")]
    done = head.ray("job", "submit", "--address", head.dashboard, *working, "--", *entrypoint)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Job 'raysubmit_\w+' succeeded", done.stdout + done.stderr)
    assert "The ten worst of 21,105 hours" in done.stdout
    assert sum(1 for part in (out / "delays").glob("part-*.csv") for _ in part.open()) > 21_105

    listed = head.rayflink("list", "-a")
    assert listed.returncode == 0, listed.stderr
    [row] = listed.stdout.splitlines()[2:]
    assert row.split()[1:4] == ["flight", "delays", "FINISHED"]
    log = head.rayflink("logs", row.split()[0][:8])
    assert "Sink: delays (2/2)" in log.stdout

    refused = head.rayflink("list", RAY_AUTH_TOKEN=secrets.token_hex(32))
    assert refused.returncode == 2 and "a token that the cluster at" in refused.stderr


COUNTS_EVEN = """
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import MapFunction, StreamExecutionEnvironment


class CountsEven(MapFunction):
    def open(self, runtime_context):
        self._even = runtime_context.get_metrics_group().add_group("region", "eu west").counter("even")

    def map(self, value):
        if value % 2 == 0:
            self._even.inc()
        return value


env = StreamExecutionEnvironment.get_execution_environment({"metrics.reporter.prom.interval": "500 ms"})
numbers = env.from_source(DataGeneratorSource(records_per_second=200), None, "Numbers")
numbers.rebalance().map(CountsEven()).name("Even").add_sink(lambda n: None).name("Out")
env.execute("counts even")
"""


@pytest.mark.soak
@pytest.mark.timeout(400)  # what the dashboard needs is installed once
def test_prometheus_finds_the_metrics_of_a_job_on_the_metrics_port(head: Head, tmp_path: Path) -> None:
    program = tmp_path / "counts_even.py"
    program.write_text(COUNTS_EVEN)
    command = [head.python, "-m", "rayflink.cli.main", "run", str(program)]
    environment = {**head.environment, "RAY_ADDRESS": head.address}
    running = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        [even] = eventually(lambda: series(head, "taskmanager_job_task_operator_region_even"), within_s=60)
        [uptime] = eventually(lambda: series(head, "jobmanager_job_uptime"), within_s=30)
        [records] = eventually(lambda: series(head, "taskmanager_job_task_numrecordsin"), within_s=30)
    finally:
        cancelled = head.rayflink("cancel", "counts even")
        try:
            said = running.communicate(timeout=30)[1]  # it waits for the job
        finally:
            running.kill()
    assert (cancelled.returncode, running.returncode) == (0, 130), said
    expected = {
        "job_name": "counts_even", "operator_name": "Even", "subtask_index": "0", "task_attempt_num": "0",
        "region": "eu_west",
    }  # fmt: skip
    assert {name: even[name] for name in expected} == expected
    assert even["task_name"].startswith("Even") and even["host"] and even["tm_id"]
    assert (records["job_name"], records["subtask_index"]) == ("counts_even", "0")
    assert records["task_name"].startswith("Even") and "operator_name" not in records
    assert uptime["job_name"] == "counts_even" and len(uptime["job_id"]) == 32
    assert uptime["job_id"] == even["job_id"] == records["job_id"]


def series(head: Head, name: str) -> list[dict[str, str]]:
    """The labels of the series of that name of Flink's, which Ray writes in lower case, that are above 0."""
    text = ""
    for place in json.loads(head.discovery.read_text()) if head.discovery.exists() else ():
        for target in place["targets"]:
            with suppress(OSError), urllib.request.urlopen(f"http://{target}/metrics", timeout=5) as page:
                text += page.read().decode()
    found = re.findall(rf"^ray_flink_{name}\{{(.*)\}} (\S+)$", text, re.M)
    return [dict(re.findall(r'(\w+)="([^"]*)"', labels)) for labels, value in found if float(value) > 0]
