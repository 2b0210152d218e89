"""The watermark expression of a table gives a time for each row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from rayflink.table.plan.logical import WatermarkAssigner
from rayflink.table.plan.typed import Session
from rayflink.table.runtime.event_time import WatermarkValues

TIMES = [0, 1_500, -2_500, 86_400_000]


def values(kind: str, expression: str) -> WatermarkValues:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(
        f"CREATE TABLE t (n INT, ts {kind}, WATERMARK FOR ts AS {expression}) WITH ('connector' = 'datagen')"
    )
    plan = next(one for one in t_env.from_path("t")._plan.walk() if isinstance(one, WatermarkAssigner))
    return WatermarkValues(plan.expression, plan.input.column(plan.time), Session(zone="UTC"))


def batch(kind: str) -> pa.RecordBatch:
    digits = int(kind[kind.index("(") + 1])
    made = DataTypes.TIMESTAMP_LTZ(digits) if "LTZ" in kind else DataTypes.TIMESTAMP(digits)
    times = pa.array(TIMES, pa.timestamp("ms")).cast(made.to_arrow())
    return pa.RecordBatch.from_arrays([pa.array([1, 2, 3, None], pa.int32()), times], ["n", "ts"])


@pytest.mark.parametrize("kind", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "TIMESTAMP(0)"])
@pytest.mark.parametrize(
    ("expression", "delay"), [("ts", 0), ("ts - INTERVAL '1.5' SECOND", 1_500), ("ts + INTERVAL '2' SECOND", -2_000)]
)
def test_it_is_less_than_the_time_by_the_interval(kind, expression, delay):
    assert values(kind, expression)(batch(kind)).tolist() == [time - delay for time in TIMES]


def test_a_row_for_which_it_is_null_makes_no_watermark():
    found = values("TIMESTAMP(3)", "CASE WHEN n > 1 THEN ts END")(batch("TIMESTAMP(3)"))
    assert found.tolist() == [-(2**63), 1_500, -2_500, -(2**63)]


@pytest.mark.parametrize("expression", ["ts", "ts - INTERVAL '1' SECOND", "CASE WHEN n > 1 THEN ts END"])
def test_a_row_without_a_time_is_refused(expression):
    rows = pa.RecordBatch.from_arrays([pa.array([1], pa.int32()), pa.nulls(1, pa.timestamp("ms"))], ["n", "ts"])
    with pytest.raises(ValueError, match="the time column ts is NULL in a row; filter such rows out"):
        values("TIMESTAMP(3)", expression)(rows)


@pytest.mark.slow
@pytest.mark.parametrize("watermark", ["ts", "LOCALTIMESTAMP - INTERVAL '0.05' SECOND"])
def test_the_moment_of_a_row_is_its_event_time(watermark):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    t_env.execute_sql(
        f"CREATE TABLE t (n INT, ts AS LOCALTIMESTAMP, WATERMARK FOR ts AS {watermark}) "
        "WITH ('connector' = 'datagen', 'rows-per-second' = '1000')"
    )
    query = (
        "SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0.1' SECOND)) "
        "GROUP BY window_start, window_end"
    )
    with t_env.execute_sql(query).collect() as rows:  # the table has no end: rows come since time goes on
        ends = [next(rows)[0] for _ in range(3)]
    assert ends == sorted(ends)


def test_a_row_without_a_time_is_in_no_window_of_a_whole_table(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2020-01-01 00:00:00\n2,\n", encoding="utf-8")
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    t_env.execute_sql(
        "CREATE TABLE t (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH "
        f"('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path}')"
    )
    with pytest.raises(JobFailed, match="column 'ts' is NULL in a row, and windows go by it"):
        t_env.sql_query("SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))").to_arrow()
