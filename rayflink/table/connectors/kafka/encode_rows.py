"""Rows of a table as messages of Kafka, by columns."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from rayflink.common.records.batches import ArrowBatch, Batch, rows_of
from rayflink.common.records.row_kinds import ROW_KIND, has_kinds
from rayflink.common.serialization import SerializationSchema
from rayflink.connectors.kafka.kafka_messages import ANY_PARTITION, NO_TIMESTAMP, Headers, KafkaMessages
from rayflink.connectors.kafka.kafka_record_serialization import KafkaRecordSerializationSchema, KafkaSinkContext
from rayflink.user_types import UserRecord, UserValue

from ...errors import SqlError
from .kafka_metadata import epoch_millis
from .message_columns import MessageColumns
from .upsert_rows import as_upserts, is_deletion

if TYPE_CHECKING:
    import pyarrow

ChosenPartition = Callable[[UserRecord, "bytes | None", "bytes | None", str, Sequence[int]], "int | None"]


class RowMessages(KafkaRecordSerializationSchema):
    """Encodes rows of a table as messages.

    Args:
        columns: where they are in a message.
        topics: those that the table names.
        key: encodes the columns of the key; None: messages have no key.
        value: encodes the columns of the value, with row kinds where its messages are changes.
        partitioner: see `KafkaSinkTable`.
        upserts: names of the columns of the key; (): messages are rows, and none deletes another.
        zone: the session's time zone.
    """

    def __init__(
        self,
        columns: MessageColumns,
        topics: Sequence[str],
        codecs: tuple[SerializationSchema | None, SerializationSchema],
        partitioner: str = "default",
        upserts: Sequence[str] = (),
        zone: str = "UTC",
    ) -> None:
        key, value = codecs
        super().__init__(topics[0], value, key)
        self._columns, self._topics, self._name, self._zone = columns, tuple(topics), partitioner, zone
        self._upserts = tuple(upserts)
        self._written = {metadata: name for name, metadata in columns.metadata}
        self._chosen: ChosenPartition | None = None
        self._turns: dict[str, Iterator[int]] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_chosen": None, "_turns": {}}

    @property
    def topic(self) -> str | None:
        return None if "topic" in self._written else self._topics[0]

    def encode_batch(self, batch: Batch, ctx: KafkaSinkContext) -> KafkaMessages:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        data = as_upserts(batch.data, self._upserts) if self._upserts else batch.data
        values = self._values(data)
        keys = None if self._key is None else self._key.serialize_batch(ArrowBatch(self._key_columns(data)))
        topics = self._topics_of(data)
        timestamps = headers = None
        if "timestamp" in self._written:
            stamps = epoch_millis(self._metadata(data, "timestamp"), self._zone)
            timestamps = [NO_TIMESTAMP if stamp is None else stamp for stamp in stamps]
        if "headers" in self._written:
            headers = [_headers(entries) for entries in self._metadata(data, "headers").to_pylist()]
        messages = KafkaMessages(topics, values, keys, headers, timestamps)
        if self._name == "default":
            return messages
        partitions = self._partitions(data, messages, ctx)
        return KafkaMessages(topics, values, keys, headers, timestamps, partitions)

    def _values(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        names = [*self._columns.value]
        if has_kinds(data.schema) and not self._upserts:
            names.append(ROW_KIND)
        deleted = is_deletion(data) if self._upserts else None
        if deleted is None:
            return self._value.serialize_batch(ArrowBatch(data.select(names)))
        import pyarrow

        rows = data.filter(pyarrow.array(~deleted)).select(names)
        encoded = iter(self._value.serialize_batch(ArrowBatch(rows)) if rows.num_rows else ())
        return [None if is_deleted else next(encoded) for is_deleted in deleted.tolist()]

    def _key_columns(self, data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        names = list(self._columns.key)
        return data.select(names).rename_columns([self._columns.in_key(name) for name in names])

    def _metadata(self, data: pyarrow.RecordBatch, key: str) -> pyarrow.Array:
        return data.column(data.schema.get_field_index(self._written[key]))

    def _topics_of(self, data: pyarrow.RecordBatch) -> str | Sequence[str]:
        if "topic" not in self._written:
            return self._topics[0]
        topics: list[str] = self._metadata(data, "topic").to_pylist()
        for topic in set(topics) - set(self._topics):
            wanted = f"one of the table's, {', '.join(self._topics)}, is wanted"
            remedy = f"correct the column {self._written['topic']!r}"
            raise ValueError(f"the topic of a row is {topic!r}, {wanted}; {remedy}")
        return topics

    def _partitions(self, data: pyarrow.RecordBatch, messages: KafkaMessages, ctx: KafkaSinkContext) -> list[int]:
        topics = [messages.topics] * len(messages) if isinstance(messages.topics, str) else messages.topics
        if self._name == "fixed":
            known = {topic: ctx.partitions_of(topic) for topic in set(topics)}
            return [known[topic][ctx.subtask % len(known[topic])] for topic in topics]
        if self._name == "round-robin":
            return [next(self._turn(topic, ctx)) for topic in topics]
        if self._chosen is None:
            self._chosen = load_partitioner(self._name, ctx.subtask, ctx.parallelism)
        keys = messages.keys or [None] * len(messages)
        rows = zip(rows_of(ArrowBatch(data)), keys, messages.values, topics, strict=True)
        return [self._checked(self._chosen(*row, ctx.partitions_of(row[3])), row[3], ctx) for row in rows]

    def _turn(self, topic: str, ctx: KafkaSinkContext) -> Iterator[int]:
        if topic not in self._turns:
            partitions = list(ctx.partitions_of(topic))
            first = ctx.subtask % len(partitions)
            self._turns[topic] = cycle(partitions[first:] + partitions[:first])
        return self._turns[topic]

    def _checked(self, partition: int | None, topic: str, ctx: KafkaSinkContext) -> int:
        if partition is None:
            return ANY_PARTITION
        known = ctx.partitions_of(topic)
        if partition not in known:
            wanted = f"wanted one of the {len(known)} partitions of topic {topic!r}, from 0 on, or None"
            raise ValueError(f"'sink.partitioner' = {self._name!r} returned {partition!r}; {wanted}")
        return int(partition)


def _headers(entries: list[tuple[str, bytes | None]] | None) -> Headers | None:
    return entries or None


def load_partitioner(path: str, subtask: int, parallelism: int) -> ChosenPartition:
    """Return the function that the option `sink.partitioner` names.

    Args:
        path: "module.name" or "module:name" of a function, or of a class with a method `partition`, and optionally
            `open(subtask, parallelism)`; both take (row, key, value, topic, partitions) and return a partition.

    Raises:
        SqlError: there is nothing of this name, or it cannot be called.
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        partitioner: UserValue = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        problem = f"'sink.partitioner' is {path!r}, which cannot be loaded ({error})"
        raise SqlError(problem, "name a function of a module that can be imported on every node") from error
    if isinstance(partitioner, type):
        instance: UserValue = partitioner()
        if not callable(getattr(instance, "partition", None)):
            problem = f"'sink.partitioner' is {path!r}, a class without a method partition"
            raise SqlError(problem, "give it partition(row, key, value, topic, partitions)")
        if callable(getattr(instance, "open", None)):
            instance.open(subtask, parallelism)
        partitioner = instance.partition
    if not callable(partitioner):
        remedy = "name a function of (row, key, value, topic, partitions)"
        raise SqlError(f"'sink.partitioner' is {path!r}, which is {type(partitioner).__name__}", remedy)
    chosen: ChosenPartition = partitioner
    return chosen


__all__ = ["RowMessages", "load_partitioner"]
