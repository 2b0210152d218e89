"""The Kafka sink keeps its promise through crashes at every place, restores and rescaling."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rayflink.common.connector_base.sink import Sink
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.testing import SinkSubject, check_sink
from tests.connectors.kafka.kafka_broker import KafkaCluster
from tests.connectors.kafka.kafka_topics import strings_to, values_in

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("promise", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
def test_the_sink_keeps_its_promise(kafka: KafkaCluster, promise: DeliveryGuarantee) -> None:
    class Topic(SinkSubject):
        guarantee = promise

        def __init__(self) -> None:
            self.topic = kafka.new_topic(2)

        def create_sink(self) -> Sink:
            return strings_to(kafka.bootstrap_servers, self.topic, promise, self.topic).build()

        def record(self, number: int) -> str:
            return str(number)

        def read(self) -> Iterable[int]:
            return list(map(int, values_in(kafka.bootstrap_servers, self.topic)))

    check_sink(Topic, seeds=range(2), records=120)
