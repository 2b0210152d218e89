"""Brokers whose certificates an authority of the tests has signed: the sink writes, the source reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common import WatermarkStrategy
from rayflink.connectors.kafka.kafka_errors import KafkaAccessDenied
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer
from rayflink.operators.base import UserCodeError
from tests.connectors.kafka.kafka_reading import DrivenSource, strings_from
from tests.connectors.kafka.kafka_topics import started, strings_to, values_in

pytestmark = pytest.mark.slow


def trusting(authority: Path) -> dict[str, str]:
    """The properties of a client that trusts an authority."""
    return {"security.protocol": "SSL", "ssl.ca.location": str(authority)}


def test_a_job_copies_a_topic_to_another_over_tls(kafka: KafkaCluster) -> None:
    first, second = kafka.new_topic(2), kafka.new_topic(2)
    numbers = [f"{number:03}" for number in range(100)]
    source = strings_from(kafka.tls_servers, first).set_properties(trusting(kafka.certificates.authority))
    source = source.set_bounded(KafkaOffsetsInitializer.latest())
    options = {"execution.target": "local", "execution.checkpointing.interval": "50 ms"}

    def write(topic: str) -> None:
        sink = strings_to(kafka.tls_servers, topic, DeliveryGuarantee.EXACTLY_ONCE, topic)
        for name, value in trusting(kafka.certificates.authority).items():
            sink.set_property(name, value)
        env = StreamExecutionEnvironment(options)
        read = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers")
        (env.from_collection(numbers) if topic == first else read).sink_to(sink.build())
        env.execute()

    write(first)
    write(second)
    assert values_in(kafka.bootstrap_servers, second) == numbers


def test_brokers_that_another_authority_has_signed_are_refused(kafka: KafkaCluster) -> None:
    topic, wrong = kafka.new_topic(), trusting(kafka.certificates.stranger)
    with pytest.raises(KafkaAccessDenied, match="_SSL: .*certificate verify failed.*check the properties"):
        DrivenSource(strings_from(kafka.tls_servers, topic).set_properties(wrong).build())
    sink = strings_to(kafka.tls_servers, topic, DeliveryGuarantee.AT_LEAST_ONCE)
    for name, value in wrong.items():
        sink.set_property(name, value)
    with pytest.raises(UserCodeError, match="_SSL: .*certificate verify failed.*check the properties"):
        started(sink.build())
