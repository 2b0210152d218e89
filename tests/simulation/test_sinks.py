"""Sinks with an outside world of their own, under faults without end: a PostgreSQL server, a function in two phases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from benchmarks.servers.postgres_server import postgres_server
from rayflink.connectors.postgres.postgres_sink import PostgresSink
from rayflink.connectors.postgres.postgres_staged import staged_rows
from rayflink.datastream.functions import TwoPhaseCommitSinkFunction
from tests.simulation.exactly_once import run
from tests.simulation.topologies import BY_NAME, Environment, Topology, plain

pytestmark = pytest.mark.slow
SEEDS = range(8)


@dataclass(frozen=True)
class InTables(Topology):
    """Numbers into two tables, with keys and without.

    Args:
        dsn: of the server.
    """

    dsn: str = ""

    def committed(self) -> list[object]:
        with psycopg.connect(self.dsn) as db:
            return db.execute("SELECT 'keyed', n FROM keyed UNION ALL SELECT 'plain', n FROM plain").fetchall()

    def forget(self) -> None:
        with psycopg.connect(self.dsn) as db:
            db.execute("TRUNCATE keyed, plain")


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with postgres_server() as dsn:
        with psycopg.connect(dsn) as db:
            db.execute("CREATE TABLE keyed (n int PRIMARY KEY)")
            db.execute("CREATE TABLE plain (n int)")
        yield dsn


@pytest.mark.spec("H23", "commit", "idempotent", "H24")
@pytest.mark.parametrize("seed", SEEDS)
def test_postgres_holds_each_row_once_whatever_dies(dsn: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(env: Environment) -> None:
        numbers = plain(env, 4, 12).rebalance().map(lambda n: n).uid("map")
        numbers.sink_to(PostgresSink(dsn, "keyed", keys=["n"])).uid("keyed")
        numbers.rebalance().sink_to(PostgresSink(dsn, "plain")).uid("plain")

    monkeypatch.setitem(BY_NAME, "tables", InTables("tables", write, dsn=dsn))
    run("tables", seed)
    assert staged_rows(dsn) == []


PUBLISHED: dict[int, list[int]] = {}
DRAFTS: dict[int, list[int]] = {}


class Pages(TwoPhaseCommitSinkFunction):
    """Drafts that are published, in one place for all attempts."""

    def begin_transaction(self) -> int:
        draft = max(DRAFTS, default=0) + 1
        DRAFTS[draft] = []
        return draft

    def invoke(self, transaction: int, value: Any) -> None:
        DRAFTS[transaction].append(value)

    def pre_commit(self, transaction: int) -> None:
        pass

    def commit(self, transaction: int) -> None:
        PUBLISHED.setdefault(transaction, list(DRAFTS[transaction]))

    def abort(self, transaction: int) -> None:
        DRAFTS[transaction].append(-1)  # nobody may publish it any more


class InPages(Topology):
    """What is published."""

    def committed(self) -> list[object]:
        return [number for page in PUBLISHED.values() for number in page]

    def forget(self) -> None:
        PUBLISHED.clear()
        DRAFTS.clear()


@pytest.mark.spec("H23", "commit", "H24")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_function_in_two_phases_publishes_each_record_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(env: Environment) -> None:
        plain(env, 4, 12).rebalance().map(lambda n: n).uid("map").add_sink(Pages()).uid("sink")

    monkeypatch.setitem(BY_NAME, "pages", InPages("pages", write))
    run("pages", seed)
