"""The Kafka source and its builder, with PyFlink's names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import PlanError
from rayflink.common.serialization import DeserializationSchema
from rayflink.user_types import UserRecord

from .kafka_enumerator import KafkaEnumerator
from .kafka_errors import KafkaPropertyError
from .kafka_offsets import KafkaOffsetsInitializer
from .kafka_properties import shown_properties
from .kafka_reader import KafkaReader
from .kafka_records import KafkaRecordDeserializationSchema
from .kafka_settings import KafkaSourceSettings, TopicSelection, settings_of
from .kafka_splits import KafkaEnumeratorState, KafkaTopicPartition


class KafkaSource(Source[UserRecord]):
    """Reads the records of Kafka's topics; `KafkaSource.builder()` makes one.

    Offsets are part of checkpoints, so each record counts once in the state of a job, also across failures. Each
    partition is a split with a watermark of its own.

    Args:
        settings: what to read, and with which client.
        schema: decodes records.
        malformed: the policy for records that cannot be decoded.

    Source: apache/flink-connector-kafka KafkaSource.
    """

    def __init__(
        self, settings: KafkaSourceSettings, schema: KafkaRecordDeserializationSchema, malformed: MalformedRecords
    ) -> None:
        self._settings, self._schema, self._malformed = settings, schema, malformed

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Return a builder without settings."""
        return KafkaSourceBuilder()

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._settings.is_bounded else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return KafkaEnumerator(ctx, self._settings)

    def restore_enumerator(self, ctx: EnumeratorContext, state: KafkaEnumeratorState) -> SplitEnumerator:
        return KafkaEnumerator(ctx, self._settings, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return KafkaReader(ctx, self._settings, self._schema, self._malformed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.selection}, {shown_properties(self._settings.client)})"


class KafkaSourceBuilder:
    """Collects the settings of a `KafkaSource`.

    Bootstrap servers, topics (or a pattern, or partitions) and a deserializer are required. Without starting offsets a
    source starts at the earliest ones; without stopping offsets it has no end.

    >>> from rayflink.common.serialization import SimpleStringSchema
    >>> KafkaSource.builder().set_topics("orders").set_value_only_deserializer(SimpleStringSchema()).build()
    Traceback (most recent call last):
    rayflink.connectors.kafka.kafka_errors.KafkaPropertyError: no brokers are named; call set_bootstrap_servers(...)
    """

    def __init__(self) -> None:
        self._properties: dict[str, object] = {}
        self._selection = TopicSelection()
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._is_bounded = False
        self._schema: KafkaRecordDeserializationSchema | None = None
        self._malformed = MalformedRecords.fail()

    def build(self) -> KafkaSource:
        """Return the source.

        Raises:
            KafkaPropertyError: a property is unknown, or has a value that it cannot take.
            PlanError: topics or the deserializer are missing.
        """
        if self._selection == TopicSelection():
            raise PlanError(
                "the Kafka source has no topics", "call set_topics(), set_topic_pattern() or set_partitions()"
            )
        if self._schema is None:
            raise PlanError(
                "the Kafka source has no deserializer", "call set_value_only_deserializer() or set_deserializer()"
            )
        settings = settings_of(self._properties, self._selection, self._starting, self._stopping, self._is_bounded)
        return KafkaSource(settings, self._schema, self._malformed)

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Set the brokers to connect to first, as "host:port", with commas between."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the consumer group under which offsets are committed; readers do not join it."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read all partitions of some topics, which must exist when the job starts.

        Raises:
            PlanError: topics, a pattern or partitions were set before.
        """
        return self._select(TopicSelection(topics=topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all topics whose whole name matches a regular expression of Python; later ones are discovered.

        Raises:
            KafkaPropertyError: it is no regular expression.
            PlanError: topics, a pattern or partitions were set before.
        """
        try:
            re.compile(topic_pattern)
        except re.error as error:
            problem = f"the topic pattern {topic_pattern!r} is no regular expression ({error})"
            raise KafkaPropertyError(problem, "correct it") from None
        return self._select(TopicSelection(pattern=topic_pattern))

    def set_partitions(self, partitions: Collection[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read some partitions, which must exist when the job starts.

        Raises:
            PlanError: topics, a pattern or partitions were set before.
        """
        return self._select(TopicSelection(partitions=frozenset(partitions)))

    def _select(self, selection: TopicSelection) -> KafkaSourceBuilder:
        if self._selection != TopicSelection():
            problem = f"the Kafka source reads {self._selection} already, and is to read {selection}"
            raise PlanError(problem, "call one of set_topics(), set_topic_pattern() and set_partitions(), once")
        self._selection = selection
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set the offsets at which a job starts that restores no checkpoint; the default is `earliest()`."""
        self._starting = starting_offsets_initializer
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set offsets at which reading stops, of a source that counts as unbounded: the job runs in streaming mode."""
        self._stopping, self._is_bounded = stopping_offsets_initializer, False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set offsets at which reading stops, of a source that counts as bounded: the job may run in batch mode."""
        self._stopping, self._is_bounded = stopping_offsets_initializer, True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        """Set the schema of the values; records without a value are left out, and counted."""
        self._schema = KafkaRecordDeserializationSchema.value_only(deserialization_schema)
        return self

    def set_deserializer(self, record_deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """Set the schema of whole records: key, value, headers, timestamp and position."""
        self._schema = record_deserializer
        return self

    def set_malformed_records(self, malformed_records: MalformedRecords) -> KafkaSourceBuilder:
        """Set the policy for records that cannot be decoded; by default they fail the job."""
        self._malformed = malformed_records
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set the start of the client ids; the number of the subtask follows it."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: object) -> KafkaSourceBuilder:
        """Set a property of librdkafka, or one of the source such as `partition.discovery.interval.ms`."""
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, object]) -> KafkaSourceBuilder:
        """Set several properties."""
        self._properties.update(props)
        return self


__all__ = ["KafkaSource", "KafkaSourceBuilder"]
