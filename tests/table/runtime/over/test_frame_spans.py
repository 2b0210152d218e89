"""Frames of rows by the distance of their values, where these are missing or near the ends of 64 bits."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.plan.over import Frame
from rayflink.table.runtime.over.bounded_over import distances_of
from rayflink.table.runtime.over.frame_spans import PartitionRows, spans_of

LEAST, MOST = -(2**63), 2**63 - 1
VALUES = [LEAST, -(2**62), -5, 5, 2**62, MOST]


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize(
    ("first", "last"), [(-MOST, MOST), (-(2**62), 0), (0, MOST), (MOST, None), (None, -MOST), (-(2**65), 2**65)]
)
def test_distances_reach_beyond_64_bits(first, last, down):
    values = sorted(VALUES, reverse=down)
    distances, _, frame = distances_of(pa.array(values, pa.int64()), down, Frame(False, first, last))
    partition = PartitionRows.of(np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_))
    spans = spans_of(frame, partition, distances)
    found = [values[start:stop] for start, stop in zip(spans.starts, spans.stops, strict=True)]
    least, most = -(2**70) if first is None else first, 2**70 if last is None else last
    assert found == [
        [other for other in values if least <= (value - other if down else other - value) <= most] for value in values
    ]


def rows_in_frames(kind: str, order: str, frame: str) -> dict[int, set[int]]:
    """Return for each row of a table which rows are in its frame."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    nan = math.nan if kind == "DOUBLE" else 4
    rows = pa.table({"id": range(6), "v": pa.array([None, 1, 2, 4, nan, None], pa.float64())})
    t_env.create_temporary_view("t", t_env.from_arrow(rows))
    source = f"(SELECT id, CAST(v AS {kind}) AS v FROM t)"
    found = t_env.execute_sql(f"SELECT id, COLLECT(id) OVER (ORDER BY v {order} RANGE BETWEEN {frame}) FROM {source}")
    return {number: set(ids or ()) for number, ids in found.collect()}


@pytest.mark.slow
def test_frames_of_rows_without_a_value_reach_the_ends_of_the_partition():
    every, missing = set(range(6)), {0, 5}
    assert rows_in_frames("INT", "NULLS FIRST", "1 FOLLOWING AND UNBOUNDED FOLLOWING") == {
        0: every, 5: every, 1: {2, 3, 4}, 2: {3, 4}, 3: set(), 4: set(),
    }  # fmt: skip
    assert rows_in_frames("INT", "NULLS LAST", "UNBOUNDED PRECEDING AND 1 PRECEDING") == {
        0: every, 5: every, 1: set(), 2: {1}, 3: {1, 2}, 4: {1, 2},
    }  # fmt: skip
    assert rows_in_frames("DOUBLE", "DESC NULLS LAST", "2 FOLLOWING AND UNBOUNDED FOLLOWING") == {
        4: every, 3: {2, 1, *missing}, 2: missing, 1: missing, 0: missing, 5: missing,
    }  # fmt: skip
