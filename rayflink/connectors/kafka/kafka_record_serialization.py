"""Records as messages of Kafka: topics, keys, values, headers, timestamps and partitions; names are PyFlink's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from rayflink.common.connector_base.sink import UnwritableRecord
from rayflink.common.errors import PlanError, shorten
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.common.serialization import SerializationSchema
from rayflink.user_types import UserRecord

from .kafka_messages import ANY_PARTITION, NO_TIMESTAMP, Headers, KafkaMessages

HeaderProvider = Callable[[Any], "Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]] | None"]
"""Record -> the headers of its message: a dict, or pairs of name and value."""
Partitioner = Callable[[Any, "bytes | None", "bytes | None", str, Sequence[int]], "int | None"]
"""(record, key, value, topic, partitions of the topic) -> one of the partitions; None: the client chooses."""
_F = TypeVar("_F")
_BYTES = {bytes, type(None)}


class KafkaTopicSelector(ABC):
    """Selects the topic of each record; a function does as well."""

    @abstractmethod
    def apply(self, data: UserRecord) -> str:
        """Return the topic for a record."""


class KafkaSinkContext(Protocol):
    """The facts that a sink's subtask knows when it encodes records."""

    @property
    def subtask(self) -> int:
        """Return its index, from 0 on."""

    @property
    def parallelism(self) -> int:
        """Return the number of subtasks."""

    def partitions_of(self, topic: str) -> Sequence[int]:
        """Return the partitions of a topic."""


class KafkaRecordSerializationSchema(SerializationSchema):
    """Turns records into messages of Kafka; `builder()` makes one of serialization schemas.

    Formats that make keys and values of columns subclass it and override `encode_batch`.
    """

    def __init__(
        self,
        topic: str | Callable[[Any], str],
        value: SerializationSchema,
        key: SerializationSchema | None = None,
        headers: HeaderProvider | None = None,
        timestamp: Callable[[Any], int | None] | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        self._topic, self._value, self._key = topic, value, key
        self._headers, self._timestamp, self._partitioner = headers, timestamp, partitioner

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Return a builder of a schema."""
        return KafkaRecordSerializationSchemaBuilder()

    @property
    def topic(self) -> str | None:
        """Return the topic of all messages; None: each has its own."""
        return self._topic if isinstance(self._topic, str) else None

    def serialize(self, element: UserRecord) -> bytes:
        """Return the value of a record's message."""
        return self._value.serialize(element)

    def encode_batch(self, batch: Batch, ctx: KafkaSinkContext) -> KafkaMessages:
        """Return a message for each record of a batch, in order.

        Raises:
            UnwritableRecord: a schema or function fails on one.
        """
        try:
            return self._encoded(batch, ctx)
        except Exception:
            values, stamps = list(rows_of(batch)), batch.timestamps
            for index, record in enumerate(values):
                single = RowBatch([record], None if stamps is None else [int(stamps[index])])
                try:
                    self._encoded(single, ctx)
                except Exception as error:
                    raise UnwritableRecord(shorten(record)) from error
            raise

    def _encoded(self, batch: Batch, ctx: KafkaSinkContext) -> KafkaMessages:
        values = _checked(self._value.serialize_batch(batch), "value", self._value)
        keys = None if self._key is None else _checked(self._key.serialize_batch(batch), "key", self._key)
        if isinstance(self._topic, str) and not (self._headers or self._timestamp or self._partitioner):
            return KafkaMessages(self._topic, values, keys, None, _timestamps(batch))
        records = list(rows_of(batch))
        topic = self._topic
        topics = topic if isinstance(topic, str) else [_topic_of(topic, record) for record in records]
        headers = None if self._headers is None else [_headers_of(self._headers(record)) for record in records]
        timestamps = _timestamps(batch)
        if self._timestamp is not None:
            timestamps = [_timestamp_of(self._timestamp(record)) for record in records]
        partitions = None
        if self._partitioner is not None:
            every_topic = [topics] * len(records) if isinstance(topics, str) else topics
            every_key = keys if keys is not None else [None] * len(records)
            rows = zip(records, every_key, values, every_topic, strict=True)
            partitions = [self._partition(*row, ctx) for row in rows]
        return KafkaMessages(topics, values, keys, headers, timestamps, partitions)

    def _partition(
        self, record: UserRecord, key: bytes | None, value: bytes | None, topic: str, ctx: KafkaSinkContext
    ) -> int:
        assert self._partitioner is not None
        partitions = ctx.partitions_of(topic)
        chosen = self._partitioner(record, key, value, topic, partitions)
        if chosen is None:
            return ANY_PARTITION
        if chosen not in partitions:
            wanted = f"one of the {len(partitions)} partitions of topic {topic!r}, from 0 on, or None"
            raise ValueError(f"the partitioner returned {chosen!r}, wanted {wanted}")
        return int(chosen)


class KafkaRecordSerializationSchemaBuilder:
    """Builds a `KafkaRecordSerializationSchema` of a topic and a schema for values, and more where it is wanted.

    >>> from rayflink.common import SimpleStringSchema
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic_selector(lambda word: "short" if len(word) < 5 else "long")
    ...     .set_key_serialization_schema(SimpleStringSchema())
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> schema.encode_batch(RowBatch(["a", "b"]), None).topics
    ['short', 'short']
    """

    def __init__(self) -> None:
        self._topic: str | Callable[[Any], str] | None = None
        self._key: SerializationSchema | None = None
        self._value: SerializationSchema | None = None
        self._headers: HeaderProvider | None = None
        self._timestamp: Callable[[Any], int | None] | None = None
        self._partitioner: Partitioner | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Write all records to one topic."""
        if not isinstance(topic, str) or not topic:
            raise PlanError(f"set_topic takes the name of a topic, found {topic!r}", "give a string")
        self._topic = topic
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Write each record to the topic that a selector or a function returns for it."""
        if isinstance(topic_selector, KafkaTopicSelector):
            self._topic = topic_selector.apply
        elif callable(topic_selector):
            self._topic = topic_selector
        else:
            raise TypeError(f"topic_selector is a KafkaTopicSelector or a function, found {topic_selector!r}")
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Give each message the key that this schema makes of its record; without it messages have no key."""
        self._key = _schema(key_serialization_schema, "set_key_serialization_schema")
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Give each message the value that this schema makes of its record; a None is a tombstone."""
        self._value = _schema(value_serialization_schema, "set_value_serialization_schema")
        return self

    def set_header_provider(self, header_provider: HeaderProvider) -> KafkaRecordSerializationSchemaBuilder:
        """Give each message the headers that a function returns for its record: a dict, or pairs; None: none."""
        self._headers = _function(header_provider, "set_header_provider")
        return self

    def set_timestamp_function(
        self, timestamp_function: Callable[[Any], int | None]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Give each message the epoch milliseconds that a function returns; without it those of the record, if any."""
        self._timestamp = _function(timestamp_function, "set_timestamp_function")
        return self

    def set_partitioner(self, partitioner: Partitioner) -> KafkaRecordSerializationSchemaBuilder:
        """Write each record to the partition that a function chooses.

        Args:
            partitioner: (record, key, value, topic, partitions of the topic) -> partition. None: the client chooses,
                by the hash of the key as Kafka's Java client does, or at random where there is no key.
        """
        self._partitioner = _function(partitioner, "set_partitioner")
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """Return the schema.

        Raises:
            PlanError: topic or value is missing.
        """
        if self._topic is None:
            raise PlanError("the schema has no topic", "call set_topic() or set_topic_selector()")
        if self._value is None:
            raise PlanError("the schema makes no value", "call set_value_serialization_schema()")
        return KafkaRecordSerializationSchema(
            self._topic, self._value, self._key, self._headers, self._timestamp, self._partitioner
        )


def _schema(schema: SerializationSchema, method: str) -> SerializationSchema:
    if not isinstance(schema, SerializationSchema):
        raise TypeError(f"{method} takes a SerializationSchema, found {shorten(schema)}; subclass it with serialize()")
    return schema


def _function(function: _F, method: str) -> _F:
    if not callable(function):
        raise TypeError(f"{method} takes a function, found {shorten(function)}")
    return function


def _checked(column: Sequence[bytes | None], what: str, schema: SerializationSchema) -> Sequence[bytes | None]:
    if hasattr(column, "to_pylist"):  # an array of Arrow
        column = column.to_pylist()
    if set(map(type, column)) <= _BYTES:
        return column
    for entry in column:
        if not isinstance(entry, bytes | bytearray | memoryview | None):
            problem = f"{type(schema).__name__} makes the {what} {shorten(entry)} of type {type(entry).__name__}"
            raise TypeError(f"{problem}, wanted bytes, or None; encode it")
    return [None if entry is None else bytes(entry) for entry in column]


def _topic_of(selector: Callable[[Any], str], record: UserRecord) -> str:
    topic = selector(record)
    if not isinstance(topic, str) or not topic:
        raise TypeError(f"the topic selector returned {topic!r}, wanted the name of a topic")
    return topic


def _headers_of(
    headers: Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]] | None,
) -> Headers | None:
    if headers is None:
        return None
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    for name, value in pairs:
        if not isinstance(name, str) or not isinstance(value, bytes | None):
            raise TypeError(f"header {name!r} has the value {value!r}, wanted bytes or None under a string")
    return pairs or None


def _timestamps(batch: Batch) -> Sequence[int] | None:
    stamps = batch.timestamps
    if stamps is None:
        return None
    return [stamp if stamp >= 0 else NO_TIMESTAMP for stamp in map(int, stamps)]


def _timestamp_of(stamp: int | None) -> int:
    return NO_TIMESTAMP if stamp is None or stamp < 0 else int(stamp)


__all__ = [
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSinkContext",
    "KafkaTopicSelector",
]
