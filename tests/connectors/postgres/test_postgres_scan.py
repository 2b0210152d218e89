"""Tables of a real PostgreSQL server as a bounded source: each row once, whatever divides it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from benchmarks.servers.postgres_server import PostgresServer
from rayflink.common import Row, WatermarkStrategy
from rayflink.common.connector_base.source import Source
from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.cdc.snapshot_enumeration import ChunkSplit
from rayflink.connectors.postgres import postgres_copying
from rayflink.connectors.postgres.postgres_conditions import Comparison
from rayflink.connectors.postgres.postgres_scan import ScanDatabase, ScanSettings, ScanTables, chunk_rows
from rayflink.connectors.postgres.postgres_session import PostgresError
from rayflink.connectors.postgres.postgres_source import PostgresSource, PostgresSourceBuilder
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import SourceSubject, check_source
from tests.connectors.postgres.change_jobs import eventually
from tests.connectors.postgres.postgres_table import ask, execute

slow = pytest.mark.slow


def builder(dsn: str, table: str = "t") -> PostgresSourceBuilder:
    return PostgresSource.builder().dsn(dsn).table(table)


def rows_of(builder: PostgresSourceBuilder, parallelism: int = 2) -> list[Any]:
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": parallelism})
    return list(env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "t").execute_and_collect())


def chunks_of(builder: PostgresSourceBuilder) -> int:
    database = ScanDatabase(builder.build()._settings)
    try:
        return len(database.prepare().chunks)
    finally:
        database.close()


@slow
def test_each_row_comes_once_whatever_divides_the_table(database: str) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY, k int, word text, at date, twice int GENERATED ALWAYS AS "
            "(id * 2) STORED)", "INSERT INTO t SELECT i, nullif(i % 7, 0), 'w' || i % 50, '2024-01-01'::date + i "
            "FROM generate_series(1, 1000) i", "CREATE TABLE plain AS SELECT * FROM t", "CREATE VIEW v AS SELECT * "
            "FROM t", "CREATE TABLE empty (id int)", "ANALYZE")  # fmt: skip
    everything = list(range(1, 1001))

    def ids(made: PostgresSourceBuilder) -> list[int]:
        return sorted(row.id for row in rows_of(made))

    divided = [
        builder(database),
        builder(database).fetch_size(100),
        builder(database, "plain").fetch_size(100),
        builder(database, "v").fetch_size(100),
        builder(database, "v").partition_column("id").partition_num(4),
        builder(database).partition_column("k").partition_num(3).fetch_size(100),
        builder(database).partition_column("word").fetch_size(50).consistent_snapshot(False),
    ]
    assert [ids(made) for made in divided] == [everything] * len(divided)
    assert [chunks_of(made) for made in divided[:5]] == [1, 10, 8, 1, 4]
    bounded = builder(database).partition_column("id").partition_num(5).partition_bounds(11, 30)
    assert ids(bounded) == everything[10:30] and chunks_of(bounded) == 5
    by_date = builder(database).partition_column("at").partition_num(3)
    assert ids(by_date.partition_bounds("2024-01-03", "2024-01-12")) == everything[1:11]
    assert ids(builder(database).where("word = 'w3' OR id > 990").fetch_size(100)) == [
        n for n in everything if n % 50 == 3 or n > 990
    ]
    assert rows_of(builder(database).columns(["twice", "word"]).where("id = 3")) == [Row(twice=6, word="w3")]
    assert rows_of(builder(database, "empty")) == []


@slow
def test_values_of_all_types_arrive(database: str) -> None:
    execute(database, "CREATE TYPE mood AS ENUM ('fine')", "CREATE TABLE t (a smallint, b bigint, c real, "
            "d double precision, e numeric(12,3), f numeric, g boolean, h text, i bytea, j date, k time, l timestamp, "
            "m timestamptz, n int[], o text[], p jsonb, q uuid, r mood, s interval, u varchar(3), v numeric(50,2))",
            """INSERT INTO t VALUES (-1, 2^60, 1.5, 'Infinity', 12.345, 1e30, true, E'a"b\n,\\\\N', '\\xff00',
            '2024-02-29', '23:59:59.5', '2024-01-01 00:00:00.000001', '2024-01-01 01:00:00+01', '{1,NULL}',
            '{"",NULL,"x y"}', '{"a": [1]}', '00000000-0000-0000-0000-00000000000a', 'fine', '1 day', '', 7)""",
            "INSERT INTO t (c) VALUES ('NaN')")  # fmt: skip
    full, empty = rows_of(builder(database))
    utc = datetime.timezone.utc
    assert tuple(full) == (
        -1, 2**60, 1.5, math.inf, Decimal("12.345"), "1000000000000000000000000000000", True, 'a"b\n,\\N', b"\xff\x00",
        datetime.date(2024, 2, 29), datetime.time(23, 59, 59, 500000), datetime.datetime(2024, 1, 1, 0, 0, 0, 1),
        datetime.datetime(2024, 1, 1, tzinfo=utc), [1, None], ["", None, "x y"], '{"a": [1]}',
        "00000000-0000-0000-0000-00000000000a", "fine", "1 day", "", Decimal("7.00"),
    )  # fmt: skip
    assert math.isnan(empty[2]) and [value for value in empty if value is not None] == [empty[2]]
    types = {"l": pyarrow.timestamp("ms"), "k": pyarrow.time32("ms"), "a": pyarrow.int64(), "b": pyarrow.string()}
    (short,) = rows_of(builder(database).columns(types).where("a = -1"))
    assert tuple(short) == (datetime.datetime(2024, 1, 1), datetime.time(23, 59, 59, 500000), -1, str(2**60))
    execute(database, "UPDATE t SET j = 'infinity' WHERE a = -1")
    with pytest.raises(Exception, match="column 'j' of type date has a value that date32.* lacks"):
        rows_of(builder(database))


_OPEN = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"


@slow
def test_all_chunks_show_one_moment_while_the_snapshot_lasts(database: str) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t SELECT i, 0 FROM "
            "generate_series(1, 100) i", "ANALYZE")  # fmt: skip
    settings = builder(database).fetch_size(10).build()._settings
    scan, metrics = ScanDatabase(settings), MetricGroup()
    prepared = scan.prepare()
    execute(database, "UPDATE t SET n = 1", "DELETE FROM t WHERE id <= 50", "INSERT INTO t VALUES (1000, 2)")
    (known,) = prepared.tables.values()
    tables = ScanTables(settings, metrics)

    def load() -> list[tuple[int, int]]:
        found = []
        for chunk in prepared.chunks:
            for rows in tables.load(ChunkSplit(known, chunk)).rows:
                found += [tuple(row.values()) for row in rows.rows.to_pylist()]
        return found

    assert load() == [(n, 0) for n in range(1, 101)] and len(prepared.chunks) == 10
    scan.close()
    eventually(lambda: ask(database, _OPEN) == [(0,)])
    assert load() == [*((n, 1) for n in range(51, 101)), (1000, 2)]
    assert [count for name, count in metrics.snapshot().items() if name.endswith("numSnapshotsLost")] == [1]
    execute(database, "DELETE FROM t WHERE id > 60")
    scan = ScanDatabase(settings)
    known = next(iter(scan.resume(prepared).tables.values()))
    execute(database, "INSERT INTO t VALUES (2000, 3)")
    assert load() == [(n, 1) for n in range(51, 61)]
    scan.close()
    tables.close()
    eventually(lambda: ask(database, _OPEN) == [(0,)])


@slow
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 20), marks=pytest.mark.soak)])
def test_the_source_keeps_its_promise(database: str, seeds: Sequence[int]) -> None:
    class Table(SourceSubject):
        def __init__(self) -> None:
            execute(database, "DROP TABLE IF EXISTS t", "CREATE TABLE t (n int PRIMARY KEY)",
                    "INSERT INTO t SELECT generate_series(0, 239)")  # fmt: skip

        def create_source(self) -> Source:
            return builder(database).fetch_size(9).build()

        def write(self, numbers: Sequence[int]) -> None:
            """All are there from the start, as the scan ends."""

        def number(self, record: Any) -> int:
            return int(record.n)

    check_source(Table, seeds)


@slow
def test_conditions_are_evaluated_by_the_server_where_it_decides_alike(database: str) -> None:
    execute(database, "CREATE TABLE t (id int, f real, d double precision, word text, code uuid, at timestamp)",
            "INSERT INTO t VALUES (1, 0.1, 0.1, 'a', '00000000-0000-0000-0000-00000000000a', '2024-01-01'), "
            "(2, 9, 9, 'it''s', NULL, NULL)")  # fmt: skip
    text, whole, double = pyarrow.string(), pyarrow.int32(), pyarrow.float64()
    found = {
        Comparison("id", ">=", (2,), whole): [2],
        Comparison("id", "IN", (1, 5), whole): [1],
        Comparison("word", "=", ("it's",), text): [2],
        Comparison("word", "<", ("b",), text): [1, 2],  # left to the query: the server has another order of strings
        Comparison("f", "=", (0.1,), double): [1, 2],  # another number on the server
        Comparison("d", "=", (0.1,), double): [1],
        Comparison("code", "=", ("00000000-0000-0000-0000-00000000000a",), text): [1],
        Comparison("code", "IS NULL", (), text): [2],
        Comparison("at", "<", (datetime.datetime(2025, 1, 1),), pyarrow.timestamp("us")): [1],
        Comparison("at", "=", (datetime.datetime(2025, 1, 1),), pyarrow.timestamp("ms")): [1, 2],  # truncated here
    }
    for comparison, expected in found.items():
        source = PostgresSource(ScanSettings(database, "t", {"id": None}, comparisons=(comparison,)))
        env = StreamExecutionEnvironment({"execution.target": "local"})
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "t")
        assert [row.id for row in stream.execute_and_collect()] == expected, str(comparison)


@slow
def test_what_does_not_fit_is_found_before_the_job_starts(database: str) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY, word text)", "CREATE TABLE s (id int)",
            "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN", "GRANT USAGE ON SCHEMA public TO guest",
            "GRANT SELECT (id) ON t TO guest")  # fmt: skip
    guest = database.replace("user=postgres", "user=guest")
    expected: dict[str, PostgresSourceBuilder] = {
        "table 'missing' is not there, found s, t; create it": builder(database, "missing"),
        "table public.t has no column 'x'; its columns are id, word": builder(database).columns(["x"]),
        "column 'word' of public.t is of type text, not readable as int32; declare it in a type like string": builder(
            database
        ).columns({"word": pyarrow.int32()}),
        "the condition 'id >' on public.t: syntax error": builder(database).where("id >"),
        "has no column 'k'": builder(database).partition_column("k"),
        "partition column 'word' of public.t is of type text; take one of numbers": builder(database)
        .partition_column("word").partition_bounds("a", "b"),
        "user='guest' may not read column 'word' of public.t; GRANT SELECT ON public.t": builder(guest),
        "no connection to PostgreSQL at host='/nowhere'": builder("host=/nowhere dbname=d password=s3cret"),
    }  # fmt: skip
    try:
        for message, made in expected.items():
            with pytest.raises(PostgresError) as raised:
                made.build().check()
            assert message in described(raised.value) and "s3cret" not in described(raised.value)
        builder(guest).columns(["id"]).build().check()
    finally:
        execute(database, "DROP OWNED BY guest", "DROP ROLE guest")
    above = "the lower bound 9 of 'id' is above the upper one, 1"
    for low, high, message in ((9, 1, above), ("a", 1, "invalid input")):
        with pytest.raises(PostgresError, match=message):
            chunks_of(builder(database).partition_column("id").partition_bounds(low, high))


@contextmanager
def prepared(made: PostgresSourceBuilder) -> Iterator[tuple[ScanTables, ChunkSplit[Any]]]:
    scan = ScanDatabase(made.build()._settings)
    ready = scan.prepare()
    tables = ScanTables(made.build()._settings, MetricGroup())
    yield tables, ChunkSplit(next(iter(ready.tables.values())), ready.chunks[0])
    tables.close()
    scan.close()


@slow
def test_what_happens_to_the_table_meanwhile_is_named(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY, word text)", "INSERT INTO t VALUES (1, 'long enough')")
    with prepared(builder(database)) as (tables, split):
        assert len(tables.load(split).rows) == 1
        execute(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rayflink'")
        assert len(tables.load(split).rows) == 1  # by another connection
        wanted = "is divided by 'id', and one chunk has"
        with monkeypatch.context() as patch, pytest.raises(PostgresError, match=wanted):
            patch.setattr(postgres_copying, "MOST_BYTES", 5)
            tables.load(split)
        execute(database, "ALTER TABLE t DROP COLUMN word")
        with pytest.raises(PostgresError, match=r"table public\.t was altered: column \"word\" does not exist"):
            tables.load(split)
        execute(database, "DROP TABLE t")
        with pytest.raises(PostgresError, match=r"table public\.t is gone"):
            tables.load(split)


@slow
def test_a_wrong_password_is_named_and_not_shown(database: str, shared_server: PostgresServer) -> None:
    execute(database, "CREATE TABLE t (id int)", "DROP ROLE IF EXISTS scan_pw",
            "CREATE ROLE scan_pw LOGIN PASSWORD 'right'")  # fmt: skip
    home = shared_server.home / "data" / "pg_hba.conf"
    original = home.read_text()
    rules = "SELECT count(*) FROM pg_hba_file_rules WHERE 'scan_pw' = ANY (user_name)"
    made = builder(database.replace("user=postgres", "user=scan_pw password=s3cret"))
    try:
        home.write_text("local all scan_pw scram-sha-256\n" + original)
        execute(database, "SELECT pg_reload_conf()")
        assert ask(database, rules) == [(1,)]
        with pytest.raises(PostgresError, match="password authentication failed") as raised:
            made.build().check()
        assert "s3cret" not in described(raised.value) + repr(made.build()) + repr(made.build()._settings)
    finally:
        home.write_text(original)
        execute(database, "SELECT pg_reload_conf()", "DROP ROLE scan_pw")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PostgresSource.builder().table("t").build(), r"dsn is missing; call dsn\(...\) of the builder"),
        (lambda: PostgresSource.builder().dsn("host=h").build(), "table is missing"),
        (lambda: builder("host=h").partition_num(2).build(), "partition_column is missing"),
        (lambda: builder("host=h").fetch_size(0), "expected at least 1, found 0"),
        (lambda: builder("nonsense"), "no connection string of PostgreSQL"),
        (lambda: builder("host=h", ""), "'' is no name of a table"),
        (lambda: builder("host=h").columns("id"), r"columns is a list of names, found 'id'; write \['id'\]"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises((ValueError, TypeError, PostgresError), match=message):
        make()


def test_chunks_have_as_many_rows_as_fit() -> None:
    assert chunk_rows(10, 8192) == 20_480 and chunk_rows(10**6, 1 << 34) == 1000


