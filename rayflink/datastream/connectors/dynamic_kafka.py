"""PyFlink's module of this name is absent but for a schema: an import of another of its names says what to use."""

from __future__ import annotations

from rayflink.connectors.kafka.kafka_records import KafkaRecordDeserializationSchema

from .absent_connectors import absent_names

__getattr__ = absent_names("dynamic_kafka")
__all__ = ["KafkaRecordDeserializationSchema"]
