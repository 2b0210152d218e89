"""Apache Kafka as a source and a sink; needs `pip install 'rayflink[kafka]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee as DeliveryGuarantee
    from rayflink.connectors.kafka.flink_kafka_consumer import FlinkKafkaConsumer as FlinkKafkaConsumer
    from rayflink.connectors.kafka.flink_kafka_consumer import FlinkKafkaConsumerBase as FlinkKafkaConsumerBase
    from rayflink.connectors.kafka.flink_kafka_producer import FlinkKafkaProducer as FlinkKafkaProducer
    from rayflink.connectors.kafka.flink_kafka_producer import FlinkKafkaProducerBase as FlinkKafkaProducerBase
    from rayflink.connectors.kafka.flink_kafka_producer import Semantic as Semantic
    from rayflink.connectors.kafka.kafka_committing import UnknownChunks as UnknownChunks
    from rayflink.connectors.kafka.kafka_offsets import KafkaOffsetResetStrategy as KafkaOffsetResetStrategy
    from rayflink.connectors.kafka.kafka_offsets import KafkaOffsetsInitializer as KafkaOffsetsInitializer
    from rayflink.connectors.kafka.kafka_record_serialization import (
        KafkaRecordSerializationSchema as KafkaRecordSerializationSchema,
    )
    from rayflink.connectors.kafka.kafka_record_serialization import (
        KafkaRecordSerializationSchemaBuilder as KafkaRecordSerializationSchemaBuilder,
    )
    from rayflink.connectors.kafka.kafka_record_serialization import KafkaTopicSelector as KafkaTopicSelector
    from rayflink.connectors.kafka.kafka_records import KafkaRecord as KafkaRecord
    from rayflink.connectors.kafka.kafka_records import (
        KafkaRecordDeserializationSchema as KafkaRecordDeserializationSchema,
    )
    from rayflink.connectors.kafka.kafka_records import KafkaRecords as KafkaRecords
    from rayflink.connectors.kafka.kafka_sink import KafkaSink as KafkaSink
    from rayflink.connectors.kafka.kafka_sink import KafkaSinkBuilder as KafkaSinkBuilder
    from rayflink.connectors.kafka.kafka_source import KafkaSource as KafkaSource
    from rayflink.connectors.kafka.kafka_source import KafkaSourceBuilder as KafkaSourceBuilder
    from rayflink.connectors.kafka.kafka_splits import KafkaTopicPartition as KafkaTopicPartition
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.connector_base.delivery_guarantee": "DeliveryGuarantee",
            "rayflink.connectors.kafka.flink_kafka_consumer": "FlinkKafkaConsumer FlinkKafkaConsumerBase",
            "rayflink.connectors.kafka.flink_kafka_producer": "FlinkKafkaProducer FlinkKafkaProducerBase Semantic",
            "rayflink.connectors.kafka.kafka_committing": "UnknownChunks",
            "rayflink.connectors.kafka.kafka_offsets": "KafkaOffsetResetStrategy KafkaOffsetsInitializer",
            "rayflink.connectors.kafka.kafka_record_serialization": (
                "KafkaRecordSerializationSchema KafkaRecordSerializationSchemaBuilder KafkaTopicSelector"
            ),
            "rayflink.connectors.kafka.kafka_records": "KafkaRecord KafkaRecordDeserializationSchema KafkaRecords",
            "rayflink.connectors.kafka.kafka_sink": "KafkaSink KafkaSinkBuilder",
            "rayflink.connectors.kafka.kafka_source": "KafkaSource KafkaSourceBuilder",
            "rayflink.connectors.kafka.kafka_splits": "KafkaTopicPartition",
        },
    )
