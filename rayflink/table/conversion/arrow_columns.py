"""Columns of Arrow from elsewhere, in the types of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.errors import InvalidTypesError

from ..types import DataType, DataTypes, from_arrow_type

if TYPE_CHECKING:
    import pyarrow

    from ..plan.logical import Schema


def arrow_schema(schema: Schema) -> pyarrow.Schema:
    """Return the columns as Arrow's schema."""
    import pyarrow

    return pyarrow.schema([column.type.to_arrow_field(column.name) for column in schema])


def type_of(field: pyarrow.Field) -> DataType:
    """Return the type of a column.

    Raises:
        InvalidTypesError: tables have no such type.
    """
    from pyarrow import types

    if types.is_null(field.type):
        return DataTypes.STRING(field.nullable)
    try:
        return from_arrow_type(field.type, field.nullable)
    except InvalidTypesError as error:
        remedy = "cast it to a type that tables have, such as int64 or string"
        raise InvalidTypesError(f"column {field.name!r} is {field.type}", remedy) from error


def normalize_types(table: pyarrow.Table) -> pyarrow.Table:
    """Return the columns in the one form that tables have of each type.

    Raises:
        InvalidTypesError: tables have no such type.
    """
    import pyarrow

    fields = [pyarrow.field(field.name, _plain(field.type), field.nullable) for field in table.schema]
    target_fields = [pyarrow.field(field.name, type_of(field).to_arrow(), field.nullable) for field in fields]
    return table.cast(pyarrow.schema(target_fields))


def _plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return the type without dictionaries, views, large offsets, unsigned numbers and seconds."""
    import pyarrow
    from pyarrow import types

    if types.is_null(kind):
        return pyarrow.string()
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pyarrow.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pyarrow.binary()
    if types.is_unsigned_integer(kind):
        wider = {8: pyarrow.int16(), 16: pyarrow.int32(), 32: pyarrow.int64(), 64: pyarrow.decimal128(20, 0)}
        return wider[kind.bit_width]
    if types.is_date64(kind):
        return pyarrow.timestamp("ms")
    if types.is_timestamp(kind):
        return pyarrow.timestamp("ms" if kind.unit == "s" else kind.unit, None if kind.tz is None else "UTC")
    if types.is_large_list(kind) or types.is_list_view(kind) or types.is_list(kind):
        return pyarrow.list_(_plain(kind.value_type))
    if types.is_struct(kind):
        return pyarrow.struct([pyarrow.field(field.name, _plain(field.type), field.nullable) for field in kind])
    return kind
