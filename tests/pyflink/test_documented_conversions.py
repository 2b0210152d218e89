"""What the pages of Flink 2.3 on vectorized functions, pandas, streams, metrics and options of Python say."""

from __future__ import annotations

import functools
import logging

import numpy as np
import pytest

from rayflink.common import Row, RowKind, Types, WatermarkStrategy
from rayflink.common.watermark_strategy import TimestampAssigner
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import (
    AggregateFunction,
    ChangelogMode,
    DataTypes,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
)
from rayflink.table.expressions import col, lit
from rayflink.table.udf import ScalarFunction, udaf, udf
from rayflink.table.window import Tumble
from tests.pyflink.documented_programs import changes, csv_table, environment, final_rows, printed, shown

# Vectorized functions


@udf(result_type=DataTypes.BIGINT(), func_type="pandas")
def add(i, j):
    return i + j


@udaf(result_type=DataTypes.FLOAT(), func_type="pandas")
def mean_udaf(v):
    return v.mean()


class MaxAdd(AggregateFunction):
    def open(self, function_context):
        self.counter = function_context.get_metric_group().add_group("key", "value").counter("my_counter")

    def get_value(self, accumulator):
        self.counter.inc(10)
        return accumulator[0]

    def create_accumulator(self):
        return []

    def accumulate(self, accumulator, *args):
        accumulator.append(sum(arg.max() for arg in args))


class CallableMaxAdd:
    def __call__(self, i, j):
        return i.max() + j.max()


def test_vectorized_functions_take_series():
    pytest.importorskip("pandas")
    t_env = environment(batch=True)
    table = t_env.from_elements([("x", 1, 2), ("x", 3, 4), ("y", 5, 6)], ["a", "b", "c"])
    assert shown(table.select(add(table.b, table.c)))[1] == [(3,), (7,), (11,)]
    t_env.create_temporary_view("MyTable", table)
    t_env.create_temporary_function("add", add)
    assert sorted(printed(t_env, "SELECT add(b, c) FROM MyTable")) == ["11", "3", "7"]
    grouped = table.group_by(table.a)
    assert shown(grouped.select(table.a, mean_udaf(add(table.b, table.c))))[1] == [("x", 5.0), ("y", 11.0)]
    written = (MaxAdd(), lambda i, j: i.max() + j.max(), CallableMaxAdd(),
               functools.partial(lambda i, j, k: i.max() + j.max() + k, k=0))  # fmt: skip
    for function in written:
        max_add = udaf(function, result_type=DataTypes.BIGINT(), func_type="pandas")
        assert shown(grouped.select(table.a, max_add(table.b, table.c)))[1] == [("x", 7), ("y", 11)]


@pytest.mark.parametrize("batch", [False, True])
def test_vectorized_aggregates_of_windows(tmp_path, batch):
    pytest.importorskip("pandas")
    t_env = environment(batch)
    csv_table(t_env, tmp_path, "MyTable", "a STRING, b BIGINT, rowtime TIMESTAMP(3), WATERMARK FOR rowtime AS rowtime",
              "X,1,2020-01-01 10:00:00", "Y,5,2020-01-01 10:02:00", "X,3,2020-01-01 11:15:00")  # fmt: skip
    window = Tumble.over(lit(1).hours).on(col("rowtime")).alias("w")
    windowed = t_env.from_path("MyTable").window(window).group_by(col("w"))
    assert shown(windowed.select(mean_udaf(col("b"))))[1] == [(3.0,), (3.0,)]
    t_env.create_temporary_function("mean_udaf", mean_udaf)
    rows = "UNBOUNDED preceding AND UNBOUNDED FOLLOWING" if batch else "1 PRECEDING AND CURRENT ROW"
    over = f"mean_udaf(b) over (PARTITION BY a ORDER BY rowtime ROWS BETWEEN {rows})"
    expected = ["X 2.0", "X 2.0", "Y 5.0"] if batch else ["X 1.0", "X 2.0", "Y 5.0"]
    assert sorted(printed(t_env, f"SELECT a, {over} FROM MyTable")) == expected


# pandas


def test_frames_become_tables_and_tables_frames():
    pandas = pytest.importorskip("pandas")
    t_env, frame = environment(), pandas.DataFrame(np.arange(6.0).reshape(3, 2))
    values = [(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)]
    assert shown(t_env.from_pandas(frame)) == (["0", "1"], values)
    double = DataTypes.DOUBLE()
    assert shown(t_env.from_pandas(frame, [double, double]))[1] == values
    row_type = DataTypes.ROW([DataTypes.FIELD("f0", double), DataTypes.FIELD("f1", double)])
    for schema in (["f0", "f1"], row_type):
        assert shown(t_env.from_pandas(frame, schema)) == (["f0", "f1"], values)
    limited = t_env.from_pandas(frame, ["a", "b"]).filter(col("a") > 1.5).limit(100)
    assert shown(limited) == (["a", "b"], values[1:])


# Metrics, logs


class Measured(ScalarFunction):
    def open(self, function_context):
        super().open(function_context)
        group, self.length = function_context.get_metric_group(), 0
        self.counter = group.counter("my_counter")
        group.gauge("my_gauge", lambda: self.length)
        self.distribution = group.distribution("my_distribution")
        self.meter = group.meter("my_meter", time_span_in_seconds=120)
        self.of_key = group.add_group("my_metrics_key", "my_metrics_value").counter("my_counter")

    def eval(self, i):
        self.counter.inc(i)
        self.counter.dec()
        self.length = i
        self.distribution.update(i)
        self.meter.mark_event(i)
        self.of_key.inc()
        logging.getLogger("documented").warning("seen %d", i)
        return self.counter.get_count() * 10 + self.of_key.get_count()


def test_functions_count_and_log(caplog):
    table = environment(batch=True).from_elements([(3,), (4,)], ["a"])
    assert shown(table.select(udf(Measured(), result_type=DataTypes.BIGINT())(col("a"))))[1] == [(21,), (52,)]
    assert caplog.messages[-2:] == ["seen 3", "seen 4"]


@pytest.mark.parametrize(
    "key, value",
    [("python.fn-execution.bundle.size", "1000"), ("python.fn-execution.arrow.batch.size", "100"),
     ("python.fn-execution.bundle.time", "1000"), ("python.files", "x.py"), ("python.execution-mode", "thread"),
     ("python.metric.enabled", "false"), ("pipeline.jars", "file:///x.jar"), ("python.executable", "venv/bin/python")],
)  # fmt: skip
def test_options_of_python_are_set(key, value):
    config = environment().get_config()
    assert config.set(key, value).get(key, "") == value
    config.get_configuration().set_string(key, value)
    assert config.get_configuration().get_string(key, "") == value


# Streams


@pytest.fixture
def streams():
    env = StreamExecutionEnvironment.get_execution_environment()
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set("execution.target", "local")
    return env, t_env


def test_streams_become_tables_and_tables_streams(streams):
    env, t_env = streams
    names = t_env.from_data_stream(env.from_collection(["Alice", "Bob", "John"], Types.STRING()))
    t_env.create_temporary_view("Names", names)
    upper = t_env.to_data_stream(t_env.sql_query("SELECT UPPER(f0) FROM Names"))
    with upper.execute_and_collect() as rows:
        assert [row[0] for row in rows] == ["ALICE", "BOB", "JOHN"]
    of_scores = Types.ROW([Types.STRING(), Types.INT()])
    scores = env.from_collection([("Alice", 12), ("Bob", 10), ("Alice", 100)], of_scores)
    t_env.create_temporary_view("Scores", t_env.from_data_stream(scores).alias("name", "score"))
    sums = t_env.to_changelog_stream(t_env.sql_query("SELECT name, SUM(score) FROM Scores GROUP BY name"))
    with sums.execute_and_collect() as rows:
        assert [f"{row.get_row_kind()} {row[0]} {row[1]}" for row in rows] == [
            "+I Alice 12", "+I Bob 10", "-U Alice 12", "+U Alice 112"]  # fmt: skip


KINDS = [
    Row.of_kind(RowKind.INSERT, "Alice", 12),
    Row.of_kind(RowKind.INSERT, "Bob", 5),
    Row.of_kind(RowKind.UPDATE_BEFORE, "Alice", 12),
    Row.of_kind(RowKind.UPDATE_AFTER, "Alice", 100),
]


@pytest.mark.parametrize("upserts", [False, True])
def test_a_stream_of_changes_is_a_table(streams, upserts):
    env, t_env = streams
    kinds = [row for row in KINDS if not upserts or row.get_row_kind() is not RowKind.UPDATE_BEFORE]
    stream = env.from_collection(kinds, type_info=Types.ROW([Types.STRING(), Types.INT()]))
    schema = Schema.new_builder().primary_key("f0").build()
    table = (
        t_env.from_changelog_stream(stream, schema, ChangelogMode.upsert())
        if upserts
        else t_env.from_changelog_stream(stream)
    )
    t_env.create_temporary_view("InputTable", table)
    query = "SELECT f0 AS name, SUM(f1) AS score FROM InputTable GROUP BY f0"
    assert final_rows(t_env, query) == ["Alice 100", "Bob 5"]
    if not upserts:
        assert changes(t_env, query) == ["+I Alice 12", "+I Bob 5", "-D Alice 12", "+I Alice 100"]


class OfField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def test_times_of_streams_are_columns_and_times_of_tables_metadata(streams):
    env, t_env = streams
    named = Types.ROW_NAMED(["name", "score", "t"], [Types.STRING(), Types.INT(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OfField())
    rows = [("a", 4, 1000), ("b", 6, 1001), ("c", 10, 2002)]
    stream = env.from_collection(rows, type_info=named).assign_timestamps_and_watermarks(strategy)
    computed = (
        Schema.new_builder()
        .column_by_expression("rowtime", "CAST(TO_TIMESTAMP_LTZ(t, 3) AS TIMESTAMP(3))")
        .watermark("rowtime", "rowtime - INTERVAL '10' SECOND")
    )
    metadata = (
        Schema.new_builder()
        .column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")
        .watermark("rowtime", "SOURCE_WATERMARK()")
    )
    for number, builder in enumerate((computed, metadata)):
        t_env.create_temporary_view(f"v{number}", t_env.from_data_stream(stream, builder.build()))
        window = f"TUMBLE(TABLE v{number}, DESCRIPTOR(rowtime), INTERVAL '1' SECOND)"
        query = f"SELECT SUM(score) FROM {window} GROUP BY window_start, window_end"
        assert printed(t_env, query) == ["10", "10"]
    clicks = t_env.from_data_stream(stream, col("name"), col("t"), col("ut").rowtime, col("p").proctime)
    assert clicks.get_schema().get_field_names() == ["name", "t", "ut", "p"]
    without = Schema.new_builder().column("name", "STRING").column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)").build()
    timed = t_env.sql_query("SELECT name, rowtime FROM v1")
    with t_env.to_changelog_stream(timed, without).execute_and_collect() as result:
        assert [tuple(row) for row in result] == [("a",), ("b",), ("c",)]


def test_a_sink_without_a_schema_takes_the_columns_of_the_rows(streams, capsys):
    env, t_env = streams
    schema = Schema.new_builder().column("i", DataTypes.INT()).build()
    source = TableDescriptor.for_connector("datagen").option("number-of-rows", "3").option("fields.i.kind", "sequence")
    source = source.option("fields.i.start", "1").option("fields.i.end", "3").schema(schema).build()
    statements, sink = t_env.create_statement_set(), TableDescriptor.for_connector("print").build()
    statements.add_insert(sink, t_env.from_descriptor(source))
    statements.attach_as_datastream()
    env.from_collection([7], Types.INT()).print()
    env.execute()
    assert sorted(capsys.readouterr().out.split()) == ["+I[1]", "+I[2]", "+I[3]", "7"]
