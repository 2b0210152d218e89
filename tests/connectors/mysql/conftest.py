"""One MariaDB server for all tests, with a table for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.servers.mysql_server import MySqlServer, running_server


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[MySqlServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def server(mysql_server: MySqlServer) -> MySqlServer:
    """A server with a table `t (id int, a text, n bigint)`."""
    mysql_server.execute(
        "DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop", "USE shop",
        "CREATE TABLE t (id int PRIMARY KEY, a varchar(200), n bigint) CHARACTER SET utf8mb4", database=None,
    )  # fmt: skip
    return mysql_server
