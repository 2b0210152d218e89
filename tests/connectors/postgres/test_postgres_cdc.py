"""Snapshots and changes together are the table, while others write to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from benchmarks.servers.postgres_server import PostgresServer, running_server
from rayflink.common import Row, RowKind, WatermarkStrategy
from rayflink.datastream.connectors.postgres_cdc import RowChangesDeserializationSchema, StartupOptions
from rayflink.testing import SourceSubject, check_source
from tests.connectors.postgres.change_jobs import (
    Writer,
    builder,
    collecting,
    derived,
    environment,
    eventually,
    table,
)
from tests.connectors.postgres.postgres_table import ask, execute

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[PostgresServer]:
    with running_server(wal_level="logical", max_wal_senders="8", max_replication_slots="8") as server:
        yield server


@pytest.fixture
def server(running: PostgresServer) -> Iterator[PostgresServer]:
    """A server with a table `t (id int, a text, n bigint)`."""
    execute(
        running.dsn, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public",
        "CREATE TABLE t (id int PRIMARY KEY, a text, n bigint)", "ALTER TABLE t REPLICA IDENTITY FULL",
    )  # fmt: skip
    yield running
    drop_slots(running.dsn)


def drop_slots(dsn: str) -> None:
    """Drop all slots and publications, once their readers are gone."""
    eventually(lambda: ask(dsn, "SELECT count(*) FROM pg_replication_slots WHERE active") == [(0,)], 20)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        for (name,) in connection.execute("SELECT pubname FROM pg_publication").fetchall():
            connection.execute(f'DROP PUBLICATION "{name}"')


def fill(dsn: str, rows: int, key: str = "i") -> None:
    execute(dsn, f"INSERT INTO t SELECT {key}, 'row ' || i, -i FROM generate_series(0, {rows - 1}) i")


def marker(dsn: str, key: Any = -1) -> None:
    execute(dsn, f"INSERT INTO t VALUES ({key!r}, 'end', 0)")


def is_ended(records: list[dict[str, Any]]) -> bool:
    return any((record["after"] or {}).get("a") == "end" for record in records[-500:])


@pytest.mark.parametrize(("seed", "parallelism"), [(1, 1), (2, 2), (3, 3)])
def test_a_parallel_snapshot_under_writes_and_the_changes_are_the_table(server, seed, parallelism):
    fill(server.dsn, 3000)
    writer = Writer(server.dsn, seed, 4000)
    with collecting(environment(parallelism), builder(server).split_size(100).build()) as job:
        job.wait(lambda records: sum(record["op"] != "r" for record in records) > 300)
        writer.end()
        marker(server.dsn)
        records = job.wait(is_ended)
    assert derived(records) == table(server.dsn)
    assert sum(record["op"] == "r" for record in records) > 1000
    assert writer.written > 100


def test_keys_that_are_strings_are_divided_in_the_order_of_the_server(server):
    execute(server.dsn, "DROP TABLE t", 'CREATE TABLE t (id text COLLATE "und-x-icu" PRIMARY KEY, a text, n bigint)')
    execute(server.dsn, "ALTER TABLE t REPLICA IDENTITY FULL")
    fill(server.dsn, 600, "(ARRAY['a','B','c','Ä','z'])[i % 5 + 1] || i")

    def key(number: int) -> str:
        return "aBcÄz"[number % 5] + str(number)

    writer = Writer(server.dsn, 7, 800, key=key)
    with collecting(environment(2), builder(server).split_size(40).build()) as job:
        job.wait(lambda records: sum(record["op"] != "r" for record in records) > 200)
        writer.end()
        marker(server.dsn, "end")
        records = job.wait(is_ended)
    assert derived(records) == table(server.dsn)


def test_a_table_without_a_key_is_one_chunk(server):
    execute(server.dsn, "ALTER TABLE t DROP CONSTRAINT t_pkey")
    fill(server.dsn, 500)
    with collecting(environment(), builder(server).split_size(10).build()) as job:
        job.wait(lambda records: len(records) == 500)
        execute(server.dsn, "UPDATE t SET n = 1 WHERE id = 3", "DELETE FROM t WHERE id = 4")
        records = job.wait(lambda records: len(records) == 502)
    assert derived(records) == table(server.dsn)


def test_rows_of_several_tables_have_their_kinds_and_the_keys_of_deleted_rows(server):
    execute(server.dsn, "ALTER TABLE t REPLICA IDENTITY DEFAULT", "CREATE TABLE u (k int PRIMARY KEY, v numeric(6,2))",
            "INSERT INTO t VALUES (1, 'one', 1)", "INSERT INTO u VALUES (5, 2.5)")  # fmt: skip
    source = builder(server, "slot", r"public\.[tu]").deserializer(RowChangesDeserializationSchema(include_table=True))
    stream = environment().from_source(source.build(), WatermarkStrategy.no_watermarks(), "changes")
    with stream.execute_and_collect() as drawn:
        rows = {row.table_name: row for row in (next(drawn), next(drawn))}
        assert list(rows["t"]) == ["postgres", "public", "t", 0, 1, "one", 1]
        assert str(rows["u"].v) == "2.50" and rows["u"].get_row_kind() is RowKind.INSERT
        execute(server.dsn, "UPDATE t SET a = 'two' WHERE id = 1", "UPDATE t SET id = 2", "DELETE FROM u")
        changes: list[Row] = [next(drawn) for _ in range(4)]
    assert [row.get_row_kind().name for row in changes] == ["UPDATE_AFTER", "DELETE", "INSERT", "DELETE"]
    assert [list(row)[4:] for row in changes] == [[1, "two", 1], [1, None, None], [2, "two", 1], [5, None]]
    assert changes[0].op_ts > 1_600_000_000_000


def test_all_common_types_are_the_same_from_the_snapshot_and_from_the_log(server):
    execute(
        server.dsn, "DROP TABLE t", "CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN cents AS numeric(8,2)",
        "CREATE TABLE t (id int8 PRIMARY KEY, i2 int2, f4 float4, f8 float8, d numeric(20,5), free numeric, c cents, "
        "s varchar(20), by bytea, b bool, dt date, tm time, ts timestamp, tz timestamptz, u uuid, j jsonb, e mood, "
        "ia int[], ta text[], iv interval, g int GENERATED ALWAYS AS (i2 + 1) STORED)",
    )  # fmt: skip
    values = (
        "(%s, -5, 1.5, 0.1, 123456789012345.12345, 1e30, 12.5, E'ü\\n\"\\\\,', '\\x00ff', true, '2024-02-29', "
        "'23:59:59.123456', '2024-02-29 12:00:00.5', '2024-02-29 12:00:00+02', "
        "'00000000-0000-0000-0000-00000000000f', '{\"a\": [1, null]}', "
        "'ok', '{1,NULL,3}', '{\"a,b\",\"\",NULL}', '1 day')"
    )
    columns = "id, i2, f4, f8, d, free, c, s, by, b, dt, tm, ts, tz, u, j, e, ia, ta, iv"
    insert = f"INSERT INTO t ({columns}) VALUES "
    execute(server.dsn, insert + values % 1, "INSERT INTO t (id) VALUES (2)")
    with collecting(environment(), builder(server).build()) as job:
        job.wait(lambda records: len(records) == 2)
        execute(server.dsn, insert + values % 3, "INSERT INTO t (id) VALUES (4)")
        records = job.wait(lambda records: len(records) == 4)
    first, empty, third, empty_too = (record["after"] for record in records)
    assert third == {**first, "id": 3} and empty_too == {**empty, "id": 4}
    assert set(empty.values()) == {2, None}
    assert first["free"] == "1" + "0" * 30 and first["c"] == "12.50" and first["d"] == "123456789012345.12345"
    assert first["s"] == 'ü\n"\\,' and first["by"] == "AP8=" and first["tz"] == "2024-02-29T10:00:00+00:00"
    assert first["ia"] == [1, None, 3] and first["ta"] == ["a,b", "", None] and first["e"] == "ok"
    assert first["tm"] == "23:59:59.123456" and first["j"] == '{"a": [1, null]}' and first["iv"] == "1 day"


def test_startup_options(server):
    fill(server.dsn, 3)
    with collecting(environment(), builder(server, "latest").startup_options(StartupOptions.latest()).build()) as job:
        eventually(lambda: ask(server.dsn, "SELECT count(*) FROM pg_replication_slots WHERE active") == [(1,)])
        execute(server.dsn, "INSERT INTO t VALUES (10, 'a', 1)")
        assert [record["after"]["id"] for record in job.wait(len)] == [10]
        confirmed = "SELECT confirmed_flush_lsn >= pg_current_wal_lsn() FROM pg_replication_slots"
        eventually(lambda: ask(server.dsn, confirmed) == [(True,)])
    execute(server.dsn, "INSERT INTO t VALUES (11, 'b', 1)")
    source = builder(server, "latest").startup_options(StartupOptions.committed()).build()
    with collecting(environment(), source) as job:
        assert [record["after"]["id"] for record in job.wait(len)] == [11]
    source = builder(server, "none").startup_options(StartupOptions.snapshot()).split_size(2).build()
    stream = environment(2).from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    assert len(list(stream.execute_and_collect())) == 5
    assert ask(server.dsn, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'none'") == [(0,)]


def test_an_idle_table_lets_the_server_delete_the_log_of_others(server):
    fill(server.dsn, 1)
    with collecting(environment(), builder(server).build()) as job:
        job.wait(len)
        execute(server.dsn, "CREATE TABLE other (n int)", "INSERT INTO other SELECT generate_series(1, 20000)")
        ((there,),) = ask(server.dsn, "SELECT pg_current_wal_lsn()")
        confirmed = f"SELECT confirmed_flush_lsn >= '{there}' FROM pg_replication_slots"
        eventually(lambda: ask(server.dsn, confirmed) == [(True,)])


def test_several_readers_without_checkpoints_are_refused(server):
    fill(server.dsn, 1)
    with collecting(environment(2, interval=""), builder(server).build()) as job:
        assert "the parallelism of the source to 1" in job.fails()
    with collecting(environment(1, interval=""), builder(server).build()) as job:
        job.wait(len)
        marker(server.dsn)
        assert derived(job.wait(is_ended)) == table(server.dsn)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 16))])
def test_each_row_comes_once_through_crashes_at_every_place(server, seed):
    class Rows(SourceSubject):
        def __init__(self):
            execute(server.dsn, "TRUNCATE t")
            drop_slots(server.dsn)

        def __getstate__(self):
            return {}  # a job needs `number` alone

        def create_source(self):
            return builder(server).split_size(10).build()

        def write(self, numbers: Sequence[int]):
            execute(server.dsn, *(f"INSERT INTO t VALUES ({number}, 'a', 0)" for number in numbers))

        def number(self, record: str) -> int:
            change = json.loads(record)
            assert change["op"] in "rc"
            return int(change["after"]["id"])

    check_source(Rows, seeds=[seed], records=90)
