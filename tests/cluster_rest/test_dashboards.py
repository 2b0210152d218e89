"""Grafana's dashboards and Prometheus's alert rules: their form, and that each query finds what a job reports."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayflink.cluster.cluster_server import local_cluster
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.launch.remote_submission import RemoteSubmission
from tests.cluster.watching import eventually
from tests.cluster_rest.dashboards import (
    EMPTY,
    GRAFANA,
    PROMETHEUS,
    alerts,
    builder,
    clicks,
    documents,
    filled,
    metrics_in,
    queries,
)
from tests.cluster_rest.prometheus_server import scraping
from tests.source_files import PRODUCT, ROOT, source_files


def promtool(*arguments: object) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, cwd=PROMETHEUS, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_dashboards_are_those_of_the_program_that_writes_them() -> None:
    program = builder()
    assert {board.file for board in program.BOARDS} == documents().keys()
    for board in program.BOARDS:
        assert (GRAFANA / f"{board.file}.json").read_text(encoding="utf-8") == program.text(board)


@pytest.mark.parametrize("name", sorted(documents()))
def test_a_dashboard_asks_for_its_data_source_when_it_is_imported(name: str) -> None:
    board = documents()[name]
    [source] = board["__inputs"]
    assert (source["name"], source["type"], source["pluginId"]) == ("DS_PROMETHEUS", "datasource", "prometheus")
    drawn = [panel for panel in board["panels"] if panel["type"] != "row"]
    parts = [*drawn, *(target for panel in drawn for target in panel["targets"]), *board["templating"]["list"]]
    assert {part["datasource"]["uid"] for part in parts} == {"${DS_PROMETHEUS}"}
    required = {part["id"] for part in board["__requires"] if part["type"] == "panel"}
    assert required == {panel["type"] for panel in drawn}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for first, second in combinations([panel["gridPos"] for panel in board["panels"]], 2):
        beside = first["x"] + first["w"] <= second["x"] or second["x"] + second["w"] <= first["x"]
        below = first["y"] + first["h"] <= second["y"] or second["y"] + second["h"] <= first["y"]
        assert beside or below, (first, second)


def missing(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """The places of a document that another one lacks or has otherwise."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from missing(value, theirs[key], f"{path}/{key}") if key in theirs else [f"{path}/{key}"]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from missing(mine, other, f"{path}/{index}")
    elif ours != theirs:
        yield path


@pytest.mark.slow
def test_grafanas_own_types_know_every_field() -> None:
    cog = pytest.importorskip("grafana_foundation_sdk.cog", reason="pip install grafana-foundation-sdk")
    from grafana_foundation_sdk.cog import encoder, plugins
    from grafana_foundation_sdk.models import dashboard

    assert cog is not None
    plugins.register_default_plugins()
    for name, board in documents().items():
        own = {key: value for key, value in board.items() if not key.startswith("__")}
        read = dashboard.Dashboard.from_json(own)
        assert list(missing(own, json.loads(encoder.JSONEncoder().encode(read)))) == [], name


def test_every_alert_has_a_severity_a_run_book_and_a_unit_test() -> None:
    tested = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    cases = [case for test in tested for case in test["alert_rule_test"]]
    known = {rule["alert"] for rule in alerts()}
    for fires in (True, False):
        assert known == {case["alertname"] for case in cases if bool(case["exp_alerts"]) is fires}
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning")
        book = ROOT / rule["annotations"]["runbook"]
        text = book.read_text(encoding="utf-8")
        assert rule["alert"] in text and "## Look" in text and "## Mend" in text


@pytest.mark.slow
def test_the_alerts_fire_when_they_should_and_only_then() -> None:
    promtool("test", "rules", "alerts_test.yml")
    promtool("check", "config", "prometheus.yml")


@pytest.mark.slow  # reads the whole tree
def test_panels_that_may_be_empty_ask_for_metrics_that_the_product_has() -> None:
    wanted = {name.rpartition("_")[2] for key in EMPTY for text in texts_of(key) for name in metrics_in(text)}
    sources = [file.path.read_text(encoding="utf-8") for file in source_files(PRODUCT)]
    assert wanted and [name for name in sorted(wanted) if not any(f'"{name}"' in text for text in sources)] == []


@pytest.mark.soak  # Prometheus begins to scrape after five seconds
def test_every_panel_and_alert_finds_what_a_running_job_reports(tmp_path: Path) -> None:
    cluster = local_cluster(Configuration().set(options.REST_PORT, 0))
    cluster.start()
    try:
        submission = RemoteSubmission.of(clicks(tmp_path), (), None)
        cluster.dispatcher.submit(submission.encode(), "a test")
        with scraping(cluster.url, PROMETHEUS / "alerts.yml", tmp_path) as prometheus:
            pending = {query: query.text for query in queries() if (query.board, query.panel) not in EMPTY}

            def unanswered() -> list[Any]:
                return [query for query, text in pending.items() if not prometheus.query(text)]

            eventually(lambda: not unanswered(), within_s=45)
            assert unanswered() == []
            answered = {key for key in EMPTY if all(map(prometheus.query, texts_of(key)))}
            assert answered == set(), "they have series: take them out of EMPTY"
            for board in documents().values():
                for variable in board["templating"]["list"]:
                    series, _, label = variable["query"]["query"].removeprefix("label_values(")[:-1].rpartition(", ")
                    assert all(label in found["metric"] for found in prometheus.query(filled(series))), variable["name"]
            rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
            assert {rule["name"]: rule["health"] for rule in rules} == {rule["alert"]: "ok" for rule in alerts()}
            firing = "ALERTS{alertstate='firing'}"
            late = "RayflinkLateRecords"
            assert eventually(lambda: late in {s["metric"]["alertname"] for s in prometheus.query(firing)}, within_s=20)
            used = {name for rule in alerts() for name in metrics_in(rule["expr"])}
            assert [name for name in sorted(used) if not prometheus.query(name)] == []
    finally:
        cluster.dispatcher.running(submission.job_id).cancel()
        cluster.stop()


def texts_of(key: tuple[str, str]) -> list[str]:
    return [query.text for query in queries() if (query.board, query.panel) == key]

