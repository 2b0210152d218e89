"""Changes of a table in MySQL as a table of SQL."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchmarks.servers.mysql_server import MySqlServer
from rayflink.common import RowKind
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.connectors.cdc.mysql_cdc import MySqlCdc, startup_of
from rayflink.table.errors import SqlError

COLUMNS = "id INT NOT NULL, a STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED"


def environment(is_batch: bool = False) -> Any:
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    options = {"execution.target": "local", "parallelism.default": "1", "execution.checkpointing.interval": "100 ms",
               "table.local-time-zone": "UTC"}  # fmt: skip
    for key, value in options.items():
        t_env.get_config().set(key, value)
    return t_env


def create(t_env: Any, server: MySqlServer | None, columns: str = COLUMNS, **options: str) -> None:
    port = "1" if server is None else str(server.port)
    known = {
        "connector": "mysql-cdc", "hostname": "127.0.0.1", "port": port, "username": MySqlServer.user,
        "password": MySqlServer.password, "database-name": "shop", "table-name": "t",
    } | options  # fmt: skip
    written = ", ".join(f"'{key}' = '{value}'" for key, value in known.items())
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({written})")


@pytest.mark.slow
def test_a_query_follows_the_table(server: MySqlServer) -> None:
    server.execute("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'a', 3)")
    t_env = environment()
    create(t_env, server, "place STRING METADATA FROM 'table_name' VIRTUAL, op_ts TIMESTAMP_LTZ(3) METADATA VIRTUAL, "
           + COLUMNS)  # fmt: skip
    present: Counter[tuple[Any, ...]] = Counter()
    with t_env.execute_sql("SELECT a, n * 10 AS tens, place FROM t WHERE n > 1").collect() as rows:

        def follow(*until: tuple[Any, ...]) -> None:
            while +present != Counter(until):
                row = next(rows)
                is_gone = row.get_row_kind() in (RowKind.UPDATE_BEFORE, RowKind.DELETE)
                present[tuple(row)] += -1 if is_gone else 1
                assert present[tuple(row)] >= 0

        follow(("b", 20, "t"), ("a", 30, "t"))
        server.execute("UPDATE t SET a = 'c' WHERE id = 3", "DELETE FROM t WHERE id = 1",
                       "INSERT INTO t VALUES (4, NULL, 7)", "UPDATE t SET id = 9, n = 20 WHERE id = 2",
                       "UPDATE t SET n = 0 WHERE id = 4")  # fmt: skip
        follow(("c", 30, "t"), ("b", 200, "t"))


@pytest.mark.slow
def test_a_snapshot_is_a_table_with_an_end_in_the_types_that_are_declared(server: MySqlServer) -> None:
    server.execute("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, flag tinyint(1), u bigint unsigned, "
                   "at timestamp(3), tm time, d date, big decimal(5,2))", "SET sql_mode = '', time_zone = '+00:00'",
                   "INSERT INTO t VALUES (1, 1, 18446744073709551615, '2024-07-01 12:00:00.5', '-01:00:00', "
                   "'0000-00-00', -1.5)")  # fmt: skip
    t_env = environment(is_batch=True)
    columns = "flag BOOLEAN, u DECIMAL(20, 0), `at` TIMESTAMP(3), tm STRING, d STRING, big STRING"
    create(t_env, server, columns, **{"scan.startup.mode": "snapshot", "server-time-zone": "Europe/Berlin"})
    with t_env.execute_sql("SELECT * FROM t").collect() as rows:
        (row,) = list(rows)
    assert [str(value) for value in row] == [
        "True", "18446744073709551615", "2024-07-01 14:00:00.500000", "-01:00:00", "0000-00-00", "-1.50"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server-id": "x"}, "server_id is 'x'"),
        ({"server-time-zone": "Mars"}, "server_time_zone is 'Mars'"),
        ({"scan.startup.mode": "specific-offset"}, "has no offset"),
        ({"scan.startup.mode": "timestamp"}, "has no time"),
        ({"scan.startup.mode": "committed-offset"}, "scan.startup.mode"),
        ({"scan.startup.mode": "specific-offset", "scan.startup.specific-offset.gtid-set": "5"}, "is no GTID"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, str], message: str) -> None:
    t_env = environment()
    with pytest.raises(SqlError, match=message):
        create(t_env, None, **options)
        t_env.execute_sql("EXPLAIN SELECT * FROM t")


def test_metadata_of_another_type_is_refused() -> None:
    t_env = environment()
    with pytest.raises(SqlError, match="declare the column as TIMESTAMP_LTZ"):
        create(t_env, None, "op_ts STRING METADATA VIRTUAL, " + COLUMNS)
        t_env.execute_sql("EXPLAIN SELECT * FROM t")


def test_the_place_to_begin() -> None:
    known = {name: option.default for name, option in MySqlCdc.options.items()}
    assert startup_of(known | {"scan.startup.mode": "earliest-offset"}).mode == "earliest"
    place = {"scan.startup.mode": "specific-offset", "scan.startup.specific-offset.file": "b.000003",
             "scan.startup.specific-offset.pos": 9}  # fmt: skip
    assert (startup_of(known | place).file, startup_of(known | place).offset) == ("b.000003", 9)
    moment = {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": 5}
    assert startup_of(known | moment).moment_ms == 5
