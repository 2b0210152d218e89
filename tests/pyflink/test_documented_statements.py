"""What the pages of Flink 2.3 on statements of SQL say: CREATE, ALTER, DROP, DESCRIBE, SHOW, USE, SET, INSERT."""

from __future__ import annotations

import pytest

from rayflink.table import SqlError
from tests.pyflink.documented_programs import environment, final_rows, printed

GENERATED = "WITH ('connector' = 'datagen')"


def run(t_env, *statements):
    for statement in statements:
        assert printed(t_env, statement) == ["OK"]


def test_a_table_is_altered_step_by_step():
    t_env = environment()
    run(t_env, f"CREATE TABLE Orders (`user` BIGINT, product STRING, amount INT) {GENERATED}",
        "ALTER TABLE Orders ADD `order` INT COMMENT 'order identifier' FIRST")  # fmt: skip
    assert printed(t_env, "DESCRIBE Orders") == [
        "order INT True - - - order identifier", "user BIGINT True - - - -",
        "product STRING True - - - -", "amount INT True - - - -"]  # fmt: skip
    run(t_env, "ALTER TABLE Orders ADD (ts TIMESTAMP(3), category STRING AFTER product, "
        "PRIMARY KEY(`order`) NOT ENFORCED, WATERMARK FOR ts AS ts - INTERVAL '1' HOUR)")  # fmt: skip
    described = printed(t_env, "DESCRIBE Orders")
    assert described[0] == "order INT False PRI(order) - - order identifier"
    assert described[3:] == ["category STRING True - - - -", "amount INT True - - - -",
                             "ts TIMESTAMP(3) *ROWTIME* True - - ts - INTERVAL '1' HOUR -"]  # fmt: skip
    run(t_env, "ALTER TABLE Orders MODIFY (amount DOUBLE NOT NULL, category STRING COMMENT 'category identifier' "
        "AFTER `order`, WATERMARK FOR ts AS ts)")  # fmt: skip
    described = printed(t_env, "DESC Orders")
    assert described[1] == "category STRING True - - - category identifier"
    assert described[4:] == ["amount DOUBLE False - - - -", "ts TIMESTAMP(3) *ROWTIME* True - - ts -"]
    with pytest.raises(SqlError, match=r"column 'ts' is one of WATERMARK; ALTER TABLE \.\.\. DROP WATERMARK first"):
        t_env.execute_sql("ALTER TABLE Orders DROP ts")
    with pytest.raises(SqlError, match="column 'order' is one of PRIMARY KEY"):
        t_env.execute_sql("ALTER TABLE Orders DROP `order`")
    run(t_env, "ALTER TABLE Orders DROP WATERMARK", "ALTER TABLE Orders DROP (amount, ts, category)",
        "ALTER TABLE Orders RENAME `order` TO order_id")  # fmt: skip
    assert printed(t_env, "DESC Orders")[0] == "order_id INT False PRI(order_id) - - order identifier"
    run(t_env, "ALTER TABLE Orders RENAME TO NewOrders")
    assert printed(t_env, "SHOW TABLES") == ["NewOrders"]


def test_columns_of_clauses_are_not_renamed():
    t_env = environment()
    run(t_env, f"CREATE TABLE t (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) PARTITIONED BY (a) {GENERATED}")
    for column, clause in (("ts", "WATERMARK"), ("a", "PARTITIONED BY")):
        with pytest.raises(SqlError, match=f"column '{column}' is one of {clause}; "):
            t_env.execute_sql(f"ALTER TABLE t RENAME {column} TO b")


def test_options_are_set_and_reset():
    t_env = environment()
    run(t_env, f"CREATE TABLE t (id BIGINT) {GENERATED}",
        "ALTER TABLE t SET ('rows-per-second' = '10', 'rows-per-second' = '20')", "ALTER TABLE t SET ()")  # fmt: skip
    assert "'rows-per-second' = '20'" in printed(t_env, "SHOW CREATE TABLE t")[0]
    run(t_env, "ALTER TABLE t RESET ('rows-per-second', 'invalid-key')")
    assert "rows-per-second" not in printed(t_env, "SHOW CREATE TABLE t")[0]
    with pytest.raises(SqlError, match=r"RESET of 'connector', .*; write SET \('connector' = "):
        t_env.execute_sql("ALTER TABLE t RESET ('connector')")
    with pytest.raises(SqlError, match="a text in quotes is wanted"):
        t_env.execute_sql("ALTER TABLE t RESET ()")
    run(t_env, "ALTER TABLE IF EXISTS nothing RENAME TO x")


def test_columns_are_added_moved_and_computed():
    t_env = environment()
    run(t_env, f"CREATE TABLE t (id BIGINT, measurement INT) {GENERATED}",
        "ALTER TABLE t ADD (log_ts STRING COMMENT 'log timestamp string' FIRST, ts AS TO_TIMESTAMP(log_ts) "
        "AFTER log_ts, PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)",
        "ALTER TABLE t MODIFY measurement double COMMENT 'unit is bytes per second' AFTER `id`",
        "ALTER TABLE t MODIFY (log_ts STRING AFTER `id`, ts AS TO_TIMESTAMP(log_ts) AFTER log_ts, "
        "PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts)")  # fmt: skip
    assert [row.split()[0] for row in printed(t_env, "DESC t")] == ["id", "log_ts", "ts", "measurement"]
    assert printed(t_env, "DESC t")[2] == "ts TIMESTAMP(3) *ROWTIME* True - AS TO_TIMESTAMP(log_ts) ts -"
    run(t_env, "ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t DROP measurement")
    assert "PRI(" not in " ".join(printed(t_env, "SHOW COLUMNS FROM t"))


ORDERS = (
    "CREATE TABLE orders (order_id BIGINT NOT NULL comment 'the key, named ''order_id''.', product VARCHAR(32), "
    "ts TIMESTAMP(3), ptime AS PROCTIME() comment 'computed', WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, "
    "CONSTRAINT `PK_order_id` PRIMARY KEY (order_id) NOT ENFORCED) WITH ('connector' = 'datagen')"
)


def test_a_table_is_shown_and_like_another():
    t_env = environment()
    run(t_env, ORDERS)
    created = printed(t_env, "show create table orders")[0].splitlines()
    assert created[0] == "CREATE TABLE `default_catalog`.`default_database`.`orders` ("
    assert created[1] == "  `order_id` BIGINT NOT NULL COMMENT 'the key, named ''order_id''.',"
    assert "  `ptime` AS PROCTIME() COMMENT 'computed'," in created
    columns = printed(t_env, "show columns in default_database.orders like '%t%'")
    assert columns == ["product VARCHAR(32) True - - - -",
                       "ts TIMESTAMP(3) *ROWTIME* True - - ts - INTERVAL '1' SECOND -",
                       "ptime TIMESTAMP_LTZ(3) *PROCTIME* False - AS PROCTIME() - computed"]  # fmt: skip
    rest = printed(t_env, "show columns from orders not like '%t%'")
    assert rest == ["order_id BIGINT False PRI(order_id) - - the key, named 'order_id'."]
    run(t_env, "CREATE TABLE slow (WATERMARK FOR ts AS ts) WITH ('number-of-rows' = '3') "
        "LIKE orders (OVERWRITING WATERMARKS)",
        "CREATE TABLE sink (x INT) WITH ('connector' = 'print') LIKE orders (EXCLUDING ALL INCLUDING GENERATED)",
    )  # fmt: skip
    assert "'number-of-rows' = '3'" in printed(t_env, "SHOW CREATE TABLE slow")[0]
    assert [row.split()[0] for row in printed(t_env, "DESC sink")] == ["order_id", "product", "ts", "ptime", "x"]


def test_catalogs_databases_and_views():
    t_env = environment()
    run(t_env, "CREATE CATALOG cat2 WITH ('type'='generic_in_memory')",
        "ALTER CATALOG cat2 SET ('default-database'='db_new')")  # fmt: skip
    facts = ["name cat2", "type generic_in_memory", "comment "]
    assert printed(t_env, "DESCRIBE CATALOG cat2") == facts
    assert printed(t_env, "DESC CATALOG EXTENDED cat2") == [*facts, "option:default-database db_new"]
    run(t_env, "ALTER CATALOG cat2 RESET ('default-database')",
        "ALTER CATALOG cat2 COMMENT 'comment for catalog ''cat2'''")  # fmt: skip
    assert printed(t_env, "DESC CATALOG EXTENDED cat2")[2:] == ["comment comment for catalog 'cat2'"]
    for pattern in ("LIKE 'cat%'", "ILIKE 'CAT_'", "NOT ILIKE 'DEFAULT%'"):
        assert printed(t_env, f"SHOW CATALOGS {pattern}") == ["cat2"]
    for pattern in ("LIKE 'CAT2'", r"LIKE 'ca\_2'", r"LIKE 'cat2\%'"):
        assert printed(t_env, f"SHOW CATALOGS {pattern}") == []
    run(t_env, "CREATE DATABASE IF NOT EXISTS db1 COMMENT 'c' WITH ('k' = 'v')", "ALTER DATABASE db1 SET ('k' = 'w')",
        f"CREATE TABLE db1.person (id INT) {GENERATED}", f"CREATE TABLE db1.dim (id INT) {GENERATED}",
        "USE db1")  # fmt: skip
    assert printed(t_env, "SHOW CURRENT DATABASE") + printed(t_env, "SHOW CURRENT CATALOG") == [
        "db1", "default_catalog"]  # fmt: skip
    for of in ("from db1", "in default_catalog.db1"):
        assert printed(t_env, f"show tables {of} like '%n'") == ["person"]
        assert printed(t_env, f"show tables {of} not like '%n'") == ["dim"]
    run(t_env, "CREATE VIEW v AS SELECT id FROM person", "ALTER VIEW v RENAME TO w",
        "ALTER VIEW w AS SELECT id + 1 AS id FROM person")  # fmt: skip
    assert printed(t_env, "SHOW VIEWS") == ["w"]
    assert "id + 1 AS id" in printed(t_env, "SHOW CREATE VIEW w")[0]
    run(t_env, "DROP VIEW w", "DROP VIEW IF EXISTS w", "USE default_database", "DROP DATABASE db1 CASCADE",
        "DROP DATABASE IF EXISTS db1 RESTRICT", "DROP CATALOG cat2", "DROP TABLE IF EXISTS t")  # fmt: skip


def test_there_is_the_module_core():
    t_env = environment()
    assert printed(t_env, "SHOW MODULES") == ["core"]
    assert printed(t_env, "SHOW FULL MODULES") == ["core True"]
    run(t_env, "USE MODULES core")
    with pytest.raises(SqlError, match="modules hive, core, and there is only 'core'"):
        t_env.execute_sql("USE MODULES hive, core")
    with pytest.raises(SqlError, match="there is no database 'modules'"):
        t_env.execute_sql("USE modules")


def test_options_of_the_session_are_set_and_reset():
    t_env = environment()
    run(t_env, "SET 'table.local-time-zone' = 'Europe/Berlin'")
    assert "table.local-time-zone Europe/Berlin" in printed(t_env, "SET")
    run(t_env, "RESET 'table.local-time-zone'")
    assert not [row for row in printed(t_env, "SET") if row.startswith("table.local-time-zone")]


QUERY = (
    "SELECT `count`, COUNT(word) FROM (SELECT `count`, word FROM t1 WHERE word LIKE 'F%' "
    "UNION ALL SELECT `count`, word FROM t2) tmp GROUP BY `count`"
)


def test_a_query_is_explained_with_its_details():
    t_env = environment()
    run(t_env, *(f"CREATE TABLE {name} (`count` bigint, word VARCHAR(256)) {GENERATED}" for name in ("t1", "t2")))
    [plan] = printed(t_env, f"EXPLAIN PLAN FOR {QUERY}")
    assert plan == t_env.explain_sql(QUERY)
    for title in ("Abstract Syntax Tree", "Optimized Physical Plan", "Optimized Execution Plan"):
        assert f"== {title} ==" in plan
    [plan] = printed(t_env, f"EXPLAIN ESTIMATED_COST, CHANGELOG_MODE, PLAN_ADVICE, JSON_EXECUTION_PLAN {QUERY}")
    for part in ("== Optimized Physical Plan With Advice ==", "changelogMode=[I,UA]", "rowcount = ", "cumulative cost",
                 "advice[1]: [ADVICE] You might want to enable local-global", '"nodes"'):  # fmt: skip
        assert part in plan


def test_rows_are_inserted_by_values_partition_and_set(tmp_path):
    t_env = environment(batch=True)
    files = "WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{}')"
    run(t_env, "CREATE TABLE students (name STRING, age INT, gpa DECIMAL(3, 2)) " + files.format(tmp_path / "s"),
        "CREATE TABLE page_view (`user` STRING, cnt INT, `date` STRING, country STRING) "
        "PARTITIONED BY (`date`, country) " + files.format(tmp_path / "p"))  # fmt: skip
    t_env.execute_sql("INSERT INTO students VALUES ('fred flintstone', 35, 1.28), ('barney rubble', 32, 2.32)").wait()
    t_env.execute_sql(
        "EXECUTE STATEMENT SET BEGIN INSERT INTO students VALUES ('wilma', 33, 3.0); INSERT INTO students (name) "
        "VALUES ('dino'); END"
    ).wait()
    assert final_rows(t_env, "SELECT * FROM students") == [
        "barney rubble 32 2.32", "dino - -", "fred flintstone 35 1.28", "wilma 33 3.00"]  # fmt: skip
    for statement in (
        "INSERT INTO page_view PARTITION (`date`='2019-8-30', country='China') SELECT 'a', 1",
        "EXECUTE INSERT INTO page_view PARTITION (`date`='2019-8-30') SELECT 'b', 2, 'Peru'",
        "INSERT OVERWRITE page_view PARTITION (`date`='2019-8-30', country='China') SELECT 'c', 3",
        "INSERT INTO page_view PARTITION (`date`='2019-8-30', country='China') (`user`) SELECT 'd'",
    ):
        t_env.execute_sql(statement).wait()
    assert final_rows(t_env, "SELECT * FROM page_view") == [
        "b 2 2019-8-30 Peru", "c 3 2019-8-30 China", "d - 2019-8-30 China"]  # fmt: skip
