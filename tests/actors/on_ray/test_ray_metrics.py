"""When metrics go to Ray, and which do not."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rayflink.actors.on_ray import ray_metrics
from rayflink.actors.on_ray.ray_metrics import PrometheusReports
from rayflink.common.metrics.metric_group import MetricGroup


class Gauges:
    """Stands for Ray's gauges."""

    def __init__(self) -> None:
        self.values: list[tuple[str, float, dict[str, str]]] = []

    def gauge(self, name: str, help: str, keys: tuple[str, ...]) -> Any:
        gauges = self

        class Gauge:
            def set(self, value: float, tags: dict[str, str]) -> None:
                gauges.values.append((name, value, tags))

        return Gauge()


@pytest.fixture
def gauges(monkeypatch: pytest.MonkeyPatch) -> Gauges:
    recorded = Gauges()
    monkeypatch.setattr(ray_metrics, "Gauge", recorded.gauge)
    monkeypatch.setattr(ray_metrics, "_gauges", {})
    monkeypatch.setattr(ray_metrics, "_refused", set())
    monkeypatch.setattr(ray_metrics, "find_spec", lambda name: name)
    return recorded


def group(**variables: str) -> MetricGroup:
    group = MetricGroup()
    group.identify("s", ".", ("taskmanager",), variables)
    group.counter("n").inc(3)
    return group


def test_a_group_is_reported_once_an_interval(gauges: Gauges) -> None:
    reports, counted = PrometheusReports({"metrics.reporter.prom.interval": "2 s"}), group(host="n 1")
    for now_s in (10.0, 11.9, 12.0):
        reports.report(counted, now_s)
    assert gauges.values == [("flink_taskmanager_n", 3.0, {"host": "n_1"})] * 2


def test_labels_are_left_as_they_are_where_the_user_wants_it(gauges: Gauges) -> None:
    PrometheusReports({"metrics.reporter.prom.filterLabelValueCharacters": "false"}).report(group(host="n 1"), 0.0)
    assert gauges.values[0][2] == {"host": "n 1"}


@pytest.mark.parametrize("config, there", [({"metrics.reporters": ""}, True), ({}, False)])
def test_nothing_is_reported_where_nobody_wants_or_serves_it(
    gauges: Gauges, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], there: bool
) -> None:
    monkeypatch.setattr(ray_metrics, "find_spec", lambda name: name if there else None)
    reports = PrometheusReports(config)
    reports.report(group(), 0.0)
    assert gauges.values == [] and not reports.enabled


def test_one_name_with_other_labels_is_told_once_and_hides_nothing(
    gauges: Gauges, caplog: pytest.LogCaptureFixture
) -> None:
    reports = PrometheusReports({"metrics.reporter.prom.interval": "1 ms"})
    with caplog.at_level(logging.WARNING, logger="rayflink"):
        for now_s, counted in enumerate((group(host="a"), group(job="b"), group(job="b"), group(host="c"))):
            reports.report(counted, float(now_s))
    assert [labels for _, _, labels in gauges.values] == [{"host": "a"}, {"host": "c"}]
    assert len(caplog.records) == 1 and "same variables" in caplog.text
