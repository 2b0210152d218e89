"""Numbers of rows as queries ask for them, beside DuckDB, and in windows of local time."""

from __future__ import annotations

import duckdb
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table import EnvironmentSettings, TableEnvironment

SCHEMA = pyarrow.schema(
    [("id", pyarrow.int64()), ("word", pyarrow.string()), ("n", pyarrow.int32()), ("x", pyarrow.float64())]
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "ab", "ä", None]),
        st.none() | st.integers(-3, 3),
        st.none() | st.sampled_from([0.0, 1.5, -2.25, float("inf")]),
    ),
    min_size=1,
    max_size=40,
)
QUERIES = [
    "SELECT id, ROW_NUMBER() OVER (PARTITION BY word ORDER BY n NULLS FIRST, id) AS place FROM t",
    "SELECT id, word, ROW_NUMBER() OVER (ORDER BY word DESC NULLS LAST, x NULLS FIRST, id DESC) AS place FROM t",
    "SELECT id, n FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY word, n ORDER BY x DESC NULLS LAST, id) <= 2",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY n ORDER BY id DESC) AS place FROM t) "
    "WHERE place BETWEEN 2 AND 3 AND id > 4",
    "SELECT id, n FROM t WHERE id <> 3 QUALIFY ROW_NUMBER() OVER (PARTITION BY n + 1 ORDER BY -id) = 1",
    "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS a, ROW_NUMBER() OVER (PARTITION BY word ORDER BY x NULLS FIRST, id) "
    "AS b FROM t QUALIFY b < 3 AND a > 2",
    "SELECT id, word, x FROM t ORDER BY word NULLS LAST, x DESC NULLS FIRST, id",
    "SELECT id, x FROM t ORDER BY x DESC NULLS LAST, id DESC LIMIT 5 OFFSET 3",
    "SELECT id AS i FROM t ORDER BY n * -1 NULLS LAST, word DESC NULLS LAST, i LIMIT 9",
]


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES, ids=[one[:60] for one in QUERIES])
@settings(max_examples=12, deadline=None)
@given(rows=ROWS)
def test_duckdb_gives_the_same(query, rows):
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local").set_string("parallelism.default", "2")
    columns = [pyarrow.array([row[at] for row in rows], SCHEMA.types[at + 1]) for at in range(3)]
    table = pyarrow.Table.from_arrays([pyarrow.array(range(len(rows)), pyarrow.int64()), *columns], schema=SCHEMA)
    t_env.create_temporary_view("t", t_env.from_arrow(table))
    found = [tuple(row.values()) for row in t_env.sql_query(query).to_arrow().to_pylist()]
    with duckdb.connect() as other:
        other.register("t", table)
        expected = other.execute(query).fetchall()
    if " FROM t ORDER BY " in query:
        assert found == expected
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize(("zone", "expected"), [("Asia/Kolkata", [1, 3, 4]), ("UTC", [2, 3, 4])])
def test_windows_of_local_time_begin_by_the_zones_clock(tmp_path, zone, expected):
    minutes = {1: 10, 2: 40, 3: 70, 4: 120}  # in Kolkata 05:40, 06:10, 06:40 and 07:30
    (tmp_path / "rows.csv").write_text("".join(f"{n},{minute * 60_000}\n" for n, minute in minutes.items()))
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = t_env.get_config().set_string("execution.target", "local").set_string("parallelism.default", "2")
    config.set_string("table.local-time-zone", zone)
    t_env.execute_sql(f"""
        CREATE TABLE t (n INT, ms BIGINT, at AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR at AS at)
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')""")
    found = t_env.execute_sql("""
        SELECT n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR))
        QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) = 1""")
    assert sorted(row[0] for row in found.collect()) == expected
