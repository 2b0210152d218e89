"""The Kafka producer of Flink 1.x: another way to write a `KafkaSink`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.errors import PlanError
from rayflink.common.records.batches import Batch
from rayflink.common.serialization import SerializationSchema

from .kafka_messages import KafkaMessages
from .kafka_record_serialization import KafkaRecordSerializationSchema, KafkaSinkContext
from .kafka_sink import KafkaSink


class Semantic(Enum):
    """The guarantee of a `FlinkKafkaProducer`; a `KafkaSink` has a `DeliveryGuarantee`."""

    EXACTLY_ONCE = 0
    """Not for a `FlinkKafkaProducer`, whose transactional ids have no name of their own."""
    AT_LEAST_ONCE = 1
    NONE = 2


class FixedPartitionSchema(KafkaRecordSerializationSchema):
    """Turns records into values of messages; all messages of a subtask go to one partition.

    Args:
        has_timestamps: whether messages have the timestamps of their records; else those of their writing.
    """

    def __init__(self, topic: str, value: SerializationSchema, has_timestamps: bool = False) -> None:
        super().__init__(topic, value)
        self._only_topic, self.has_timestamps = topic, has_timestamps

    def _encoded(self, batch: Batch, ctx: KafkaSinkContext) -> KafkaMessages:
        messages = super()._encoded(batch, ctx)
        partitions = ctx.partitions_of(self._only_topic)
        own = sorted(partitions)[ctx.subtask % len(partitions)]
        stamps = messages.timestamps if self.has_timestamps else None
        return replace(messages, timestamps=stamps, partitions=[own] * len(messages))


class FlinkKafkaProducerBase(KafkaSink):
    """The settings that can be changed after a `FlinkKafkaProducer` has been made; each method returns the producer."""

    _schema: FixedPartitionSchema
    _semantic = DeliveryGuarantee.AT_LEAST_ONCE

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducerBase:
        """Fail the job where a message cannot be delivered; there is no other way.

        Raises:
            PlanError: it is true: messages would be lost.
        """
        if log_failures_only:
            problem = "set_log_failures_only(True) would lose messages and let the job go on"
            raise PlanError(problem, "leave it out; delivery.timeout.ms is the time in which messages are sent again")
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducerBase:
        """Choose whether a checkpoint waits until all messages before it are delivered; else nothing is promised."""
        guarantee = self._semantic if flush_on_checkpoint else DeliveryGuarantee.NONE
        self._mode = replace(self._mode, guarantee=guarantee)
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducerBase:
        """Choose whether messages have the event time of their records; else they have the time of their writing."""
        self._schema.has_timestamps = write_timestamp_to_kafka
        return self


class FlinkKafkaProducer(FlinkKafkaProducerBase):
    """Writes records as messages without a key to one topic; programs of Flink 1.x give it to `add_sink`.

    It is a `KafkaSink`, which new programs use. Each subtask writes to one partition, as Flink's does.

    >>> from rayflink.common import SimpleStringSchema
    >>> FlinkKafkaProducer("orders", SimpleStringSchema(), {"bootstrap.servers": "host:9092"})
    FlinkKafkaProducer(topic 'orders' at host:9092, at-least-once)

    Args:
        serialization_schema: of values.
        producer_config: properties of Kafka's client.
        kafka_producer_pool_size: without a meaning here.
        semantic: at-least-once or none.

    Raises:
        KafkaPropertyError: a property is unknown, or has a value that it cannot take.
        PlanError: exactly-once is wanted, or no brokers are named.
    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        if semantic is Semantic.EXACTLY_ONCE:
            problem = "a FlinkKafkaProducer cannot be exactly once: its transactional ids have no name of their own"
            remedy = "use KafkaSink.builder() with set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE) and "
            raise PlanError(problem, remedy + "set_transactional_id_prefix(), and write with sink_to()")
        self._semantic = DeliveryGuarantee[semantic.name]
        builder = KafkaSink.builder().set_delivery_guarantee(self._semantic)
        for name, value in producer_config.items():
            builder.set_property(name, value)
        sink = builder.set_record_serializer(FixedPartitionSchema(topic, serialization_schema)).build()
        vars(self).update(vars(sink))

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Do nothing: there are no transactions that could time out."""
        return self


__all__ = ["FixedPartitionSchema", "FlinkKafkaProducer", "FlinkKafkaProducerBase", "Semantic"]
