"""Tables of PostgreSQL on Ray: scans, lookups and upserts, with readers and writers in several processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.postgres_server import running_server
from rayflink.common import Duration, Row, Types, WatermarkStrategy
from rayflink.datastream import AsyncDataStream, StreamExecutionEnvironment
from rayflink.datastream.connectors.postgres import LookupCache, PostgresLookup, PostgresSink, PostgresSource
from tests.connectors.postgres.postgres_table import ask, execute

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
ROWS = 20_000


@pytest.fixture
def dsn() -> Iterator[str]:
    with running_server() as server:
        execute(server.dsn, "CREATE TABLE orders (id int PRIMARY KEY, item int)", "CREATE TABLE items (id int PRIMARY "
                "KEY, name text)", f"INSERT INTO orders SELECT i, i % 100 FROM generate_series(1, {ROWS}) i",
                "INSERT INTO items SELECT i, 'item ' || i FROM generate_series(0, 99) i", "ANALYZE",
                "CREATE TABLE named (id int, name text)")  # fmt: skip
        yield server.dsn


def _fail_once(marker: Path) -> Any:
    def passed_on(row: Any) -> Any:
        import os

        if row.id == ROWS // 2:
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(9)  # the process of the slot is gone
        return row.id, row.item

    return passed_on


def test_each_row_is_read_looked_up_and_written_once_although_a_slot_dies(tmp_path: Path, dsn: str) -> None:
    env = StreamExecutionEnvironment({
        "parallelism.default": 2, "execution.checkpointing.interval": "100 ms", "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 3, "restart-strategy.fixed-delay.delay": "100 ms",
    })  # fmt: skip
    source = PostgresSource.builder().dsn(dsn).table("orders").fetch_size(500).build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
    pair = Types.TUPLE([Types.INT(), Types.INT()])
    orders = rows.map(_fail_once(tmp_path / "failed"), pair)
    lookup = PostgresLookup(dsn, "items", ["id"], ["name"], LookupCache(max_rows=50)).with_key(lambda order: order[1])
    lookup.with_results(lambda order, found: [Row(order[0], row.name) for row in found])
    named = AsyncDataStream.unordered_wait(orders, lookup, Duration.of_seconds(30), 1000)
    named.sink_to(PostgresSink(dsn, "named"))
    env.execute()
    assert (tmp_path / "failed").exists()
    query = "SELECT count(*), count(DISTINCT id), bool_and(name = 'item ' || id % 100) FROM named"
    assert ask(dsn, query) == [(ROWS, ROWS, True)]
