"""Topics as an outside consumer sees them, and subtasks of sinks that write to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from rayflink.common import SimpleStringSchema
from rayflink.connectors.kafka.kafka_record_serialization import KafkaRecordSerializationSchema
from rayflink.connectors.kafka.kafka_sink import KafkaSink, KafkaSinkBuilder
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.operators.sinks import SinkOperator
from rayflink.state.clock import ManualClock
from rayflink.testing import OperatorHarness, Place
from rayflink.testing.harness import Snapshots

WITHIN_S = 20


def messages_in(
    servers: str, topic: str, within_s: float = WITHIN_S, isolation: str = "read_committed"
) -> list[Message]:
    """All messages from the beginning up to the end as it is now, as a plain consumer of another group sees them.

    Raises:
        AssertionError: it did not get that far in time, as where an open transaction stops it.
    """
    shared = {"bootstrap.servers": servers, "group.id": "outside", "log_level": 0, "enable.auto.commit": False}
    every = Consumer({**shared, "isolation.level": "read_uncommitted"})
    consumer = Consumer({**shared, "isolation.level": isolation, "enable.partition.eof": True})
    try:
        partitions = every.list_topics(topic, timeout=10).topics[topic].partitions
        ends = {number: every.get_watermark_offsets(TopicPartition(topic, number))[1] for number in partitions}
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Message] = []
        deadline = time.monotonic() + within_s
        missing = {number: end for number, end in ends.items() if end > 0}
        while missing:
            if time.monotonic() > deadline:
                raise AssertionError(f"partitions {missing} of {topic} are not readable after {within_s} s")
            for message in consumer.consume(1000, timeout=0.05):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    number = message.partition()
                    if number in missing and message.offset() >= missing[number]:
                        del missing[number]
        return found
    finally:
        consumer.close()
        every.close()


def values_in(servers: str, topic: str, within_s: float = WITHIN_S) -> list[str]:
    """The values of all messages, sorted."""
    return sorted((message.value() or b"").decode() for message in messages_in(servers, topic, within_s))


def delete_topic(servers: str, topic: str) -> None:
    """Delete a topic, and return when no broker knows it any more."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(20)
    deadline = time.monotonic() + 20
    while topic in admin.list_topics(timeout=5).topics:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def strings_to(servers: str, topic: str, guarantee: DeliveryGuarantee, prefix: str = "") -> KafkaSinkBuilder:
    """A sink of strings, which are key and value."""
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema = schema.set_key_serialization_schema(SimpleStringSchema())
    schema = schema.set_value_serialization_schema(SimpleStringSchema())
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_delivery_guarantee(guarantee)
    builder = builder.set_record_serializer(schema.build())
    return builder.set_transactional_id_prefix(prefix) if prefix else builder


@contextmanager
def subtask(
    sink: KafkaSink, place: Place | None = None, restore: list[Snapshots] | None = None
) -> Iterator[OperatorHarness]:
    """A subtask of a sink, with the time of the machine; it commits in the background if `place` has a `wake`."""
    with started(sink, place, restore) as harness:
        yield harness


def started(
    sink: KafkaSink, place: Place | None = None, restore: list[Snapshots] | None = None, days_ago: int = 0
) -> OperatorHarness:
    """A subtask of a sink, which is to be closed, or is left as if its process had been killed."""
    clock = ManualClock(time.time_ns() // 1_000_000 - days_ago * 86_400_000)
    return OperatorHarness(lambda: SinkOperator(sink), place=place, restore=restore or (), clock=clock)


def counted(harness: OperatorHarness, name: str) -> object:
    """The value of a metric of a subtask."""
    [value] = [value for full, value in harness.metrics.snapshot().items() if full.rpartition(".")[2] == name]
    return value
