"""Statements on catalogs, databases, functions and partitions, and the calls of an environment for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rayflink.common import Configuration, Row
from rayflink.common.errors import ConfigError
from rayflink.table import DataTypes, EnvironmentSettings, Schema, SqlError, TableDescriptor, TableEnvironment
from rayflink.table.catalog import (
    CatalogBaseTable,
    CatalogDescriptor,
    CatalogTableStatistics,
    GenericInMemoryCatalog,
    ObjectIdentifier,
    ObjectPath,
)
from rayflink.table.catalog.exceptions import CatalogAlreadyExistException, CatalogException
from rayflink.table.udf import udf

HERE = "tests.table.catalog.stored_functions"
GENERATED = "'connector' = 'datagen', 'number-of-rows' = '3', 'fields.n.kind' = 'sequence', " \
            "'fields.n.start' = '1', 'fields.n.end' = '3'"  # fmt: skip


def environment(**options: str) -> TableEnvironment:
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    configuration = Configuration()
    for key, value in {"execution.target": "local", **options}.items():
        configuration.set_string(key, value)
    return TableEnvironment.create(settings.with_configuration(configuration).build())


@pytest.fixture
def t_env() -> TableEnvironment:
    return environment()


def rows(t_env: TableEnvironment, statement: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in t_env.execute_sql(statement).collect()]


def names(t_env: TableEnvironment, statement: str) -> list[object]:
    return [row[0] for row in rows(t_env, statement)]


def run(t_env: TableEnvironment, *statements: str) -> None:
    for statement in statements:
        t_env.execute_sql(statement)


def test_catalogs_are_created_shown_used_and_dropped(t_env):
    run(t_env, "CREATE CATALOG lab COMMENT 'trials' WITH ('type' = 'generic_in_memory', 'default-database' = 'a')")
    run(t_env, "CREATE CATALOG IF NOT EXISTS lab", "USE CATALOG lab")
    assert (t_env.get_current_catalog(), t_env.get_current_database()) == ("lab", "a")
    assert names(t_env, "SHOW CATALOGS") == t_env.list_catalogs() == ["default_catalog", "lab"]
    assert names(t_env, "SHOW CATALOGS LIKE 'l%'") == ["lab"]
    assert names(t_env, "SHOW CREATE CATALOG lab") == [
        "CREATE CATALOG `lab`\nCOMMENT 'trials'\nWITH (\n  'type' = 'generic_in_memory',\n  'default-database' = 'a'\n)"
    ]
    run(t_env, "ALTER CATALOG lab SET ('default-database' = 'b')", "ALTER CATALOG lab COMMENT 'other trials'")
    assert rows(t_env, "DESCRIBE CATALOG EXTENDED lab") == [
        ("name", "lab"), ("type", "generic_in_memory"), ("comment", "other trials"), ("option:default-database", "b"),
    ]  # fmt: skip
    with pytest.raises(SqlError, match="is the current one"):
        run(t_env, "DROP CATALOG lab")
    run(t_env, "USE CATALOG default_catalog", "DROP CATALOG lab", "DROP CATALOG IF EXISTS lab")
    for statement in ("DROP CATALOG lab", "USE CATALOG lab", "SELECT * FROM lab.a.t", "DESCRIBE CATALOG lab"):
        with pytest.raises(SqlError, match="no catalog 'lab'"):
            run(t_env, statement)


@pytest.mark.parametrize(
    ("options", "problem", "remedy"),
    [
        ("'type' = 'generic_in_memry'", "unknown type", "did you mean generic_in_memory"),
        ("'type' = 'hive'", "unknown type 'hive'", "'catalog-type' = 'hive'"),
        ("'type' = 'sql'", "no option 'url'", "it needs url"),
        ("'type' = 'generic_in_memory', 'default_database' = 'x'", "unknown option", "did you mean default-database"),
        ("'type' = 'jdbc', 'base-url' = 'jdbc:postgresql://h:1/db'", "names a database", "end it behind the port"),
    ],
)
def test_a_catalog_with_wrong_options_is_refused(t_env, options: str, problem: str, remedy: str):
    with pytest.raises(SqlError) as refused:
        run(t_env, f"CREATE CATALOG c WITH ({options})")
    assert problem in str(refused.value) and remedy in str(refused.value) and t_env.get_catalog("c") is None


def test_tables_of_several_catalogs_are_joined_by_full_names(t_env, tmp_path: Path):
    run(
        t_env,
        f"CREATE CATALOG shop WITH ('type' = 'sql', 'url' = 'sqlite:///{tmp_path}/c.db')",
        "CREATE DATABASE shop.sales",
        f"CREATE TABLE shop.sales.ordered (n BIGINT) WITH ({GENERATED})",
        "CREATE VIEW shop.sales.doubled AS SELECT n * 2 AS m FROM shop.sales.ordered",
        f"CREATE TABLE here (n BIGINT) WITH ({GENERATED})",
    )
    query = "SELECT here.n FROM here JOIN shop.sales.doubled AS d ON here.n = d.m"
    assert rows(t_env, query) == [(2,)]
    assert [tuple(row) for row in t_env.from_path("shop.sales.doubled").execute().collect()] == [(2,), (4,), (6,)]
    assert names(t_env, "SHOW TABLES FROM shop.sales") == ["doubled", "ordered"]
    assert names(t_env, "SHOW VIEWS FROM shop.sales") == ["doubled"]


def test_a_later_program_finds_what_an_earlier_one_stored(tmp_path: Path):
    stores = {"table.catalog-store.kind": "file", "table.catalog-store.file.path": str(tmp_path / "catalogs")}
    first = environment(**stores)
    run(
        first,
        f"CREATE CATALOG shop WITH ('type' = 'sql', 'url' = 'sqlite:///{tmp_path}/c.db')",
        "USE CATALOG shop",
        f"CREATE TABLE t (n BIGINT, `two words` AS n + 1, PRIMARY KEY (n) NOT ENFORCED) WITH ({GENERATED})",
        "CREATE VIEW v (m) COMMENT 'odd' AS SELECT n FROM t WHERE n <> 2",
        f"CREATE FUNCTION twice AS '{HERE}.twice' LANGUAGE PYTHON",
    )
    second = environment(**stores)
    run(second, "USE CATALOG shop")
    assert rows(second, "SELECT twice(m) FROM v") == [(2,), (6,)]
    assert rows(second, "SELECT m FROM shop.`default`.v") == [(1,), (3,)]
    for statement in ("SHOW CREATE TABLE t", "SHOW CREATE VIEW v", "DESCRIBE t", "DESCRIBE v"):
        assert rows(second, statement) == rows(first, statement)
    run(second, "ALTER TABLE t SET ('fields.n.end' = '4')", "ALTER TABLE t RENAME TO u", "DROP VIEW v")
    assert names(first, "SHOW TABLES") == ["u"] and len(rows(first, "SELECT * FROM u")) == 3
    run(second, "USE CATALOG default_catalog", "DROP CATALOG shop")
    assert environment(**stores).list_catalogs() == ["default_catalog"]


def test_a_catalog_store_without_a_folder_is_refused():
    with pytest.raises(ConfigError, match=r"table\.catalog-store\.file\.path"):
        environment(**{"table.catalog-store.kind": "file"})


def test_a_catalog_object_is_registered_and_used(t_env):
    catalog = GenericInMemoryCatalog("lab", "trials")
    t_env.register_catalog("lab", catalog)
    assert t_env.get_catalog("lab") is catalog and t_env.get_catalog("other") is None
    with pytest.raises(CatalogAlreadyExistException):
        t_env.register_catalog("lab", catalog)
    schema = Schema.new_builder().column("n", DataTypes.BIGINT()).build()
    options = {key.strip(" '"): value.strip(" '") for key, _, value in (p.partition("=") for p in GENERATED.split(","))}
    catalog.create_table(ObjectPath("trials", "t"), CatalogBaseTable.create_table(schema, [], options), False)
    view = CatalogBaseTable.create_view("SELECT n FROM t", "SELECT n FROM t", schema, {})
    catalog.create_table(ObjectPath("trials", "v"), view, False)
    assert rows(t_env, "SELECT n FROM lab.trials.v") == [(1,), (2,), (3,)]
    t_env.use_catalog("lab")
    t_env.create_table("u", TableDescriptor.for_connector("print").schema(schema).build())
    assert catalog.get_table(ObjectPath("trials", "u")).get_options() == {"connector": "print"}
    descriptor = CatalogDescriptor.of("more", Configuration().set_string("type", "generic_in_memory"), "x")
    t_env.create_catalog("more", descriptor)
    assert "more" in t_env.list_catalogs()
    with pytest.raises(CatalogException, match="unknown type"):
        t_env.create_catalog("bad", CatalogDescriptor.of("bad", Configuration().set_string("type", "nothing")))


def test_databases_have_properties(t_env):
    run(t_env, "CREATE DATABASE sales COMMENT 'sold' WITH ('owner' = 'me')", "ALTER DATABASE sales SET ('x' = 'y')")
    assert rows(t_env, "DESCRIBE DATABASE EXTENDED sales") == [
        ("catalog", "default_catalog"), ("database", "sales"), ("comment", "sold"),
        ("properties", "((owner,me), (x,y))"),
    ]  # fmt: skip
    with pytest.raises(SqlError, match="no database 'nowhere'"):
        run(t_env, "DESCRIBE DATABASE nowhere")


def test_partitions_are_added_listed_and_dropped(t_env):
    run(
        t_env,
        "CREATE TABLE logs (line STRING, day STRING, hour INT) PARTITIONED BY (day, hour) "
        "WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'csv')",
        "ALTER TABLE logs ADD PARTITION (day = '1', hour = 7) WITH ('k' = 'v') PARTITION (day = '2', hour = 8)",
        "ALTER TABLE logs ADD IF NOT EXISTS PARTITION (day = '1', hour = 7)",
    )
    assert names(t_env, "SHOW PARTITIONS logs") == ["day=1/hour=7", "day=2/hour=8"]
    assert names(t_env, "SHOW PARTITIONS logs PARTITION (day = '2')") == ["day=2/hour=8"]
    run(t_env, "ALTER TABLE logs DROP PARTITION (day = '1', hour = 7)")
    run(t_env, "ALTER TABLE logs DROP IF EXISTS PARTITION (day = '1', hour = 7)")
    with pytest.raises(SqlError, match="describes no partition"):
        run(t_env, "ALTER TABLE logs ADD PARTITION (day = '1')")
    assert names(t_env, "SHOW PARTITIONS logs") == ["day=2/hour=8"]


def test_functions_are_found_in_flinks_order(t_env):
    run(t_env, f"CREATE FUNCTION f AS '{HERE}.twice' LANGUAGE PYTHON")
    assert rows(t_env, "SELECT f(n) FROM (VALUES (1)) AS t(n)") == [(2,)]
    run(t_env, f"CREATE TEMPORARY FUNCTION F AS '{HERE}.Thrice' LANGUAGE PYTHON")
    assert rows(t_env, "SELECT f(n) FROM (VALUES (1)) AS t(n)") == [(3,)]
    run(t_env, f"CREATE TEMPORARY FUNCTION UPPER AS '{HERE}.Thrice' LANGUAGE PYTHON")
    assert rows(t_env, "SELECT UPPER('a')") == [("A",)]  # a built-in one comes before that
    t_env.create_temporary_system_function("upper", udf(lambda text: text + "!", result_type="STRING"))
    assert rows(t_env, "SELECT UPPER('a')") == [("a!",)]
    assert t_env.drop_temporary_system_function("UPPER") and rows(t_env, "SELECT UPPER('a')") == [("A",)]
    with pytest.raises(SqlError, match="drop it first with DROP TEMPORARY"):
        run(t_env, "DROP FUNCTION f")
    run(t_env, "DROP TEMPORARY FUNCTION f", "DROP TEMPORARY FUNCTION IF EXISTS f")
    assert rows(t_env, "SELECT f(n) FROM (VALUES (1)) AS t(n)") == [(2,)]
    run(t_env, f"ALTER FUNCTION f AS '{HERE}.Thrice' LANGUAGE PYTHON")
    assert rows(t_env, "SELECT f(n) FROM (VALUES (1)) AS t(n)") == [(3,)]
    assert t_env.drop_function("f") and not t_env.drop_function("f")
    with pytest.raises(SqlError, match="no function F"):
        run(t_env, "SELECT f(1)")


def test_functions_are_listed_and_described(t_env):
    run(
        t_env,
        f"CREATE FUNCTION stored AS '{HERE}.twice' LANGUAGE PYTHON",
        f"CREATE TEMPORARY SYSTEM FUNCTION everywhere AS '{HERE}.Thrice' LANGUAGE PYTHON",
        "CREATE DATABASE d",
        f"CREATE FUNCTION d.inside AS '{HERE}.twice' LANGUAGE PYTHON",
    )
    assert names(t_env, "SHOW USER FUNCTIONS") == t_env.list_user_defined_functions() == ["everywhere", "stored"]
    assert {"upper", "stored", "everywhere"} <= set(names(t_env, "SHOW FUNCTIONS"))
    assert names(t_env, "SHOW FUNCTIONS FROM d") == ["inside"] and names(t_env, "SHOW PROCEDURES") == []
    assert rows(t_env, "DESCRIBE FUNCTION stored") == [
        ("name", "stored"), ("system function", "false"), ("temporary", "false"), ("class name", f"{HERE}.twice"),
        ("function language", "PYTHON"),
    ]  # fmt: skip
    assert rows(t_env, "DESCRIBE FUNCTION EXTENDED everywhere")[1:3] == [
        ("system function", "true"), ("temporary", "true"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("'no.such.module.f' LANGUAGE PYTHON", "cannot be imported"),
        (f"'{HERE}.absent' LANGUAGE PYTHON", "cannot be imported"),
        (f"'{HERE}.untyped' LANGUAGE PYTHON", "cannot be used"),
        ("'plain' LANGUAGE PYTHON", "name a function in Python as"),
        ("'com.shop.Twice'", "is written in JAVA"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(t_env, definition: str, problem: str):
    with pytest.raises(SqlError, match=problem):
        run(t_env, f"CREATE FUNCTION f AS {definition}")
    assert t_env.list_user_defined_functions() == []


def test_a_secret_of_a_catalog_is_masked(t_env, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/c.db"
    run(t_env, f"CREATE CATALOG c WITH ('type' = 'delta', 'warehouse' = '{tmp_path}', 's3.secret-key' = 'hush')")
    assert "hush" not in str(rows(t_env, "SHOW CREATE CATALOG c") + rows(t_env, "DESCRIBE CATALOG EXTENDED c")), url


def test_identifiers_are_written_as_sql_has_them():
    identifier = ObjectIdentifier.of("c", "d`b", "t")
    assert str(identifier) == "`c`.`d``b`.`t`" and identifier.as_summary_string() == "c.d`b.t"
    assert identifier.to_object_path() == ObjectPath("d`b", "t")
    assert sorted([ObjectPath("b", "a"), ObjectPath("a", "b")])[0].compare_to(ObjectPath("b", "a")) == -1


def test_rows_of_a_sink_of_another_catalog_are_written(t_env, tmp_path: Path):
    run(
        t_env,
        f"CREATE CATALOG shop WITH ('type' = 'sql', 'url' = 'sqlite:///{tmp_path}/c.db')",
        "CREATE TABLE shop.`default`.copies (n BIGINT) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json')",
    )
    t_env.execute_sql("INSERT INTO shop.`default`.copies VALUES (1), (2)").wait()
    assert sorted(rows(t_env, "SELECT n FROM shop.`default`.copies")) == [(1,), (2,)]
    assert CatalogTableStatistics().get_row_count() == -1 and Row(1) == Row(1)
