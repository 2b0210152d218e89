"""Raw bytes of a Kafka topic: our source into a discarding sink, beside a bare consume loop of the client library."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.servers.kafka_broker import KafkaCluster, kafka_cluster
from rayflink.common.serialization import ByteArraySchema
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors import DiscardingSink
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource

SIZES = {100: 1.0, 1_000: 0.25}
"""Bytes a record -> its share of `records`."""
PARTITIONS = 4
BATCH = 10_000
CHUNK = 1_000
"""Messages a call of the bare loop, which is its fastest."""
_CLIENT = {"fetch.queue.backoff.ms": "10"}
"""The client's default of a second makes both wait; the source sets this by itself."""


def run(data: str | None, records: int = 4_000_000, pairs: int = 5) -> dict[str, Any]:
    """Measure both ways in turns, in this process.

    Returns:
        For each size the rates (records a second of wall time), the microseconds of CPU a record of the process, the
        broker not counted, and the median of the ratios bare / ours, by pairs.
    """
    numbers: dict[str, Any] = {"rows": 0}
    with kafka_cluster() as cluster:
        for size, share in SIZES.items():
            count = int(records * share) // BATCH * BATCH
            topic = cluster.new_topic(PARTITIONS)
            _fill(cluster, topic, count, size)
            _bare(cluster, topic, count)  # the files are in the page cache from here on
            both = partial(_ours, cluster, topic), partial(_bare, cluster, topic, count)
            ways = [_measured(*both) for _ in range(pairs)]
            numbers["rows"] += 2 * pairs * count
            numbers |= _summary(f"{size} bytes", count, ways)
    return numbers


def _fill(cluster: KafkaCluster, topic: str, count: int, size: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 20, "batch.size": 500_000})
    value = os.urandom(size)
    for start in range(0, count, BATCH):
        for _ in range(BATCH):
            while True:
                try:
                    producer.produce(topic, value, partition=start // BATCH % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.05)
    assert producer.flush(120) == 0


def _ours(cluster: KafkaCluster, topic: str) -> None:
    source = KafkaSource.builder().set_bootstrap_servers(cluster.bootstrap_servers).set_topics(topic)
    source.set_bounded(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(ByteArraySchema())
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "kafka").sink_to(DiscardingSink())
    env.execute()


def _bare(cluster: KafkaCluster, topic: str, count: int) -> None:
    from confluent_kafka import Consumer, Message, TopicPartition

    properties = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "bare", "enable.auto.commit": False}
    consumer = Consumer({**properties, **_CLIENT})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    read = 0
    while read < count:
        read += len(list(map(Message.value, consumer.consume(CHUNK, 1))))
    consumer.close()


def _measured(*ways: Callable[[], None]) -> list[tuple[float, float]]:
    """Return the wall time and the CPU time of each, in seconds."""
    found = []
    for way in ways:
        wall, cpu = time.perf_counter(), time.process_time()
        way()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return found


def _summary(name: str, count: int, pairs: list[list[tuple[float, float]]]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for index, way in enumerate(("ours", "bare")):
        numbers[f"{name}: {way}, records/s"] = count / statistics.median(pair[index][0] for pair in pairs)
        numbers[f"{name}: {way}, CPU us/record"] = statistics.median(pair[index][1] for pair in pairs) / count * 1e6
    for index, what in enumerate(("wall", "CPU")):
        ratios = [pair[1][index] / pair[0][index] for pair in pairs]
        numbers[f"{name}: bare/ours, {what} %"] = 100 * statistics.median(ratios)
    return numbers
