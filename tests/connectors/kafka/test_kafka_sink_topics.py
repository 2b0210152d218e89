"""The Kafka sink while its topic is deleted, created again or grows, and while brokers are away or refuse it."""

from __future__ import annotations

import threading
import time

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster, free_ports
from rayflink.common import SimpleStringSchema
from rayflink.connectors.kafka import kafka_producing
from rayflink.connectors.kafka.kafka_errors import KafkaAccessDenied, KafkaBrokerUnavailable
from rayflink.connectors.kafka.kafka_record_serialization import KafkaRecordSerializationSchema
from rayflink.connectors.kafka.kafka_sink import KafkaSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.operators.base import UserCodeError
from tests.connectors.kafka.kafka_topics import delete_topic, messages_in, started, strings_to, subtask, values_in

pytestmark = pytest.mark.slow
EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE
BOTH = [AT_LEAST_ONCE, EXACTLY_ONCE]
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}


@pytest.mark.parametrize("guarantee", BOTH)
def test_wrong_credentials_fail_the_sink_at_once_without_the_password(
    kafka: KafkaCluster, guarantee: DeliveryGuarantee
) -> None:
    builder = strings_to(kafka.sasl_servers, kafka.new_topic(), guarantee, "p")
    for name, value in {**LOGIN, "sasl.password": "worn-out"}.items():
        builder.set_property(name, value)
    began = time.monotonic()
    with pytest.raises(UserCodeError, match="as me failed with .*AUTHENTICATION.*check the properties") as raised:
        started(builder.build())
    assert isinstance(raised.value.__cause__, KafkaAccessDenied)
    assert "worn-out" not in str(raised.value)
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("guarantee", BOTH)
def test_brokers_that_are_down_when_a_sink_starts_are_an_error_in_time(
    monkeypatch: pytest.MonkeyPatch, guarantee: DeliveryGuarantee
) -> None:
    monkeypatch.setattr(kafka_producing, "METADATA_S", 0.3)
    sink = strings_to(f"127.0.0.1:{free_ports(1)[0]}", "t", guarantee, "p").build()
    with pytest.raises(UserCodeError, match="looking up topic 't' at 127.*check that the brokers run") as raised:
        started(sink)
    assert isinstance(raised.value.__cause__, KafkaBrokerUnavailable)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_topic_that_is_deleted_before_the_commit_is_named(kafka: KafkaCluster, restarts: bool) -> None:
    topic, servers = kafka.new_topic(), kafka.bootstrap_servers
    make = strings_to(servers, topic, EXACTLY_ONCE, topic).build
    with subtask(make()) as sink:
        sink.process("a")
        taken = sink.snapshot(1)
        if not restarts:
            sink.notify_checkpoint_complete(1)
            sink.process("b")
            taken = sink.snapshot(2)
        delete_topic(servers, topic)
        with pytest.raises(UserCodeError, match=f"topic '{topic}' does not exist at .*create it"):
            if restarts:
                started(make(), restore=[taken])
            else:
                sink.notify_checkpoint_complete(2)
    kafka.create_topic(topic)
    with subtask(make(), restore=[taken]):
        pass
    assert values_in(servers, topic) == ["a" if restarts else "b"]


def test_messages_of_a_checkpoint_go_into_a_topic_that_was_created_again(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(), kafka.bootstrap_servers
    with subtask(strings_to(servers, topic, EXACTLY_ONCE, topic).build()) as sink:
        sink.process("a")
        sink.snapshot(1)
        sink.notify_checkpoint_complete(1)
        sink.process("b")
        sink.snapshot(2)
        delete_topic(servers, topic)
        kafka.create_topic(topic)
        sink.notify_checkpoint_complete(2)
        sink.process("c")
        sink.snapshot(3)
        sink.notify_checkpoint_complete(3)
    assert values_in(servers, topic) == ["b", "c"]


@pytest.mark.parametrize("guarantee", BOTH)
def test_partitions_that_are_added_lose_nothing_and_get_messages(
    kafka: KafkaCluster, guarantee: DeliveryGuarantee
) -> None:
    topic, servers = kafka.new_topic(1), kafka.bootstrap_servers
    make = strings_to(servers, topic, guarantee, topic).set_property("topic.metadata.refresh.interval.ms", "200").build
    with subtask(make()) as sink:
        sink.process("before")
        sink.snapshot(1)
        kafka.add_partitions(topic, 4)
        sink.notify_checkpoint_complete(1)
        numbers: list[str] = []
        deadline = time.monotonic() + 20
        while len({message.partition() for message in messages_in(servers, topic)}) < 4:
            assert time.monotonic() < deadline, "no message is in a new partition"
            numbers += [f"{len(numbers) + number}" for number in range(20)]
            for number in numbers[-20:]:
                sink.process(number)
            sink.snapshot(len(numbers))
            sink.notify_checkpoint_complete(len(numbers))
    assert values_in(servers, topic) == sorted(["before", *numbers])


def test_a_deleted_topic_of_a_record_is_named_at_the_commit(kafka: KafkaCluster) -> None:
    first, second = kafka.new_topic(), kafka.new_topic()
    schema = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda line: line.split(":")[0])
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_transactional_id_prefix(first)
    builder = builder.set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
    make = builder.set_delivery_guarantee(EXACTLY_ONCE).set_property("topic.metadata.propagation.max.ms", "500").build
    with subtask(make()) as sink:
        sink.process(f"{first}:a")
        sink.process(f"{second}:b")
        delete_topic(kafka.bootstrap_servers, second)
        sink.snapshot(1)
        with pytest.raises(UserCodeError, match=f"topic '{second}' does not exist"):
            sink.notify_checkpoint_complete(1)
    assert values_in(kafka.bootstrap_servers, first) == []


def test_wrong_credentials_fail_a_sink_of_any_topics_with_its_first_commit(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    schema = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda line: topic)
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.sasl_servers).set_transactional_id_prefix(topic)
    builder = builder.set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
    for name, value in {**LOGIN, "sasl.password": "worn-out"}.items():
        builder.set_property(name, value)
    with subtask(builder.set_delivery_guarantee(EXACTLY_ONCE).build()) as sink:
        sink.process("a")
        sink.snapshot(1)
        began = time.monotonic()
        with pytest.raises(UserCodeError, match="as me failed with .*AUTHENTICATION.*check the properties"):
            sink.notify_checkpoint_complete(1)
        assert time.monotonic() - began < 8


def test_a_job_whose_brokers_are_down_at_the_start_is_restarted_until_they_are_there(
    kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, servers = kafka.new_topic(), kafka.bootstrap_servers
    monkeypatch.setattr(kafka_producing, "METADATA_S", 0.2)
    options = {
        "execution.target": "local", "execution.checkpointing.interval": "100 ms",
        "restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": 1_000,
        "restart-strategy.fixed-delay.delay": "20 ms",
    }  # fmt: skip
    env = StreamExecutionEnvironment(options)
    env.from_collection(["a", "b"]).sink_to(strings_to(servers, topic, EXACTLY_ONCE, topic).build())
    kafka.brokers[0].freeze()
    thawing = threading.Timer(1.0, kafka.brokers[0].thaw)
    thawing.start()
    job = env.execute_async()
    job.get_job_execution_result().result()
    thawing.join()
    assert job.status()["metrics"]["numRestarts"] >= 1
    assert values_in(servers, topic) == ["a", "b"]
