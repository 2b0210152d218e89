"""DDL from before Flink 1.11 defines tables of CSV files."""

from __future__ import annotations

import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.connectors.legacy_options import current_options

OLDER = {"connector.type": "filesystem", "connector.path": "/data", "format.type": "csv"}
NEWER = {"connector": "filesystem", "path": "/data", "format": "csv", "csv.ignore-surplus-values": "true"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"csv.disable-quote-character": "true"}),
        ({"format.quote-character": "'"}, {"csv.quote-character": "'"}),
        ({"format.field-delimiter": ";", "format.ignore-parse-errors": "true"},
         {"csv.disable-quote-character": "true", "csv.field-delimiter": ";", "csv.ignore-parse-errors": "true"}),
        ({"format.comment-prefix": "#", "format.empty-column-as-null": "true"},
         {"csv.disable-quote-character": "true", "csv.allow-comments": "true", "csv.null-literal": ""}),
        ({"update-mode": "append", "format.ignore-first-line": "false", "connector.property-version": "1"},
         {"csv.disable-quote-character": "true"}),
    ],
)  # fmt: skip
def test_older_options_have_names_of_today(options, expected):
    assert current_options({**OLDER, **options}, "t") == {**NEWER, **expected}


@pytest.mark.parametrize("options", [NEWER, {"connector": "print", "connector.type": "filesystem"}, {}])
def test_those_of_today_stay(options):
    assert current_options(options, "t") is options


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"connector.type": "kafka"}, "table t has 'connector.type' = 'kafka', and only 'filesystem' is there"),
        ({"format.type": "json"}, "'format.type' = 'json'"),
        ({"format.ignore-first-line": "true"}, "'format.ignore-first-line' = 'true'"),
        ({"format.fields.0.name": "a"}, r"table t has the option 'format\.fields\.0\.name' beside 'connector\.type'"),
    ],
)
def test_what_files_do_not_have_is_an_error(options, problem):
    with pytest.raises(SqlError, match=problem):
        current_options({**OLDER, **options}, "t")


def test_an_older_table_is_read_and_shown_as_it_was_written(tmp_path):
    (tmp_path / "t.csv").write_text("1|a|x\n2|b|y\n")
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")
    t_env.execute_sql(f"""
        CREATE TABLE t (n INT, w STRING) WITH ('connector.type' = 'filesystem', 'connector.path' = '{tmp_path}/t.csv',
        'format.type' = 'csv', 'format.field-delimiter' = '|')
    """)
    assert sorted(map(tuple, t_env.execute_sql("SELECT w, n FROM t").collect())) == [("a", 1), ("b", 2)]
    (tmp_path / "t.csv").write_text("1|a|x\n2|b\n")  # as many as in the first line
    with pytest.raises(JobFailed, match="line 2: Expected 3 columns, got 2"):
        list(t_env.execute_sql("SELECT n FROM t").collect())
    [[shown]] = t_env.execute_sql("SHOW CREATE TABLE t").collect()
    assert "'connector.type' = 'filesystem'" in shown and "'connector' =" not in shown
