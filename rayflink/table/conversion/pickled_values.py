"""Objects of a program in columns: pickled where a column is RAW, in the form of their type where it is user-defined.

The type of the column says which bytes are pickles, and no text or file of another program can say it: SQL has no name
for RAW, and tables of connectors have no such columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from rayflink.common.records.arrow_values import shape_of, shaped
from rayflink.common.types import Row
from rayflink.common.user_code.value_bytes import from_bytes
from rayflink.user_types import UserValue

from ..types import DataType, Root, UserDefinedType

if TYPE_CHECKING:
    import pyarrow

ToObject: TypeAlias = "Callable[[UserValue], UserValue]"


def objects_of(kind: DataType) -> ToObject | None:
    """Return the conversion of a column's value to the program's, with objects at any depth; None: it has none.

    >>> from rayflink.common.user_code.value_bytes import to_bytes
    >>> from rayflink.table.types import DataTypes
    >>> objects_of(DataTypes.ARRAY(DataTypes.RAW()))([to_bytes({1, 2}), None])
    [{1, 2}, None]
    >>> objects_of(DataTypes.BYTES()) is None
    True
    """
    if isinstance(kind, UserDefinedType):
        stored = objects_of(kind.sql_type())
        return lambda value: kind.deserialize(shaped(stored, value))
    if kind.root is Root.RAW:
        return from_bytes
    if kind.root is Root.ROW:
        return _row(kind)
    inside = [objects_of(item) for item in kind.items]
    if not any(inside):
        return None
    if kind.root in (Root.MAP, Root.MULTISET):
        key, item = (*inside, None)[:2]
        return lambda value: {shaped(key, name): shaped(item, other) for name, other in value.items()}
    return lambda value: [shaped(inside[0], element) for element in value]


def _row(kind: DataType) -> ToObject | None:
    shapes = [objects_of(field.type) for field in kind.fields]
    if not any(shapes):
        return None
    named = Row(*(field.name for field in kind.fields))
    return lambda row: named(*(shaped(shape, value) for shape, value in zip(shapes, row, strict=True)))


def python_values(column: pyarrow.Array, kind: DataType | None = None) -> list[UserValue]:
    """Convert values for functions: a Row for a row, a dict for a map; a FLOAT with the value it computes with.

    Args:
        kind: type of the column, which says where objects are; None: there are none.
    """
    shape = shape_of(column.type, shortens_floats=False)
    values: list[UserValue] = column.to_pylist()
    for convert in (shape, None if kind is None else objects_of(kind)):
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
    return values


__all__ = ["ToObject", "objects_of", "python_values"]
