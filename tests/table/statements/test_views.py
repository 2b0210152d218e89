"""Views in errors and plans: which one, and where in its own text."""

from __future__ import annotations

import pytest

from rayflink.common.typeinfo import Types
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import SqlError, StreamTableEnvironment
from rayflink.table.statements.sql_script import ScriptError

NUMBERED = "SELECT n,\n  ROW_NUMBER() OVER (PARTITION BY n ORDER BY s) AS r\nFROM t"


@pytest.fixture
def t_env():
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
    found = StreamTableEnvironment.create(env)
    rows = env.from_collection([(1, "a"), (2, "b")], Types.ROW_NAMED(["n", "s"], [Types.INT(), Types.STRING()]))
    found.create_temporary_view("t", rows)
    found.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')")
    return found


def error(t_env, statement: str) -> str:
    with pytest.raises(SqlError) as raised:
        t_env.execute_sql(statement)
    return str(raised.value)


def test_what_is_wrong_in_the_query_of_a_new_view_stands_in_the_statement(t_env):
    found = error(t_env, "CREATE VIEW bad AS\nSELECT n,\n  x FROM t")
    assert found == "line 3, column 3: there is no column 'x'; the columns are n, s\n    x FROM t\n    ^"
    found = error(t_env, "CREATE TEMPORARY VIEW IF NOT EXISTS bad (a)\nCOMMENT 'SELECT s + 1' AS SELECT s + 1 FROM t")
    assert found.startswith("line 2, column 34: ")
    assert error(t_env, "CREATE VIEW bad AS SELECT n FROM t SORT BY n").startswith("line 1, column 36: ")
    t_env.execute_sql("CREATE VIEW good AS SELECT n FROM t")
    assert error(t_env, "ALTER VIEW good AS\nSELECT 1, x FROM t").startswith("line 2, column 11: ")


def test_a_script_says_which_line_of_a_view_is_wrong(t_env):
    with pytest.raises(ScriptError) as raised:
        t_env.execute_script("CREATE VIEW a AS SELECT n FROM t;\nCREATE VIEW b AS\n  SELECT x FROM a;", origin="a.sql")
    assert str(raised.value).startswith("a.sql, line 3, column 10: there is no column 'x'")


def test_a_view_whose_query_means_nothing_any_more_is_named_with_those_that_read_it(t_env):
    t_env.execute_sql("CREATE VIEW one AS SELECT 0 AS z,\n n + 1 AS k FROM numbers")
    t_env.execute_sql("CREATE VIEW two AS SELECT k FROM one")
    t_env.execute_sql("ALTER TABLE numbers RENAME n TO m")
    found = error(t_env, "SELECT *\nFROM one")
    assert found.startswith("view 'one', line 2, column 2: there is no column 'n'; the columns are m\n   n + 1 AS k")
    assert error(t_env, "SELECT * FROM two").startswith("view 'one' (used by view 'two'), line 2, column 2: ")
    t_env.execute_sql("CREATE DATABASE other")
    t_env.execute_sql("USE other")
    assert error(t_env, "DESCRIBE default_database.one").startswith("view 'default_catalog.default_database.one', line")


def test_what_cannot_be_run_of_a_view_is_shown_in_its_query(t_env):
    t_env.execute_sql(f"CREATE VIEW numbered AS\n{NUMBERED}")
    t_env.execute_sql("CREATE VIEW outer_one AS SELECT * FROM numbered")
    expected = "view 'numbered', line 2, column 3: ROW_NUMBER() of all rows of a stream"
    for statement in ("SELECT * FROM numbered", "SELECT r FROM outer_one", "EXPLAIN SELECT * FROM numbered"):
        found = error(t_env, statement)
        assert found.startswith(expected)
        assert found.endswith(f"{NUMBERED.splitlines()[1]}\n    {'^' * 44}")


def test_a_table_and_the_view_that_it_became_show_the_text_that_it_was_made_of(t_env):
    table = t_env.sql_query(NUMBERED)
    with pytest.raises(SqlError, match=r"^line 2, column 3: ROW_NUMBER\(\) of all rows"):
        table.execute()
    t_env.create_temporary_view("numbered", table)
    assert error(t_env, "SELECT 1 FROM t UNION ALL SELECT n FROM numbered").startswith("view 'numbered', line 2, col")


def test_plans_name_views_and_the_views_of_streams_and_tables_without_a_name(t_env):
    t_env.create_temporary_view("held", t_env.from_elements([(1,)], ["n"]))
    t_env.execute_sql("CREATE VIEW one AS SELECT n FROM t WHERE n > 1")
    t_env.execute_sql("CREATE VIEW two AS SELECT n + 1 AS n FROM one")
    found = t_env.explain_sql("SELECT n FROM two WHERE n > 2 UNION ALL SELECT n FROM held")
    written, _, run = found.partition("== Optimized Physical Plan ==")
    assert "Project(select=[n + 1 AS n]) of view default_catalog.default_database.two\n" in written
    assert "Project(select=[n]) of view default_catalog.default_database.one\n" in written
    for name in ("t", "held"):
        assert f"TableSourceScan(table=[[default_catalog, default_database, {name}" in run
    assert "Unregistered" not in found


def test_a_view_reads_the_tables_of_the_database_where_it_was_made(t_env):
    t_env.execute_sql("CREATE VIEW one AS SELECT n FROM t")
    for statement in ("CREATE DATABASE other", "USE other", "CREATE VIEW t AS SELECT 'x' AS n"):
        t_env.execute_sql(statement)
    rows = t_env.execute_sql("SELECT * FROM default_database.one").collect()
    assert sorted(row[0] for row in rows) == [1, 2]
    assert t_env._context.catalogs.database == "other"


def test_a_view_that_reads_itself_is_refused(t_env):
    t_env.execute_sql("CREATE VIEW one AS SELECT n FROM t")
    t_env.execute_sql("CREATE VIEW two AS SELECT n FROM one")
    t_env.execute_sql("ALTER VIEW one AS SELECT n FROM two")
    found = error(t_env, "SELECT * FROM one")
    assert found.startswith("view 'two' (used by view 'one'), line 1, column 15: view 'one' reads itself")
