"""A table in Kafka as the sink of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.connectors.kafka.kafka_errors import KafkaClientError
from rayflink.connectors.kafka.kafka_settings import OWN
from rayflink.connectors.kafka.kafka_sink import KafkaSink
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ...errors import SqlError
from ..contract import TableSink
from ..messages.format_options import ChosenFormat
from .encode_rows import RowMessages
from .message_columns import MessageColumns
from .upsert_buffer import UpsertBuffer

if TYPE_CHECKING:
    from rayflink.datastream.streams.step import Step
    from rayflink.datastream.streams.stream import DataStream


_READ_ONLY = frozenset(
    {*OWN, "group.id", "auto.offset.reset", "isolation.level", "enable.auto.commit", "session.timeout.ms",
     "heartbeat.interval.ms", "max.poll.interval.ms", "fetch.min.bytes", "fetch.wait.max.ms", "fetch.max.wait.ms",
     "fetch.max.bytes", "max.partition.fetch.bytes", "fetch.queue.backoff.ms", "queued.min.messages",
     "queued.max.messages.kbytes", "enable.partition.eof", "check.crcs"}
)  # fmt: skip
"""Properties that a client which writes does not have."""


def sink_properties(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return those of a table's client properties that a client which writes has."""
    return tuple((name, value) for name, value in properties.items() if name not in _READ_ONLY)


@dataclass(frozen=True)
class Delivery:
    """The settings by which messages are delivered.

    Args:
        guarantee: "none", "at-least-once" or "exactly-once".
        prefix: of the transactions of exactly-once.
        partitioner: "default", "fixed", "round-robin", or where a function is.
        parallelism: subtasks that write; None: as the query has.
        buffer: rows and milliseconds for which changes of one key are collected; None: all are written.
    """

    guarantee: str = "at-least-once"
    prefix: str | None = None
    partitioner: str = "default"
    parallelism: int | None = None
    buffer: tuple[int, int] | None = None


@dataclass(frozen=True)
class KafkaTableSink(TableSink):
    """Writes rows as messages.

    Args:
        topics: those that the table names; with more than one, the metadata column `topic` chooses.
        properties: of the client.
        columns: where the columns are in a message.
        key_format: of keys; None: messages have none.
        value_format: of values.
        delivery: how messages are delivered.
        is_append_only: True if messages are rows, and none changes another.
        key: names of the columns of the primary key, of an upsert table.
        row_key: names of the columns of the primary key, of any table; changes of a row stay together by them.
        zone: the session's time zone.
    """

    topics: tuple[str, ...]
    properties: tuple[tuple[str, str], ...] = field(repr=False)
    columns: MessageColumns
    key_format: ChosenFormat | None
    value_format: ChosenFormat
    delivery: Delivery = Delivery()
    is_append_only: bool = True
    key: tuple[str, ...] = ()
    row_key: tuple[str, ...] = ()
    zone: str = "UTC"
    reads_watermarks = False
    instead = "write into a table that takes changes: of 'upsert-kafka', or with 'format' = 'debezium-json'"

    @property
    def requires_update_before(self) -> bool:  # type: ignore[override]  # it depends on the connector
        """Return whether updates must include the row before."""
        return not self.key

    @property
    def parallelism(self) -> int | None:  # type: ignore[override]  # it depends on options
        """Return the number of subtasks that write; None: as many as the query has."""
        return self.delivery.parallelism

    @property
    def loses_order(self) -> bool:  # type: ignore[override]  # it depends on options
        """Return whether the changes of a row may get to several subtasks."""
        return self.delivery.parallelism is not None and not self.row_key

    def attach(self, stream: DataStream, name: str) -> Step:
        keys = None
        if self.key_format is not None:
            keys = self.key_format.format.encoder(self.columns.key_schema(), self.key_format.options)
        values = self.value_format.format.encoder(self.columns.value_schema(), self.value_format.options)
        delivery = self.delivery
        codecs = keys, values
        messages = RowMessages(self.columns, self.topics, codecs, delivery.partitioner, self.key, self.zone)
        guarantee = DeliveryGuarantee[delivery.guarantee.upper().replace("-", "_")]
        builder = KafkaSink.builder().set_record_serializer(messages).set_delivery_guarantee(guarantee)
        for key, value in self.properties:
            builder.set_property(key, value)
        if delivery.prefix is not None:
            builder.set_transactional_id_prefix(delivery.prefix)
        try:
            sink = builder.build()
        except KafkaClientError as error:
            raise SqlError(f"{name} cannot be written: {error.problem}", error.remedy) from error
        before = StreamBuilder(stream)
        if delivery.buffer is not None:
            buffer = before.add_operator(f"{name}: Buffer", Factory(UpsertBuffer, self.key, *delivery.buffer))
            if delivery.parallelism is not None:
                buffer.set_parallelism(delivery.parallelism)
            else:
                buffer.keep_parallelism(StreamBuilder(stream))
            before = buffer
        step = before.stream.sink_to(sink).name(name)
        return step if delivery.parallelism is None else step.set_parallelism(delivery.parallelism)


__all__ = ["Delivery", "KafkaTableSink"]
