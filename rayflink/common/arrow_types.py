"""Declared types as Arrow's, for formats whose files have a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .basic_types import BasicType, BasicTypeInfo, DateTypeInfo, InstantTypeInfo, TimestampTypeInfo, TimeTypeInfo
from .composite_types import MapTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo, TupleTypeInfo, _ElementsTypeInfo
from .errors import InvalidTypesError, shorten
from .type_base import TypeInformation

if TYPE_CHECKING:
    import pyarrow

__all__ = ["to_arrow_schema", "to_arrow_type"]

_BASIC = {
    BasicType.STRING: "string",
    BasicType.CHAR: "string",
    BasicType.BYTE: "int8",
    BasicType.SHORT: "int16",
    BasicType.INT: "int32",
    BasicType.LONG: "int64",
    BasicType.FLOAT: "float32",
    BasicType.DOUBLE: "float64",
    BasicType.BOOLEAN: "bool_",
    BasicType.VOID: "null",
}


def to_arrow_schema(row_type: Any) -> pyarrow.Schema:
    """The columns of a row type: a RowTypeInfo, or a pyarrow Schema as it is.

    >>> from rayflink.common.typeinfo import Types
    >>> to_arrow_schema(Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()]))
    word: string
    n: int32

    Raises:
        InvalidTypesError: it is no row type, or Arrow has no such type for a field.
    """
    import pyarrow

    if isinstance(row_type, pyarrow.Schema):
        return row_type
    if not isinstance(row_type, RowTypeInfo):
        remedy = "use Types.ROW_NAMED([...names], [...types]) or pyarrow.schema([...])"
        raise InvalidTypesError(f"a row type is wanted, found {shorten(row_type, 80)}", remedy)
    known = row_type.arrow_schema()
    if known is not None:
        return known
    pairs = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return pyarrow.schema([pyarrow.field(name, to_arrow_type(kind)) for name, kind in pairs])


def to_arrow_type(kind: TypeInformation) -> pyarrow.DataType:
    """Arrow's type for the values of a type.

    Raises:
        InvalidTypesError: there is none.
    """
    import pyarrow

    if isinstance(kind, BasicTypeInfo) and kind._basic_type in _BASIC:
        return getattr(pyarrow, _BASIC[kind._basic_type])()
    if isinstance(kind, DateTypeInfo):
        return pyarrow.date32()
    if isinstance(kind, TimeTypeInfo):
        return pyarrow.time64("us")
    if isinstance(kind, InstantTypeInfo):
        return pyarrow.timestamp("ns", "UTC")
    if isinstance(kind, TimestampTypeInfo):
        return pyarrow.timestamp("us")
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind._is_bytes:
        return pyarrow.binary()
    if isinstance(kind, _ElementsTypeInfo):
        return pyarrow.list_(to_arrow_type(kind._element_type))
    if isinstance(kind, MapTypeInfo):
        return pyarrow.map_(to_arrow_type(kind._key_type_info), to_arrow_type(kind._value_type_info))
    if isinstance(kind, RowTypeInfo):
        return pyarrow.struct(list(to_arrow_schema(kind)))
    if isinstance(kind, TupleTypeInfo):
        return pyarrow.struct([(f"f{at}", to_arrow_type(field)) for at, field in enumerate(kind.get_field_types())])
    remedy = "use a type that has one, or give a pyarrow Schema instead of types"
    raise InvalidTypesError(f"Arrow has no type for {kind}", remedy)
