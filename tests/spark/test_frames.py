"""DataFrames as streams, on a real Spark: types, order, replays, sizes, and what goes wrong."""

from __future__ import annotations

import gc
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.actors.on_ray.driver.ray_frames import FRAMES
from rayflink.common import WatermarkStrategy
from rayflink.common.errors import TypeMismatch
from rayflink.common.time import Time
from rayflink.connectors.frames.spark_frames import SparkFailed, arrow_schema
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.spark import read_state
from tests.cluster import watching

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(200)]

TYPES = """
    id, if(id % 3 = 0, null, id) AS some, cast(id AS decimal(20, 3)) AS price,
    timestamp_micros(id * 1000001) AS at, date_add(date'2013-01-01', cast(id AS int)) AS day,
    timestamp_ntz'2013-03-10 02:30:00' AS local, array(id, null) AS list, map(cast(id AS string), id * 1.5) AS map,
    struct(id AS x, cast(id AS string) AS y) AS pair, cast(cast(id AS string) AS binary) AS bytes,
    id % 2 = 0 AS flag, cast(id AS float) AS single, cast(null AS string) AS none, interval '3' day * id AS span
"""


def environment(**options: Any) -> StreamExecutionEnvironment:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": 2, **given})


def keepers() -> list[str]:
    import ray

    gc.collect()  # DataFrames that nobody has any more
    named = ray.util.list_named_actors(all_namespaces=True)
    return [one["name"] for one in named if f"/{FRAMES}/" in one["name"]]


def test_types_and_nulls_arrive_as_they_are_without_rows_in_between(spark, tmp_path):
    df = spark.sql(f"SELECT {TYPES} FROM range(0, 1000, 1, 4)")
    schemas = tmp_path / "schemas"

    def noted(columns: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        assert isinstance(columns, pyarrow.RecordBatch)
        with schemas.open("a") as file:
            file.write(f"{columns.schema.remove_metadata()}\n\n")
        return columns

    rows = environment().from_spark(df).map_batches(noted).execute_and_collect(limit=2_000)
    wanted = {row.id: row for row in df.collect()}
    assert len(rows) == 1_000
    for row in rows:
        theirs = wanted[row.id]
        assert (row.some, row.price, row.day, row.list, row.flag, row.single, row.none) == (
            theirs.some, theirs.price, theirs.day, theirs.list, theirs.flag, theirs.single, theirs.none
        )  # fmt: skip
        assert row.price == Decimal(row.id) and row.at.timestamp() == pytest.approx(row.id * 1.000001, abs=1e-9)
        assert (row.local, row.span, bytes(row.bytes)) == (theirs.local, theirs.span, bytes(theirs.bytes))
        assert dict(row.map) == theirs.map and (row.pair["x"], row.pair["y"]) == tuple(theirs.pair)
    assert {field.name: field.type for field in arrow_schema(df)}["price"] == pyarrow.decimal128(20, 3)
    assert "price: decimal128(20, 3)" in schemas.read_text() and "timestamp[us, tz=" in schemas.read_text()


def test_what_is_asked_of_a_spark_that_has_ended_is_refused_with_the_reason(spark, monkeypatch):
    df = spark.range(3)
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)  # as that of a Spark that has ended
    with pytest.raises(TypeMismatch, match="found a DataFrame whose SparkSession has ended, .*use it before"):
        environment().from_spark(df)
    with pytest.raises(TypeMismatch, match="found a SparkSession that has ended"):
        read_state(spark, "nowhere", "totals", "total")


def test_partitions_keep_their_order_and_a_column_is_the_event_time(spark):
    df = spark.range(0, 40_000, 1, 4).selectExpr("id", "id % 4 AS key", "timestamp_millis(id) AS at")
    stamped = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    env = environment()
    env.set_parallelism(1)
    ids = [row.id for row in env.from_spark(df).execute_and_collect(limit=50_000)]
    assert ids == list(range(40_000))
    counts = (
        environment().from_spark(df, stamped, "numbers").map(lambda row: (row.key, 1)).key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10))).reduce(lambda a, b: (a[0], a[1] + b[1]))
        .execute_and_collect(limit=100)
    )  # fmt: skip
    assert sorted(counts) == sorted((key, 2_500) for key in range(4) for _ in range(4))


def test_a_job_that_fails_reads_on_where_its_checkpoint_was(spark, tmp_path):
    df = spark.range(0, 60_000, 1, 6)
    failed = tmp_path / "failed"
    env = environment(execution_checkpointing_interval="50 ms")
    env.get_configuration().set_string("restart-strategy.type", "fixed-delay")
    env.get_configuration().set_string("restart-strategy.fixed-delay.delay", "0 s")

    def fails_once(row: Any) -> tuple[int, int]:
        if row.id % 10_000 == 5_000 and row.id > 10_000 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return row.id % 2, 1

    counted = env.from_spark(df).map(fails_once).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    last = {key: count for key, count in counted.execute_and_collect(limit=100_000)}
    assert failed.exists()
    assert Counter(last) == {0: 30_000, 1: 30_000}


def test_no_row_at_all_one_row_and_one_partition_with_nearly_all(spark):
    empty = spark.range(0).selectExpr("id")
    assert environment().from_spark(empty).execute_and_collect(limit=10) == []
    env = environment()
    one_empty, one_row = env.from_spark(empty.coalesce(1), None, "empty"), env.from_spark(spark.range(1))
    assert [row.id for row in one_empty.union(one_row).execute_and_collect(limit=10)] == [0]
    skewed = spark.range(0, 100_000, 1, 1).union(spark.range(100_000, 101_000, 1, 3)).where("id >= 0")
    assert skewed.rdd.getNumPartitions() == 4

    def summed(columns: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        return pyarrow.RecordBatch.from_pydict({"n": [columns.num_rows], "sum": [sum(columns["id"].to_pylist())]})

    sums = environment().from_spark(skewed).map_batches(summed).execute_and_collect(limit=1_000)
    assert sum(row.n for row in sums) == 101_000 and sum(row.sum for row in sums) == sum(range(101_000))


@pytest.mark.soak
def test_a_dataframe_larger_than_the_object_stores_is_spilled_and_read(spark):
    wide = spark.range(0, 30_000, 1, 4).selectExpr("id", "repeat(cast(id % 10 AS string), 12000) AS text")  # 360 MB
    rows = (
        environment()
        .from_spark(wide)
        .map(lambda row: (row.id, len(row.text), row.text[0]))
        .execute_and_collect(limit=40_000)
    )
    assert len(rows) == 30_000
    assert all((length, first) == (12_000, str(number % 10)) for number, length, first in rows)


@pytest.mark.soak
def test_columns_have_any_names(spark):
    df = spark.createDataFrame([(1, "x", 2.5, None)], "`a.b` int, `A.b` string, `in ``ticks``` double, `` int")
    stream = environment().from_spark(df)
    (row,) = stream.execute_and_collect(limit=10)
    assert row.as_dict() == {"a.b": 1, "A.b": "x", "in `ticks`": 2.5, "": None}
    back = stream.to_spark(spark)
    assert (back.schema, back.collect()) == (df.schema, df.collect())


def test_what_is_no_dataframe_and_a_type_that_arrow_lacks_are_refused_at_once(spark):
    with pytest.raises(TypeMismatch, match=r"found list \[1\], wanted a pyspark.sql.DataFrame"):
        environment().from_spark([1])
    with pytest.raises(TypeMismatch, match=r"columns of the DataFrame: found several columns 'id', .*rename them"):
        environment().from_spark(spark.sql("SELECT id, id FROM range(3)"))
    with pytest.raises(TypeMismatch, match=r"columns of the DataFrame: found none, .*select one"):
        environment().from_spark(spark.range(3).select())
    with pytest.raises(TypeMismatch, match=r"found a streaming DataFrame, which has no end, .*read its source by"):
        environment().from_spark(spark.readStream.format("rate").load())
    odd = spark.sql("SELECT interval '2' month AS months")
    with pytest.raises(TypeMismatch, match=r"column 'months' of the DataFrame: found interval month, .*cast it"):
        environment().from_spark(odd)


@pytest.mark.soak
def test_a_spark_job_that_fails_midway_says_what_failed_and_leaves_no_block(spark):
    from pyspark.sql.functions import udf

    before = keepers()

    @udf("long")
    def broken(number: int) -> int:
        if number == 7_777:
            raise ValueError("no sevens")
        return number

    df = spark.range(0, 10_000, 1, 4).select(broken("id").alias("id"))
    with pytest.raises(SparkFailed, match=r"read as a stream: ValueError: no sevens; .*df.count\(\)"):
        environment().from_spark(df)
    assert watching.eventually(lambda: set(keepers()) <= set(before), within_s=30)
    with pytest.raises(SparkFailed, match="division|DIVIDE_BY_ZERO"):
        spark.conf.set("spark.sql.ansi.enabled", "true")
        try:
            environment().from_spark(spark.range(3).selectExpr("1 / (id - id) AS x"))
        finally:
            spark.conf.set("spark.sql.ansi.enabled", "false")


def test_blocks_go_with_the_last_stream_that_could_read_them(spark):
    before = set(keepers())  # of results, which stay as long as Spark, and of other streams, which may go meanwhile
    stream = environment().from_spark(spark.range(0, 10, 1, 2))
    assert set(keepers()) - before
    assert len(stream.execute_and_collect(limit=20)) == 10
    del stream
    assert watching.eventually(lambda: set(keepers()) <= before, within_s=30)


@pytest.mark.soak
def test_with_a_path_the_rows_go_to_files_that_stay(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = "rows"
    df = spark.range(0, 1_000, 1, 3).selectExpr("id", "timestamp_millis(id) AS at")
    stream = environment().from_spark(df, path=path)
    assert sorted(row.id for row in stream.execute_and_collect(limit=2_000)) == list(range(1_000))
    assert [name for name in os.listdir(path) if name.endswith(".parquet")]
    with pytest.raises(SparkFailed, match=f"written to {tmp_path}/{path}.*already exists|PATH_ALREADY_EXISTS"):
        environment().from_spark(df, path=path)


@pytest.mark.soak
def test_types_in_files_are_those_in_the_store(spark, tmp_path):
    old = "timestamp'1500-01-01 00:00:00' AS at, date'1500-01-01' AS day, timestamp_ntz'2013-03-10 02:30:00' AS local"
    df = spark.sql(f"SELECT {old}, struct(interval '3' day AS span, 1.50BD AS price) AS of, map('a', X'00') AS map")
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "INT96")  # what it is where nobody says something
    try:
        env = StreamExecutionEnvironment({"execution.target": "local"})
        stored, filed = (env.from_spark(df, path=path) for path in (None, str(tmp_path / "rows")))
        assert spark.conf.get(name) == "INT96"
    finally:
        spark.conf.set(name, before)
    (one,), (other,) = (stream.execute_and_collect(limit=10) for stream in (stored, filed))
    assert one == other and other.at.tzinfo is not None


@pytest.mark.soak
def test_a_local_job_reads_what_lies_on_ray(spark, tmp_path: Path):
    env = StreamExecutionEnvironment({"execution.target": "local"})
    assert len(env.from_spark(spark.range(0, 1_000, 1, 3)).execute_and_collect(limit=2_000)) == 1_000
