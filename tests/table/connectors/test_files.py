"""Tables in files: what is written is read again, column by column."""

from __future__ import annotations

import pyarrow
import pytest

from rayflink.common.errors import JobFailed
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import EnvironmentSettings, SqlError, StreamTableEnvironment, TableEnvironment

COLUMNS = """n BIGINT, w STRING, d DECIMAL(10, 2), b BOOLEAN, f DOUBLE, day DATE, at TIMESTAMP(3), i TIMESTAMP_LTZ(3)"""
VALUES = """(1, 'a,b', 1.25, TRUE, 1.5E0, DATE '2020-02-29', TIMESTAMP '2020-01-01 00:00:00.123', NULL),
  (2, NULL, NULL, FALSE, NULL, NULL, NULL, NULL), (3, 'it''s "x"', -0.05, NULL, -2E10, DATE '1999-12-31',
  TIMESTAMP '1969-12-31 23:59:59.999', NULL)"""


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local")
    found.get_config().set_string("table.local-time-zone", "UTC")
    return found


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_what_is_written_is_read_again(t_env, form, tmp_path):
    (tmp_path / "t").mkdir()
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = '{form}'"
    more = ", 'csv.null-literal' = 'none'" if form == "csv" else ""
    t_env.execute_sql(f"CREATE TABLE t ({COLUMNS}) WITH ({options}{more})")
    casts = "n, w, d, b, f, day, at, CAST(i AS TIMESTAMP_LTZ(3))"
    query = f"SELECT {casts} FROM (VALUES {VALUES}) AS v(n, w, d, b, f, day, at, i)"
    expected = t_env.sql_query(query).to_arrow().rename_columns(["n", "w", "d", "b", "f", "day", "at", "i"])
    t_env.execute_sql(f"INSERT INTO t {query}").wait()
    assert all(path.suffix == f".{form}" for path in (tmp_path / "t").glob("part-*"))
    found = t_env.from_path("t").to_arrow().sort_by("n")
    assert found.num_rows == 3
    for name in expected.column_names:
        assert found[name].to_pylist() == expected[name].cast(found[name].type).to_pylist(), name


def test_only_the_columns_that_are_asked_for_are_read(t_env, tmp_path):
    (tmp_path / "t").mkdir()
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = 'parquet'"
    t_env.execute_sql(f"CREATE TABLE t (a INT, b STRING, c INT) WITH ({options})")
    t_env.execute_sql("INSERT INTO t SELECT 1, 'x', 3").wait()
    query = "SELECT c + 1 AS more FROM t WHERE a > 0"
    assert "project=[a, c]" in t_env.explain_sql(query)
    assert t_env.sql_query(query).to_arrow().to_pydict() == {"more": [4]}
    assert t_env.sql_query("SELECT 1 AS one FROM t").to_arrow().to_pydict() == {"one": [1]}


def test_what_a_format_cannot_hold_is_reported_before_anything_starts(t_env, tmp_path):
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE t (a ARRAY<INT>) WITH ({options})")
    with pytest.raises(SqlError, match="CSV cannot represent column 'a'"):
        t_env.execute_sql("INSERT INTO t SELECT ARRAY[1]")
    t_env.execute_sql(f"CREATE TABLE u (a INT) PARTITIONED BY (a) WITH ({options})")
    with pytest.raises(SqlError, match="has only partition columns"):
        t_env.execute_sql("INSERT INTO u SELECT 1")
    t_env.execute_sql(f"CREATE TABLE v (a INT) WITH ({options}, 'csv.quote' = 'x')")
    with pytest.raises(SqlError, match="does not know an option 'quote'"):
        t_env.execute_sql("SELECT a FROM v")


def test_a_file_that_is_not_of_its_table_is_an_error_with_its_line(t_env, tmp_path):
    (tmp_path / "t.csv").write_text("1,a\ntwo,b\n")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't.csv'}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE t (n INT, w STRING) WITH ({options})")
    with pytest.raises(Exception, match="line 2"):
        t_env.from_path("t").to_arrow()


def test_an_empty_file_is_an_empty_table(t_env, tmp_path):
    (tmp_path / "t.csv").write_text("")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't.csv'}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE t (n INT, w STRING) WITH ({options})")
    found = t_env.from_path("t").to_arrow()
    assert found.num_rows == 0 and found.schema.field("n").type == pyarrow.int32()


def test_broken_csv_is_skipped_and_counted_where_that_is_wanted(t_env, tmp_path):
    text = '1,a,2020-01-01 00:00:00\ntwo,b,2020-01-02 00:00:00\n3,c,2020-01-03 00:00:00,more\n4,d\n\n5,"x,y",\n'
    (tmp_path / "t.csv").write_bytes(text.encode() + b"6,\xff,\n")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't.csv'}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE t (n INT, w STRING, ts TIMESTAMP(3)) WITH ({options})")
    with pytest.raises(Exception, match=r"t.csv', line 3"):
        t_env.from_path("t").to_arrow()
    t_env.execute_sql("ALTER TABLE t SET ('csv.ignore-parse-errors' = 'true')")
    found = t_env.from_path("t").to_arrow().to_pydict()
    assert found["n"] == [1, None, 4, 5]
    assert found["w"] == ["a", "b", "d", "x,y"]
    assert [None if one is None else one.day for one in found["ts"]] == [1, 2, None, None]
    assert t_env.sql_query("SELECT w FROM t").to_arrow().to_pydict()["w"][:2] == ["a", "b"]


def test_a_relative_path_begins_where_the_program_runs(tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "one.csv").write_text("1\n")
    monkeypatch.chdir(tmp_path)
    env = StreamExecutionEnvironment({"execution.target": "local"})
    t_env = StreamTableEnvironment.create(env)
    t_env.execute_sql("CREATE TABLE t (n INT) WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'csv')")
    stream = t_env.to_data_stream(t_env.from_path("t"))
    monkeypatch.chdir("/")  # as subtasks of a cluster that was started there
    assert [row.n for row in stream.execute_and_collect()] == [1]


def test_a_line_of_names_in_csv_is_an_error_with_a_remedy(t_env, tmp_path):
    (tmp_path / "t.csv").write_text("w,n\na,1\n")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path / 't.csv'}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE t (w STRING, n INT) WITH ({options})")
    with pytest.raises(JobFailed, match="line 1: .*; remove it if it holds the names of the columns"):
        t_env.from_path("t").to_arrow()


@pytest.mark.parametrize("more", ["", ", 'csv.ignore-parse-errors' = 'true'"])
def test_an_empty_text_is_a_text_unless_it_stands_for_null(t_env, more, tmp_path):
    (tmp_path / "t.csv").write_text(",\nx,1\n" + ("broken line,,,\n" if more else ""))
    for name, null, expected in (("a", "", ""), ("b", ", 'csv.null-literal' = ''", None)):
        t_env.execute_sql(
            f"CREATE TABLE {name} (k STRING, n INT) WITH ('connector' = 'filesystem', "
            f"'path' = '{tmp_path / 't.csv'}', 'format' = 'csv'{null}{more})"
        )
        found = {tuple(row) for row in t_env.execute_sql(f"SELECT k, n FROM {name}").collect()}
        assert found == {(expected, None), ("x", 1)}
