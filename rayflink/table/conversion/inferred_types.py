"""The types of Python values, as `from_elements` infers them where the program declares none."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from numbers import Integral, Real

from rayflink.common.errors import shorten
from rayflink.common.time import Instant
from rayflink.common.types import Row
from rayflink.user_types import UserValue

from ..errors import ElementTypeError, ElementValueError
from ..parsing.statement_parser import parse_type
from ..types import DataType, DataTypes, Root, RowField, RowType, UserDefinedType
from .object_attributes import attributes_of, has_attributes

_CLASSES: list[tuple[type, DataType]] = [
    (Integral, DataTypes.BIGINT()), (Real, DataTypes.DOUBLE()),
    (str, DataTypes.STRING()), (bytes, DataTypes.BYTES()), (bytearray, DataTypes.BYTES()),
    (memoryview, DataTypes.BYTES()), (Decimal, DataTypes.DECIMAL(38, 18)),
    (datetime.datetime, DataTypes.TIMESTAMP_LTZ(6)), (Instant, DataTypes.TIMESTAMP_LTZ(9)),
    (datetime.date, DataTypes.DATE()), (datetime.time, DataTypes.TIME()),
    (datetime.timedelta, DataTypes.INTERVAL_DAY_TIME()),
]  # fmt: skip
"""The first class that a value's class derives from says its type."""
_TYPE_CODES = {
    "b": DataTypes.TINYINT(False), "B": DataTypes.SMALLINT(False), "h": DataTypes.SMALLINT(False),
    "H": DataTypes.INT(False), "i": DataTypes.INT(False), "I": DataTypes.BIGINT(False), "l": DataTypes.BIGINT(False),
    "q": DataTypes.BIGINT(False), "f": DataTypes.FLOAT(False), "d": DataTypes.DOUBLE(False),
    "u": DataTypes.CHAR(1, False), "w": DataTypes.CHAR(1, False),
}  # fmt: skip
"""Element types of `array.array`; numbers without a sign have a type that has all of them."""


def infer_row_type(elements: Sequence[UserValue], names: Sequence[str] | None = None) -> RowType:
    """Return the type of rows, which says for each field the type that all its values have.

    Ints are BIGINT, floats DOUBLE, a datetime is a TIMESTAMP_LTZ(6), a Decimal a DECIMAL(38, 18), a dict within a row a
    MAP, a list an ARRAY, and a tuple, a Row or an object with attributes a ROW.

    >>> infer_row_type([("ann", None), ("bob", [1.5])], ["name"]).names
    ['name', '_2']

    Args:
        elements: tuples, lists, Rows, dicts, named tuples, or objects with attributes; others are rows of one field.
        names: of the fields by their positions; None and missing ones: `_1`, `_2` and so on. Elements that have names
            keep them: dicts and objects in the order of the alphabet, others in their own; `names` chooses from them.

    Raises:
        ElementTypeError: a field has values of several types; names it.
        ElementValueError: there are no elements, or a field has no value but None.
    """
    if not elements:
        remedy = "give a schema, such as DataTypes.ROW([DataTypes.FIELD('id', DataTypes.BIGINT())])"
        raise ElementValueError("there are no elements from which the types of fields could be seen", remedy)
    row_type = _row_type(elements, "", names)
    if unknown := _unknown(row_type, ""):
        remedy = "give a schema that declares it, or leave the field out"
        raise ElementValueError(f"the type of {unknown} is not known, since it is None or empty everywhere", remedy)
    return row_type


def infer_type(values: Iterable[UserValue], path: str) -> DataType:
    """Return the one type that values have; `DataTypes.NULL()` where all are None.

    Args:
        path: which field they are, for messages.

    Raises:
        ElementTypeError: they have several, or one that tables lack.
    """
    values = [value for value in values if value is not None]
    kinds: dict[DataType | type, type] = {}
    for value_class in dict.fromkeys(map(type, values)):
        family = family_of(value_class)
        if family is None:
            problem = f"{path}: found {value_class.__name__}, whose values no type of tables has"
            remedy = "convert them, such as to str or float, or give their class a UserDefinedType"
            raise ElementTypeError(problem, remedy)
        kinds.setdefault(family, value_class)
    if not kinds:
        return DataTypes.NULL()
    if len(kinds) > 1:
        classes = " and ".join(value_class.__name__ for value_class in kinds.values())
        raise ElementTypeError(f"{path}: found {classes} in one column", "give all values one type, or a schema")
    [kind] = kinds
    if isinstance(kind, DataType):
        is_fine = kind.root is Root.TIME and any(value.microsecond for value in values)
        return DataTypes.TIME(6) if is_fine else kind
    if kind is dict:
        return _map_type(values, path)
    if kind is list:
        return DataTypes.ARRAY(infer_type(chain.from_iterable(values), f"element of {path}"))
    return _array_type(values, path) if kind is array else _row_type(values, path)


def _map_type(values: Sequence[dict[UserValue, UserValue]], path: str) -> DataType:
    key = infer_type(chain.from_iterable(values), f"key of {path}")
    item = infer_type(chain.from_iterable(value.values() for value in values), f"value of {path}")
    return DataTypes.MAP(key.not_null() if key != DataTypes.NULL() else key, item)


def _array_type(values: Sequence[array[UserValue]], path: str) -> DataType:
    codes = sorted({value.typecode for value in values})
    if len(codes) > 1 or codes[0] not in _TYPE_CODES:
        problem = f"{path}: found array.array of {' and '.join(map(repr, codes))}"
        raise ElementTypeError(problem, f"give one type code, one of {', '.join(_TYPE_CODES)}")
    return DataTypes.ARRAY(_TYPE_CODES[codes[0]])


def family_of(value_class: type) -> DataType | type | None:
    """Return the type of values of a class: dict, list, array or tuple where the values say more; None: none."""
    user_type = getattr(value_class, "__UDT__", None)
    if isinstance(user_type, UserDefinedType):
        return user_type
    if is_truth(value_class):
        return DataTypes.BOOLEAN()
    for known, data_type in _CLASSES:
        if issubclass(value_class, known):
            return data_type
    nesting = next((known for known in (dict, list, array) if issubclass(value_class, known)), None)
    is_row = issubclass(value_class, (tuple, Row)) or has_attributes(value_class)
    return nesting or (tuple if is_row else None)


def is_truth(value_class: type) -> bool:
    """Return whether values of a class are true or false; those of numpy have a class of their own."""
    return value_class is bool or (value_class.__module__ == "numpy" and value_class.__name__ in ("bool", "bool_"))


def _row_type(values: Sequence[UserValue], path: str, names: Sequence[str] | None = None) -> RowType:
    own = [_own_names(value) for value in values]
    if all(fields is None for fields in own):
        return _row_type_by_place(values, path, names)
    if any(fields is None for fields in own):
        where = f"{path}: " if path else ""
        raise ElementTypeError(f"{where}found rows with names of fields and rows without", "name all fields, or none")
    order = dict.fromkeys(chain.from_iterable(fields for fields in own if fields is not None))
    if names is not None and set(names) <= set(order):
        order = dict.fromkeys(names)
    columns = [(name, [_named(value, name) for value in values]) for name in order]
    return RowType([RowField(name, infer_type(column, _path(name, path))) for name, column in columns])


def _row_type_by_place(values: Sequence[UserValue], path: str, names: Sequence[str] | None) -> RowType:
    rows = [value if isinstance(value, (tuple, list, Row)) else (value,) for value in values]
    width = len(rows[0])
    if other := next((row for row in rows if len(row) != width), None):
        where = f"{path}: " if path else ""
        problem = f"{where}found rows of {width} and of {len(other)} fields"
        raise ElementTypeError(problem, "give all of them one length")
    is_single = not any(isinstance(value, (tuple, list, Row)) for value in values)
    names = list(names or (["value"] if is_single else ()))
    if len(names) > width:
        raise ElementValueError(f"rows have {width} fields, but {len(names)} names", "give a name for each field")
    names += [f"_{place}" for place in range(len(names) + 1, width + 1)]
    columns = zip(*rows, strict=True) if width else ()
    return RowType(
        [RowField(name, infer_type(column, _path(name, path))) for name, column in zip(names, columns, strict=True)]
    )


def _own_names(value: UserValue) -> Sequence[str] | None:
    """Return the names that the fields of a row have; None: they have places alone."""
    if isinstance(value, dict):
        return sorted(value)
    if isinstance(value, (Row, tuple, list)):
        return getattr(value, "_fields", None)
    return sorted(attributes_of(value)) if family_of(type(value)) is tuple else None


def _named(value: UserValue, name: str) -> UserValue:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, Row):
        return value[name] if name in value else None
    return getattr(value, name, None)


def _path(name: str, outer: str) -> str:
    return f"field {name!r} of {outer}" if outer else f"field {name!r}"


def _unknown(kind: DataType, path: str) -> str | None:
    """Return the path of a part whose values are None everywhere."""
    if kind == DataTypes.NULL():
        return path
    parts = [(field.type, _path(field.name, path)) for field in kind.fields]
    words = ("key", "value") if len(kind.items) == 2 else ("element",)
    parts += [(item, f"{word} of {path}") for item, word in zip(kind.items, words, strict=False)]
    return next((unknown for part, name in parts if (unknown := _unknown(part, name))), None)


def declared_row_type(schema: object, elements: Sequence[UserValue]) -> RowType:
    """Return the type of rows that a program declares, with what is left out inferred from them.

    Args:
        schema: a ROW, another type for the one field `value`, a text such as "ROW<id BIGINT>", names, types, or fields
            of a row; None: all is inferred.

    Raises:
        ElementTypeError: it is something else, or a field has values of several types.
        ElementValueError: a type cannot be inferred.
    """
    if isinstance(schema, str):
        schema = parse_type(schema)
    if isinstance(schema, RowType):
        return schema
    if isinstance(schema, DataType):
        return RowType([RowField("value", schema)])
    if schema is None:
        return infer_row_type(elements)
    parts: list[UserValue] = list(schema) if isinstance(schema, Iterable) else [schema]
    if all(isinstance(part, str) for part in parts):
        return infer_row_type(elements, parts)
    if all(isinstance(part, DataType) for part in parts):
        first = elements[0] if elements else None
        own = None if first is None else _own_names(first)
        names = own if own is not None and len(own) == len(parts) else [f"_{place + 1}" for place in range(len(parts))]
        return DataTypes.ROW(zip(names, parts, strict=True))
    if all(isinstance(part, (RowField, tuple)) for part in parts):
        return DataTypes.ROW(parts)
    problem = f"the schema is {shorten(schema, 80)} of {type(schema).__name__}"
    raise ElementTypeError(problem, "give a DataTypes.ROW, names of columns, types, or a text such as 'ROW<id BIGINT>'")


__all__ = [
    "declared_row_type",
    "attributes_of",
    "family_of",
    "has_attributes",
    "infer_row_type",
    "infer_type",
    "is_truth",
]
