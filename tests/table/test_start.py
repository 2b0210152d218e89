"""A query starts soon: subtasks load what runs it, and nothing that reads or plans it."""

from __future__ import annotations

import subprocess
import sys

import cloudpickle
import pytest

from rayflink.table import EnvironmentSettings, TableEnvironment
from tests.table.planned_streams import planned_stream

FRONT_END = ("sqlglot", "polars", "rayflink.datastream.streams.stream", "rayflink.table.binding",
             "rayflink.table.physical.physical_planner", "rayflink.table.optimizer.rules",
             "rayflink.table.table_environment")  # fmt: skip
DEFINED = "(a BIGINT, w STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
WINDOWS = (
    "SELECT UPPER(w) AS w, window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)) "
    "WHERE a > 3 GROUP BY UPPER(w), window_start, window_end"
)


@pytest.mark.slow
@pytest.mark.parametrize("connector", ["'datagen'", "'filesystem', 'path' = '/tmp', 'format' = 'csv'"])
def test_what_subtasks_load_reads_and_plans_no_queries(tmp_path, connector):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(f"CREATE TABLE t {DEFINED} WITH ('connector' = {connector})")
    with t_env._queries.env.apart():
        planned_stream(t_env, t_env.sql_query(WINDOWS))
        (tmp_path / "graph").write_bytes(cloudpickle.dumps(t_env._queries.env.get_stream_graph()))
    load = f"import pickle, sys; pickle.load(open({str(tmp_path / 'graph')!r}, 'rb')); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True).stdout.split()
    assert "rayflink.table.runtime.windows.local_slices" in loaded
    assert not set(FRONT_END) & set(loaded)
