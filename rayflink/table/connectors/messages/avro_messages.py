"""`avro`: one datum a message, in Avro's binary encoding or its JSON encoding, by the schema of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.connectors.avro.avro_schema import AvroSchema
from rayflink.connectors.avro.datum_columns import DatumColumns
from rayflink.connectors.avro.datum_encoding import DatumEncoder

from ...plan.logical import Schema
from ..avro_types import avro_schema_of
from ..contract import Option
from ..option_values import one_of
from ..print_and_blackhole import truth
from .column_schemas import ColumnDecoder, ColumnEncoder
from .contract import MessageFormat

if TYPE_CHECKING:
    import pyarrow

AVRO_OPTIONS: Mapping[str, Option] = {
    "encoding": Option(one_of("binary", "json"), "binary"),
    "timestamp_mapping.legacy": Option(truth, True),
}


class AvroMessages(MessageFormat):
    """One datum a message, without the schema, which is that of the table."""

    name = "avro"
    options = AVRO_OPTIONS

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        avro = avro_schema_of(schema, bool(options["timestamp_mapping.legacy"]))
        return AvroDecoder(avro, wanted_columns(schema, names), options["encoding"] == "json")

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        avro = avro_schema_of(schema, bool(options["timestamp_mapping.legacy"]))
        return AvroEncoder(schema, avro, options["encoding"] == "json")


def wanted_columns(schema: Schema, names: Sequence[str]) -> pyarrow.Schema:
    """Return some columns of a table in Arrow's types."""
    import pyarrow

    types = {column.name: column.type for column in schema}
    return pyarrow.schema([types[name].to_arrow_field(name) for name in names])


class AvroDecoder(ColumnDecoder):
    """Decodes datums of one schema to columns; messages that are None have no rows.

    Args:
        schema: of the datums.
        wanted: the columns.
        is_json: the datums are in Avro's JSON encoding.
    """

    def __init__(self, schema: AvroSchema, wanted: pyarrow.Schema, is_json: bool = False) -> None:
        self._settings = schema, wanted, is_json
        self._columns = DatumColumns(schema, wanted)
        self._is_json = is_json

    def __reduce__(self) -> tuple[object, ...]:
        return AvroDecoder, self._settings

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        indices = None
        if None in messages:
            indices = [index for index, message in enumerate(messages) if message is not None]
            messages = [messages[index] for index in indices]
        read = self._columns.of_json if self._is_json else self._columns.of_messages
        return ArrowBatch(plain_nulls(read(messages))), indices


def plain_nulls(data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return columns whose fields may be null, as those of all formats may."""
    import pyarrow

    schema = pyarrow.schema([(field.name, field.type) for field in data.schema])
    return pyarrow.RecordBatch.from_arrays(data.columns, schema=schema) if data.num_columns else data


class AvroEncoder(ColumnEncoder):
    """Encodes rows as datums of one schema."""

    def __init__(self, schema: Schema, avro: AvroSchema, is_json: bool = False) -> None:
        super().__init__(schema)
        self._settings = schema, avro, is_json
        self._encoder = DatumEncoder(avro)
        self._is_json = is_json

    def __reduce__(self) -> tuple[object, ...]:
        return AvroEncoder, self._settings

    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        return list(self._encoder.json_of(data) if self._is_json else self._encoder.messages_of(data))


__all__ = ["AVRO_OPTIONS", "AvroDecoder", "AvroEncoder", "AvroMessages", "plain_nulls", "wanted_columns"]
