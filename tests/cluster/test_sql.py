"""Queries of SQL on Ray: the rows of the golden queries, and a sink whose files are there once."""

from __future__ import annotations

import pytest

from rayflink.common import Row, RowKind
from rayflink.common.typeinfo import Types
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import StreamTableEnvironment
from rayflink.table.conversion.row_format import RowFormat
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

pytestmark = [pytest.mark.ray, pytest.mark.slow]


SOAKED = ("tumble_by_key", "first_by_event_time", "batch_join_order", "lookup_join_left")


@pytest.mark.parametrize("name", [
    "session", "distinct_union", "join_batch", *(pytest.param(name, marks=pytest.mark.soak) for name in SOAKED)
])  # fmt: skip
def test_a_query_on_ray_gives_the_rows_of_the_local_runner(cluster, name):
    query = GoldenQuery(FOLDER / name)
    rows = query.rows(query.environment(**{"execution.target": "ray"}))
    assert rows == query.expected.partition("== Rows ==\n")[2].splitlines()


def test_a_query_on_ray_writes_a_table(cluster, tmp_path):
    query = GoldenQuery(FOLDER / "tumble")
    t_env = query.environment(**{"execution.target": "ray", "execution.checkpointing.interval": "200 ms"})
    columns = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, amounts INT, dearest DECIMAL(10, 2)"
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet'"
    t_env.execute_sql(f"CREATE TABLE hours ({columns}) WITH ({options})")
    t_env.execute_sql(f"INSERT INTO hours {query.text}").wait()
    local = query.environment()
    local.execute_sql(f"CREATE TABLE hours ({columns}) WITH ({options})")
    result = local.execute_sql("SELECT * FROM hours")
    text = RowFormat(result.get_table_schema().get_field_data_types())
    assert sorted(map(text, result.collect())) == query.expected.partition("== Rows ==\n")[2].splitlines()


def test_the_job_of_an_insert_ends_with_its_limit_on_ray(cluster, tmp_path):
    query = GoldenQuery(FOLDER / "tumble")
    t_env = query.environment(**{"execution.target": "ray", "execution.checkpointing.interval": "200 ms"})
    t_env.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv'"
    t_env.execute_sql(f"CREATE TABLE few (n INT) WITH ({options})")
    t_env.execute_sql("INSERT INTO few SELECT n FROM numbers WHERE MOD(n, 2) = 0 LIMIT 30").wait(60_000)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    assert sum(len(path.read_text().splitlines()) for path in files) == 30


def test_fields_of_json_objects_are_read_on_ray(cluster, tmp_path):
    lines = [f'{{"bid": {{"auction": {n % 3}, "price": {n}, "url": "u{n}"}}}}\n' for n in range(3_000)]
    (tmp_path / "bids.json").write_text("".join(lines))
    t_env = GoldenQuery(FOLDER / "join_batch").environment(**{"execution.target": "ray"})
    row = "ROW<auction BIGINT, price BIGINT, url STRING>"
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    t_env.execute_sql(f"CREATE TABLE events (bid {row}) WITH ({options})")
    query = "SELECT bid.auction AS auction, SUM(bid.price) AS total FROM events GROUP BY bid.auction"
    assert "project=[bid.auction, bid.price]" in t_env.explain_sql(query)
    found = sorted(tuple(row) for row in t_env.execute_sql(query).collect())
    assert found == [(auction, sum(range(auction, 3_000, 3))) for auction in range(3)]


@pytest.mark.soak
def test_changes_of_rows_go_through_a_query_on_ray(cluster):
    env = StreamExecutionEnvironment({"execution.target": "ray"})
    env.set_parallelism(2)
    t_env = StreamTableEnvironment.create(env)
    changes = [Row.of_kind(kind, word, n) for n in range(50) for kind, word in _replaced(n)]
    types = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
    t_env.create_temporary_view("t", t_env.from_changelog_stream(env.from_collection(changes, types)))
    stream = t_env.to_changelog_stream(t_env.sql_query("SELECT UPPER(word) AS w, n FROM t"))
    again = t_env.from_changelog_stream(stream)
    found = [(row.get_row_kind(), *row) for row in t_env.to_changelog_stream(again).execute_and_collect()]
    assert found == [(row.get_row_kind(), row.word.upper(), row.n) for row in map(types.convert, changes)]


def _replaced(n):
    return [(RowKind.UPDATE_AFTER if n else RowKind.INSERT, "a"), (RowKind.UPDATE_BEFORE, "a")]
