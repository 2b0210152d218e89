"""Metrics of a job on Ray: on the metrics port of its nodes, in its status, and on the command line."""

from __future__ import annotations

import logging
import re
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from rayflink.cli.main import main
from rayflink.common.functions import MapFunction
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
SERVED = all(map(find_spec, ("opencensus", "opentelemetry", "prometheus_client")))


class CountsEven(MapFunction):
    """Counts the even numbers, for a region."""

    def open(self, runtime_context):
        group = runtime_context.get_metrics_group().add_group("region", "eu west")
        self._even = group.counter("even")

    def map(self, value):
        if value % 2 == 0:
            self._even.inc()
        return value


def endless():
    env = StreamExecutionEnvironment({"parallelism.default": 1, "metrics.reporter.prom.interval": "500 ms"})
    numbers = env.from_source(DataGeneratorSource(records_per_second=200), None, "Numbers")
    numbers.rebalance().map(CountsEven()).name("Even").add_sink(lambda n: None).name("Out")
    return env.execute_async("counts even")


def scraped() -> list[tuple[str, dict[str, str], float]]:
    """Name, labels and value of all series of Flink's on the metrics ports of all nodes."""
    import ray

    found = []
    for node in ray.nodes():
        url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
        with urllib.request.urlopen(url, timeout=5) as page:
            for line in page.read().decode().splitlines():
                if match := re.match(r"(ray_flink_\w+)\{(.*)\} (\S+)", line):
                    labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
                    found.append((match[1], labels, float(match[3])))
    return found


@pytest.mark.skipif(not SERVED, reason="Ray serves its metrics port only with what ray[default] brings")
def test_prometheus_finds_the_metrics_of_a_job_on_the_metrics_port_of_rays_nodes():
    client = endless()

    def series(name):  # Ray writes names in lower case
        return [(labels, value) for found, labels, value in scraped() if found == f"ray_flink_{name}" and value > 0]

    even = watching.eventually(lambda: series("taskmanager_job_task_operator_region_even"), within_s=60)
    uptime = watching.eventually(lambda: series("jobmanager_job_uptime"), within_s=30)
    records = watching.eventually(lambda: series("taskmanager_job_task_numrecordsin"), within_s=30)
    client.cancel()
    watching.eventually(lambda: client.get_job_status().result().is_globally_terminal_state(), within_s=30)

    [(labels, value)] = even
    assert value == int(value)
    expected = {
        "job_id": str(client.get_job_id()), "job_name": "counts_even", "operator_name": "Even", "subtask_index": "0",
        "task_attempt_num": "0", "region": "eu_west",
    }  # fmt: skip
    assert {name: labels[name] for name in expected} == expected
    assert labels["task_name"].startswith("Even") and labels["host"] and labels["tm_id"]
    [(labels, _)] = records
    assert (labels["job_name"], labels["subtask_index"]) == ("counts_even", "0")
    assert labels["task_name"].startswith("Even") and "operator_name" not in labels
    [(labels, _)] = uptime
    assert labels["job_name"] == "counts_even"


def test_metrics_of_functions_are_in_the_status_and_on_the_command_line(capsys):
    client = endless()

    def even():
        return [
            operator["metrics"]["region.eu west.even"]
            for vertex in client.status()["vertices"]
            for subtask in vertex["subtasks"]
            for operator in subtask["metrics"].get("operators", ())
            if operator["metrics"].get("region.eu west.even")
        ]

    assert watching.eventually(even, within_s=40)
    status = client.status()
    assert status["metrics"]["uptime"] > 0 and status["metrics"]["numRestarts"] == 0
    assert main(["status", "counts even"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^Even +region\.eu west\.even +[\d,]+", shown, re.M)
    assert main(["status", "counts even", "--metrics"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"^[\w.]+\.taskmanager\.[\w.:]+\.counts even\.Even\.0\.region\.eu west\.even +\d+$", listed, re.M)
    assert re.search(r"^[\w.]+\.jobmanager\.counts even\.uptime +\d+$", listed, re.M)
    client.cancel()
    watching.eventually(lambda: client.get_job_status().result().is_globally_terminal_state(), within_s=30)


class Warns(MapFunction):
    """Logs each record."""

    def map(self, value):
        logging.getLogger("my_job").warning("mapped %d", value)
        return value


def test_log_lines_of_a_task_carry_job_vertex_and_subtask(capsys):
    import ray

    env = StreamExecutionEnvironment({"parallelism.default": 1})
    env.from_collection([7]).map(Warns()).name("Warns").add_sink(lambda n: None).name("Out")
    job = env.execute("warns").get_job_id()
    who = rf"job={job} vertex=.*Warns.* subtask=0"
    assert re.search(rf"WARNING my_job: mapped 7 {who}$", capsys.readouterr().err, re.M), "at the driver"

    logs = Path(ray._private.worker._global_node.get_logs_dir_path())
    received = re.compile(rf"INFO +rayflink\.actors\.task: Received task .* \(1/1\) \(attempt #0\)\. {who}$", re.M)
    assert watching.eventually(lambda: any(received.search(f.read_text()) for f in logs.glob("worker-*.err")), 10)
