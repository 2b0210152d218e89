"""Requests about one job: earlier attempts, back-pressure, restarts of a task that failed, hostile names."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.cluster.rest.exception_endpoints import roots
from rayflink.cluster.rest.execution_figures import aggregates, job_times, status_durations
from rayflink.cluster.rest.metric_endpoints import MetricEndpoints
from rayflink.cluster.rest.plan_document import plan_document
from rayflink.cluster.rest.vertex_endpoints import VertexEndpoints
from tests.cluster_rest.known_jobs import RUNNING, SOURCE, KnownJobs, Requests

VERTEX = f"/jobs/{RUNNING}/vertices/{SOURCE}"


def subtask(index: int, metrics: dict[str, Any], attempt: int = 0, state: str = "RUNNING") -> dict[str, Any]:
    stamps = {"SCHEDULED": 10, "DEPLOYING": 20, "INITIALIZING": 30, "RUNNING": 50}
    where = {"host": "node", "pid": 7 + index}
    return {"subtask": index, "attempt": attempt, "id": "e" * 32, "state": state, "timestamps": stamps,
            "metrics": {**where, **metrics}}  # fmt: skip


@pytest.fixture
def job() -> KnownJobs:
    jobs = KnownJobs()
    status = {**jobs.job.status(), "timestamps": {"CREATED": 5, "RUNNING": 10}, "metrics": {}, "exceptions": []}
    failed = subtask(0, {"numRecordsIn": 3}, state="FAILED")
    failed["timestamps"] = {**failed["timestamps"], "FAILED": 80}
    first = subtask(0, {"backPressuredTimeMsPerSecond": 600, "busyTimeMsPerSecond": 400, "numRecordsOut": 4}, 1)
    second = subtask(1, {"backPressuredTimeMsPerSecond": 0, "busyTimeMsPerSecond": 0, "numRecordsOut": 8})
    status["vertices"][0]["subtasks"] = [{**first, "earlier": [failed]}, second]
    jobs.job.status = lambda: status  # type: ignore[method-assign]
    return jobs


def test_an_earlier_attempt_is_answered_by_its_number(job: KnownJobs) -> None:
    requests = Requests(*VertexEndpoints(job).routes())
    _, present = requests.send("GET", f"{VERTEX}/subtasks/0")
    assert (present["attempt"], present["status"], present["end-time"]) == (1, "RUNNING", -1)
    _, before = requests.send("GET", f"{VERTEX}/subtasks/0/attempts/0")
    assert (before["status"], before["end-time"], before["metrics"]["read-records"]) == ("FAILED", 80, 3)
    status, errors = requests.send("GET", f"{VERTEX}/subtasks/0/attempts/2")
    assert (status, errors) == (404, ["Invalid attempt num 2", "of this subtask the attempts 0, 1 are known"])


def test_the_worst_subtask_is_the_back_pressure_of_its_vertex(job: KnownJobs) -> None:
    _, answer = Requests(*VertexEndpoints(job).routes()).send("GET", f"{VERTEX}/backpressure")
    assert (answer["backpressureLevel"], [each["backpressureLevel"] for each in answer["subtasks"]]) == (
        "high",
        ["high", "ok"],
    )
    assert answer["subtasks"][0]["ratio"] == 0.6


def test_each_process_of_a_vertex_has_its_subtasks(job: KnownJobs) -> None:
    _, answer = Requests(*VertexEndpoints(job).routes()).send("GET", f"{VERTEX}/taskmanagers")
    found = {entry["taskmanager-id"]: entry["metrics"]["write-records"] for entry in answer["taskmanagers"]}
    assert found == {"node:7-": 4, "node:8-": 8}


def test_metrics_over_some_subtasks(job: KnownJobs) -> None:
    requests = Requests(*MetricEndpoints(job).routes())
    query = {"get": "numRecordsOut", "agg": "SUM,avg", "subtasks": "1,3-5"}
    assert requests.send("GET", f"{VERTEX}/subtasks/metrics", query=query)[1] == [
        {"id": "numRecordsOut", "avg": 8.0, "sum": 8.0}
    ]


def test_failures_before_a_restart_are_one_with_its_cause() -> None:
    entry = {"timestamp": 1, "task": "Map (1/2)", "exception": "no", "kind": "ValueError", "traceback": ""}
    failures = [entry, {**entry, "timestamp": 2, "concurrent": True}, {**entry, "timestamp": 3}]
    grouped = [(root["timestamp"], len(root["concurrentExceptions"])) for root in roots(failures)]
    assert grouped == [(3, 0), (1, 1)]


def test_names_of_operators_are_escaped_in_the_plan() -> None:
    operator = {"name": "<script>", "description": "<script>", "chained_to": []}
    vertex = {"id": SOURCE, "name": "<script>", "parallelism": 1, "operators": [operator], "inputs": []}
    status = {"jid": RUNNING, "name": "a", "vertices": [{"id": SOURCE, "parallelism": 3}]}
    (node,) = plan_document(status, {"mode": "STREAMING", "vertices": [vertex]})["nodes"]
    assert (node["description"], node["parallelism"]) == ("&lt;script&gt;<br/>", 3)


def test_times_of_a_job_and_a_subtask() -> None:
    status = {"state": "FAILED", "timestamps": {"CREATED": 5, "RUNNING": 10, "FAILED": 25}}
    assert job_times(status, 99) == {"start-time": 5, "end-time": 25, "duration": 20}
    found = status_durations(subtask(0, {}), 4, 90)
    assert found == {"CREATED": 6, "SCHEDULED": 10, "DEPLOYING": 10, "INITIALIZING": 20, "RUNNING": 40}
    assert aggregates([{"a": 122}, {"a": 131}])["a"] == {
        "min": 122, "max": 131, "avg": 126, "sum": 253, "median": 126, "p25": 122, "p75": 131, "p95": 131
    }  # fmt: skip
