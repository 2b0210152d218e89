"""A DataFrame of Spark as a stream: by blocks in the object store, by Ray Data's conversion, and by Parquet files.

All ways in one session, round by round: the DataFrame is held by Spark as it computed it, so that each way pays for
its conversion alone. A way ends when a stream has counted the rows; of Ray Data, when all blocks have been read.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
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
    import ray

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.spark import spark_session, spark_source

    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "ray", "parallelism.default": 1})

    def counted(stream: Any) -> int:
        return sum(row.n for row in stream.map_batches(_count).execute_and_collect(limit=1 << 30))

    folder = Path(tempfile.mkdtemp(prefix="rayflink-bench-"))
    taken: dict[str, list[float]] = {}
    try:
        with spark_session("frames", executor_memory="2g", stream_cpus=2, ray_data=True) as spark:
            started = time.perf_counter() - began
            df = spark.range(0, rows, 1, PARTITIONS).selectExpr(*COLUMNS).persist()
            df.count()

            def by_ray_data() -> int:
                return sum(len(ray.get(ref)) for ref in ray.data.from_spark(df).to_arrow_refs())

            def by_files(number: int) -> Callable[[], int]:
                return lambda: counted(env.from_spark(df, path=str(folder / f"{number}")))

            def nothing() -> int:
                df.write.format("noop").mode("overwrite").save()
                return rows

            for number in range(rounds + 1):
                ways: dict[str, Callable[[], int]] = {"spark_alone": nothing, "blocks": lambda: spark_source(df).rows}
                ways |= {"stream": lambda: counted(env.from_spark(df)), "ray_data": by_ray_data}
                ways["parquet"] = by_files(number)
                for name, way in ways.items():
                    at = time.perf_counter()
                    found = way()
                    took = time.perf_counter() - at
                    if found != rows:
                        raise RuntimeError(f"{name} gave {found} rows of {rows}")
                    if number:
                        taken.setdefault(name, []).append(took)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    numbers = {f"{name}_s": seconds for name, seconds in medians.items()}
    numbers |= {f"{name}_rows_s": rows / seconds for name, seconds in medians.items()}
    return {"rows": rows, "session_s": started, "seconds_total": time.perf_counter() - began, **numbers}


def _count(columns: Any) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_pydict({"n": [columns.num_rows]})
