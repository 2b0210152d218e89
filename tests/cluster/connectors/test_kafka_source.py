"""The Kafka source on Ray: counts by key."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer
from tests.connectors.kafka.conftest import kafka  # noqa: F401
from tests.connectors.kafka.kafka_reading import produce, strings_from

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
PARTITIONS, RECORDS, KEYS = 4, 4_000, 5


def test_a_topic_is_counted_by_key(kafka: KafkaCluster) -> None:  # noqa: F811
    topic = kafka.new_topic(PARTITIONS)
    messages = ({"value": str(number % KEYS), "partition": number % PARTITIONS} for number in range(RECORDS))
    produce(kafka.bootstrap_servers, topic, *messages)
    options: dict[str, Any] = {"parallelism.default": 2, "execution.checkpointing.interval": "100 ms"}
    env = StreamExecutionEnvironment(options)
    source = strings_from(kafka.bootstrap_servers, topic).set_group_id(topic)
    source.set_bounded(KafkaOffsetsInitializer.latest())
    words = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "kafka").map(lambda word: (word, 1))
    counts = words.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    found = dict[str, int]()
    for word, count in counts.execute_and_collect():
        found[word] = max(count, found.get(word, 0))
    assert found == {str(key): RECORDS // KEYS for key in range(KEYS)}
