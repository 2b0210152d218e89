"""A PostgreSQL server with a table for one test: written by subtasks of sinks, looked at by the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from benchmarks.servers.postgres_server import postgres_server
from rayflink.connectors.postgres.postgres_sink import PostgresSink
from rayflink.operators.sinks import SinkOperator
from rayflink.testing import OperatorHarness, Place
from rayflink.testing.harness import Snapshots


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as dsn:
        yield dsn


@pytest.fixture
def dsn(server: str) -> Iterator[str]:
    """A server with an empty table `t (n int, word text)`."""
    execute(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int, word text)")
    yield server
    assert ask(server, "SELECT count(*) FROM pg_prepared_xacts") == [(0,)]


def url_of(dsn: str) -> str:
    """Return the URL of JDBC for the database `postgres` of a server."""
    home = dsn.partition("host=")[2].partition(" ")[0]
    return f"jdbc:postgresql://{home.replace('/', '%2F')}/postgres"


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def ask(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return list(connection.execute(query).fetchall())


@contextmanager
def refusing(dsn: str) -> Iterator[None]:
    """The server ends all connections to the database and refuses new ones, as in a short maintenance."""
    other = dsn.replace("dbname=postgres", "dbname=template1")
    execute(other, "ALTER DATABASE postgres ALLOW_CONNECTIONS false",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'")  # fmt: skip
    try:
        yield
    finally:
        execute(other, "ALTER DATABASE postgres ALLOW_CONNECTIONS true")


def numbers_in(dsn: str) -> list[int]:
    return [n for (n,) in ask(dsn, "SELECT n FROM t ORDER BY n")]


def started(
    sink: PostgresSink, restore: Sequence[Snapshots] = (), place: Place | None = None, attempt: int = 0
) -> OperatorHarness:
    class Numbered(SinkOperator):
        def setup(self, ctx: Any) -> None:
            ctx.attempt = attempt
            super().setup(ctx)

    return OperatorHarness(lambda: Numbered(sink), restore=restore, place=place)
