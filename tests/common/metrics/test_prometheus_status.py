"""A job's status gives the series that its metric groups give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.metrics.prometheus import samples
from rayflink.common.metrics.prometheus_status import job_samples, operator_samples, task_samples
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.clock import ManualClock
from rayflink.testing import Pause, ScriptedSource


class Measures(MapFunction):
    """Registers a metric of each kind, some below variables."""

    def open(self, runtime_context: Any) -> None:
        group = runtime_context.get_metrics_group()
        kind = group.add_group("kind", "eu west.1").add_group("deep").add_group("n", "0")
        self.counters = [group.counter("words"), kind.counter("words"), group.add_group("plain").counter("a.b")]
        self.rate, self.sizes = kind.meter("rate of it"), group.distribution("sizes")
        group.histogram("empty")
        group.gauge("text", lambda: "no number")

    def map(self, value: Any) -> Any:
        for counter in self.counters:
            counter.inc(value)
        self.rate.mark_event()
        self.sizes.update(value)
        return value


def series(samples_of: Any) -> dict[Any, float]:
    return {(s.name, s.type, s.family, tuple(sorted(s.labels.items()))): s.value for s in samples_of}


@pytest.fixture(scope="module")
def looks() -> list[tuple[dict[Any, float], dict[str, Any]]]:
    """The series of the groups of a job while it runs, each time with its status."""
    env = StreamExecutionEnvironment({"metrics.latency.interval": "10 ms"})
    script = [1, Pause(600), 2, Pause(600), 3]
    env.from_source(ScriptedSource(script)).map(Measures()).rebalance().sink_to(CollectSink("out"))
    clock = ManualClock(1_000)
    cluster = InProcessCluster(env.get_job_graph("my job"), clock, lambda ms: clock.advance(max(1, int(ms))))
    seen: list[tuple[dict[Any, float], dict[str, Any]]] = []

    def look() -> None:
        tasks = cluster.tasks.values()
        reports = [task.report() for task in tasks]
        for report in reports:
            cluster.job.executions[report.attempt].metrics = report.metrics
        status = cluster.job.report.describe()
        states = {s["state"] for vertex in status["vertices"] for s in vertex["subtasks"]}
        if states == {"RUNNING"}:
            groups = [cluster.job.report.metrics.group, *(task.metrics.group.group for task in tasks)]
            seen.append((series(sample for group in groups for sample in samples(group, False)), status))

    cluster.run(look)
    return seen


def of_status(status: dict[str, Any], filter_label_values: bool = False) -> dict[Any, float]:
    every = (job_samples, task_samples, operator_samples)
    return series(sample for part in every for sample in part(status, filter_label_values))


def test_names_types_labels_and_values_are_those_of_the_groups(looks: Any) -> None:
    assert len(looks) > 3
    groups, status = looks[len(looks) // 2]
    assert of_status(status) == groups
    assert len(groups) > 80
    sent = json.loads(json.dumps(status, default=str))
    assert of_status(sent) == groups, "a status that has travelled is the same"


def test_a_variable_is_a_label_as_deep_as_it_stands(looks: Any) -> None:
    shown = of_status(looks[-1][1], filter_label_values=True)
    [labels] = [dict(key[3]) for key in shown if key[0] == "flink_taskmanager_job_task_operator_kind_deep_n_words"]
    assert (labels["kind"], labels["n"], labels["job_name"]) == ("eu_west_1", "0", "my_job")


def test_what_has_ended_has_no_series(looks: Any) -> None:
    status = looks[-1][1]
    ended = [{**s, "state": "FINISHED"} for s in status["vertices"][0]["subtasks"]]
    vertices = [{**status["vertices"][0], "subtasks": ended}, *status["vertices"][1:]]
    names = {dict(key[3]).get("task_name") for key in of_status({**status, "vertices": vertices})}
    assert status["vertices"][0]["name"] not in names and status["vertices"][1]["name"] in names
    assert of_status({**status, "state": "FAILED"}) == {}
