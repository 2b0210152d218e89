"""One broker for all tests of Kafka of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster, kafka_cluster


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """A cluster of one broker; tests make topics of their own."""
    with kafka_cluster() as cluster:
        yield cluster
