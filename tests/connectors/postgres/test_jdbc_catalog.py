"""The tables of a real PostgreSQL server as a catalog, and a catalog of rayflink's own in such a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.catalog import CatalogDatabase, ObjectPath, SqlCatalog
from rayflink.table.catalog.exceptions import CatalogException
from tests.connectors.postgres.postgres_table import ask, execute, url_of

pytestmark = pytest.mark.slow


@pytest.fixture
def t_env(database: str) -> Iterator[TableEnvironment]:
    execute(
        database,
        "CREATE SCHEMA IF NOT EXISTS stock",
        "DROP TABLE IF EXISTS stock.items CASCADE",
        "CREATE TABLE orders (id bigint, item text NOT NULL, price numeric(10, 2), sold timestamptz, tags text[],"
        " PRIMARY KEY (item, id))",
        "COMMENT ON TABLE orders IS 'what was sold'",
        "CREATE TABLE stock.items (item text PRIMARY KEY, n smallint)",
        "INSERT INTO orders VALUES (1, 'nut', 1.5, now(), '{a,b}'), (2, 'bolt', 2, NULL, NULL)",
        "INSERT INTO stock.items VALUES ('nut', 7)",
        "CREATE VIEW dear AS SELECT id FROM orders WHERE price > 1.75",
    )
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    url, _, name = url_of(database).partition("?")[0].rpartition("/")
    t_env.execute_sql(
        f"CREATE CATALOG pg WITH ('type' = 'jdbc', 'base-url' = '{url}', 'default-database' = '{name}', "
        "'username' = 'postgres', 'password' = 'any')"
    )
    t_env.use_catalog("pg")
    yield t_env
    t_env.use_catalog("default_catalog")
    t_env.execute_sql("DROP CATALOG pg")


def rows(t_env: TableEnvironment, statement: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in t_env.execute_sql(statement).collect())


def test_tables_are_listed_read_joined_and_written(t_env: TableEnvironment, database: str):
    assert t_env.list_tables() == ["dear", "orders", "stock.items"]
    assert rows(t_env, "SELECT o.id, i.n FROM orders AS o JOIN `stock.items` AS i ON o.item = i.item") == [(1, 7)]
    assert rows(t_env, "SELECT id FROM dear") == [(2,)] == rows(t_env, "SELECT id FROM `public.dear`")
    described = [tuple(row)[:4] for row in t_env.execute_sql("DESCRIBE orders").collect()]
    assert described[0] == ("id", "BIGINT", False, "PRI(item, id)")
    assert [row[1] for row in described[2:]] == ["DECIMAL(10, 2)", "TIMESTAMP_LTZ(6)", "ARRAY<STRING>"]
    t_env.execute_sql("INSERT INTO `stock.items` VALUES ('nut', 8), ('bolt', 9)").wait()
    assert ask(database, "SELECT * FROM stock.items ORDER BY n") == [("nut", 8), ("bolt", 9)]


def test_what_postgresql_has_to_do_itself_is_refused(t_env: TableEnvironment):
    for statement, problem in {
        "CREATE TABLE t (a INT) WITH ('connector' = 'print')": "cannot create a table",
        "DROP TABLE orders": "cannot drop a table",
        "SELECT * FROM absent": "no table or view 'absent'",
        "SELECT * FROM nowhere.t": "no database 'nowhere'",
    }.items():
        with pytest.raises(SqlError, match=problem):
            t_env.execute_sql(statement)


def test_a_server_that_does_not_answer_is_named(t_env: TableEnvironment):
    with pytest.raises(SqlError, match="no connection to PostgreSQL at"):
        t_env.execute_sql("CREATE CATALOG c WITH ('type' = 'jdbc', 'base-url' = 'jdbc:postgresql://localhost:1')")


def test_a_catalog_of_our_own_is_stored_in_the_server(database: str):
    pytest.importorskip("sqlalchemy")
    parts = dict(part.split("=") for part in database.split())
    url = f"postgresql+psycopg://postgres@/{parts['dbname']}?host={parts['host']}"
    first, second = SqlCatalog("shop", url), SqlCatalog("shop", url)
    first.create_database("sales", CatalogDatabase({"owner": "me"}), False)
    assert second.get_database("sales").get_properties() == {"owner": "me"}
    with pytest.raises(CatalogException, match="already"):
        second.create_database("sales", CatalogDatabase(), False)
    assert not second.table_exists(ObjectPath("sales", "t"))
    first.close()
    second.close()
