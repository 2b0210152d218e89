"""Rows of a real PostgreSQL server that are looked up by key in SQL."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest

from rayflink.connectors.postgres.postgres_key_rows import PostgresKeyRows, PostgresOutage
from rayflink.connectors.postgres.postgres_session import PostgresError
from rayflink.table import TableEnvironment
from tests.connectors.postgres.postgres_table import execute, url_of
from tests.connectors.postgres.test_jdbc_tables import create, environment, rows

slow = pytest.mark.slow
ORDERS = {"n": [1, 2, 3, 4, 5], "who": ["a'b", "c{", "none", None, "a'b"], "day": [1, 2, 3, 4, 1]}


def with_orders() -> TableEnvironment:
    t_env = environment()
    t_env.get_config().set("parallelism.default", "1")
    t_env.create_temporary_view("given", t_env.from_arrow(pa.table(ORDERS)))
    t_env.execute_sql("CREATE VIEW orders AS SELECT *, PROCTIME() AS clock FROM given")
    return t_env


@slow
@pytest.mark.parametrize("cache", ["NONE", "PARTIAL", "FULL"])
def test_rows_are_found_by_key(database: str, cache: str) -> None:
    execute(database, 'CREATE TABLE people (name text, day int8, price numeric(8,2), "at" timestamp, seen boolean)',
            "INSERT INTO people VALUES ('a''b', 1, 1.5, '2026-01-01 00:00:01', true), ('a''b', 1, 2, NULL, false), "
            "('c{', 2, 3, '2026-01-02', NULL), ('c{', 9, 4, NULL, true), (NULL, 4, 5, NULL, true)")  # fmt: skip
    t_env = with_orders()
    limits = {"lookup_partial__cache_max__rows": "100"} if cache == "PARTIAL" else {}
    columns = "name STRING, day BIGINT, price DECIMAL(8, 2), `at` TIMESTAMP(3), seen BOOLEAN"
    create(t_env, url_of(database), "people", columns, lookup_cache=cache, **limits)
    on = "FOR SYSTEM_TIME AS OF o.clock AS p ON o.who = p.name"
    found = rows(t_env, f"SELECT n, price, `at`, seen FROM orders AS o LEFT JOIN people {on} AND o.day = p.day")
    first = (Decimal("1.50"), datetime.datetime(2026, 1, 1, 0, 0, 1), True), (Decimal("2.00"), None, False)
    wanted = [(1, *first[0]), (1, *first[1]), (2, Decimal("3.00"), datetime.datetime(2026, 1, 2), None),
              (3, None, None, None), (4, None, None, None), (5, *first[0]), (5, *first[1])]  # fmt: skip
    assert Counter(found) == Counter(wanted) and [row[0] for row in found] == [row[0] for row in wanted]
    dear = f"SELECT n, p.day FROM orders AS o JOIN people {on} WHERE p.price > 2 AND p.day >= 2"
    assert Counter(rows(t_env, dear)) == Counter([(2, 2), (2, 9)])
    assert cache != "NONE" or "filter=[day >= 2], project=[day, price]]" in t_env.explain_sql(dear)


@slow
def test_many_keys_lost_connections_and_keys_that_do_not_fit(database: str) -> None:
    execute(database, "CREATE TABLE t (k int, v text)", "INSERT INTO t SELECT i, i FROM generate_series(1, 40000) i")
    found = PostgresKeyRows(database, "t", ["k"], {"v": pa.string()})
    found.prepare()
    keys = pa.record_batch({"k": pa.array(range(30_000, 50_000), pa.int32())})
    loaded, numbers = found.load(keys)
    by_key = dict(zip(numbers.tolist(), loaded.column("v").to_pylist(), strict=True))
    assert by_key == {number: str(30_000 + number) for number in range(10_001)}
    execute(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(PostgresOutage):
        found.load(keys)
    assert found.load(keys)[0].num_rows == 10_001
    with pytest.raises(PostgresError, match="give keys of the types"):
        found.load(pa.record_batch({"k": pa.array(["x"])}))
    found.close()
    with pytest.raises(PostgresError, match="no column 'w'"):
        PostgresKeyRows(database, "t", ["w"], {"v": pa.string()}).prepare()
