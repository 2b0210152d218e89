"""Streams as DataFrames, as Parquet files that Spark reads meanwhile, and Ray Data, on a real Spark and a real Ray."""

from __future__ import annotations

import datetime
import gc
import os
import shutil
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.actors.on_ray.driver.ray_frames import FRAMES
from rayflink.common.errors import JobFailed, TypeMismatch
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink
from rayflink.datastream.formats.parquet import ParquetBulkWriters
from rayflink.testing.sources import Pause, ScriptedSource
from tests.cluster import watching

# The first one starts Spark.
pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(200)]

UTC = datetime.timezone.utc


def environment(**options: Any) -> StreamExecutionEnvironment:
    given = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    return StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": 2, **given})


def restarting() -> StreamExecutionEnvironment:
    return environment(
        execution_checkpointing_interval="100 ms",
        execution_runtime__mode="STREAMING",
        restart__strategy_type="fixed-delay",
        restart__strategy_fixed__delay_delay="0 s",
    )


def local() -> StreamExecutionEnvironment:
    return environment(execution_target="local", restart__strategy_type="none")


def keepers() -> list[Any]:
    import ray

    gc.collect()  # tables that nobody has any more
    named = ray.util.list_named_actors(all_namespaces=True)
    return [ray.get_actor(one["name"], one["namespace"]) for one in named if f"/{FRAMES}/" in one["name"]]


def leave_all() -> None:
    """The folder's Spark goes on: its DataFrames are given up by hand."""
    for keeper in keepers():
        keeper.leave.remote()


def test_the_result_of_a_stream_that_failed_midway_has_each_record_once(spark, tmp_path):
    failed = tmp_path / "failed"

    def fails_once(number: int) -> tuple[int, str | None]:
        if number == 30_000 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return number, None if number % 3 else str(number)

    df = restarting().from_sequence(1, 40_000).map(fails_once).to_spark(spark)
    assert failed.exists()
    assert df.schema.simpleString() == "struct<f0:bigint,f1:string>"
    counted = df.selectExpr("count(*)", "count(DISTINCT f0)", "min(f0)", "max(f0)", "count(f1)").collect()
    assert [tuple(row) for row in counted] == [(40_000, 40_000, 1, 40_000, 13_333)]
    leave_all()


def test_types_and_nulls_go_there_and_back_as_they_are(spark):
    there = spark.sql("""
        SELECT id, cast(id AS decimal(20, 3)) AS price, timestamp_micros(id * 1000001) AS at,
        timestamp_ntz'2013-03-10 02:30:00' AS local, date_add(date'2013-01-01', cast(id AS int)) AS day,
        if(id % 3 = 0, null, array(id, null)) AS list, map(cast(id AS string), id * 1.5) AS map,
        struct(id AS x, cast(null AS string) AS y) AS pair, cast('b' AS binary) AS bytes, interval '3' day * id AS span
        FROM range(0, 100, 1, 3)
    """)
    back = environment().from_spark(there).map_batches(lambda columns: columns).to_spark(spark)
    assert back.schema.simpleString() == there.schema.simpleString()
    assert sorted(back.collect(), key=lambda row: row.id) == sorted(there.collect(), key=lambda row: row.id)
    leave_all()


@pytest.mark.soak
def test_jobs_of_this_process_with_one_record_none_and_what_spark_has_no_type_for(spark):
    at = datetime.datetime(2013, 1, 1, 5, tzinfo=UTC)
    record = {"id": 1, "at": at, "price": Decimal("2.50"), "of": {"x": [1]}}
    one = local().from_collection([record]).to_spark(spark)
    assert [(row.id, row.price, row.of.x) for row in one.collect()] == [(1, Decimal("2.50"), [1])]
    assert one.selectExpr("unix_timestamp(at)").collect()[0][0] == at.timestamp()
    nothing = local().from_collection([]).to_spark(spark, "id long, at timestamp")
    assert nothing.schema.simpleString() == "struct<id:bigint,at:timestamp>" and nothing.collect() == []
    with pytest.raises(TypeMismatch, match=r"columns of the stream: found no record.*schema="):
        local().from_collection([]).to_spark(spark)
    with pytest.raises(TypeMismatch, match=r"DataFrame .f0: found time64\[us\], wanted a type that Spark has"):
        local().from_collection([(datetime.time(1),)]).to_spark(spark)
    wide = [(Decimal("1e37"),), (Decimal("0.00001"),)]
    with pytest.raises(TypeMismatch, match=r"DataFrame .f0: found decimal256\(43, 5\), wanted a type that Spark has"):
        local().from_collection(wide).to_spark(spark)
    with pytest.raises(JobFailed, match=r"record \(1, 2\) does not fit the columns .*it has 2 fields, columns are id"):
        local().from_collection([(1, 2)]).to_spark(spark, "id long")
    with pytest.raises(TypeMismatch, match="found 'id log' .*wanted a schema"):
        local().from_collection([1]).to_spark(spark, "id log")
    with pytest.raises(
        TypeMismatch, match=r"found 'id varchar\(3\)' \(.*VarcharType\(3\) is not supported.*wanted a schema"
    ):
        local().from_collection(["x"]).to_spark(spark, "id varchar(3)")
    with pytest.raises(TypeMismatch, match="found str 'spark', wanted a pyspark.sql.SparkSession"):
        local().from_collection([1]).to_spark("spark")
    leave_all()


@pytest.mark.soak
def test_a_worker_of_spark_that_dies_reads_again_and_blocks_go_with_spark(spark, tmp_path, monkeypatch):
    df = environment().from_sequence(1, 10_000).to_spark(spark)
    died = str(tmp_path / "died")

    def dies_once(batches: Any) -> Any:
        for batch in batches:
            try:
                os.close(os.open(died, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
            else:
                os.kill(os.getpid(), signal.SIGKILL)

    assert df.mapInArrow(dies_once, df.schema).selectExpr("sum(value)").collect()[0][0] == sum(range(1, 10_001))
    assert os.path.exists(died)
    assert keepers()
    with monkeypatch.context() as ended:
        ended.setattr(spark.sparkContext, "_jsc", None)  # as that of a Spark that has ended
        assert watching.eventually(lambda: not keepers(), within_s=30)
    with pytest.raises(Exception, match="FrameLost: blocks of a DataFrame are gone: .*FileSink"):
        df.count()


@pytest.mark.soak
def test_spark_sees_committed_files_alone_while_a_stream_writes_them_and_fails(spark, tmp_path: Path):
    folder, failed = tmp_path / "rows", tmp_path / "failed"
    script: list[Any] = []
    for first in range(0, 6_000, 1_000):
        script += [*range(first, first + 1_000), Pause(600)]

    def fails_once(number: int) -> tuple[int, datetime.datetime, Decimal]:
        if number == 2_500 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return number, datetime.datetime.fromtimestamp(number, UTC), Decimal(number)

    types = [("id", pyarrow.int64()), ("at", pyarrow.timestamp("us", "UTC")), ("price", pyarrow.decimal128(9, 2))]
    sink = FileSink.for_bulk_format(str(folder), ParquetBulkWriters.for_row_type(pyarrow.schema(types)))
    env = restarting()
    records = env.from_source(ScriptedSource(script)).map(fails_once).set_parallelism(1)
    records.sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()).set_parallelism(1)
    job = env.execute_async()
    counts, hidden, ended = [0], 0, False
    while not ended:
        ended = job.get_job_status().result().is_terminal  # and one look after that
        names = os.listdir(folder) if folder.exists() else []
        hidden += any(name.startswith(".") for name in names)
        if names:
            rows = spark.read.schema("id long, at timestamp, price decimal(9, 2)").parquet(str(folder))
            count, distinct, most = rows.selectExpr("count(*)", "count(DISTINCT id)", "max(id)").collect()[0]
            assert count == distinct >= counts[-1] and count == (0 if most is None else most + 1)
            counts.append(count)
    job.get_job_execution_result().result()
    assert failed.exists() and hidden and len(set(counts)) >= 3, counts
    assert counts[-1] == 6_000 and not [name for name in os.listdir(folder) if name.startswith(".")]
    whole = spark.read.parquet(str(folder))
    assert whole.where("unix_timestamp(at) = id AND price = id").count() == 6_000
    assert whole.schema.simpleString() == "struct<id:bigint,at:timestamp,price:decimal(9,2)>"
    for name, where in [("2013-01-01--05", "buckets"), ("day=2013-01-01", "partitions")]:
        shutil.copytree(folder, tmp_path / where / name)
    assert spark.read.schema("id long").parquet(str(tmp_path / "buckets")).count() == 0  # as docs/spark.md says
    found = spark.read.option("recursiveFileLookup", "true").parquet(str(tmp_path / "buckets"))
    assert found.count() == 6_000
    assert spark.read.parquet(str(tmp_path / "partitions")).select("day").distinct().count() == 1
