"""The properties of Kafka's clients: what is translated, refused, suggested and hidden; needs no broker."""

from __future__ import annotations

import pickle

import pytest

from rayflink.common import SimpleStringSchema
from rayflink.common.errors import PlanError
from rayflink.connectors.kafka.kafka_client import consumer_properties, producer_properties
from rayflink.connectors.kafka.kafka_errors import KafkaPropertyError
from rayflink.connectors.kafka.kafka_properties import KNOWN
from rayflink.connectors.kafka.kafka_source import KafkaSource, KafkaSourceBuilder
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaTopicPartition

SECRET = "hunter2"


def builder(**properties: object) -> KafkaSourceBuilder:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    start = KafkaSource.builder().set_bootstrap_servers("nowhere:1").set_topics("t").set_properties(named)
    return start.set_value_only_deserializer(SimpleStringSchema())


def test_each_known_property_is_one_of_the_client() -> None:
    unknown = []
    for name in sorted(KNOWN):
        try:
            producer_properties({name: "\x01"})
        except KafkaPropertyError as error:
            unknown += [name] if "unknown" in str(error) else []
    assert unknown == []


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"grop.id": "x"}, "the property grop.id is unknown to Kafka's client; did you mean group.id"),
        ({"partition.discovery.interval": 5}, "did you mean partition.discovery.interval.ms"),
        ({"isolation.level": "read"}, 'Invalid value "read" for configuration property "isolation.level"'),
        ({"sasl.jaas.config": SECRET}, "set sasl.username and sasl.password"),
        ({"ssl.truststore.location": "/x.jks"}, "give PEM files: ssl.ca.location"),
        ({"value.deserializer": "x"}, "set the schema on the builder"),
        ({"max.poll.records": 500}, "librdkafka does not have"),
        ({"enable.auto.commit": "true"}, "enable.auto.commit is set; remove it"),
        ({"partition.discovery.interval.ms": "5 min"}, "is '5 min', a number of milliseconds from -1 is wanted"),
        ({"commit.offsets.on.checkpoint": "yes"}, "is 'yes', true or false is wanted"),
        ({"client.id": None}, "the property client.id is None, a string is wanted"),
        ({"security.protocol": "SASL", "sasl.password": SECRET}, "refuses its properties"),
    ],
)
def test_properties_are_checked_when_a_source_is_built(properties: dict[str, object], message: str) -> None:
    with pytest.raises(KafkaPropertyError, match=message) as raised:
        builder().set_properties(properties).build()
    assert SECRET not in str(raised.value)


def test_names_and_values_of_the_java_client_are_translated() -> None:
    java = {"fetch.max.wait.ms": 20, "auto.offset.reset": "none", "receive.buffer.bytes": 65536, "check.crcs": True}
    assert consumer_properties(java) == {
        "fetch.wait.max.ms": "20", "auto.offset.reset": "error", "socket.receive.buffer.bytes": "65536",
        "check.crcs": "true",
    }  # fmt: skip


def test_a_source_hides_its_secrets_and_can_be_pickled() -> None:
    source = builder().set_property("sasl.password", SECRET).set_property("ssl.key.password", SECRET).build()
    for each in (source, pickle.loads(pickle.dumps(source))):
        assert SECRET not in repr(each)
        assert "'sasl.password': '******'" in repr(each)


def test_what_a_source_needs_is_asked_for() -> None:
    empty = KafkaSource.builder().set_bootstrap_servers("nowhere:1")
    with pytest.raises(PlanError, match=r"has no topics; call set_topics\(\)"):
        empty.build()
    with pytest.raises(PlanError, match=r"has no deserializer; call set_value_only_deserializer\(\)"):
        empty.set_topics("t").build()
    with pytest.raises(PlanError, match="reads topics t already, and is to read partitions u-1"):
        empty.set_partitions({KafkaTopicPartition("u", 1)})
    with pytest.raises(KafkaPropertyError, match="is no regular expression"):
        KafkaSource.builder().set_topic_pattern("a(")
    with pytest.raises(ValueError, match="the offset of t-0 is -1"):
        KafkaOffsetsInitializer.offsets({KafkaTopicPartition("t", 0): -1})
    with pytest.raises(ValueError, match="the timestamp is -1"):
        KafkaOffsetsInitializer.timestamp(-1)
