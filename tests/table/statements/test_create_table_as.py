"""CREATE TABLE AS and REPLACE TABLE AS: the tables that they make."""

from __future__ import annotations

import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.parsing.statement_parser import parse_statement
from rayflink.table.plan.logical import Attribute
from rayflink.table.statements.create_table_as import merged_columns
from rayflink.table.types import DataTypes

SCHEMA = (Attribute("id", DataTypes.INT()), Attribute("price", DataTypes.DOUBLE()))


@pytest.fixture
def t_env():
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("execution.target", "local").set("parallelism.default", "1")
    return environment


def shown(t_env, name):
    [row] = t_env.execute_sql(f"SHOW CREATE TABLE {name}").collect()
    return [line.strip().rstrip(",") for line in row[0].splitlines()[1:] if line.startswith("  ")]


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ("", ["id INT", "price DOUBLE"]),
        ("(price, id)", ["price DOUBLE", "id INT"]),
        ("(note STRING, cost AS price * 2)", ["note STRING", "cost None", "id INT", "price DOUBLE"]),
        ("(price DECIMAL(9, 2), note STRING)", ["note STRING", "id INT", "price DECIMAL(9, 2)"]),
        ("(PRIMARY KEY (id) NOT ENFORCED)", ["id INT", "price DOUBLE"]),
        ("(id BIGINT METADATA)", ["id BIGINT", "price DOUBLE"]),
    ],
)
def test_columns_of_the_statement_come_before_those_of_the_query(columns, wanted):
    text = f"CREATE TABLE t {columns} AS SELECT id, price FROM s"
    merged = merged_columns(parse_statement(text), SCHEMA, text)
    assert [f"{column.name} {column.type}" for column in merged] == wanted


def test_a_table_with_more_columns_and_a_watermark_is_filled_by_names(t_env, tmp_path):
    t_env.execute_sql(
        "CREATE TABLE t (note STRING, twice AS n * 2, n BIGINT, WATERMARK FOR at AS at, "
        f"PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json') "
        "AS SELECT TIMESTAMP '2026-01-01 00:00:00.000' AS at, 7 AS n"
    ).wait()
    assert shown(t_env, "t")[:6] == [
        "`note` STRING", "`twice` AS n * 2", "`at` TIMESTAMP(3) NOT NULL", "`n` BIGINT NOT NULL",
        "WATERMARK FOR `at` AS at", "PRIMARY KEY (`n`) NOT ENFORCED",
    ]  # fmt: skip
    assert [tuple(row) for row in t_env.execute_sql("SELECT note, twice, n FROM t").collect()] == [(None, 14, 7)]


def test_names_alone_order_the_columns_and_each_gets_its_own_values(t_env, tmp_path):
    options = f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')"
    t_env.execute_sql(f"CREATE TABLE t (b, a) {options} AS SELECT 1 AS a, 2 AS b").wait()
    assert [tuple(row) for row in t_env.execute_sql("SELECT * FROM t").collect()] == [(2, 1)]


def test_a_table_is_replaced_by_a_query_that_reads_it(t_env, tmp_path):
    def options(name):
        return f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path / name}', 'format' = 'json')"

    t_env.execute_sql(f"CREATE OR REPLACE TABLE t {options('old')} AS SELECT 1 AS a").wait()
    t_env.execute_sql(f"REPLACE TABLE t {options('new')} AS SELECT a + 1 AS b FROM t").wait()
    result = t_env.execute_sql("SELECT * FROM t")
    assert [tuple(row) for row in result.collect()] == [(2,)]
    assert shown(t_env, "t")[0] == "`b` INT NOT NULL"


@pytest.mark.parametrize("query", ["SELECT nothing FROM t", "SELECT 'x' AS n"])
def test_what_cannot_be_filled_drops_no_table_and_makes_none(t_env, query):
    t_env.execute_sql("CREATE TABLE t (a INT) WITH ('connector' = 'blackhole')")
    for statement in ("CREATE OR REPLACE TABLE t", "CREATE TABLE u"):
        with pytest.raises(SqlError):
            t_env.execute_sql(f"{statement} (n INT) WITH ('connector' = 'blackhole') AS {query}")
    assert shown(t_env, "t")[0] == "`a` INT"
    assert t_env.list_tables() == ["t"]


def test_a_temporary_table_and_a_view_are_not_replaced(t_env):
    t_env.execute_sql("CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'blackhole')")
    t_env.execute_sql("CREATE VIEW v AS SELECT 1 AS a")
    for name, problem in (("t", "a temporary table or view 't' cannot be replaced"), ("v", "'v' is a view")):
        with pytest.raises(SqlError, match=problem):
            t_env.execute_sql(f"CREATE OR REPLACE TABLE {name} WITH ('connector' = 'blackhole') AS SELECT 1 AS a")
