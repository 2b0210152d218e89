"""The Kafka source and sink keep their promises through crashes at every place, restores and rescaling."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import pytest
from confluent_kafka import Producer

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common import SimpleStringSchema
from rayflink.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from rayflink.testing import SinkSubject, SourceSubject, check_sink, check_source
from tests.connectors.kafka.kafka_topics import strings_to, values_in

pytestmark = pytest.mark.slow


TIMEOUTS = {"delivery.timeout.ms": 2_000, "transaction.timeout.ms": 2_000, "socket.timeout.ms": 1_000}
"""Shorter than by default: a sink that waits for the broker delays the end of the outage, as both are in one thread."""


@contextmanager
def frozen(kafka: KafkaCluster) -> Iterator[None]:
    """The broker stands still, for some seconds at most: its connections stay, and nothing answers."""
    broker = kafka.brokers[0]
    broker.freeze()
    thawing = threading.Timer(3.0, broker.thaw)  # also where the sink keeps the only thread waiting
    thawing.start()
    try:
        yield
    finally:
        thawing.cancel()
        thawing.join()
        broker.thaw()


@pytest.mark.parametrize("promise", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 20))])
def test_the_sink_keeps_its_promise(kafka: KafkaCluster, promise: DeliveryGuarantee, seed: int) -> None:
    class Topic(SinkSubject):
        guarantee = promise

        def __init__(self) -> None:
            self.topic = kafka.new_topic(2)

        def create_sink(self) -> Sink:
            builder = strings_to(kafka.bootstrap_servers, self.topic, promise, self.topic)
            for name, timeout_ms in TIMEOUTS.items():
                builder.set_property(name, str(timeout_ms))
            return builder.build()

        def record(self, number: int) -> str:
            return str(number)

        def read(self) -> Iterable[int]:
            return list(map(int, values_in(kafka.bootstrap_servers, self.topic)))

        def outage(self) -> AbstractContextManager[None]:
            return frozen(kafka)

    check_sink(Topic, seeds=[seed], records=120)


def test_the_source_reads_each_record_once(kafka: KafkaCluster) -> None:
    class Partitions(SourceSubject):
        def __init__(self) -> None:
            self.topic = kafka.new_topic(3)

        def create_source(self) -> Source:
            builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_topics(self.topic)
            builder = builder.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_group_id(self.topic)
            return builder.set_value_only_deserializer(SimpleStringSchema()).build()

        def write(self, numbers: Sequence[int]) -> None:
            producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
            for number in numbers:
                producer.produce(self.topic, str(number), str(number))
            assert producer.flush(20) == 0

    check_source(Partitions, seeds=range(3), records=120)
