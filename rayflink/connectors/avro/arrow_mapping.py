"""Arrow's types for Avro's types, and Avro schemas for Arrow's types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .avro_schema import BadAvroSchema, SchemaNode

if TYPE_CHECKING:
    import pyarrow

_PLAIN = {
    "null": "null", "boolean": "bool_", "int": "int32", "long": "int64", "float": "float32", "double": "float64",
    "bytes": "binary", "string": "string", "enum": "string",
}  # fmt: skip
TIMES = {
    "timestamp-millis": ("ms", "UTC"), "timestamp-micros": ("us", "UTC"), "timestamp-nanos": ("ns", "UTC"),
    "local-timestamp-millis": ("ms", None), "local-timestamp-micros": ("us", None),
    "local-timestamp-nanos": ("ns", None),
}  # fmt: skip
"""Logical type of a long -> unit and zone of Arrow's timestamp."""
_MOST_DIGITS = 38


def arrow_type(node: SchemaNode) -> pyarrow.DataType:
    """Return Arrow's type for the values of a type; whether they may be null is up to the field.

    >>> from .avro_schema import AvroSchema
    >>> print(arrow_type(AvroSchema({"type": "long", "logicalType": "timestamp-micros"}).root))
    timestamp[us, tz=UTC]

    Raises:
        BadAvroSchema: it is a union of several types.
    """
    import pyarrow

    value = node.value
    if value.kind == "union":
        remedy = "read it as records, without columns, or leave the field out"
        raise BadAvroSchema(f"{value} is a union of several types, which columns cannot represent", remedy)
    if value.kind == "record":
        return pyarrow.struct([arrow_field(field.name, field.node) for field in value.fields])
    if value.kind == "array":
        return pyarrow.list_(arrow_field("item", value.items[0]))
    if value.kind == "map":
        return pyarrow.map_(pyarrow.string(), arrow_field("value", value.items[0]))
    return _logical_type(value) or _plain_type(value)


def arrow_field(name: str, node: SchemaNode) -> pyarrow.Field:
    """Return a column of a type.

    Raises:
        BadAvroSchema: it is a union of several types.
    """
    import pyarrow

    return pyarrow.field(name, arrow_type(node), node.is_nullable)


def arrow_schema_of(root: SchemaNode) -> pyarrow.Schema:
    """Return the columns of a record.

    Raises:
        BadAvroSchema: it is no record, or a field is a union of several types.
    """
    import pyarrow

    record = root.value
    if record.kind != "record":
        raise BadAvroSchema(f"the schema is {root}, a record is wanted", "wrap it in a record")
    return pyarrow.schema([arrow_field(field.name, field.node) for field in record.fields])


def _plain_type(node: SchemaNode) -> pyarrow.DataType:
    import pyarrow

    if node.kind == "fixed":
        return pyarrow.binary(node.size)
    plain: pyarrow.DataType = getattr(pyarrow, _PLAIN[node.kind])()
    return plain


def _logical_type(node: SchemaNode) -> pyarrow.DataType | None:
    """Return Arrow's type for a logical type; None: it is read as the type below it, as the specification says."""
    import pyarrow

    logical, kind = node.logical, node.kind
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return pyarrow.decimal128(node.precision, node.scale) if node.precision <= _MOST_DIGITS else None
    if logical == "date" and kind == "int":
        return pyarrow.date32()
    if logical == "time-millis" and kind == "int":
        return pyarrow.time32("ms")
    if logical == "time-micros" and kind == "long":
        return pyarrow.time64("us")
    if logical in TIMES and kind == "long":
        return pyarrow.timestamp(*TIMES[logical])
    return None


def sizes_of(column: pyarrow.Array) -> pyarrow.Array:
    """Return the number of elements of each list or map, 0 where there is none."""
    import pyarrow
    from pyarrow import compute

    if not pyarrow.types.is_map(column.type):
        return compute.fill_null(compute.list_value_length(column), 0)
    offsets = column.offsets
    sizes = compute.subtract(offsets.slice(1), offsets.slice(0, len(offsets) - 1))
    return compute.if_else(column.is_null(), pyarrow.scalar(0, pyarrow.int32()), sizes)


__all__ = ["TIMES", "sizes_of", "arrow_field", "arrow_schema_of", "arrow_type"]
