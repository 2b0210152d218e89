"""Programs for the tests of the stream API: they run in process."""

from __future__ import annotations

from typing import Any

from rayflink.common import Duration, WatermarkStrategy
from rayflink.datastream import DataStream, StreamExecutionEnvironment


def environment(parallelism: int = 1, **options: Any) -> StreamExecutionEnvironment:
    given = {"execution.target": "local", "parallelism.default": parallelism}
    return StreamExecutionEnvironment.get_execution_environment({**given, **options})


def timed(env: StreamExecutionEnvironment, records: list[tuple[Any, ...]]) -> DataStream:
    """A stream whose records carry their timestamp as last field, and whose watermark ends it."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    return env.from_collection(records).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record[-1])
    )
