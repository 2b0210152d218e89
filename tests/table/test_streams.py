"""Streams as tables and tables as streams, with event time on both ways."""

from __future__ import annotations

import datetime

import pytest

from rayflink.common import Duration, Row, WatermarkStrategy
from rayflink.common.errors import InvalidTypesError
from rayflink.common.typeinfo import Types
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import DataTypes, SqlError, StreamTableEnvironment
from rayflink.table.schema import FormatDescriptor, Schema, TableDescriptor

CLICKS = [("ann", 1_000), ("bob", 3_000), ("ann", 2_000), ("ann", 12_000)]
WINDOWS = """SELECT who, window_start, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '10' SECOND))
GROUP BY who, window_start, window_end"""


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    found = StreamExecutionEnvironment({"execution.target": "local", "table.local-time-zone": "UTC"})
    found.set_parallelism(2)
    return found


def clicks(env):
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    stamped = in_order.with_timestamp_assigner(lambda click, _: click[1])
    rows = env.from_collection(CLICKS, Types.ROW_NAMED(["who", "ms"], [Types.STRING(), Types.LONG()]))
    return rows.assign_timestamps_and_watermarks(stamped)


def test_the_event_time_of_a_stream_is_that_of_its_table(env):
    t_env = StreamTableEnvironment.create(env)
    schema = Schema.new_builder().column_by_metadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
    schema.watermark("at", "SOURCE_WATERMARK()")
    t_env.create_temporary_view("clicks", clicks(env), schema.build())
    at = datetime.datetime(1970, 1, 1)
    ten = at + datetime.timedelta(seconds=10)
    found = sorted(tuple(row) for row in t_env.execute_sql(WINDOWS).collect())
    assert found == [("ann", at, 2), ("ann", ten, 1), ("bob", at, 1)]


def test_a_table_is_a_stream_of_rows_with_its_event_time(env):
    t_env = StreamTableEnvironment.create(env)
    schema = Schema.new_builder().column_by_expression("at", "TO_TIMESTAMP_LTZ(ms, 3)").watermark("at", "at")
    table = t_env.from_data_stream(clicks(env), schema.build())
    stream = t_env.to_data_stream(table)

    class Times:
        def __call__(self, row):
            return row.who, row.ms

    assert sorted(stream.map(Times()).execute_and_collect(limit=10)) == sorted(CLICKS)


def test_a_stream_without_a_type_needs_a_schema(env):
    t_env = StreamTableEnvironment.create(env)
    with pytest.raises(InvalidTypesError, match="the columns of .* are not known; declare one"):
        t_env.from_data_stream(env.from_collection([1, 2]))
    schema = Schema.new_builder().column("n", "BIGINT").column("w", "STRING").build()
    table = t_env.from_data_stream(env.from_collection([(1, "a"), (2, None)]), schema)
    assert [tuple(row) for row in table.execute().collect()] == [(1, "a"), (2, None)]


def test_steps_of_a_stream_program_are_left_alone_by_queries(env):
    t_env = StreamTableEnvironment.create(env)
    kept = env.from_collection([1, 2, 3]).map(lambda n: n * 2)
    assert [tuple(row) for row in t_env.execute_sql("SELECT 7 AS n").collect()] == [(7,)]
    assert sorted(kept.execute_and_collect(limit=5)) == [2, 4, 6]


def test_tables_are_defined_by_descriptors(env, tmp_path):
    t_env = StreamTableEnvironment.create(env)
    (tmp_path / "t.csv").write_text("1;a\n2;b\n")
    schema = Schema.new_builder().column("n", DataTypes.INT()).column("w", DataTypes.STRING()).primary_key("n").build()
    form = FormatDescriptor.for_format("csv").option("field-delimiter", ";").build()
    descriptor = (
        TableDescriptor.for_connector("filesystem").schema(schema).option("path", tmp_path / "t.csv").format(form)
    )
    t_env.create_temporary_table("t", descriptor.build())
    assert list(t_env.from_path("t").execute().collect()) == [Row(1, "a"), Row(2, "b")]
    assert "PRIMARY KEY (`n`) NOT ENFORCED" in next(t_env.execute_sql("SHOW CREATE TABLE t").collect())[0]
    with pytest.raises(SqlError, match="has a METADATA column, which connector 'filesystem' does not know"):
        t_env.execute_sql("CREATE TABLE m (n INT, o STRING METADATA) WITH ('connector' = 'filesystem', 'path' = '/', "
                          "'format' = 'csv')")  # fmt: skip
        t_env.execute_sql("SELECT n FROM m")


def test_a_query_whose_rows_change_is_no_stream(env):
    t_env = StreamTableEnvironment.create(env)
    schema = Schema.new_builder().column_by_metadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
    schema.watermark("at", "SOURCE_WATERMARK()")
    t_env.create_temporary_view("clicks", clicks(env), schema.build())
    t_env.get_config().set_string("table.exec.emit.early-fire.enabled", "true")
    t_env.get_config().set_string("table.exec.emit.early-fire.delay", "0 s")
    counted = t_env.sql_query("SELECT who, COUNT(*) FROM clicks GROUP BY who, TUMBLE(at, INTERVAL '10' SECOND)")
    with pytest.raises(SqlError, match="rows change later.*twice"):
        t_env.to_data_stream(counted)
