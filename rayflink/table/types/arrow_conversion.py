"""Types as Arrow's, and Arrow's as types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from rayflink.common.errors import InvalidTypesError

from .data_type import DataType, RowField
from .data_types import DataTypes
from .program_types import stored_type

if TYPE_CHECKING:
    import pyarrow

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def to_arrow_type(data_type: DataType) -> pyarrow.DataType:
    """Return Arrow's type of a column of a table.

    >>> print(to_arrow_type(DataTypes.ARRAY(DataTypes.TIMESTAMP(3))))
    list<item: timestamp[ms]>

    Raises:
        InvalidTypesError: no column is of this type.
    """
    return stored_type(data_type).to_arrow()


def create_arrow_schema(field_names: Sequence[str], field_types: Sequence[DataType]) -> pyarrow.Schema:
    """Return Arrow's schema of columns of a table.

    Raises:
        InvalidTypesError: no column is of one of the types.
    """
    import pyarrow

    pairs = zip(field_names, field_types, strict=True)
    return pyarrow.schema([stored_type(kind).to_arrow_field(name) for name, kind in pairs])


def from_arrow_type(arrow_type: pyarrow.DataType, nullable: bool = True) -> DataType:
    """Return the type of Arrow's type.

    A struct is a ROW, at any depth; a time with a zone is a TIMESTAMP_LTZ.

    >>> import pyarrow
    >>> from_arrow_type(pyarrow.map_(pyarrow.string(), pyarrow.decimal128(4, 1)), False)
    MapType(VarCharType(2147483647, true), DecimalType(4, 1, true), false)

    Raises:
        InvalidTypesError: tables have no such type.
    """
    return _without_nullability(arrow_type).as_nullable(nullable)


def _without_nullability(kind: pyarrow.DataType) -> DataType:
    from pyarrow import types

    for is_it, make in _simple_types():
        if is_it(kind):
            return make()
    if types.is_decimal(kind):
        return DataTypes.DECIMAL(kind.precision, kind.scale)
    if types.is_fixed_size_binary(kind):
        return DataTypes.BINARY(kind.byte_width)
    if types.is_timestamp(kind):
        timestamp = DataTypes.TIMESTAMP if kind.tz is None else DataTypes.TIMESTAMP_LTZ
        return timestamp(_DIGITS[kind.unit])
    if types.is_time(kind):
        return DataTypes.TIME(_DIGITS[kind.unit])
    if types.is_list(kind):
        return DataTypes.ARRAY(from_arrow_type(kind.value_type))
    if types.is_map(kind):
        return DataTypes.MAP(from_arrow_type(kind.key_type), from_arrow_type(kind.item_type))
    if types.is_struct(kind):
        return DataTypes.ROW([RowField(field.name, from_arrow_type(field.type, field.nullable)) for field in kind])
    raise InvalidTypesError(f"Arrow's type {kind} is none of a table", "cast it, such as to int64 or string")


@cache
def _simple_types() -> list[tuple[Callable[[pyarrow.DataType], bool], Callable[[], DataType]]]:
    """Return Arrow's types without parameters, by the questions for them."""
    from pyarrow import types

    return [
        (types.is_boolean, DataTypes.BOOLEAN), (types.is_int8, DataTypes.TINYINT), (types.is_int16, DataTypes.SMALLINT),
        (types.is_int32, DataTypes.INT), (types.is_int64, DataTypes.BIGINT), (types.is_float32, DataTypes.FLOAT),
        (types.is_float64, DataTypes.DOUBLE), (types.is_string, DataTypes.STRING), (types.is_binary, DataTypes.BYTES),
        (types.is_date32, DataTypes.DATE), (types.is_duration, DataTypes.INTERVAL_DAY_TIME),
        (types.is_null, DataTypes.NULL),
    ]  # fmt: skip


__all__ = ["create_arrow_schema", "from_arrow_type", "to_arrow_type"]
