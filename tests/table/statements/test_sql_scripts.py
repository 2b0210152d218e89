"""Scripts of SQL: how a text is divided into statements, in which order they run, and where errors are said to be."""

from __future__ import annotations

import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.parsing.statement_parser import script_parts
from rayflink.table.statements.sql_script import ScriptError


@pytest.fixture
def t_env():
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set("execution.target", "local").set("parallelism.default", "1")
    return found


@pytest.mark.parametrize("script, expected", [
    ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
    ("SELECT ';''; ' AS `a;``b`; SELECT 2;", ["SELECT ';''; ' AS `a;``b`", "SELECT 2"]),
    ("-- one; two\nSELECT 1 /* ; */ + 2;", ["-- one; two\nSELECT 1 /* ; */ + 2"]),
    (" ;; -- nothing;\n ; /* ; */", []),
    ("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END; SELECT 2",
     ["BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END", "SELECT 2"]),
    ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN b THEN 1 END; INSERT INTO a SELECT 2; END; USE b",
     ["EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN b THEN 1 END; INSERT INTO a SELECT 2; END",
      "USE b"]),
    ("SELECT `begin`, t.begin FROM t; SELECT CASE a WHEN 1 THEN 2 END; SELECT 3",
     ["SELECT `begin`, t.begin FROM t", "SELECT CASE a WHEN 1 THEN 2 END", "SELECT 3"]),
])  # fmt: skip
def test_semicolons_between_statements_divide_them(script, expected):
    assert [part.text.strip() for part in script_parts(script)] == expected


def test_statements_run_one_after_another(t_env, capsys):
    script = """
        CREATE TABLE shown (n INT) WITH ('connector' = 'print');
        CREATE VIEW numbers AS SELECT * FROM (VALUES (1), (2), (3)) AS t(n);
        INSERT INTO shown SELECT n FROM numbers WHERE n > 1;
        EXECUTE STATEMENT SET BEGIN
            INSERT INTO shown SELECT CASE WHEN n = 1 THEN 10 END FROM numbers WHERE n = 1;
        END;
        SHOW VIEWS;
        DROP VIEW numbers; SHOW VIEWS"""
    found = []
    t_env.execute_script(script, lambda result: found.append([tuple(row) for row in result.collect()]))
    assert capsys.readouterr().out.splitlines() == ["+I[2]", "+I[3]", "+I[10]"]
    assert found[4:] == [[("numbers",)], [("OK",)], []]


def test_results_are_printed_where_nothing_takes_them(t_env, capsys):
    t_env.execute_script("CREATE TABLE shown (n INT) WITH ('connector' = 'print'); INSERT INTO shown SELECT 7; USE "
                         "default_database; SELECT 8 AS n")  # fmt: skip
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["OK", "+I[7]"] and out[2].startswith("Job ") and out[2].endswith(" finished")
    assert out[3] == "OK" and "| +I |           8 |" in out


def test_the_mode_changes_within_a_script(t_env):
    found = []
    script = """SET 'execution.runtime-mode' = 'batch'; SELECT n FROM (VALUES (2), (1)) AS t(n) ORDER BY n;
        RESET 'execution.runtime-mode'; SELECT n FROM (VALUES (2), (1)) AS t(n) ORDER BY n"""
    with pytest.raises(ScriptError, match=r"line 2, column \d+: ORDER BY over an unbounded stream"):
        t_env.execute_script(script, lambda result: found.append([row[0] for row in result.collect()]))
    assert found[1] == [1, 2]


def error_of(t_env, script, origin=""):
    with pytest.raises(ScriptError) as caught:
        t_env.execute_script(script, lambda result: list(result.collect()), origin)
    return caught.value


def test_a_statement_that_cannot_be_read_keeps_all_from_running(t_env):
    error = error_of(t_env, "CREATE VIEW v AS SELECT 1;\n\n  SELEC 2;\nSELECT 3", "a.sql")
    assert (error.line, error.column) == (3, 3)
    assert str(error).startswith("a.sql, line 3, column 3: 'SELEC' begins no statement; ")
    assert str(error).splitlines()[-2:] == ["    SELEC 2;", "    ^^^^^"]
    assert t_env.list_views() == [] and isinstance(error.__cause__, SqlError)


@pytest.mark.parametrize("script, line, column", [
    ("SELECT 1;\nSELECT n\nFROM nothing", 3, 6),  # a word of it is wrong
    ("SELECT 1;\n  /* a */ DROP TABLE nothing;", 2, 22),
    ("SELECT 1;\n /* a\n */ SELECT 1, 'a;", 3, 15),  # a quote is not closed
    ("-- nothing", 1, 1),
])  # fmt: skip
def test_an_error_names_line_and_column(t_env, script, line, column):
    error = error_of(t_env, script)
    assert (error.line, error.column) == (line, column), str(error)


def test_a_job_that_fails_ends_the_script_at_its_statement(t_env):
    script = """CREATE TABLE shown (n INT NOT NULL) WITH ('connector' = 'print');
        -- fails
        INSERT INTO shown SELECT CAST(NULL AS INT);
        CREATE VIEW v AS SELECT 1"""
    error = error_of(t_env, script, "b.sql")
    assert str(error).startswith("b.sql, line 3, column 9: job ") and isinstance(error.__cause__, JobFailed)
    assert t_env.list_views() == []


def test_execute_sql_stays_one_statement(t_env):
    with pytest.raises(SqlError, match=r"found 2 statements, expected one; .*execute_script\(\)"):
        t_env.execute_sql("SELECT 1; SELECT 2")
