"""Metrics of a job on Ray, in its status and on the command line; on the metrics port of its nodes: test_job_submit."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from rayflink.cli.main import main
from rayflink.cluster.jobs.hot_keys import hot_keys
from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.metrics.span import trace_id
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.keys.key_groups import key_group
from rayflink.state.keys.key_hash import key_hash
from tests.cluster import watching
from tests.common.metrics.trace_collector import collecting

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


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
    env = StreamExecutionEnvironment({"parallelism.default": 1})
    numbers = env.from_source(DataGeneratorSource(records_per_second=200), None, "Numbers")
    even = numbers.rebalance().map(CountsEven()).name("Even")
    keyed = even.key_by(lambda n: n % 5 < 3).map(lambda n: n).name("Keyed").set_parallelism(2)
    keyed.add_sink(lambda n: None).name("Out")
    return env.execute_async("counts even")


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
    (hot,) = watching.eventually(lambda: hot_keys(client.status()), within_s=40).values()
    assert hot["key_groups"][0]["group"] == key_group(key_hash(True), 128) and hot["keys"] == []
    assert 0.4 < hot["key_groups"][0]["share"] < 0.8
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
    who = rf"job={job} vertex=.*Warns.* subtask=0 attempt=0"
    assert re.search(rf"WARNING my_job: mapped 7 {who}$", capsys.readouterr().err, re.M), "at the driver"

    logs = Path(ray._private.worker._global_node.get_logs_dir_path())
    logger = r"INFO +rayflink\.actors\.task\.task"
    received = re.compile(rf"{logger}: Received task .* \(1/1\) \(attempt #0\)\. {who}$", re.M)
    assert watching.eventually(lambda: any(received.search(f.read_text()) for f in logs.glob("worker-*.err")), 10)


def test_a_job_on_ray_reports_traces_and_logs_json(capsys):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install 'rayflink[otel]'")
    with collecting() as collector:
        options = {"parallelism.default": 1, "rayflink.log.format": "json", "execution.checkpointing.interval": "1 h"}
        env = StreamExecutionEnvironment({**options, "traces.reporter.otel.exporter.endpoint": collector.url})
        env.from_collection([7]).map(Warns()).name("Warns").add_sink(lambda n: None).name("Out")
        job = str(env.execute("traced").get_job_id())
        assert watching.eventually(lambda: "Checkpoint" in collector.roots, within_s=20)
    assert collector.roots.keys() == {"JobInitialization", "Checkpoint"}
    tries = {trace_id(job, f"checkpoint/{number}") for number in range(1, 5)}  # the first may be too early
    assert collector.roots["Checkpoint"] in tries
    capsys.readouterr()
    assert main(["logs", job]) == 0
    lines = [line[line.index("{") :] for line in capsys.readouterr().out.splitlines() if '{"time"' in line]
    [line] = [line for line in map(json.loads, lines) if line["logger"] == "my_job"]
    assert (line["level"], line["message"], line["job"], line["attempt"]) == ("WARNING", "mapped 7", job, 0)
