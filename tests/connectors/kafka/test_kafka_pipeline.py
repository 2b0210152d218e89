"""The pipeline by which Flink's papers introduce it: Kafka, parse, key, window, files."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common import Encoder, SimpleStringSchema, WatermarkStrategy
from rayflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from rayflink.datastream.window import TumblingEventTimeWindows

WINDOW_MS = 10_000


class Statistics(ProcessWindowFunction):
    """A line with id, start of the window, count and sum."""

    def process(self, key, context, elements):
        values = [value for _, _, value in elements]
        yield f"{key},{context.window().start},{len(values)},{sum(values)}"


def _parsed(line: str) -> tuple[str, int, int]:
    key, time, value = line.split(",")
    return key, int(time), int(value)


def _fill(bootstrap_servers: str, topic: str) -> None:
    """Write 400 lines of four users into the two first partitions of a topic."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(400):
        producer.produce(topic, f"user-{number % 4},{number * 100},{number}", partition=number % 2)
    assert producer.flush(20) == 0


def _run(bootstrap_servers: str, topic: str, folder: Path) -> None:
    """Run the pipeline from a topic to files in a folder."""
    source = (
        KafkaSource.builder().set_bootstrap_servers(bootstrap_servers).set_topics(topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema()).build()
    )  # fmt: skip
    files = FileSink.for_row_format(str(folder), Encoder.simple_string_encoder())
    files = files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    rolling = files.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=100)).build()
    options = {"execution.target": "local", "parallelism.default": 2, "execution.checkpointing.interval": "50 ms"}
    env = StreamExecutionEnvironment(options)
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(_parsed)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
    keyed = lines.assign_timestamps_and_watermarks(times).key_by(lambda event: event[0])
    keyed.window(TumblingEventTimeWindows.of(WINDOW_MS)).process(Statistics()).sink_to(rolling)
    env.execute()


def _check(folder: Path) -> None:
    """Compare the lines of all files with the statistics of the records, in files that have rolled."""
    parts = [path.read_text().splitlines() for path in folder.glob("part-*")]
    assert len(parts) > 2 and max(map(len, parts)) < 16, "no part is much larger than 100 bytes"
    expected: dict[tuple[str, int], list[int]] = {}
    for number in range(400):
        expected.setdefault((f"user-{number % 4}", number * 100 // WINDOW_MS * WINDOW_MS), []).append(number)
    statistics = sorted(f"{key},{start},{len(n)},{sum(n)}" for (key, start), n in expected.items())
    assert sorted(line for lines in parts for line in lines) == statistics


@pytest.mark.slow
@pytest.mark.spec("A09")
def test_statistics_of_users_go_from_a_topic_through_windows_to_files(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic = kafka.new_topic(2, {"retention.ms": "-1"})
    _fill(kafka.bootstrap_servers, topic)
    _run(kafka.bootstrap_servers, topic, tmp_path)
    _check(tmp_path)


@pytest.mark.slow
@pytest.mark.spec("A09", "C24", "kafka")
def test_the_pipeline_reads_from_the_broker_of_the_client_library(mock_kafka: str, tmp_path: Path) -> None:
    _fill(mock_kafka, "users")
    _run(mock_kafka, "users", tmp_path)
    _check(tmp_path)
