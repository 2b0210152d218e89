"""Streams as tables and tables as streams, with event time on both ways."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from rayflink.common import Duration, Row, WatermarkStrategy
from rayflink.common.errors import InvalidTypesError
from rayflink.common.typeinfo import Types
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import DataTypes, EnvironmentSettings, SqlError, StreamTableEnvironment
from rayflink.table.expressions import col
from rayflink.table.schema import FormatDescriptor, Schema, TableDescriptor
from rayflink.table.udf import udf

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


@pytest.mark.spec("E04", "milliseconds", "E23", "later")
def test_the_event_time_of_a_stream_is_that_of_its_table(env):
    t_env = StreamTableEnvironment.create(env)
    schema = Schema.new_builder().column_by_metadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
    schema.watermark("at", "SOURCE_WATERMARK()")
    t_env.create_temporary_view("clicks", clicks(env), schema.build())
    at = datetime.datetime(1970, 1, 1)
    ten = at + datetime.timedelta(seconds=10)
    found = sorted(tuple(row) for row in t_env.execute_sql(WINDOWS).collect())
    assert found == [("ann", at, 2), ("ann", ten, 1), ("bob", at, 1)]


@pytest.mark.parametrize(
    ("declared", "values", "type_", "rows"),
    [
        (Types.INT(), [1, 2], "INT", [(1,), (2,)]),
        (Types.LIST(Types.STRING()), [["a"], []], "ARRAY<STRING>", [(["a"],), ([],)]),
        (Types.TUPLE([Types.INT()]), [(5,)], "INT", [(5,)]),
    ],
)
def test_single_values_are_the_column_f0_and_tuples_the_columns_f0_and_so_on(env, declared, values, type_, rows):
    t_env, stream = StreamTableEnvironment.create(env), env.from_collection(values, declared)
    table = t_env.from_data_stream(stream)
    assert [(one.name, str(one.data_type)) for one in table.get_resolved_schema().get_columns()] == [("f0", type_)]
    assert sorted(tuple(row) for row in table.execute().collect()) == sorted(rows)
    assert sorted(tuple(row) for row in t_env.from_data_stream(stream, col("x")).execute().collect()) == sorted(rows)
    t_env.create_temporary_view("v", stream)
    assert list(t_env.execute_sql("SELECT f0 FROM v WHERE f0 IS NULL").collect()) == []
    timed = Schema.new_builder().column_by_metadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime").build()
    assert t_env.from_data_stream(stream, timed).get_resolved_schema().get_column_names() == ["f0", "at"]


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


NESTED = DataTypes.ROW([
    DataTypes.FIELD("id", DataTypes.BIGINT().not_null()),
    DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
    DataTypes.FIELD("ts", DataTypes.TIMESTAMP(3)),
    DataTypes.FIELD("at", DataTypes.TIMESTAMP_LTZ(9)),
    DataTypes.FIELD("items", DataTypes.ARRAY(DataTypes.DECIMAL(5, 1))),
    DataTypes.FIELD("counts", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
    DataTypes.FIELD("place", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.FLOAT()), ("y", DataTypes.CHAR(2))])),
    DataTypes.FIELD("day", DataTypes.DATE()),
    DataTypes.FIELD("time", DataTypes.TIME(3)),
])  # fmt: skip
TEN = datetime.datetime(2026, 1, 1, 10)
FULL = (1, Decimal("1.25"), TEN, TEN.replace(tzinfo=datetime.timezone.utc), [Decimal("0.5"), None], {"a": 1},
        Row(0.5, "ab"), TEN.date(), TEN.time())  # fmt: skip
HOURS = """SELECT SUM(price) AS total, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end"""


@pytest.fixture
def nested(env):
    t_env = StreamTableEnvironment.create(env)
    late = (2, None, TEN + datetime.timedelta(hours=1), *[None] * 6)
    return t_env, t_env.from_elements([FULL, late], NESTED)


@pytest.mark.parametrize("step", [lambda s: s, lambda s: s.key_by("id"), lambda s: s.filter(lambda row: row.id > 0),
                                  lambda s: s.rebalance().union(s.filter(lambda row: False))])  # fmt: skip
def test_a_table_that_was_a_stream_has_its_types_and_values_again(nested, step):
    t_env, table = nested
    again = t_env.from_data_stream(step(t_env.to_data_stream(table)))
    assert again.get_schema() == table.get_schema()
    assert again.to_arrow().sort_by("id").equals(table.to_arrow().sort_by("id"))


def test_records_that_a_program_makes_are_held_to_the_types_it_takes_from_a_table(nested):
    t_env, table = nested
    stream = t_env.to_data_stream(table)
    made = t_env.from_data_stream(stream.map(lambda row: row, stream.get_type()))
    assert made.to_arrow().sort_by("id").equals(table.to_arrow().sort_by("id"))


def timed(t_env, table):
    return t_env.from_data_stream(t_env.to_data_stream(table), Schema.new_builder().watermark("ts", "ts").build())


def test_a_time_attribute_goes_through_a_stream_without_being_declared_again(nested):
    t_env, table = nested
    stream = t_env.to_data_stream(timed(t_env, table)).filter(lambda row: True)
    t_env.create_temporary_view("t", t_env.from_data_stream(stream))
    assert sorted(t_env.sql_query(HOURS).to_arrow().to_pylist(), key=str) == [
        {"total": Decimal("1.25"), "n": 1}, {"total": None, "n": 1}
    ]  # fmt: skip


@pytest.mark.parametrize(
    "step",
    [
        lambda stream: stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()),
        lambda stream: stream.key_by("id").max("price"),
        lambda stream: stream.key_by("id").reduce(lambda first, second: second),
        lambda stream: stream.map(lambda row: row, stream.get_type()),
    ],
)
def test_a_time_attribute_is_none_where_records_may_have_other_times(nested, step):
    t_env, table = nested
    found = t_env.from_data_stream(step(t_env.to_data_stream(timed(t_env, table))))
    assert "ROWTIME" not in str(found._plan.schema[2]) and found._plan.schema[2].type == DataTypes.TIMESTAMP(3)


def test_a_record_has_one_event_time(env):
    t_env = StreamTableEnvironment.create(env)
    schema = Schema.new_builder().column_by_metadata("at", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
    t_env.create_temporary_view("clicks", clicks(env), schema.watermark("at", "SOURCE_WATERMARK()").build())
    both = t_env.sql_query("SELECT *, at AS again FROM clicks")
    with pytest.raises(SqlError, match="2 time attributes, at, again, and a record one event time; CAST the others"):
        t_env.to_data_stream(both)


def test_rows_of_a_table_print_as_rows_of_tables_do(nested, capfd):
    t_env, table = nested
    t_env.to_data_stream(table).print()
    t_env._queries.env.execute()
    full = "+I[1, 1.25, 2026-01-01T10:00, 2026-01-01T10:00:00Z, [0.5, null], {a=1}, +I[0.5, ab], 2026-01-01, 10:00]"
    lines = {line.partition("> ")[2] for line in capfd.readouterr().out.splitlines()}
    assert lines == {full, "+I[2, null, 2026-01-01T11:00, null, null, null, null, null, null]"}


@udf(result_type=DataTypes.BIGINT())
def doubled(n):
    return 2 * n


@pytest.mark.spec("A04", "dsl", "functions", "conversion", "A01", "table", "B07", "table", "R03")
def test_a_stream_is_a_table_is_a_stream_with_functions_and_an_optimizer_between(env):
    t_env = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    table = t_env.from_data_stream(clicks(env))
    names = t_env.from_elements([("ann", "Ann"), ("bob", "Bob")], ["id", "name"])
    counted = table.group_by(col("who")).select(col("who"), doubled(col("ms").sum).alias("twice"))
    found = counted.join(names, col("who") == col("id")).where(col("twice") > 6_000).select(col("name"), col("twice"))
    assert "Join" in found.explain().partition("== Optimized Physical Plan ==")[2]
    assert [tuple(row) for row in t_env.to_data_stream(found).execute_and_collect()] == [("Ann", 30_000)]


@pytest.mark.spec("A05", "A04", "optimizer", "R06", "optimized", "R08", "built-in")
def test_sql_runs_on_tables_of_the_table_api_and_is_planned_by_itself(env):
    t_env = StreamTableEnvironment.create(env)
    late = t_env.from_data_stream(clicks(env)).where(col("ms") >= 2_000)
    query = f"SELECT who FROM (SELECT who, ms + 1 AS n FROM {late}) WHERE n > 2001 AND 1 = 1"
    written, run = t_env.explain_sql(query).split("\n\n")[:2]
    assert written.count("Filter") == 2 and run.count("Calc") == 1
    assert sorted(row[0] for row in t_env.execute_sql(query).collect()) == ["ann", "bob"]
