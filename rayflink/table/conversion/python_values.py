"""Values of Python in the forms that programs give and get them, and those that pyarrow does."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral

from rayflink.common.records.arrow_values import shaped
from rayflink.common.time import Instant
from rayflink.common.types import Row
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.user_types import UserRecord, UserValue

from ..types import DataType, Root, UserDefinedType
from .object_attributes import attributes_of, has_attributes

Plain = Callable[[UserValue], UserValue]
_PER_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def plain_of(kind: DataType) -> Plain | None:
    """Return the conversion of a function's value to one that pyarrow accepts; None: it needs none.

    Rows become dicts, maps pairs, user-defined objects the values in which they are stored, Instants numbers, values of
    RAW are pickled, and decimal numbers are rounded to the digits of their type. Of other values pyarrow says what is
    wrong.
    """
    if kind.root is Root.RAW:
        return to_bytes
    if isinstance(kind, UserDefinedType):
        stored = plain_of(kind.sql_type())
        return lambda value: shaped(stored, kind.serialize(value))
    if kind.root is Root.ROW:
        return _plain_row(kind)
    if kind.root in (Root.MAP, Root.MULTISET):
        key, item = plain_of(kind.items[0]), plain_of(kind.items[1]) if kind.root is Root.MAP else None
        entries = dict if kind.root is Root.MAP else counts_of
        return lambda value: [(shaped(key, element), shaped(item, other)) for element, other in entries(value).items()]
    if kind.root is Root.ARRAY:
        plain = plain_of(kind.items[0])
        return None if plain is None else lambda value: [shaped(plain, element) for element in value]
    if kind.root is Root.DECIMAL:
        return rounded(kind)
    return _plain_instant(kind.unit) if kind.is_timestamp else None


def counts_of(value: UserValue) -> Mapping[UserValue, UserValue]:
    """Return the elements of a multiset with their counts; a list has each as often as it occurs.

    >>> dict(counts_of(["a", "b", "a"])), counts_of({"a": 2})
    ({'a': 2, 'b': 1}, {'a': 2})
    """
    return Counter(value) if isinstance(value, (list, tuple)) else dict(value)


def _plain_row(kind: DataType) -> Plain:
    inner = [plain_of(field.type) for field in kind.fields]
    names = [field.name for field in kind.fields]
    known = set(names)

    def row(value: UserValue) -> UserValue:
        if isinstance(value, Row):
            is_named = known == set(getattr(value, "_fields", ()))
            value = value.get_fields_by_names(names) if is_named else list(value)
        elif isinstance(value, dict):
            value = [value.get(name) for name in names]
        elif not isinstance(value, (tuple, list)) and has_attributes(type(value)):
            attributes = attributes_of(value)
            value = [attributes.get(name) for name in names]
        if not isinstance(value, (tuple, list)) or len(value) != len(inner):
            return value  # pyarrow says what is wrong
        return {name: shaped(plain, element) for name, plain, element in zip(names, inner, value, strict=True)}

    return row


def rounded(kind: DataType) -> Plain:
    """Return the function that gives a decimal number the digits of its type; halves are rounded away from zero.

    What is no number, or has too many digits before the point, stays as it is.
    """
    context = decimal.Context(prec=kind.precision, rounding=decimal.ROUND_HALF_UP)
    unit = Decimal(1).scaleb(-kind.scale)

    def round_(value: UserValue) -> UserValue:
        number = Decimal(int(value)) if isinstance(value, Integral) else value
        try:
            return number.quantize(unit, context=context) if isinstance(number, Decimal) else number
        except decimal.InvalidOperation:
            return number

    return round_


def _plain_instant(unit: str) -> Plain:
    per_second = _PER_SECOND[unit]
    nanoseconds = 1_000_000_000 // per_second

    def plain(value: UserValue) -> UserValue:
        return value.seconds * per_second + value.nanos // nanoseconds if isinstance(value, Instant) else value

    return plain


def plain_rows(rows: Sequence[UserRecord], names: Sequence[str], types: Sequence[DataType]) -> Sequence[UserRecord]:
    """Records whose rows, maps and objects are such as pyarrow takes; the records themselves where there are none.

    Args:
        rows: Rows, tuples, lists, dicts; another value stands for a row of one field.
        names: of the fields, in the order of the types.
    """
    nested = [(index, plain_of(kind)) for index, kind in enumerate(types) if _is_converted(kind)]
    plain = [(index, to_plain) for index, to_plain in nested if to_plain is not None]
    if not plain:
        return rows
    result = []
    for row in rows:
        values = _fields(row, names)
        for index, kind in plain:
            if index < len(values):
                values[index] = shaped(kind, values[index])
        result.append(tuple(values))
    return result


def _is_converted(kind: DataType) -> bool:
    return bool(kind.items or kind.fields) or kind.root is Root.RAW


def _fields(row: UserRecord, names: Sequence[str]) -> list[UserValue]:
    if isinstance(row, dict):
        return [row.get(name) for name in names]
    if isinstance(row, Row):
        return list(row.get_fields_by_names(list(names)))
    return list(row) if isinstance(row, (tuple, list)) else [row]


__all__ = ["counts_of", "plain_of", "plain_rows", "rounded"]
