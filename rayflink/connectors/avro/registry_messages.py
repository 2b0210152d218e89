"""Messages with the id of their schema before the datum, as Confluent's serializers write them.

Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/, "Wire format".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import shorten
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.user_types import UserRecord

from .avro_schema import AvroSchema
from .datum_columns import BadDatum, DatumColumns
from .datum_records import DatumRecords
from .generic_type import GenericRecordAvroTypeInfo
from .registry_client import RegistryOptions, SchemaRegistry

if TYPE_CHECKING:
    import pyarrow

    from .avro_schema import SchemaNode

_HEADER_BYTES = 5


def header_of(schema_id: int) -> bytes:
    """Return the bytes before a datum: 0, and the id of its schema.

    >>> header_of(258)
    b'\\x00\\x00\\x00\\x01\\x02'
    """
    return b"\0" + schema_id.to_bytes(4, "big")


def schema_id_of(header: bytes) -> int:
    """Return the id of the schema of a message.

    Args:
        header: its first five bytes.

    Raises:
        BadDatum: it does not begin as messages with the id of a schema do.
    """
    if len(header) < _HEADER_BYTES or header[0]:
        beginning = shorten(header, 40)
        wanted = "the byte 0 and four bytes with the id of a schema are wanted"
        raise BadDatum(f"the message begins with {beginning}, {wanted}; was it written with a schema registry?")
    return int.from_bytes(header[1:], "big")


def by_schema(messages: Sequence[bytes]) -> dict[int, list[int]]:
    """Return the positions of the messages of each schema, by its id, in the order in which they come.

    Raises:
        BadDatum: one has no id.
    """
    positions_by_header: dict[bytes, list[int]] = {}
    for position, message in enumerate(messages):
        positions_by_header.setdefault(message[:_HEADER_BYTES], []).append(position)
    return {schema_id_of(header): positions for header, positions in positions_by_header.items()}


class RegistryColumns:
    """Decodes messages to columns, each by the schema with which it was written.

    Args:
        registry: where the schemas are.
        wanted: the columns.
        reader: a record with aliases and defaults of the columns; None: they have none.
    """

    def __init__(self, registry: SchemaRegistry, wanted: pyarrow.Schema, reader: AvroSchema | None = None) -> None:
        self._registry, self._wanted, self._reader = registry, wanted, reader
        self._known: dict[int, DatumColumns] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return RegistryColumns, (self._registry, self._wanted, self._reader)

    def of_messages(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch:
        """Return the columns of messages.

        Raises:
            BadDatum: one has no id of a schema, or is no datum of its schema.
            BadAvroSchema: the schema of one cannot be read as the columns.
            UnknownSchema: the registry does not have the schema of one.
            RegistryUnavailable: the registry does not answer.
        """
        import pyarrow

        groups = by_schema(messages)
        parts = []
        for schema_id, positions in groups.items():
            datums = [messages[position][_HEADER_BYTES:] for position in positions]
            parts.append(self._decoder(schema_id).of_messages(datums))
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pyarrow.RecordBatch.from_pylist([], self._wanted)
        table = pyarrow.Table.from_batches(parts).combine_chunks()
        places = [0] * len(messages)
        for place, position in enumerate(position for positions in groups.values() for position in positions):
            places[position] = place
        in_order = table.take(pyarrow.array(places, pyarrow.int64())).combine_chunks()
        return in_order.to_batches()[0]

    def _decoder(self, schema_id: int) -> DatumColumns:
        if schema_id not in self._known:
            reader: SchemaNode | None = None if self._reader is None else self._reader.root.value
            self._known[schema_id] = DatumColumns(self._registry.schema_of(schema_id), self._wanted, reader)
        return self._known[schema_id]


class ConfluentRegistryAvroDeserializationSchema(DeserializationSchema):
    """Decodes messages with the id of a schema to records, which are dicts; needs `rayflink[schema-registry]`.

    Made by `for_generic`.
    """

    def __init__(self, schema: AvroSchema | None, registry: SchemaRegistry) -> None:
        self._schema, self._registry = schema, registry
        self._known: dict[int, DatumRecords] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return ConfluentRegistryAvroDeserializationSchema, (self._schema, self._registry)

    @staticmethod
    def for_generic(
        schema: AvroSchema | None, url: str, options: RegistryOptions | None = None
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Return a schema for messages whose records become dicts.

        Args:
            schema: of the records, by Avro's rules of schema resolution; None: each has the schema of its writer.
            url: of the registry; several are separated by commas.
            options: credentials, certificates, timeouts; its `urls` are used instead of `url`.

        Raises:
            RegistryError: the URL is none.
        """
        return ConfluentRegistryAvroDeserializationSchema(schema, SchemaRegistry(options or _options_of(url)))

    def deserialize(self, message: bytes) -> UserRecord:
        return rows_of(self.deserialize_batch([message])[0])[0]

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        indices = [index for index, message in enumerate(messages) if message is not None]
        present = messages if len(indices) == len(messages) else [messages[index] for index in indices]
        records: list[UserRecord] = [None] * len(present)
        for schema_id, positions in by_schema(present).items():
            datums = [present[position][_HEADER_BYTES:] for position in positions]
            for position, record in zip(positions, self._decoder(schema_id).of_messages(datums), strict=True):
                records[position] = record
        return RowBatch(records), None if len(indices) == len(messages) else indices

    def _decoder(self, schema_id: int) -> DatumRecords:
        if schema_id not in self._known:
            self._known[schema_id] = DatumRecords(self._registry.schema_of(schema_id), self._schema)
        return self._known[schema_id]

    def get_produced_type(self) -> TypeInformation | None:
        return None if self._schema is None else GenericRecordAvroTypeInfo(self._schema)


class ConfluentRegistryAvroSerializationSchema(SerializationSchema):
    """Encodes dicts to messages with the id of their schema; needs `rayflink[schema-registry]`.

    Made by `for_generic`.
    """

    def __init__(self, subject: str, schema: AvroSchema, registry: SchemaRegistry) -> None:
        self._subject, self._schema, self._registry = subject, schema, registry
        self._records = DatumRecords(schema)

    def __reduce__(self) -> tuple[object, ...]:
        return ConfluentRegistryAvroSerializationSchema, (self._subject, self._schema, self._registry)

    @staticmethod
    def for_generic(
        subject: str, schema: AvroSchema, url: str, options: RegistryOptions | None = None
    ) -> ConfluentRegistryAvroSerializationSchema:
        """Return a schema for records that are dicts; it is registered when the first one is written.

        Args:
            subject: under which the schema is registered, such as "orders-value" for the values of a topic "orders".
            schema: of the records.
            url: of the registry; several are separated by commas.
            options: credentials, certificates, timeouts; its `urls` are used instead of `url`.

        Raises:
            RegistryError: the URL is none, or there is no subject.
        """
        registry = SchemaRegistry(options or _options_of(url))
        return ConfluentRegistryAvroSerializationSchema(subject, schema, registry)

    def _header(self) -> bytes:
        return header_of(self._registry.id_to_write(self._subject, self._schema))

    def serialize(self, element: UserRecord) -> bytes:
        return self._records.encoded([element], self._header())[0]

    def serialize_batch(self, batch: Batch) -> Sequence[bytes | None]:
        return list(self._records.encoded(rows_of(batch), self._header()))


def _options_of(url: str) -> RegistryOptions:
    return RegistryOptions(tuple(part.strip() for part in url.split(",") if part.strip()))


__all__ = [
    "ConfluentRegistryAvroDeserializationSchema", "ConfluentRegistryAvroSerializationSchema", "RegistryColumns",
    "by_schema", "header_of", "schema_id_of",
]  # fmt: skip
