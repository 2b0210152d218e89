"""Declared types as Arrow's, for formats whose files have a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rayflink.user_types import TypeHint

from ..data_types.basic_types import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    InstantTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from ..data_types.composite_types import (
    ElementsTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from ..data_types.type_base import TypeInformation
from ..errors import InvalidTypesError, shorten

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ArrowTyped", "to_arrow_schema", "to_arrow_type", "type_info_of"]

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


@runtime_checkable
class ArrowTyped(Protocol):
    """A type that knows its Arrow form, such as those of `DataTypes`."""

    def to_arrow(self) -> pyarrow.DataType:
        """Return the Arrow type of its values."""


def type_info_of(kind: TypeInformation | ArrowTyped) -> TypeInformation:
    """Return the type of the values of a column: of those of `DataTypes` the one that Flink's streams have for it.

    Raises:
        InvalidTypesError: there is none.
    """
    import pyarrow

    if not isinstance(kind, ArrowTyped):
        return kind
    arrow = kind.to_arrow()
    if pyarrow.types.is_decimal(arrow):
        return BasicTypeInfo(BasicType.BIG_DEC)
    for basic, name in _BASIC.items():
        if arrow == getattr(pyarrow, name)():
            return BasicTypeInfo(basic)
    raise InvalidTypesError(f"a stream has no type for {kind}", "use a number, a string or a Boolean")


def to_arrow_schema(row_type: TypeHint) -> pyarrow.Schema:
    """Return the columns of a row type: a RowTypeInfo, a ROW of `DataTypes`, or a pyarrow Schema as it is.

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
    if isinstance(row_type, ArrowTyped) and pyarrow.types.is_struct(row_type.to_arrow()):
        return pyarrow.schema(list(row_type.to_arrow()))
    if not isinstance(row_type, RowTypeInfo):
        remedy = "use Types.ROW_NAMED([...names], [...types]), DataTypes.ROW([...]) or pyarrow.schema([...])"
        raise InvalidTypesError(f"a row type is wanted, found {shorten(row_type, 80)}", remedy)
    known = row_type.arrow_schema()
    if known is not None:
        return known
    pairs = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return pyarrow.schema([pyarrow.field(name, to_arrow_type(kind)) for name, kind in pairs])


def to_arrow_type(kind: TypeInformation | ArrowTyped) -> pyarrow.DataType:
    """Return Arrow's type for the values of a type; BIG_DEC has 38 digits, 18 of them behind the point.

    Flink's DECIMAL has the same digits.

    Raises:
        InvalidTypesError: there is none.
    """
    import pyarrow

    if isinstance(kind, ArrowTyped):
        return kind.to_arrow()
    if isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.BIG_DEC:
        return pyarrow.decimal128(38, 18)
    if isinstance(kind, BasicTypeInfo) and kind.basic_type in _BASIC:
        return getattr(pyarrow, _BASIC[kind.basic_type])()
    if isinstance(kind, DateTypeInfo):
        return pyarrow.date32()
    if isinstance(kind, TimeTypeInfo):
        return pyarrow.time64("us")
    if isinstance(kind, InstantTypeInfo):
        return pyarrow.timestamp("ns", "UTC")
    if isinstance(kind, TimestampTypeInfo):
        return pyarrow.timestamp("us")
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_bytes:
        return pyarrow.binary()
    if isinstance(kind, ElementsTypeInfo):
        return pyarrow.list_(to_arrow_type(kind.element_type))
    if isinstance(kind, MapTypeInfo):
        return pyarrow.map_(to_arrow_type(kind.key_type), to_arrow_type(kind.value_type))
    if isinstance(kind, RowTypeInfo):
        return pyarrow.struct(list(to_arrow_schema(kind)))
    if isinstance(kind, TupleTypeInfo):
        return pyarrow.struct(
            [(f"f{index}", to_arrow_type(field)) for index, field in enumerate(kind.get_field_types())]
        )
    remedy = "use a type that has one, or give a pyarrow Schema instead of types"
    raise InvalidTypesError(f"Arrow has no type for {kind}", remedy)
