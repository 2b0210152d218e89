"""Lookups in a table of a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from rayflink.common import Row
from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.time import Time
from rayflink.connectors.lookup_cache import LookupCache
from rayflink.connectors.postgres.postgres_lookup import PostgresLookup
from rayflink.connectors.postgres.postgres_session import PostgresError
from rayflink.datastream import AsyncDataStream, StreamExecutionEnvironment
from tests.connectors.postgres.postgres_table import ask, execute

slow = pytest.mark.slow


class Context:
    """A runtime context with metrics alone."""

    def __init__(self) -> None:
        self.metrics = MetricGroup()

    def get_metrics_group(self) -> MetricGroup:
        return self.metrics

    def __getitem__(self, name: str) -> Any:
        return next(value for key, value in self.metrics.snapshot().items() if key.endswith(name))


def items(dsn: str) -> str:
    execute(dsn, "CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(6,2))",
            "INSERT INTO items SELECT i, 'item ' || i, i FROM generate_series(1, 500) i")  # fmt: skip
    return dsn


def invoked(lookup: PostgresLookup, records: list[Any], *rounds: list[Any]) -> list[Any]:
    async def run() -> list[Any]:
        found = []
        for each in (records, *rounds):
            found += await asyncio.gather(*map(lookup.async_invoke, each))
        return found

    return asyncio.run(run())


@slow
def test_a_job_finds_rows_and_asks_for_keys_together(database: str) -> None:
    lookup = PostgresLookup(items(database), "items", ["id"], ["name"], LookupCache(max_rows=1000))
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 2})
    numbers = env.from_collection([n % 300 + 1 for n in range(600)])
    found = AsyncDataStream.unordered_wait(numbers, lookup, Time.seconds(20), 100)
    expected = [(n, f"item {n}") for n in sorted(2 * list(range(1, 301)))]
    assert sorted((n, row.name) for n, row in found.execute_and_collect()) == expected


@slow
def test_keys_that_wait_are_one_query_and_the_cache_answers_again(database: str) -> None:
    context = Context()
    lookup = PostgresLookup(items(database), "items", ["id"], ["name"], LookupCache(max_rows=1000)).with_connections(1)
    lookup.open(context)  # type: ignore[arg-type]
    found = invoked(lookup, [*range(1, 101), 1, None, 9999], [1, 2, 9999])
    assert found[0] == [(1, Row(name="item 1"))] and found[100] == found[0] and found[101] == found[102] == []
    assert found[103:] == [[(1, Row(name="item 1"))], [(2, Row(name="item 2"))], []]
    assert (context["numQueries"], context["loadCount"], context["missCount"]) == (1, 101, 102)
    assert (context["hitCount"], context["numCachedRecord"]) == (3, 101) and context["latestLoadTime"] >= 0
    assert lookup.look_up(400) == [Row(name="item 400")] and context["numQueries"] == 2
    lookup.close()


@slow
def test_keys_of_several_columns_and_types_and_rows_of_one_key(database: str) -> None:
    execute(database, """CREATE TABLE t ("a%b" varchar(3), at date, n numeric(6,2), code char(4), bytes bytea)""",
            "INSERT INTO t VALUES ('x', '2024-01-01', 1.5, 'ab', '\\x00'), ('x', '2024-01-01', 2.5, 'ab', '\\x01'), "
            "('xyz', '2024-01-02', 3, NULL, NULL)")  # fmt: skip
    day = datetime.date(2024, 1, 1)
    lookup = PostgresLookup(database, "public.t", ["a%b", "at"], ["n"])
    assert sorted(row[0] for row in lookup.look_up("x", day)) == [Decimal("1.5"), Decimal("2.5")]
    assert lookup.look_up("xyzz", datetime.date(2024, 1, 2)) == []  # not cut to three characters
    with pytest.raises(PostgresError, match="found a key of 1 values, wanted 2 for a%b, at"):
        lookup.look_up("x")
    lookup.close()
    for column, value, count in (("code", "ab", 2), ("bytes", b"\x01", 1), ("n", 3, 1), ("n", 3.001, 0)):
        single = PostgresLookup(database, "t", [column])
        assert len(single.look_up(value)) == count
        single.close()
    by_name = PostgresLookup(database, "t", ["at"], ["n"])
    by_name.with_results(lambda record, rows: [(record["id"], len(rows))])
    assert invoked(by_name, [{"id": 1, "at": day}, {"id": 2, "at": None}]) == [[(1, 2)], [(2, 0)]]
    by_name.close()


@slow
def test_a_lost_connection_is_repeated_and_counted_out(database: str) -> None:
    context = Context()
    lookup = PostgresLookup(items(database), "items", ["id"], ["name"])
    lookup.open(context)  # type: ignore[arg-type]
    assert lookup.look_up(1) == [Row(name="item 1")]
    execute(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'")  # fmt: skip
    assert invoked(lookup, [2]) == [[(2, Row(name="item 2"))]]
    execute(database, "ALTER TABLE items DROP COLUMN name")
    with pytest.raises(PostgresError, match=r"lookup in 'items' by id: .* does not exist.*start the job again"):
        invoked(lookup, [3])
    assert context["numLoadFailures"] == 1
    lookup.close()


@slow
def test_what_does_not_fit_is_named(database: str) -> None:
    execute(items(database), "DROP ROLE IF EXISTS few", "CREATE ROLE few LOGIN CONNECTION LIMIT 0")
    few = database.replace("user=postgres", "user=few password=s3cret")
    wrong: dict[str, PostgresLookup] = {
        "table 'none' is not there, found items": PostgresLookup(database, "none", ["id"]),
        "table public.items has no column 'x'": PostgresLookup(database, "items", ["x"]),
        "too many connections for role": PostgresLookup(few, "items", ["id"]).with_max_retries(1),
        "no connection to PostgreSQL at host='/no'": PostgresLookup("host=/no", "t", ["k"]).with_max_retries(0),
    }
    try:
        for message, lookup in wrong.items():
            with pytest.raises(PostgresError) as raised:
                lookup.open(Context())  # type: ignore[arg-type]
            assert message in described(raised.value) and "s3cret" not in described(raised.value) + repr(lookup)
    finally:
        execute(database, "DROP ROLE few")
    lookup = PostgresLookup(database, "items", ["id"])
    with pytest.raises(PostgresError, match='lookup in .items. by id: invalid input syntax for type integer: "tea"'):
        lookup.look_up("tea")
    lookup.close()
    assert ask(database, "SELECT count(*) FROM items") == [(500,)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PostgresLookup("host=h", "t", "id"), r"keys is a list of names, found 'id'; write \['id'\]"),
        (lambda: PostgresLookup("host=h", "t", []), "keys is empty"),
        (lambda: PostgresLookup("nonsense", "t", ["id"]), "no connection string"),
        (lambda: PostgresLookup("host=h", "t", ["id"]).with_max_retries(-1), "at least 0, found -1"),
        (lambda: PostgresLookup("host=h", "t", ["id"]).with_connections(0), "at least 1, found 0"),
    ],
)
def test_settings_of_lookups_that_make_no_sense_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises((ValueError, TypeError, PostgresError), match=message):
        make()
