"""Files whose lines are messages of change data capture, or raw."""

from __future__ import annotations

import json

import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment

ENVELOPES = {
    "debezium-json": (
        {"before": None, "after": {"id": 1, "name": "a"}, "op": "c"},
        {"before": {"id": 1, "name": "a"}, "after": {"id": 1, "name": "b"}, "op": "u"},
        {"before": None, "after": {"id": 2, "name": "c"}, "op": "r"},
        {"before": {"id": 2, "name": "c"}, "after": None, "op": "d"},
    ),
    "canal-json": (
        {"data": [{"id": "1", "name": "a"}], "type": "INSERT"},
        {"data": [{"id": "1", "name": "b"}], "old": [{"name": "a"}], "type": "UPDATE"},
        {"data": [{"id": "2", "name": "c"}], "type": "INSERT"},
        {"data": [{"id": "2", "name": "c"}], "type": "DELETE"},
    ),
    "maxwell-json": (
        {"data": {"id": 1, "name": "a"}, "type": "insert"},
        {"data": {"id": 1, "name": "b"}, "old": {"name": "a"}, "type": "update"},
        {"data": {"id": 2, "name": "c"}, "type": "insert"},
        {"data": {"id": 2, "name": "c"}, "type": "delete"},
    ),
}


@pytest.fixture
def t_env() -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    created.get_config().set_string("execution.target", "local")
    return created


def _table(t_env, name, path, form, columns="id INT, name STRING", more=""):
    options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = '{form}'{more}"
    t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")


def _rows(result):
    return [(row.get_row_kind().name, *row) for row in result.collect()]


@pytest.mark.slow
@pytest.mark.parametrize("form", ENVELOPES)
def test_lines_of_change_data_capture_are_changes_of_rows(t_env, tmp_path, form):
    lines = [json.dumps(envelope) for envelope in ENVELOPES[form]]
    (tmp_path / "changes").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _table(t_env, "t", tmp_path, form, "id INT, name STRING, f STRING METADATA FROM 'file.name' VIRTUAL")
    rows = _rows(t_env.execute_sql("SELECT name, f, id FROM t"))
    assert rows == [
        ("INSERT", "a", "changes", 1), ("UPDATE_BEFORE", "a", "changes", 1), ("UPDATE_AFTER", "b", "changes", 1),
        ("INSERT", "c", "changes", 2), ("DELETE", "c", "changes", 2),
    ]  # fmt: skip


@pytest.mark.slow
def test_changes_are_written_as_lines_and_read_again(t_env, tmp_path):
    _table(t_env, "t", tmp_path / "t", "debezium-json", "name STRING, n BIGINT NOT NULL")
    values = "(VALUES ('x'), ('y'), ('x')) AS v(name)"
    t_env.execute_sql(f"INSERT INTO t SELECT name, COUNT(*) FROM {values} GROUP BY name").wait()
    lines = [json.loads(line) for path in (tmp_path / "t").rglob("part-*") for line in path.read_text().splitlines()]
    assert {"before": {"name": "x", "n": 1}, "after": None, "op": "d"} in lines and len(lines) == 4
    last = {row[1]: row[2] for row in _rows(t_env.execute_sql("SELECT * FROM t")) if row[0] != "DELETE"}
    assert last == {"x": 2, "y": 1}


@pytest.mark.slow
def test_a_malformed_line_is_named_or_left_out(t_env, tmp_path):
    lines = [json.dumps(ENVELOPES["debezium-json"][0]), '{"op": "c"}', "no JSON"]
    (tmp_path / "changes").write_text("\n".join(lines), encoding="utf-8")
    _table(t_env, "t", tmp_path, "debezium-json")
    with pytest.raises(JobFailed, match="changes', line 2: .*'after' is null"):
        list(t_env.execute_sql("SELECT * FROM t").collect())
    _table(t_env, "u", tmp_path, "debezium-json", more=", 'malformed-records' = 'skip'")
    assert _rows(t_env.execute_sql("SELECT * FROM u")) == [("INSERT", 1, "a")]


@pytest.mark.slow
def test_raw_lines_are_values_of_one_column(t_env, tmp_path):
    _table(t_env, "t", tmp_path / "t", "raw", "line STRING")
    t_env.execute_sql("INSERT INTO t VALUES ('a b'), ('c')").wait()
    assert sorted(_rows(t_env.execute_sql("SELECT * FROM t"))) == [("INSERT", "a b"), ("INSERT", "c")]


def test_partitions_do_not_go_with_changes(t_env, tmp_path):
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'maxwell-json'"
    t_env.execute_sql(f"CREATE TABLE t (id INT, name STRING) PARTITIONED BY (name) WITH ({options})")
    with pytest.raises(SqlError, match="is partitioned, and its format 'maxwell-json' has changes of rows"):
        t_env.execute_sql("INSERT INTO t SELECT 1, 'a'")
