"""Messages that cannot be decoded, on their way to the dead-letter topic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.malformed_records import MalformedRecord
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.serialization import ByteArraySchema
from rayflink.connectors.kafka.kafka_messages import Headers, KafkaMessages
from rayflink.connectors.kafka.kafka_record_serialization import KafkaRecordSerializationSchema, KafkaSinkContext
from rayflink.connectors.kafka.kafka_sink import KafkaSink
from rayflink.datastream.streams.stream_builder import set_sink_identity

from ..messages.malformed_options import DEAD_LETTERS
from .table_sink import sink_properties

if TYPE_CHECKING:
    from rayflink.datastream.streams.stream import DataStream

_PLACE = re.compile(r"topic (?P<topic>.+), partition (?P<partition>\d+), offset (?P<offset>\d+)")
_MOST_ERROR_CHARACTERS = 2_000


class DeadLetters(KafkaRecordSerializationSchema):
    """Encodes malformed messages: the bytes as they came, and headers that say what is wrong and where they were.

    Args:
        topic: takes them.
    """

    def __init__(self, topic: str) -> None:
        super().__init__(topic, ByteArraySchema())

    def encode_batch(self, batch: Batch, ctx: KafkaSinkContext) -> KafkaMessages:
        records: list[MalformedRecord] = list(rows_of(batch))
        assert self.topic is not None
        return KafkaMessages(self.topic, [record.message for record in records], None, list(map(headers_of, records)))


def headers_of(record: MalformedRecord) -> Headers:
    """Return the headers of a dead letter: error, topic, partition and offset, as UTF-8.

    >>> headers_of(MalformedRecord(b"{", "no JSON", "topic bids, partition 0, offset 17"))
    [('error', b'no JSON'), ('topic', b'bids'), ('partition', b'0'), ('offset', b'17')]
    """
    error = ("error", record.error[:_MOST_ERROR_CHARACTERS].encode())
    match = _PLACE.fullmatch(record.place)
    places = {"place": record.place} if match is None else match.groupdict()
    return [error, *((name, value.encode()) for name, value in places.items())]


def write_dead_letters(stream: DataStream, properties: tuple[tuple[str, str], ...], topic: str, name: str) -> None:
    """Write the malformed messages of a source to a topic, at least once.

    Args:
        stream: the rows of the source.
        properties: of the client that reads them.
        name: of the table.
    """
    builder = KafkaSink.builder().set_record_serializer(DeadLetters(topic))
    builder.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    for key, value in sink_properties(dict(properties)):
        builder.set_property(key, value)
    letters = stream.get_side_output(DEAD_LETTERS)
    step = letters.sink_to(builder.build()).name(f"Dead letters: {name}")
    set_sink_identity(step, f"dead letters of {name} into {topic}")


__all__ = ["DeadLetters", "headers_of", "write_dead_letters"]
