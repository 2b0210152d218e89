"""Apache Kafka as a sink; needs `pip install 'rayflink[kafka]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.kafka.kafka_committing import UnknownChunks as UnknownChunks
    from rayflink.connectors.kafka.kafka_record_serialization import (
        KafkaRecordSerializationSchema as KafkaRecordSerializationSchema,
    )
    from rayflink.connectors.kafka.kafka_record_serialization import (
        KafkaRecordSerializationSchemaBuilder as KafkaRecordSerializationSchemaBuilder,
    )
    from rayflink.connectors.kafka.kafka_record_serialization import KafkaTopicSelector as KafkaTopicSelector
    from rayflink.connectors.kafka.kafka_sink import KafkaSink as KafkaSink
    from rayflink.connectors.kafka.kafka_sink import KafkaSinkBuilder as KafkaSinkBuilder
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.kafka.kafka_committing": "UnknownChunks",
            "rayflink.connectors.kafka.kafka_record_serialization": (
                "KafkaRecordSerializationSchema KafkaRecordSerializationSchemaBuilder KafkaTopicSelector"
            ),
            "rayflink.connectors.kafka.kafka_sink": "KafkaSink KafkaSinkBuilder",
        },
    )
