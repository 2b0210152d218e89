"""The broker of the tests of Kafka's tables."""

from tests.connectors.kafka.conftest import kafka

__all__ = ["kafka"]
