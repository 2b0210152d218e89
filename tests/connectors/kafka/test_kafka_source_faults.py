"""The Kafka source while brokers, topics and offsets are not as it expects them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks.servers.kafka_broker import KafkaCluster, free_ports, kafka_cluster
from rayflink.connectors.kafka.kafka_errors import (
    KafkaAccessDenied,
    KafkaBrokerUnavailable,
    KafkaClientError,
    KafkaTopicRecreated,
)
from rayflink.connectors.kafka.kafka_lookup import PartitionLookup
from rayflink.connectors.kafka.kafka_source import KafkaSourceBuilder
from rayflink.connectors.kafka.kafka_splits import FoundPartitions
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaTopicPartition
from tests.connectors.kafka.kafka_reading import DrivenSource, produce, strings_from, values
from tests.connectors.kafka.kafka_topics import delete_topic

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mortal() -> Iterator[KafkaCluster]:
    """A broker that tests may kill."""
    with kafka_cluster() as cluster:
        yield cluster


def quick(servers: str, *topics: str) -> KafkaSourceBuilder:
    """A source whose client notices changes within half a second."""
    builder = strings_from(servers, *topics).set_property("reconnect.backoff.max.ms", 200)
    builder.set_property("topic.metadata.refresh.interval.ms", 500)
    return builder.set_property("topic.metadata.propagation.max.ms", 500)


def test_brokers_that_are_down_at_the_start_are_waited_for(mortal: KafkaCluster) -> None:
    topic = mortal.new_topic()
    produce(mortal.bootstrap_servers, topic, *values(3))
    mortal.brokers[0].kill()
    mortal.brokers[0].start()  # it takes seconds until it answers
    with DrivenSource(quick(mortal.bootstrap_servers, topic).build()) as source:
        assert source.read(3, within_s=40) == ["0:0", "0:1", "0:2"]


def test_reading_goes_on_when_a_broker_is_back(mortal: KafkaCluster) -> None:
    topic = mortal.new_topic(2)
    mortal.wait_until_ready()
    produce(mortal.bootstrap_servers, topic, *values(50, 0), *values(50, 1))
    with DrivenSource(quick(mortal.bootstrap_servers, topic).build()) as source:
        found = source.read(100)
        mortal.brokers[0].kill()
        found += source.wait_until(lambda: source.metric("numBrokerOutages"))
        mortal.brokers[0].start()
        mortal.wait_until_ready()
        produce(mortal.bootstrap_servers, topic, *values(50, 0, 50), *values(50, 1, 50))
        found += source.read(100, within_s=40)
        assert sorted(found) == sorted(f"{p}:{n}" for p in range(2) for n in range(100))
        assert source.metric("numBrokerOutages") == 1


def test_brokers_that_never_answer_are_an_error_in_time() -> None:
    builder = strings_from(f"127.0.0.1:{free_ports(1)[0]}", "t").set_property("default.api.timeout.ms", 300)
    began = time.monotonic()
    with pytest.raises(KafkaBrokerUnavailable, match=r"describing topic 't': no broker at 127.* answered for 0.3 s"):
        DrivenSource(builder.build())
    assert time.monotonic() - began < 10


def test_an_outage_that_lasts_too_long_is_an_error(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *values(1))
    builder = quick(kafka.bootstrap_servers, topic).set_property("broker.outage.timeout.ms", 300)
    builder.set_property("socket.timeout.ms", 300).set_property("fetch.wait.max.ms", 100)
    with DrivenSource(builder.build()) as source:
        source.read(1)
        kafka.brokers[0].freeze()
        try:
            with pytest.raises(KafkaBrokerUnavailable, match=r"no records from .* for 0.3 s \(broker.outage.timeout"):
                source.read(1)
        finally:
            kafka.brokers[0].thaw()


def test_a_frozen_broker_loses_and_repeats_nothing(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *values(10))
    builder = quick(kafka.bootstrap_servers, topic)
    builder.set_property("socket.timeout.ms", 300).set_property("fetch.wait.max.ms", 100)
    with DrivenSource(builder.build()) as source:
        found = source.read(10)
        kafka.brokers[0].freeze()
        try:
            found += source.wait_until(lambda: source.metric("numBrokerOutages"))
        finally:
            kafka.brokers[0].thaw()
        produce(kafka.bootstrap_servers, topic, *values(10, 0, 10))
        assert found + source.read(10) == [f"0:{number}" for number in range(20)]


def test_a_missing_topic_or_partition_is_named(kafka: KafkaCluster) -> None:
    with pytest.raises(KafkaClientError, match="describing topic 'nosuch' at 127.*: there is no such topic"):
        DrivenSource(strings_from(kafka.bootstrap_servers, "nosuch").build())
    topic = kafka.new_topic()
    builder = strings_from(kafka.bootstrap_servers).set_partitions({KafkaTopicPartition(topic, 3)})
    with pytest.raises(KafkaClientError, match=f"there is no partition {topic}-3"):
        DrivenSource(builder.build())


def test_a_topic_that_is_deleted_while_it_is_read_is_an_error(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *values(1))
    with DrivenSource(quick(kafka.bootstrap_servers, topic).build()) as source:
        source.read(1)
        delete_topic(kafka.bootstrap_servers, topic)
        with pytest.raises(KafkaClientError, match=f"a topic at .* does not exist any more: {topic}"):
            source.read(1)


@pytest.mark.parametrize("discovers", [True, False])
def test_a_topic_that_was_created_again_is_known_by_its_id(kafka: KafkaCluster, discovers: bool) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *values(5))
    builder = quick(kafka.bootstrap_servers, topic)
    if not discovers:
        builder.set_property("partition.discovery.interval.ms", "0")
    with DrivenSource(builder.build()) as source:
        source.read(5)
        state, splits = source.snapshot()
    with DrivenSource(builder.build(), 1, state, splits) as source:
        produce(kafka.bootstrap_servers, topic, *values(1, start=5))
        assert source.read(1) == ["0:5"]
    delete_topic(kafka.bootstrap_servers, topic)
    kafka.create_topic(topic)
    produce(kafka.bootstrap_servers, topic, *values(9))  # more than the offset, so that only the id says it
    with pytest.raises(KafkaTopicRecreated, match=f"topic '{topic}' was deleted and created again .*its id was"):
        DrivenSource(builder.build(), 1, state, splits)


def test_a_topic_that_was_created_again_is_read_on_where_the_program_says(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *values(5))
    builder = quick(kafka.bootstrap_servers, topic).set_property("auto.offset.reset", "earliest")
    with DrivenSource(builder.build()) as source:
        source.read(5)
        state, splits = source.snapshot()
    delete_topic(kafka.bootstrap_servers, topic)
    kafka.create_topic(topic)
    produce(kafka.bootstrap_servers, topic, {"value": "new"})
    with DrivenSource(builder.build(), 1, state, splits) as source:
        assert source.read(1) == ["new"]
        assert source.metric("numOffsetResets") == 1


@pytest.mark.parametrize("reset", [None, "earliest", "latest"])
def test_offsets_that_retention_has_removed_are_an_error(kafka: KafkaCluster, reset: str | None) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *values(10))
    builder = quick(kafka.bootstrap_servers, topic).set_property("auto.offset.reset", reset or "none")
    state, splits = None, []
    with DrivenSource(builder.build()) as source:
        source.read(1, most=1)
        state, splits = source.snapshot()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, 7)]).values():
        future.result(20)
    with DrivenSource(builder.build(), 1, state, splits) as source:
        if reset is None:
            with pytest.raises(KafkaClientError, match=f"offset 1 of {topic}-0 .* from 7 to before 10 .*retention"):
                source.read(1)
            return
        if reset == "latest":
            source.wait_until(lambda: source.metric("numOffsetResets"))
            produce(kafka.bootstrap_servers, topic, {"value": "next"})
        assert source.read(1) == (["0:7", "0:8", "0:9"] if reset == "earliest" else ["next"])


@pytest.mark.parametrize("password", ["right", "wrong"])
def test_wrong_credentials_are_an_error_without_the_password(kafka: KafkaCluster, password: str) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *values(1))
    builder = strings_from(kafka.sasl_servers, topic).set_bounded(KafkaOffsetsInitializer.latest())
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    source = builder.set_properties({**login, "sasl.password": password}).build()
    assert password not in repr(source)
    if password == "right":
        with DrivenSource(source) as driven:
            assert driven.read(9) == ["0:0"]
        return
    with pytest.raises(KafkaAccessDenied, match="as me failed with .*AUTHENTICATION.*check the properties") as raised:
        DrivenSource(source)
    assert password not in str(raised.value)


def test_credentials_that_are_refused_while_reading_are_an_error(
    kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.new_topic()
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    right = strings_from(kafka.sasl_servers, topic).set_properties({**login, "sasl.password": "right"}).build()
    with DrivenSource(right) as driven:
        state, splits = driven.snapshot()
    wrong = strings_from(kafka.sasl_servers, topic).set_properties({**login, "sasl.password": "worn-out"})
    wrong.set_bounded(KafkaOffsetsInitializer.latest())
    monkeypatch.setattr(PartitionLookup, "find", lambda self: FoundPartitions(frozenset()))
    with DrivenSource(wrong.build(), 1, state, splits) as driven:
        with pytest.raises(KafkaAccessDenied, match="as me failed with .*AUTHENTICATION"):
            driven.read(1)


def test_records_larger_than_a_fetch_are_read(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(config={"max.message.bytes": "3000000"})
    produce(
        kafka.bootstrap_servers, topic, {"value": "x" * 2_500_000}, {"value": "y"}, **{"message.max.bytes": 3_000_000}
    )
    builder = strings_from(kafka.bootstrap_servers, topic).set_bounded(KafkaOffsetsInitializer.latest())
    builder.set_property("fetch.message.max.bytes", 10_000)
    with DrivenSource(builder.build()) as source:
        assert list(map(len, source.read(9))) == [2_500_000, 1]


def test_a_record_too_large_to_receive_is_an_error(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(config={"max.message.bytes": "3000000"})
    produce(kafka.bootstrap_servers, topic, {"value": "x" * 2_500_000}, **{"message.max.bytes": 3_000_000})
    builder = strings_from(kafka.bootstrap_servers, topic).set_property("receive.message.max.bytes", 100_000)
    builder.set_property("fetch.message.max.bytes", 10_000).set_property("fetch.max.bytes", 20_000)
    builder.set_property("message.max.bytes", 10_000).set_property("broker.outage.timeout.ms", 500)
    with DrivenSource(builder.build()) as source:
        with pytest.raises(KafkaClientError, match=r"too large to receive: .*increase receive.message.max.bytes"):
            source.read(1)
