"""Changes of a table in PostgreSQL as a table of SQL."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchmarks.servers.postgres_server import PostgresServer
from rayflink.common import RowKind
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.errors import SqlError
from tests.connectors.postgres.postgres_table import execute
from tests.connectors.postgres.test_postgres_cdc import running, server  # noqa: F401  # fixtures

COLUMNS = "id INT NOT NULL, a STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED"


def environment(is_batch: bool = False) -> Any:
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    options = {"execution.target": "local", "parallelism.default": "1", "execution.checkpointing.interval": "100 ms"}
    for key, value in options.items():
        t_env.get_config().set(key, value)
    return t_env


def create(t_env: Any, home: str, columns: str = COLUMNS, name: str = "t", **options: str) -> None:
    known = {
        "connector": "postgres-cdc", "hostname": home, "username": "postgres", "password": "s3cret",
        "database-name": "postgres", "schema-name": "public", "table-name": name, "slot.name": "sql_slot",
    } | {key.replace("_", "."): value for key, value in options.items()}  # fmt: skip
    written = ", ".join(f"'{key}' = '{value}'" for key, value in known.items())
    t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({written})")


@pytest.mark.slow
def test_a_query_follows_the_table(server: PostgresServer) -> None:  # noqa: F811
    execute(server.dsn, "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'a', 3)")
    t_env = environment()
    create(t_env, str(server.home))
    present: Counter[tuple[Any, ...]] = Counter()
    with t_env.execute_sql("SELECT a, n * 10 AS tens FROM t WHERE n > 1").collect() as rows:

        def follow(*until: tuple[Any, ...]) -> None:
            while +present != Counter(until):
                row = next(rows)
                is_gone = row.get_row_kind() in (RowKind.UPDATE_BEFORE, RowKind.DELETE)
                present[tuple(row)] += -1 if is_gone else 1
                assert present[tuple(row)] >= 0

        follow(("b", 20), ("a", 30))
        execute(server.dsn, "UPDATE t SET a = 'c' WHERE id = 3", "DELETE FROM t WHERE id = 1",
                "INSERT INTO t VALUES (4, NULL, 7)", "UPDATE t SET id = 9, n = 20 WHERE id = 2",
                "UPDATE t SET n = 0 WHERE id = 4")  # fmt: skip
        follow(("c", 30), ("b", 200))


@pytest.mark.slow
def test_metadata_and_rows_by_key(server: PostgresServer) -> None:  # noqa: F811
    execute(server.dsn, "INSERT INTO t VALUES (1, 'a', 1)", "ALTER TABLE t REPLICA IDENTITY DEFAULT")
    t_env = environment()
    columns = (
        "place STRING METADATA FROM 'table_name' VIRTUAL, db STRING METADATA FROM 'database_name' VIRTUAL, "
        "s STRING METADATA FROM 'schema_name' VIRTUAL, op_ts TIMESTAMP_LTZ(3) METADATA VIRTUAL, " + COLUMNS
    )
    create(t_env, str(server.home), columns, **{"changelog-mode": "upsert"})
    with t_env.execute_sql("SELECT id, a, place, db, s, op_ts FROM t").collect() as rows:
        first = next(rows)
        assert list(first)[:5] == [1, "a", "t", "postgres", "public"] and first[5].timestamp() == 0
        execute(server.dsn, "UPDATE t SET a = 'b'", "DELETE FROM t")
        before, update, delete = (next(rows) for _ in range(3))
        assert (before.get_row_kind(), before[1]) == (RowKind.UPDATE_BEFORE, "a")
        assert (update.get_row_kind(), update[1]) == (RowKind.UPDATE_AFTER, "b")
        assert (delete.get_row_kind(), delete[0], delete[1]) == (RowKind.DELETE, 1, "b")
        assert update[5].timestamp() > 1_600_000_000


@pytest.mark.slow
def test_a_snapshot_is_a_table_with_an_end(server: PostgresServer) -> None:  # noqa: F811
    execute(server.dsn, "INSERT INTO t SELECT i, 'row', i FROM generate_series(1, 500) i")
    t_env = environment(is_batch=True)
    create(t_env, str(server.home), scan_startup_mode="snapshot")
    assert [list(row) for row in t_env.execute_sql("SELECT a, SUM(n) FROM t GROUP BY a").collect()] == [["row", 125250]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id INT NOT NULL, b STRING", "table public.t has no column 'b'; its columns are id, a, n"),
        ("id INT NOT NULL, a INT", "column 'a' of public.t is of type text, not readable as int32"),
        ("id INT NOT NULL, n INT", "column 'n' of public.t is of type bigint, not readable as int32"),
    ],
)
def test_columns_that_do_not_fit_are_named(server: PostgresServer, columns: str, message: str) -> None:  # noqa: F811
    t_env = environment()
    create(t_env, str(server.home), columns)
    with pytest.raises(Exception, match=message) as raised:
        list(t_env.execute_sql("SELECT * FROM t").collect())
    assert "s3cret" not in str(raised.value)


@pytest.mark.slow
def test_a_table_without_full_identity_is_refused_with_the_remedy(server: PostgresServer) -> None:  # noqa: F811
    execute(server.dsn, "ALTER TABLE t REPLICA IDENTITY DEFAULT")
    t_env = environment()
    create(t_env, str(server.home))
    with pytest.raises(Exception, match='run ALTER TABLE "public"."t" REPLICA IDENTITY FULL, or set'):
        list(t_env.execute_sql("SELECT * FROM t").collect())


@pytest.mark.slow
def test_upserts_by_another_key_than_that_of_the_table_are_refused(server: PostgresServer) -> None:  # noqa: F811
    t_env = environment()
    other = COLUMNS.replace("n BIGINT", "n BIGINT NOT NULL").replace("(id)", "(n)")
    create(t_env, str(server.home), other, **{"changelog-mode": "upsert"})
    wanted = r"found by PRIMARY KEY \(n\), and table public.t has PRIMARY KEY \(id\); declare PRIMARY KEY \(id\) NOT"
    with pytest.raises(Exception, match=wanted):
        list(t_env.execute_sql("SELECT * FROM t").collect())
    execute(server.dsn, "ALTER TABLE t DROP CONSTRAINT t_pkey")
    with pytest.raises(Exception, match="has no primary key; add one, or set 'changelog-mode' = 'all'"):
        list(t_env.execute_sql("SELECT * FROM t").collect())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slot_name": "Bad-Slot"}, "slot_name is 'Bad-Slot'"),
        ({"decoding_plugin_name": "wal2json"}, "expected pgoutput"),
        ({"scan_startup_mode": "earliest"}, "expected initial or latest-offset or committed-offset or snapshot"),
        ({"port": "zero"}, "a whole number of at least 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    t_env = environment()
    with pytest.raises(SqlError, match=message):
        create(t_env, "localhost", **options)
        t_env.execute_sql("SELECT * FROM t")


def test_plans_do_not_show_the_password() -> None:
    t_env = environment()
    create(t_env, "localhost")
    plan = t_env.explain_sql("SELECT a FROM t WHERE n > 3")
    assert "s3cret" not in plan and "TableSourceScan(table=[[default_catalog, default_database, t]]" in plan
