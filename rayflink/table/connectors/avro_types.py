"""Avro schemas for the rows of tables, as Flink derives them."""

from __future__ import annotations

from rayflink.connectors.avro.avro_schema import AvroSchema, Json

from ..errors import SqlError
from ..plan.logical import Schema
from ..types import DataType, Root

_RECORD = "org.apache.flink.avro.generated.record"
_PLAIN = {
    Root.BOOLEAN: "boolean", Root.TINYINT: "int", Root.SMALLINT: "int", Root.INT: "int", Root.BIGINT: "long",
    Root.FLOAT: "float", Root.DOUBLE: "double", Root.CHAR: "string", Root.VARCHAR: "string", Root.BINARY: "bytes",
    Root.VARBINARY: "bytes", Root.NULL: "null",
}  # fmt: skip
_UNITS = {3: "millis", 6: "micros", 9: "nanos"}


def avro_schema_of(schema: Schema, legacy: bool = True) -> AvroSchema:
    """Return the Avro schema of rows; columns that may be NULL are unions with null.

    >>> from ..plan.logical import Attribute
    >>> from ..types import DataTypes
    >>> print(avro_schema_of((Attribute("id", DataTypes.BIGINT().not_null()),)))
    {"type":"record","name":"record","namespace":"org.apache.flink.avro.generated","fields":[{"name":"id","type":"long"}]}

    Args:
        legacy: TIMESTAMP is Avro's timestamp, as in Flink before 1.19; False: it is local-timestamp, and TIMESTAMP_LTZ
            is timestamp.

    Raises:
        SqlError: Avro has no form of a column.
    """
    columns = [(column.name, column.type) for column in schema]
    return AvroSchema(_record(columns, _RECORD, legacy))


def change_schema_of(schema: Schema, legacy: bool = True) -> AvroSchema:
    """Return the schema of Debezium's envelopes with such rows: `before`, `after` and `op`.

    Raises:
        SqlError: Avro has no form of a column.
    """
    columns = [(column.name, column.type) for column in schema]
    fields = [
        {"name": name, "type": ["null", _record(columns, f"{_RECORD}_{name}", legacy)], "default": None}
        for name in ("before", "after")
    ]
    operation = {"name": "op", "type": ["null", "string"], "default": None}
    space, _, name = _RECORD.rpartition(".")
    return AvroSchema({"type": "record", "name": name, "namespace": space, "fields": [*fields, operation]})


def _record(columns: list[tuple[str, DataType]], name: str, legacy: bool) -> Json:
    fields = []
    for column, kind in columns:
        field = {"name": column, "type": _type(kind, f"{name}_{column}", column, legacy)}
        fields.append({**field, "default": None} if kind.is_nullable else field)
    space, _, own = name.rpartition(".")
    return {"type": "record", "name": own, "namespace": space, "fields": fields}


def _type(kind: DataType, name: str, column: str, legacy: bool) -> Json:
    plain = _value(kind, name, column, legacy)
    return ["null", plain] if kind.is_nullable and plain != "null" else plain


def _value(kind: DataType, name: str, column: str, legacy: bool) -> Json:
    root = kind.root
    if root in _PLAIN:
        return _PLAIN[root]
    if root is Root.DECIMAL:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if root is Root.DATE:
        return {"type": "int", "logicalType": "date"}
    if root is Root.TIME and kind.precision <= 3:
        return {"type": "int", "logicalType": "time-millis"}
    if root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        return _timestamp(kind, column, legacy)
    if root is Root.ARRAY:
        return {"type": "array", "items": _type(kind.items[0], name, column, legacy)}
    if root is Root.MAP and kind.items[0].is_text:
        return {"type": "map", "values": _type(kind.items[1], name, column, legacy)}
    if root is Root.MULTISET and kind.items[0].is_text:
        return {"type": "map", "values": "int"}
    if root is Root.ROW:
        return _record([(field.name, field.type) for field in kind.fields], name, legacy)
    remedies = {
        Root.MAP: "make the keys STRING", Root.MULTISET: "make the elements STRING", Root.TIME: "make it TIME(3)",
    }  # fmt: skip
    raise SqlError(f"Avro cannot represent column {column!r}, which is {kind}", remedies.get(root, "make it a STRING"))


def _timestamp(kind: DataType, column: str, legacy: bool) -> Json:
    unit = next(unit for digits, unit in _UNITS.items() if kind.precision <= digits)
    if legacy and (kind.root is Root.TIMESTAMP_LTZ or kind.precision > 6):
        problem = f"Avro's older mapping of timestamps cannot represent column {column!r}, which is {kind}"
        raise SqlError(problem, "set the format's option 'timestamp_mapping.legacy' = 'false'")
    is_local = kind.root is Root.TIMESTAMP and not legacy
    return {"type": "long", "logicalType": f"{'local-' if is_local else ''}timestamp-{unit}"}


__all__ = ["avro_schema_of", "change_schema_of"]
