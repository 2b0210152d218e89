"""Catalogs over the tables of Iceberg and Delta: what other programs wrote is found, and what is created is theirs."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.catalog import ObjectPath

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

pytestmark = pytest.mark.slow

CREATE = "CREATE TABLE sales.orders (id BIGINT NOT NULL, item STRING COMMENT 'what', price DECIMAL(10, 2), " \
         "sold TIMESTAMP(3), day STRING) COMMENT 'sold' PARTITIONED BY (day)"  # fmt: skip
VALUES = "(1, 'nut', 1.5, TIMESTAMP '2026-11-01 10:00:00.123', 'a'), (2, NULL, NULL, NULL, 'b')"


def environment(lake: str, folder: Path) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set_string("execution.target", "local")
    options = {"delta": f"'type' = 'delta', 'warehouse' = '{folder}/lake'",
               "iceberg": f"'type' = 'iceberg', 'catalog-type' = 'sql', 'uri' = 'sqlite:///{folder}/catalog.db', "
                          f"'warehouse' = 'file://{folder}/tables'"}[lake]  # fmt: skip
    t_env.execute_sql(f"CREATE CATALOG lake WITH ({options})")
    t_env.use_catalog("lake")
    return t_env


def rows(t_env: TableEnvironment, statement: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in t_env.execute_sql(statement).collect())


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_table_is_created_written_and_found_by_another_program(lake: str, tmp_path: Path):
    first = environment(lake, tmp_path)
    first.execute_sql("CREATE DATABASE sales")
    first.execute_sql(CREATE)
    first.execute_sql(f"INSERT INTO sales.orders VALUES {VALUES}").wait()
    second = environment(lake, tmp_path)
    assert {"sales"} <= set(second.list_databases())
    assert rows(second, "SHOW TABLES FROM sales") == [("orders",)] and rows(second, "SHOW VIEWS FROM sales") == []
    assert rows(second, "SELECT id, item, CAST(price AS DOUBLE), day FROM sales.orders") == [
        (1, "nut", 1.5, "a"), (2, None, None, "b"),
    ]  # fmt: skip
    table = second.get_catalog("lake").get_table(ObjectPath("sales", "orders"))
    assert table.get_partition_keys() == ["day"] and table.get_comment() == "sold"
    types = {column.name: str(column.type) for column in table.get_unresolved_schema().columns}
    assert types == {"id": "BIGINT NOT NULL", "item": "STRING", "price": "DECIMAL(10, 2)", "sold": "TIMESTAMP(6)",
                     "day": "STRING"}  # fmt: skip
    second.execute_sql("DROP TABLE sales.orders")
    with pytest.raises(SqlError, match="no table or view"):
        first.execute_sql("SELECT * FROM sales.orders")
    second.execute_sql("DROP DATABASE sales")
    assert "sales" not in first.list_databases()


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE VIEW v AS SELECT 1 AS a", "cannot store a view"),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'print')", "not of 'print'"),
        ("CREATE TABLE t (a INT, b AS a + 1)", "computed or metadata column 'b'"),
        ("CREATE TABLE nowhere.t (a INT)", "no database 'nowhere'"),
        ("SELECT * FROM `default`.absent", "no table or view"),
        ("CREATE FUNCTION f AS 'tests.table.catalog.stored_functions.twice' LANGUAGE PYTHON", "cannot create a func"),
    ],
)
def test_what_a_lake_cannot_store_is_refused(lake: str, statement: str, problem: str, tmp_path: Path):
    with pytest.raises(SqlError, match=problem):
        environment(lake, tmp_path).execute_sql(statement)


def test_a_delta_table_of_another_program_is_read(tmp_path: Path):
    rows_of_other = pyarrow.table({"n": [1, 2], "words": [["a"], []]})
    deltalake.write_deltalake(str(tmp_path / "lake" / "db" / "t"), rows_of_other)
    assert rows(environment("delta", tmp_path), "SELECT n, CARDINALITY(words) FROM db.t") == [(1, 1), (2, 0)]


def test_an_iceberg_table_is_renamed(tmp_path: Path):
    t_env = environment("iceberg", tmp_path)
    t_env.execute_sql("CREATE TABLE `default`.t (a INT)")
    t_env.execute_sql("ALTER TABLE `default`.t RENAME TO u")
    assert rows(t_env, "SHOW TABLES FROM `default`") == [("u",)]
