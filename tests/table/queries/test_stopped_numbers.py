"""Rows made up of numbers: ranges that one reader has after a rescale are each on time."""

from __future__ import annotations

from collections import Counter

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.graph.job_graph import JobGraph
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.testing import SimulatedDisk, StopWithSavepoint, simulate
from tests.table.planned_streams import planned_stream

TABLE = """CREATE TABLE t (id BIGINT, ts AS TO_TIMESTAMP_LTZ(id * 10, 3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'datagen', 'rows-per-second' = '1000000', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0',
  'fields.id.end' = '199999')"""
QUERY = """SELECT window_end, COUNT(*) AS n, SUM(id) AS s
  FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '100' SECOND)) GROUP BY window_start, window_end"""
OPTIONS = {"execution.checkpointing.interval": "5 ms", "table.local-time-zone": "UTC"}


def graph(width: int, path: str = "") -> JobGraph:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    restored = {"execution.state-recovery.path": path} if path else {}
    for key, value in {"parallelism.default": str(width), **OPTIONS, **restored}.items():
        t_env.get_config().set_string(key, value)
    t_env.execute_sql(TABLE)
    table = t_env.sql_query(QUERY)
    with t_env._queries.env.apart():
        planned_stream(t_env, table).sink_to(CollectSink()).uid("out")
        return t_env._queries.env.get_job_graph()


def rows(story) -> Counter[str]:
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    return Counter(map(repr, story.collected()))


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.2, pytest.param(0.5, marks=pytest.mark.soak)])
def test_no_row_is_late_where_two_ranges_become_those_of_one_reader(part):
    whole = simulate(graph(2), 1)
    expected = rows(whole)
    assert len(expected) == 20
    disk = SimulatedDisk()
    stopped = simulate(graph(2), 1, [StopWithSavepoint(move=int(whole.happenings[-1].move * part))], disk)
    assert stopped.stopped_with
    assert rows(simulate(graph(1, stopped.stopped_with), 1, (), disk)) == expected
