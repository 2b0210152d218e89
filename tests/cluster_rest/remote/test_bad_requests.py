"""Requests that are wrong get an answer that says so, and jobs that are odd harm nobody but themselves."""

from __future__ import annotations

import http.client
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rayflink.cluster.registry.job_registry import JobRegistry
from rayflink.common.functions.accumulators import ListAccumulator
from rayflink.common.functions.function_classes import MapFunction
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.state.storage.local_storage import LocalStorage

from .conftest import TOKEN, Clusters, eventually

JOB, DEEP = "0" * 32, b"[" * 100_000
RAYFLINK = f"/rayflink/jobs/{JOB}"
BAD_REQUESTS = [
    ("POST", "/rayflink/jobs", DEEP, 422),
    ("POST", "/rayflink/jobs", b'{"format": 1, "job_id": "' + b"0" * 32 + b'", "bytes": 1e999}\n', 422),
    ("POST", f"{RAYFLINK}/log", DEEP, 400),
    ("POST", f"{RAYFLINK}/log", b'{"positions": {"a": -5}}', 400),
    ("POST", f"{RAYFLINK}/log", b'{"positions": {"a": 99999999999999999999}}', 400),
    ("POST", f"{RAYFLINK}/rescale", b'{"request_id": "a", "parallelism": {"b": 1e999}}', 400),
    ("GET", f"{RAYFLINK}/result?wait_s=nan", None, 400),
    ("GET", f"{RAYFLINK}/checkpoints?id={'9' * 5000}", None, 400),
    ("GET", f"{RAYFLINK}/checkpoints?id=%D9%A1", None, 400),
]


def answered(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    status, document = answer.status, json.loads(answer.read())
    connection.close()
    return status, document


@pytest.mark.slow  # a cluster, for all of them
def test_bad_requests_are_refused_with_what_was_wanted(clusters: Clusters) -> None:
    for method, path, body, wanted in BAD_REQUESTS:
        status, document = answered(clusters.port, method, path, body)
        assert status == wanted, (path[:60], status, document)
        assert "Internal server error." not in document["errors"]


class Odd(MapFunction):
    """Leaves values that JSON cannot have."""

    def open(self, runtime_context: Any) -> None:
        self.values = ListAccumulator()
        runtime_context.add_accumulator("half \ud800", self.values)

    def map(self, number: Any) -> Any:
        self.values.add({(number, 2): b"\xff"})
        return number


@pytest.mark.slow  # a cluster and a job
def test_the_end_of_a_job_is_noted_before_its_client_learns_of_it(clusters: Clusters, tmp_path: Path) -> None:
    dispatcher = clusters.dispatcher
    dispatcher.look = lambda: None  # type: ignore[method-assign]  # it is killed before it looks again
    env = clusters.environment()
    env.from_collection([1, 2]).map(Odd()).print()
    job_id = str(env.execute("odd \ud800 <b>").get_job_id())
    noted = JobRegistry(LocalStorage(tmp_path / "registry")).ended(job_id)
    assert noted is not None and noted.state == "FINISHED"
    assert noted.accumulators() == {"half \\ud800": [{"(1, 2)": "b'\\xff'"}, {"(2, 2)": "b'\\xff'"}]}
    del dispatcher.look
    dispatcher.look()
    for path in ("/jobs/overview", f"/jobs/{job_id}", f"/jobs/{job_id}/accumulators", "/rayflink/statuses"):
        status, document = answered(clusters.port, "GET", path)
        assert status == 200, document


class SlowToClose(MapFunction):
    """Takes its time when it is closed."""

    begun, may_close = threading.Event(), threading.Event()

    def map(self, number: Any) -> Any:
        self.begun.set()
        return number

    def close(self) -> None:
        self.may_close.wait(20)


@pytest.mark.slow  # clusters and a job
def test_a_job_that_is_being_cancelled_when_its_cluster_ends_does_not_come_back(clusters: Clusters) -> None:
    env = clusters.environment()
    numbers = env.from_source(DataGeneratorSource(records_per_second=100), source_name="numbers")
    numbers.map(SlowToClose()).sink_to(DiscardingSink())
    job_id = str(env.execute_async("slow to close").get_job_id())
    closing = threading.Timer(0.5, SlowToClose.may_close.set)
    assert eventually(lambda: clusters.dispatcher.view(job_id).status()["state"] == "RUNNING")
    clusters.dispatcher.running(job_id).cancel()
    closing.start()
    clusters.restart()
    assert clusters.dispatcher.view(job_id).status()["state"] == "CANCELED"
