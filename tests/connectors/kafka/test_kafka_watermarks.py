"""Watermarks of a topic whose partitions differ: one is silent, or far ahead of the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common import Duration, WatermarkStrategy
from rayflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from rayflink.datastream.window import TumblingEventTimeWindows
from tests.connectors.kafka.kafka_reading import produce, strings_from

pytestmark = pytest.mark.slow
RECORDS = 4_000


class Lines(ProcessWindowFunction):
    """The lines of a window, sorted."""

    def process(self, key: int, context: ProcessWindowFunction.Context, elements: Any) -> Iterator[str]:
        yield " ".join(sorted(elements))


def read(source: KafkaSource, strategy: WatermarkStrategy) -> DataStream:
    """The lines "partition:milliseconds" of a source."""
    env = StreamExecutionEnvironment({"execution.target": "local", "pipeline.auto-watermark-interval": "5 ms"})
    return env.from_source(source, strategy.with_timestamp_assigner(lambda line, _: int(line.split(":")[1])), "lines")


def put(kafka: KafkaCluster, topic: str, *lines: str) -> None:
    """Write lines, each to its partition, in batches so small that a reader gets few of them at once."""
    messages = ({"value": line, "partition": int(line[0])} for line in lines)
    produce(kafka.bootstrap_servers, topic, *messages, **{"batch.num.messages": 20})


def test_a_silent_partition_holds_windows_back_only_until_it_is_idle(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(2, {"retention.ms": "-1"})
    put(kafka, topic, "0:1", "0:2", "0:15")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(100))
    lines = read(strings_from(kafka.bootstrap_servers, topic).build(), strategy)
    windows = lines.key_by(lambda line: 0).window(TumblingEventTimeWindows.of(10)).process(Lines())
    with lines.union(windows).execute_and_collect() as results:
        assert "0:1 0:2" in results  # partition 1 has no record yet
        put(kafka, topic, "1:16", "1:25")
        assert "1:25" in results  # read, before there is a record that lets the next window fire
        put(kafka, topic, "0:29")
        assert "0:15 1:16" in results


def test_a_partition_that_is_ahead_waits_for_the_other(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(2, {"retention.ms": "-1"})
    put(kafka, topic, *(f"0:{100 * number}" for number in range(RECORDS)))
    put(kafka, topic, *(f"1:{number}" for number in range(RECORDS)))
    source = strings_from(kafka.bootstrap_servers, topic).set_bounded(KafkaOffsetsInitializer.latest())
    small = {"fetch.message.max.bytes": 1_000, "queued.min.messages": 10, "queued.max.messages.kbytes": 1}
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "lines", Duration.of_seconds(1), Duration.of_millis(5)
    )
    with read(source.set_properties(small).build(), strategy).execute_and_collect() as found:
        lines = list(found)
    assert sorted(lines) == sorted([f"0:{100 * n}" for n in range(RECORDS)] + [f"1:{n}" for n in range(RECORDS)])
    ahead = sum(line.startswith("0") for line in lines[: lines.index(f"1:{RECORDS - 1}")])
    assert ahead < RECORDS / 8, "5 s of event time are 50 records of partition 0"
