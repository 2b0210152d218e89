"""One gateway for the tests of this folder; each has sessions of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rayflink.common.configuration import Configuration
from rayflink.gateway.sql_gateway import SqlGateway
from tests.gateway.gateway_client import GatewayClient

OPTIONS = {
    "sql-gateway.endpoint.rest.port": "0",
    "execution.target": "local",
    "table.local-time-zone": "Europe/Berlin",
}


@pytest.fixture(scope="session")
def gateway() -> Iterator[SqlGateway]:
    running = SqlGateway(Configuration.from_dict(OPTIONS), OPTIONS)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def client(gateway: SqlGateway) -> GatewayClient:
    return GatewayClient(gateway.url)


@pytest.fixture
def start() -> Iterator[Any]:
    """Start gateways with options of their own: `start({"sql-gateway.token": "abc"})`."""
    gateways = []

    def run(more: dict[str, str]) -> SqlGateway:
        options = {**OPTIONS, **more}
        gateways.append(SqlGateway(Configuration.from_dict(options), options))
        gateways[-1].start()
        return gateways[-1]

    yield run
    for running in gateways:
        running.stop()
