"""The SQL gateway sends its statements to a session cluster, also after the dispatcher has begun anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
from rayflink.common.configuration import Configuration
from rayflink.gateway.sql_gateway import SqlGateway
from tests.cluster_rest.remote.conftest import TOKEN, Clusters, eventually
from tests.gateway.gateway_client import GatewayClient

pytestmark = pytest.mark.slow


@pytest.fixture
def client(clusters: Clusters) -> Iterator[GatewayClient]:
    options = {
        "sql-gateway.endpoint.rest.port": "0", "execution.target": "remote", "rest.address": "127.0.0.1",
        "rest.port": str(clusters.port), "rest.token": TOKEN,
    }  # fmt: skip
    gateway = SqlGateway(Configuration.from_dict(options), options)
    gateway.start()
    yield GatewayClient(gateway.url)
    gateway.stop()


def test_statements_run_on_the_cluster_and_go_on_with_its_next_dispatcher(
    client: GatewayClient, clusters: Clusters, tmp_path: Path
) -> None:
    client.run(f"SET 'execution.checkpointing.dir' = '{tmp_path / 'checkpoints'}'")
    client.run("SET 'execution.checkpointing.interval' = '200 ms'")
    client.run("SET 'restart-strategy.type' = 'fixed-delay'")
    client.run("CREATE TABLE numbers (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100', "
               "'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '100000')")  # fmt: skip
    client.run(f"CREATE TABLE kept (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'kept'}', "
               "'format' = 'csv')")  # fmt: skip
    assert client.rows("SELECT a FROM (VALUES (1), (2)) AS t(a)") == [[1], [2]]

    job = client.run("INSERT INTO kept SELECT a FROM numbers")["job"]
    assert eventually(lambda: _state(clusters, job) == "RUNNING")
    query = client.submit("SELECT a FROM numbers")
    pages = client.pages(query)
    rows = [row["fields"][0] for row in next(pages)["results"]["data"]]
    assert eventually(lambda: len(list((tmp_path / "checkpoints").glob("*/chk-*/_metadata"))) >= 2)

    clusters.restart()
    assert eventually(lambda: _state(clusters, job) == "RUNNING", within_s=30)
    until = len(rows) + 200
    while len(rows) < until:  # the query that was being read goes on, with each row once
        rows += [row["fields"][0] for row in next(pages)["results"]["data"]]
    assert rows == list(range(1, len(rows) + 1))
    assert client.ask("POST", f"{query}/cancel") == {"status": "CANCELED"}
    assert client.rows("SELECT a FROM (VALUES (1), (2)) AS t(a)") == [[1], [2]]
    states = {row[0]: row[2] for row in client.rows("SHOW JOBS")}
    assert states[job] == "RUNNING", states

    client.run(f"STOP JOB '{job}'")
    assert eventually(lambda: _state(clusters, job) == "CANCELED")


def _state(clusters: Clusters, job_id: str) -> str:
    states = {str(status["jid"]): str(status["state"]) for status in clusters.dispatcher.statuses()}
    return states.get(job_id, "")
