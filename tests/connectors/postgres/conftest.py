"""One PostgreSQL server for the tests of scans, lookups and tables of JDBC."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.servers.postgres_server import PostgresServer, running_server
from tests.connectors.postgres.postgres_table import execute


@pytest.fixture(scope="session")
def shared_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def database(shared_server: PostgresServer) -> str:
    """The connection string of a database without tables."""
    execute(shared_server.dsn, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return shared_server.dsn
