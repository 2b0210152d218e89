"""Latency markers between Ray actors."""

from __future__ import annotations

import pytest

from rayflink.connectors.collection import CollectSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_a_sink_on_ray_reports_the_latency_from_its_source(cluster):
    env = StreamExecutionEnvironment({"execution.target": "ray", "metrics.latency.interval": "50 ms"})
    numbers = env.from_source(DataGeneratorSource(count=100, records_per_second=100), None, "Numbers")
    numbers.rebalance().sink_to(CollectSink("out"))
    source, sink = env.execute("latency").vertices
    [operator] = sink["subtasks"][0]["metrics"]["operators"]
    sent_by = source["subtasks"][0]["metrics"]["operators"][0]["id"]
    ages = {name.rpartition(".")[2]: age for name, age in operator["metrics"].items() if f".{sent_by}." in name}
    assert ages["count"] >= 10, "a marker every 50 ms for a second"
    assert -5 <= ages["p50"] <= ages["p99"] < 1_000
