"""One broker for all tests of Kafka of a process, and one that needs no Java."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from benchmarks.servers.kafka_broker import KafkaCluster, kafka_cluster


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """A cluster of one broker; tests make topics of their own."""
    with kafka_cluster() as cluster:
        yield cluster


@pytest.fixture
def mock_kafka() -> Iterator[str]:
    """The address of a broker inside the client library, which makes topics of four partitions when they are used."""
    owner = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    [broker] = owner.list_topics(timeout=20).brokers.values()
    yield f"{broker.host}:{broker.port}"
    owner.flush(20)
