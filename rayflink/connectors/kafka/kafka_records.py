"""Kafka's records, with all that they carry, and the schemas that decode them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, overload

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, RowBatch
from rayflink.common.serialization import DeserializationSchema
from rayflink.user_types import UserRecord, UserValue

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class Message(Protocol):
    """A message of the client library, as a consumer gives it out."""

    def topic(self) -> str:
        """Return the name of the topic."""
        ...

    def partition(self) -> int:
        """Return the number of the partition."""
        ...

    def offset(self) -> int:
        """Return the offset."""
        ...

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp and epoch milliseconds; -1: there are none."""
        ...

    def key(self) -> bytes | None:
        """Return the key."""
        ...

    def value(self) -> bytes | None:
        """Return the value."""
        ...

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        """Return the headers."""
        ...

    def leader_epoch(self) -> int | None:
        """Return the number of the leader that wrote it."""
        ...

    def error(self) -> KafkaError | None:
        """Return the error that came in place of a record."""
        ...


class KafkaRecord(NamedTuple):
    """One record of a partition.

    Args:
        timestamp: epoch milliseconds; None: it has none.
        key: None: it has none.
        value: None: the record is a tombstone, which deletes its key in a compacted topic.
        headers: name and value of each, in order; a name may come twice.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class KafkaRecords(Sequence[KafkaRecord]):
    """Records of one partition in order of their offsets, with their parts as columns.

    Args:
        messages: of the client library.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> KafkaRecord: ...

    @overload
    def __getitem__(self, index: slice) -> KafkaRecords: ...

    def __getitem__(self, index: int | slice) -> KafkaRecord | KafkaRecords:
        if isinstance(index, slice):
            return KafkaRecords(self._messages[index])
        return next(iter(KafkaRecords([self._messages[index]])))

    def __iter__(self) -> Iterator[KafkaRecord]:
        if not self._messages:
            return iter(())
        first, count = self._messages[0], len(self._messages)
        place = [first.topic()] * count, [first.partition()] * count
        parts = self.offsets(), self.timestamps(), self.keys(), self.values(), self.headers()
        return map(KafkaRecord, *place, *parts)

    @property
    def topic(self) -> str:
        """The topic of all of them."""
        return self._messages[0].topic()

    @property
    def partition(self) -> int:
        """The partition of all of them."""
        return self._messages[0].partition()

    def offsets(self) -> list[int]:
        """Return the offset of each."""
        return [message.offset() for message in self._messages]

    def timestamps(self) -> list[int | None]:
        """Return the epoch milliseconds of each; None: it has none."""
        return [None if stamp < 0 else stamp for _, stamp in (message.timestamp() for message in self._messages)]

    def timestamp_types(self) -> list[str]:
        """Return for each "CreateTime", "LogAppendTime" or "NoTimestampType"."""
        names = "NoTimestampType", "CreateTime", "LogAppendTime"
        return [names[message.timestamp()[0]] for message in self._messages]

    def keys(self) -> list[bytes | None]:
        """Return the key of each."""
        return [message.key() for message in self._messages]

    def values(self) -> list[bytes | None]:
        """Return the value of each."""
        return [message.value() for message in self._messages]

    def leader_epochs(self) -> list[int | None]:
        """Return the number of the leader that wrote each, which counts up; None: it is not known."""
        return [message.leader_epoch() for message in self._messages]

    def headers(self) -> list[Sequence[tuple[str, bytes | None]]]:
        """Return the headers of each."""
        return [tuple(message.headers() or ()) for message in self._messages]


class KafkaRecordDeserializationSchema(ABC):
    """Makes records of a stream from Kafka's, with their key, headers, timestamp and position.

    Subclass it with `deserialize`, or with `deserialize_batch` where whole batches can be decoded at once.

    >>> class WithKey(KafkaRecordDeserializationSchema):
    ...     def deserialize(self, record):
    ...         return record.key.decode(), record.value, record.offset
    >>> WithKey().deserialize(KafkaRecord("orders", 0, 17, None, b"tea", b"3"))
    ('tea', b'3', 17)
    """

    skips_tombstones = False
    """True if a record without a value becomes none of the stream; the source counts these."""

    @abstractmethod
    def deserialize(self, record: KafkaRecord) -> UserRecord:
        """Return the record that one of Kafka's stands for; None: there is none.

        Raises:
            ValueError: it cannot be decoded.
        """

    def deserialize_batch(self, records: KafkaRecords) -> tuple[Batch, Sequence[int] | None]:
        """Return the records of many of Kafka's and, for each record, the index of its origin; None: one each.

        Raises: what `deserialize` raises for one of them.
        """
        decoded = list(map(self.deserialize, records))
        if None not in decoded:
            return RowBatch(decoded), None
        indices = [index for index, record in enumerate(decoded) if record is not None]
        return RowBatch([decoded[index] for index in indices]), indices

    def counting(self, metrics: MetricGroup) -> KafkaRecordDeserializationSchema:
        """Return this schema, extended to count in a reader's metrics what it leaves out itself."""
        return self

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None: not known."""
        return None

    @staticmethod
    def value_only(deserialization_schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        """Return a schema that decodes the values alone and leaves out records without one."""
        return ValueOnlySchema(deserialization_schema)


class ValueOnlySchema(KafkaRecordDeserializationSchema):
    """Decodes the values of records; the reader leaves out and counts records without one.

    Args:
        schema: of values.
    """

    skips_tombstones = True

    def __init__(self, schema: DeserializationSchema) -> None:
        self.schema = schema

    def deserialize(self, record: KafkaRecord) -> UserRecord:
        return None if record.value is None else self.schema.deserialize(record.value)

    def get_produced_type(self) -> TypeInformation | None:
        return self.schema.get_produced_type()


class MessageSchema(DeserializationSchema):
    """Decodes the messages of the client library in place of bytes, by a schema of records.

    Args:
        schema: of records.
    """

    def __init__(self, schema: KafkaRecordDeserializationSchema) -> None:
        self._schema = schema

    def deserialize(self, message: bytes) -> UserRecord:
        raise NotImplementedError("messages are decoded by batches")

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        return MessageSchema(self._schema.counting(metrics))

    def deserialize_batch(self, messages: Sequence[UserValue]) -> tuple[Batch, Sequence[int] | None]:
        return self._schema.deserialize_batch(KafkaRecords(messages))


__all__ = [
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecords",
    "Message",
    "MessageSchema",
    "ValueOnlySchema",
]
