"""A DataFrame of Spark as a stream and back: by blocks in the object store, by Ray Data, and by Parquet files.

All ways in one session, round by round: the DataFrame is held by Spark as it computed it, so that each way pays for
its conversion alone. A way ends when a stream has counted the rows; of Ray Data, when all blocks have been read.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

COLUMNS = (
    "id",
    "id % 1000 AS key",
    "cast(id * 37 % 100003 AS decimal(12, 2)) AS price",
    "timestamp_micros(id * 1000) AS at",
    "concat('customer-', cast(id % 50000 AS string)) AS customer",
    "if(id % 7 = 0, null, id * 0.5) AS score",
)
PARTITIONS = 8


def run(data: str | None, rows: int = 4_000_000, rounds: int = 3) -> dict[str, Any]:
    """Seconds and rows a second of each way, medians of the rounds behind one that is not measured.

    Args:
        rows: of the DataFrame.
    """
    began = time.perf_counter()
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.spark import spark_session

    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "ray", "parallelism.default": 1})
    folder = tempfile.mkdtemp(prefix="rayflink-bench-")
    taken: dict[str, list[float]] = {}
    try:
        with spark_session("frames", executor_memory="2g", stream_cpus=2, ray_data=True) as spark:
            started = time.perf_counter() - began
            df = spark.range(0, rows, 1, PARTITIONS).selectExpr(*COLUMNS).persist()
            df.count()
            for number in range(rounds + 1):
                for name, way in ways(env, spark, df, f"{folder}/{number}").items():
                    at = time.perf_counter()
                    found = way()
                    took = time.perf_counter() - at
                    if found not in (rows, None):
                        raise RuntimeError(f"{name} gave {found} rows of {rows}")
                    if number:
                        taken.setdefault(name, []).append(took)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    numbers = {f"{name}_s": seconds for name, seconds in medians.items()}
    numbers |= {f"{name}_rows_s": rows / seconds for name, seconds in medians.items()}
    return {"rows": rows, "session_s": started, "seconds_total": time.perf_counter() - began, **numbers}


def ways(env: Any, spark: Any, df: Any, folder: str) -> dict[str, Callable[[], int | None]]:
    """What is measured, each giving the rows it has seen; `back_...` go from a DataFrame by a stream to a DataFrame.

    Those do without the column of texts: Ray Data's way back fails on one where pandas is 3.
    """
    import ray

    from rayflink.connectors.files.file_sink import FileSink
    from rayflink.connectors.formats.parquet_files import ParquetBulkWriters
    from rayflink.connectors.frames.spark_frames import arrow_schema
    from rayflink.spark import spark_source

    def counted(stream: Any) -> int:
        return sum(row.n for row in stream.map_batches(_count).execute_and_collect(limit=1 << 30))

    def summed(found: Any) -> int:
        return int(found.selectExpr("count(id)", "sum(score)", "max(at)", "sum(price)").collect()[0][0])

    no_texts = df.drop("customer")

    def back_by_files() -> int:
        sink = FileSink.for_bulk_format(f"{folder}/back", ParquetBulkWriters.for_row_type(arrow_schema(no_texts)))
        env.from_spark(no_texts, path=f"{folder}/there").sink_to(sink.build())
        env.execute()
        return summed(spark.read.option("recursiveFileLookup", True).parquet(f"{folder}/back"))

    return {
        "spark_alone": lambda: df.write.format("noop").mode("overwrite").save(),
        "blocks": lambda: spark_source(df).rows,
        "ray_data": lambda: sum(len(ray.get(ref)) for ref in ray.data.from_spark(df).to_arrow_refs()),
        "stream": lambda: counted(env.from_spark(df)),
        "stream_parquet": lambda: counted(env.from_spark(df, path=f"{folder}/rows")),
        "back_stream": lambda: summed(env.from_spark(no_texts).to_spark(spark)),
        "back_ray_data": lambda: summed(ray.data.from_spark(no_texts).to_spark(spark)),
        "back_parquet": back_by_files,
    }


def _count(columns: Any) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_pydict({"n": [columns.num_rows]})
