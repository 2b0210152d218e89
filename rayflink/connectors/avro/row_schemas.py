"""Avro datums as `Row` objects, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import shorten
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.common.typeinfo import Types
from rayflink.common.types import Row
from rayflink.user_types import UserRecord, UserValue

from .avro_schema import AvroSchema, SchemaNode
from .datum_records import DatumRecords

_Convert = Callable[[UserValue], UserValue]


class AvroRowDeserializationSchema(DeserializationSchema):
    """Decodes Avro datums to rows with the fields of a schema.

    >>> schema = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
    >>> AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(b"\\x08")
    Row(n=4)

    Args:
        record_class: must be None, as there are no classes of Java.
        avro_schema_string: the schema, a record, as JSON.

    Raises:
        TypeError: there is no schema.
        BadAvroSchema: it is none.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema = _schema(record_class, avro_schema_string)
        self._records = DatumRecords(self._schema)
        self._convert = _to_rows(self._schema.root)

    def __reduce__(self) -> tuple[object, ...]:
        return AvroRowDeserializationSchema, (None, str(self._schema))

    def deserialize(self, message: bytes) -> UserRecord:
        return self._convert(self._records.of_messages([message])[0])

    def get_produced_type(self) -> TypeInformation | None:
        return _type_of(self._schema.root)

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        indices = [index for index, message in enumerate(messages) if message is not None]
        records = self._records.of_messages([messages[index] for index in indices])
        return RowBatch(list(map(self._convert, records))), None if len(indices) == len(messages) else indices


class AvroRowSerializationSchema(SerializationSchema):
    """Encodes rows as Avro datums, field by field in the order of the schema.

    >>> schema = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
    >>> AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row(4))
    b'\\x08'

    Args:
        record_class: must be None, as there are no classes of Java.
        avro_schema_string: the schema, a record, as JSON.

    Raises:
        TypeError: there is no schema.
        BadAvroSchema: it is none.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema = _schema(record_class, avro_schema_string)
        self._records = DatumRecords(self._schema)
        self._convert = _from_rows(self._schema.root)

    def __reduce__(self) -> tuple[object, ...]:
        return AvroRowSerializationSchema, (None, str(self._schema))

    def serialize(self, element: UserRecord) -> bytes:
        return self._records.encoded([self._convert(element)])[0]

    def serialize_batch(self, batch: Batch) -> Sequence[bytes | None]:
        return list(self._records.encoded(list(map(self._convert, rows_of(batch)))))


def _schema(record_class: str | None, avro_schema_string: str | None) -> AvroSchema:
    if record_class is not None:
        problem = f"record_class is {record_class!r}, a class of Java"
        raise TypeError(f"{problem}; pass avro_schema_string=, the schema of its records as JSON")
    if avro_schema_string is None:
        raise TypeError("avro_schema_string is missing; pass the schema as JSON")
    return AvroSchema.parse_string(avro_schema_string)


def _type_of(node: SchemaNode) -> TypeInformation:
    """Return the declared type of a value; values of logical types, unions, arrays and maps may be anything."""
    value = node.value
    if value.kind == "record":
        return Types.ROW_NAMED([f.name for f in value.fields], [_type_of(f.node) for f in value.fields])
    plain = {"boolean": Types.BOOLEAN, "int": Types.INT, "long": Types.LONG, "float": Types.FLOAT,
             "double": Types.DOUBLE, "string": Types.STRING, "enum": Types.STRING}  # fmt: skip
    return Types.PICKLED_BYTE_ARRAY() if value.logical or value.kind not in plain else plain[value.kind]()


def _to_rows(node: SchemaNode) -> _Convert:
    """Return the conversion of what fastavro reads, with `Row` objects for dicts of records."""
    value = node.value
    if value.kind == "record":
        fields = [(field.name, _to_rows(field.node)) for field in value.fields]
        names = [name for name, _ in fields]

        def row(item: UserValue) -> UserValue:
            if item is None:
                return None
            record = Row(*(convert(item[name]) for name, convert in fields))
            record.set_field_names(names)
            return record

        return row
    if value.kind == "array":
        inner = _to_rows(value.items[0])
        return lambda item: None if item is None else list(map(inner, item))
    if value.kind == "map":
        inner = _to_rows(value.items[0])
        return lambda item: None if item is None else {key: inner(part) for key, part in item.items()}
    return lambda item: item


def _from_rows(node: SchemaNode) -> _Convert:
    """Return the conversion of rows, tuples or dicts to what fastavro writes."""
    value = node.value
    if value.kind == "record":
        fields = [(field.name, _from_rows(field.node)) for field in value.fields]
        return lambda item: None if item is None else _record(item, fields)
    if value.kind == "array":
        inner = _from_rows(value.items[0])
        return lambda item: None if item is None else list(map(inner, item))
    if value.kind == "map":
        inner = _from_rows(value.items[0])
        return lambda item: None if item is None else {key: inner(part) for key, part in item.items()}
    return lambda item: item


def _record(item: UserValue, fields: Sequence[tuple[str, _Convert]]) -> Mapping[str, UserValue]:
    if isinstance(item, dict):
        return {name: convert(item.get(name)) for name, convert in fields}
    if not isinstance(item, Row | tuple | list) or len(item) != len(fields):
        names = ", ".join(name for name, _ in fields)
        raise ValueError(f"{shorten(item, 80)} is found, a row with the fields {names} is wanted; map it before")
    return {name: convert(part) for (name, convert), part in zip(fields, item, strict=True)}


__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema"]
