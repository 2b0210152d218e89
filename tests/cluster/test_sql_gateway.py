"""Statements that the SQL gateway takes run on Ray, whatever target the client's own configuration names."""

from __future__ import annotations

import pytest

from rayflink.common.configuration import Configuration
from rayflink.gateway.sql_gateway import SqlGateway
from tests.gateway.gateway_client import GatewayClient

pytestmark = [pytest.mark.ray, pytest.mark.slow]
MOST_LOOKS = 600


@pytest.fixture
def gateway(cluster):
    options = {"sql-gateway.endpoint.rest.port": "0"}
    running = SqlGateway(Configuration.from_dict(options), options)
    running.start()
    yield running
    running.stop()


def test_queries_and_inserts_of_the_gateway_run_on_ray_until_they_are_stopped(gateway):
    client = GatewayClient(gateway.url, {"execution.target": "local"})
    client.run("CREATE TABLE numbers (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')")
    operation = client.submit("SELECT a FROM numbers")
    first = next(client.pages(operation))
    assert first["results"]["data"] and len(first["jobID"]) == 32
    assert client.ask("POST", f"{operation}/cancel") == {"status": "CANCELED"}
    client.run("CREATE TABLE sink (a INT) WITH ('connector' = 'blackhole')")
    job = client.run("INSERT INTO sink SELECT a FROM numbers")["job"]
    states = (client.rows("SHOW JOBS")[0][2] for _ in range(MOST_LOOKS))
    assert "RUNNING" in states
    client.run(f"STOP JOB '{job}'")
    assert "CANCELED" in states
