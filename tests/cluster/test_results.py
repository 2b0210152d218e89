"""What a program gets back from a job on Ray: many rows, counters and rates."""

from __future__ import annotations

import pytest

from rayflink.datastream.environment import StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_million_rows_are_collected():
    env = StreamExecutionEnvironment({"parallelism.default": 2})
    rows = list(env.from_sequence(1, 1_000_000).map(lambda number: (number, str(number))).execute_and_collect())
    assert sorted(number for number, _ in rows) == list(range(1, 1_000_001))


def test_vertices_tell_records_in_and_out_and_their_rates():
    env = StreamExecutionEnvironment({"parallelism.default": 2})
    env.from_sequence(1, 5_000).rebalance().map(lambda number: number).add_sink(lambda number: None)
    source, sink = env.execute("counts").vertices
    assert (source["numRecordsOut"], sink["numRecordsIn"]) == (5_000, 5_000)
    assert source["numRecordsOutPerSecond"] > 0 and sink["numRecordsInPerSecond"] > 0
    received = [task["metrics"]["numBytesInLocal"] + task["metrics"]["numBytesInRemote"] for task in sink["subtasks"]]
    assert sink["numBytesIn"] == sum(received) and all(received)
