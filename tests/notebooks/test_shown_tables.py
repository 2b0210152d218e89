"""Tables and results that show themselves, and live tables, without a notebook."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from rayflink.common.errors import JobCancelled, JobFailed
from rayflink.notebooks import follow, live
from rayflink.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment

ENDLESS = "CREATE TEMPORARY TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')"


@pytest.fixture
def t_env() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("execution.target", "local")
    return environment


def html_of(t_env: TableEnvironment, query: str) -> str:
    return t_env.sql_query(query)._repr_html_()


def test_a_table_shows_its_columns_and_first_rows(t_env):
    html = html_of(t_env, "SELECT id, name FROM (VALUES (1, '<b>'), (2, CAST(NULL AS STRING))) AS t (id, name)")
    assert '<th scope="col" class="rayflink-number">id<br><span class="rayflink-type">INT NOT NULL</span></th>' in html
    assert '<td class="rayflink-number">1</td><td>&lt;b&gt;</td>' in html
    assert '<td class="rayflink-null">NULL</td>' in html
    assert html.endswith("<p>2 rows</p>")


@pytest.mark.parametrize(("rows", "note"), [(2, "the first 2 rows; there are more"), (3, "3 rows")])
def test_there_are_no_more_rows_than_are_wanted(t_env, rows, note):
    t_env.get_config().set("rayflink.display.rows", str(rows))
    html = html_of(t_env, "SELECT n FROM (VALUES (1), (2), (3)) AS t (n)")
    assert html.count('<td class="rayflink-number">') == rows
    assert html.endswith(f"<p>{note}</p>")


def test_rows_that_change_are_shown_as_they_are_in_the_end(t_env):
    html = html_of(t_env, "SELECT a, COUNT(*) AS n FROM (VALUES ('x'), ('x'), ('y')) AS t (a) GROUP BY a")
    assert '<td>x</td><td class="rayflink-number">2</td>' in html
    assert html.endswith("<p>2 rows</p>")


def test_a_query_without_end_is_not_run(t_env):
    t_env.execute_sql(ENDLESS)
    html = html_of(t_env, "SELECT n FROM endless")
    assert "no rows are shown, as " in html
    assert "endless" in html and "live(table)" in html
    assert "<p>1 row</p>" in html_of(t_env, "SELECT n FROM endless LIMIT 1")


def test_no_query_is_run_where_no_rows_are_wanted(t_env):
    t_env.get_config().set("rayflink.display.rows", "0")
    assert "rayflink.display.rows is 0" in html_of(t_env, "SELECT 1 / (n - n) FROM (VALUES (1)) AS t (n)")


def test_an_error_becomes_the_note(t_env):
    assert "no rows are shown: " in html_of(t_env, "SELECT 1 / (n - n) FROM (VALUES (1)) AS t (n)")


def test_a_slow_query_is_ended(t_env):
    t_env.get_config().set("rayflink.display.timeout", "1 ms")
    options = "'connector' = 'datagen', 'rows-per-second' = '1', 'number-of-rows' = '1000000'"
    t_env.execute_sql(f"CREATE TEMPORARY TABLE slow (n INT) WITH ({options})")
    assert "rows that came within 0.001 seconds; the query was ended then" in html_of(t_env, "SELECT n FROM slow")


def test_results_of_statements_show_themselves(t_env):
    assert t_env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS n")._repr_html_() == "<p>OK</p>"
    assert "<td>v</td>" in t_env.execute_sql("SHOW VIEWS")._repr_html_()
    assert "<pre>== Abstract Syntax Tree ==" in t_env.execute_sql("EXPLAIN SELECT * FROM v")._repr_html_()
    result = t_env.execute_sql("SELECT * FROM v")
    assert "rows are drawn once" in result._repr_html_()
    assert len(list(result.collect())) == 1


def test_a_live_table_follows_its_query_to_its_end(t_env, capsys):
    view = live(t_env.sql_query("SELECT a, COUNT(*) AS n FROM (VALUES ('x'), ('x')) AS t (a) GROUP BY a"))
    view.wait()
    assert [tuple(row) for row in view.rows()] == [("x", 2)]
    assert not view.is_running
    assert "rows: 1, changes: 3" in repr(view)
    printed = capsys.readouterr().out
    assert "the query has ended" in printed and "| x" in printed.replace("|  ", "|").replace("  ", " ")


@pytest.mark.parametrize("cell", [
    "live(t_env.sql_query('SELECT 7 AS n'), block=True)",
    "follow(t_env.execute_sql('INSERT INTO nowhere SELECT 7').get_job_client(), block=True)",
], ids=["live", "follow"])  # fmt: skip
def test_a_view_is_shown_once_in_its_cell_and_in_a_line_elsewhere(t_env, monkeypatch, cell):
    t_env.execute_sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole')")
    shell = InteractiveShell(user_ns={"t_env": t_env, "live": live, "follow": follow})
    shell.kernel = object()  # the mark of a notebook
    monkeypatch.setattr(InteractiveShell, "_instance", shell)
    for command, lines in ((f"view = {cell}\nview", 0), ("view", 1)):
        with capture_output() as shown:
            assert shell.run_cell(command, store_history=True).success
        strings = [output.data["text/plain"] for output in shown.outputs]
        assert "".join([shown.stdout, *strings]).count("View(") == lines
        assert shown.outputs
    shell.history_manager.end_session()


def test_a_live_table_is_stopped(t_env):
    t_env.execute_sql(ENDLESS)
    view = live(t_env.sql_query("SELECT n FROM endless"), rows=3)
    assert view.is_running
    view.stop()
    assert not view.is_running
    assert "the query has ended" in repr(view)


def test_a_live_table_that_fails_says_so(t_env):
    with pytest.raises(JobFailed, match="division by zero"):
        live(t_env.sql_query("SELECT 1 / (n - n) FROM (VALUES (1)) AS t (n)"), block=True)


def test_a_stream_table_shows_itself():
    t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")
    assert "<p>2 rows</p>" in t_env.from_elements([(1,), (2,)], ["n"])._repr_html_()


def test_the_progress_of_a_job_is_followed_to_its_end(t_env, capsys):
    t_env.execute_sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole')")
    job = t_env.execute_sql("INSERT INTO nowhere SELECT n FROM (VALUES (1), (2)) AS t (n)").get_job_client()
    view = follow(job, block=True)
    assert repr(view) == f"JobView({job.get_job_id()}, ended)"
    printed = capsys.readouterr().out
    assert "FINISHED" in printed and "nowhere" in printed


def test_a_job_is_cancelled_by_its_view(t_env):
    t_env.execute_sql(ENDLESS)
    t_env.execute_sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole')")
    view = follow(t_env.execute_sql("INSERT INTO nowhere SELECT n FROM endless").get_job_client())
    assert view.is_running
    view.cancel()
    with pytest.raises(JobCancelled):
        view.wait()
