"""Requests that read are answered as by Flink 2.3, but for differences that are listed with their reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from rayflink.actors.task.process_inspection import ProcessInspection
from rayflink.cluster.dispatcher.dispatcher_log import DispatcherLog
from rayflink.cluster.jobs.cluster_job import archive_of
from rayflink.cluster.rest.absent_requests import AbsentRequests
from rayflink.cluster.rest.applications import ApplicationEndpoints
from rayflink.cluster.rest.cluster_operations import ClusterOperations
from rayflink.cluster.rest.job_operations import JobOperations
from rayflink.cluster.rest.metric_values import job_metrics, vertex_metrics
from rayflink.cluster.rest.operations import Operations
from rayflink.cluster.rest.processes.process_endpoints import ProcessEndpoints
from rayflink.cluster.rest.reading_endpoints import ReadingEndpoints
from rayflink.cluster.rest.route_order import by_precision
from rayflink.cluster.runners.local_processes import LocalProcesses
from tests.cluster_rest.jobs_of_tests import JobsOfTests, LocalJobView
from tests.cluster_rest.json_shapes import Shape, differences
from tests.cluster_rest.known_jobs import Requests
from tests.cluster_rest.record_flink import ANSWERS
from tests.cluster_rest.rest_differences import IN_ANSWERS, IN_REFUSALS, MISSING_METRICS
from tests.cluster_rest.rest_requests import OF_ADAPTIVE, RestRequest, requests, wrong_requests

pytestmark = pytest.mark.slow
_OPERATOR = re.compile(r"^(Source__events|discard__Writer|Sink__discard|sum|parse)\.")
_CLASS = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )+")


class Cluster:
    """Sends requests about the jobs of the tests."""

    def __init__(self, folder: Path) -> None:
        self.jobs = jobs = JobsOfTests(str(folder))
        self._processes = processes = LocalProcesses(folder, jobs.statuses, ProcessInspection())
        operations, files = Operations(), DispatcherLog(folder).files
        topics: list[Any] = [
            ReadingEndpoints(jobs, processes=processes), ProcessEndpoints(jobs, processes, {"rest.port": "0"}, files),
            ApplicationEndpoints(jobs), AbsentRequests(), JobOperations(jobs, operations),
            ClusterOperations(operations, lambda: None),
        ]  # fmt: skip
        self._requests = Requests(*by_precision(route for topic in topics for route in topic.routes()))

    def ask(self, request: RestRequest, **names: str) -> tuple[int, Any]:
        view = self.jobs.by_kind[request.kind or "running"]
        status, latest = view.status(), (view.checkpoints() or {})["latest"]["completed"]
        names["tm"] = self._processes.list()[0].process_id
        names |= {"job": status["jid"], "checkpoint": str(latest["id"] if latest else 1)}
        if request.vertex is not None:
            names["vertex"] = status["vertices"][request.vertex]["id"]
        return self.get(request.address(names))

    def get(self, address: str) -> tuple[int, Any]:
        parts = urlsplit(address)
        return self._requests.send("GET", parts.path, query=dict(parse_qsl(parts.query)))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="module")
def flink() -> dict[str, dict[str, Any]]:
    answers = map(json.loads, ANSWERS.read_text(encoding="utf-8").splitlines())
    return {answer["request"]: answer for answer in answers}


def unexplained(lines: Iterable[str], reasons: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the lines that no reason fits, and the reasons that fit no line."""
    found, patterns = list(lines), {pattern: re.compile(pattern) for pattern in reasons}
    without = [line for line in found if not any(pattern.fullmatch(line) for pattern in patterns.values())]
    unused = [text for text, pattern in patterns.items() if not any(pattern.fullmatch(line) for line in found)]
    return without, unused


def compared(cluster: Cluster, flink: Mapping[str, Any], requests: Iterable[RestRequest]) -> Iterator[tuple[bool, str]]:
    """Return (whether it is about an error of both, the line) for each difference."""
    for request in requests:
        status, body = cluster.ask(request)
        recorded = flink[request.title]
        both_refuse = status >= 400 and recorded["status"] >= 400
        if status != recorded["status"]:
            yield both_refuse, f"{request.title} status: Flink {recorded['status']}, here {status}"
        elif both_refuse:
            wanted = _CLASS.sub("", recorded["body"]["errors"][0].split("\n")[0])
            wanted = re.sub(r"[0-9a-f]{32}|<running job>", "<id>", wanted)
            given = re.sub(r"[0-9a-f]{32}", "<id>", body[0])
            if wanted != given:
                yield True, f"{request.title} text: {wanted!r}, here {given!r}"
        else:
            for line in differences(Shape.of(recorded["body"]), Shape.of(body)):
                yield False, f"{request.title} {line}"


def test_answers_and_errors_are_those_of_flink(cluster: Cluster, flink: dict[str, Any]) -> None:
    lines = list(compared(cluster, flink, [*requests(2), *wrong_requests()]))
    assert len(lines) < len(flink) / 2
    for is_refusal, reasons in ((False, IN_ANSWERS), (True, IN_REFUSALS)):
        without, unused = unexplained((line for refused, line in lines if refused == is_refusal), reasons)
        assert not without, "no reason is given for:\n" + "\n".join(without)
        assert not unused, "these differences are gone:\n" + "\n".join(unused)


def test_metrics_have_the_ids_of_flink(cluster: Cluster, flink: dict[str, Any]) -> None:
    status = cluster.jobs.by_kind["running"].status()
    known, wanted = set(job_metrics(status)), set()
    wanted |= {metric["id"] for metric in flink["running /jobs/{job}/metrics"]["body"]}
    for number, vertex in enumerate(status["vertices"]):
        recorded = flink[f"running vertex {number} /jobs/{{job}}/vertices/{{vertex}}/metrics"]["body"]
        wanted |= {_OPERATOR.sub("OPERATOR.", metric["id"].partition(".")[2]) for metric in recorded}
        known |= {_OPERATOR.sub("OPERATOR.", name.partition(".")[2]) for name in vertex_metrics(vertex)}
    without, unused = unexplained(sorted(wanted - known), MISSING_METRICS)
    assert not without and not unused
    assert len(wanted & known) > 50


def test_an_ended_job_answers_from_json_as_it_did(cluster: Cluster) -> None:
    view = cluster.jobs.by_kind["failed"]
    archive, jobs = archive_of(view), cluster.jobs
    before = {request.title: cluster.ask(request) for request in requests(2) if request.kind == "failed"}
    jobs.replace("failed", archive)
    after = {title: cluster.ask(request) for request in requests(2) if (title := request.title) in before}
    jobs.replace("failed", view)
    assert len(before) > 50
    assert [title for title in before if _timeless(before[title]) != _timeless(after[title])] == []


def test_a_rescale_is_shown_as_by_the_adaptive_scheduler(
    cluster: Cluster, flink: dict[str, Any], tmp_path: Path
) -> None:
    view, before = LocalJobView("running", str(tmp_path)), cluster.jobs.by_kind["running"]
    rescale = view.rescale(1)
    cluster.jobs.replace("running", view)
    lines = []
    for path in OF_ADAPTIVE:
        request = RestRequest("running", f"/jobs/{{job}}{path}")
        status, body = cluster.ask(request, rescale=rescale)
        assert status == 200
        shapes = Shape.of(flink[f"adaptive {request.title}"]["body"]), Shape.of(body)
        lines += [f"{path} {line}" for line in differences(*shapes)]
    _, details = cluster.ask(RestRequest("running", "/jobs/{job}/rescales/details/{rescale}"), rescale=rescale)
    cluster.jobs.replace("running", before)
    assert lines == []
    names = ("preRescaleParallelism", "postRescaleParallelism")
    changes = [tuple(vertex[name] for name in names) for vertex in details["vertices"].values()]
    assert changes == [(2, 1), (2, 1)]


def test_settings_have_the_words_of_flink(cluster: Cluster, flink: dict[str, Any]) -> None:
    for kind in ("finished", "restarting"):
        request = RestRequest(kind, "/jobs/{job}/config")
        _, body = cluster.ask(request)
        assert body["execution-config"] == flink[request.title]["body"]["execution-config"]


def _timeless(answer: tuple[int, Any]) -> str:
    return re.sub(r'"(now|end-timestamp)": \d+', "", json.dumps(answer, sort_keys=True))
