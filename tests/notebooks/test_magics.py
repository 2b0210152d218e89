"""SQL in the cells of a notebook, in IPython without a kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from rayflink.common.types import Row
from rayflink.notebooks import load_ipython_extension
from rayflink.table import EnvironmentSettings, Table, TableEnvironment

GROUPS = "SELECT a, COUNT(*) AS n FROM (VALUES ('x'), ('y'), ('x')) AS t (a) GROUP BY a"


def local_environment() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")
    return t_env


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """Yield an IPython with the magics and a variable `t_env`."""
    shell = InteractiveShell(user_ns={"t_env": local_environment()})
    load_ipython_extension(shell)
    yield shell
    shell.history_manager.end_session()


def sql(shell: InteractiveShell, cell: str, line: str = "") -> object:
    return shell.run_cell_magic("rayflink_sql", line, cell)


def rows_of(table: object) -> list[Row]:
    assert isinstance(table, Table)
    return list(table.execute().collect())


def test_a_cell_runs_its_statements_and_gives_the_last_result(shell):
    table = sql(shell, "CREATE TEMPORARY VIEW t AS VALUES (1), (2); SELECT * FROM t")
    assert sorted(row[0] for row in rows_of(table)) == [1, 2]
    assert sql(shell, "SHOW VIEWS")._repr_html_().count("<td>t</td>") == 1
    assert sql(shell, " -- nothing\n") is None


def test_a_line_is_a_statement(shell):
    assert rows_of(shell.run_line_magic("rayflink_sql", "SELECT 'a' AS x")) == [Row("a")]


def test_a_result_goes_to_a_variable(shell):
    assert sql(shell, GROUPS, "groups") is None
    assert shell.user_ns["groups"].get_schema().get_field_names() == ["a", "n"]
    sql(shell, GROUPS, "frame --pandas")
    frame = shell.user_ns["frame"]
    assert dict(zip(frame["a"], frame["n"], strict=True)) == {"x": 2, "y": 1}


def test_variables_are_tables_as_they_are_now(shell):
    shell.user_ns["numbers"] = pd.DataFrame({"n": [1, 2]})
    shell.user_ns["more"] = shell.user_ns["t_env"].sql_query("SELECT n * 10 AS n FROM (VALUES (1)) AS v (n)")
    query = "SELECT SUM(n) FROM (SELECT n FROM numbers UNION ALL SELECT n FROM more) AS u"
    assert rows_of(sql(shell, query))[-1][0] == 13
    shell.user_ns["numbers"] = pd.DataFrame({"n": [5]})
    assert rows_of(sql(shell, query))[-1][0] == 15


def test_a_table_of_the_catalog_goes_before_a_variable(shell):
    sql(shell, "CREATE TEMPORARY VIEW numbers AS SELECT 'view' AS n")
    shell.user_ns["numbers"] = pd.DataFrame({"n": [1]})
    assert rows_of(sql(shell, "SELECT n FROM numbers")) == [Row("view")]


def test_an_insert_waits_where_it_is_told_to(shell, tmp_path):
    options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}'"
    job = sql(shell, f"CREATE TABLE sink (n INT) WITH ({options}); INSERT INTO sink VALUES (1)", "--wait")
    assert not job.is_running
    assert rows_of(sql(shell, "SELECT * FROM sink")) == [Row(1)]


def test_an_environment_is_chosen_by_its_variable(shell):
    shell.user_ns["other"] = local_environment()
    sql(shell, "CREATE TEMPORARY VIEW there AS SELECT 1 AS n", "--env other")
    assert shell.user_ns["other"].list_views() == ["there"]
    assert shell.user_ns["t_env"].list_views() == []


@pytest.mark.parametrize(
    ("cell", "line", "problem"),
    [
        ("SELECT missing", "", "there is no column 'missing'"),
        ("SELECT 1", "--nope", "unrecognized arguments: --nope; .*--help"),
        ("SELECT 1", "--env nothing", "the variable 'nothing' holds NoneType, expected a TableEnvironment"),
        ("SELECT 1", "--help", "usage: %%rayflink_sql"),
        ("SELECT 1", "it's", "No closing quotation: it's"),
        ("SELECT 1", "class", "'class' is no name of a variable"),
    ],
)
def test_an_error_is_one_message_without_a_trace(shell, capsys, cell, line, problem):
    if line == "--help":
        with pytest.raises(UsageError):
            sql(shell, cell, line)
        assert problem in capsys.readouterr().out
        return
    with pytest.raises(UsageError, match=problem):
        sql(shell, cell, line)


def test_a_frame_that_is_no_table_is_told_where_it_is_wanted(shell):
    shell.user_ns.update(n=pd.DataFrame({"a": [1, "x"]}), twice=pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert rows_of(sql(shell, "SELECT n FROM (VALUES (1)) AS t (n)")) == [Row(1)]
    for name, problem in (("n", "no type of SQL"), ("twice", "each a name of its own")):
        with pytest.raises(UsageError, match=f"the variable '{name}' is no table.*{problem}(.|\n)*there is no table"):
            sql(shell, f"SELECT * FROM {name}")
    shell.user_ns["n"] = pd.DataFrame()
    with pytest.raises(UsageError, match="has the columns \\[\\]; give it at least one column"):
        sql(shell, "SELECT * FROM n")


def test_functions_are_those_of_the_last_cell(shell):
    define = """
from rayflink.table import DataTypes
from rayflink.table.udf import udf
@udf(result_type=DataTypes.BIGINT())
def change(n):
    return n {}
t_env.drop_temporary_function("change")
t_env.create_temporary_function("change", change)
"""
    for formula, expected in (("+ 1", 6), ("* 10", 50)):
        assert shell.run_cell(define.format(formula)).success
        assert rows_of(sql(shell, "SELECT change(n) FROM (VALUES (5)) AS t (n)")) == [Row(expected)]
