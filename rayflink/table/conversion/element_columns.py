"""Python rows as columns of declared types, each value checked; for `from_elements`."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain, islice
from numbers import Integral, Real
from typing import TYPE_CHECKING, NoReturn

from rayflink.common.errors import shorten
from rayflink.common.records.arrow_rows import without_instants
from rayflink.common.records.lossy_arrow_casts import refuse_losses
from rayflink.common.time import Instant
from rayflink.common.types import Row
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.user_types import UserValue

from ..errors import ElementTypeError, ElementValueError
from ..types import DataType, DataTypes, Root, RowType, UserDefinedType, stored_type
from .inferred_types import family_of, is_truth
from .object_attributes import attributes_of, has_attributes
from .python_values import counts_of, rounded

if TYPE_CHECKING:
    import pyarrow

Values = Sequence[UserValue]
_BYTES = (bytes, bytearray, memoryview)
_CLASSES: dict[Root, tuple[type, ...]] = {
    Root.TINYINT: (Integral,), Root.SMALLINT: (Integral,), Root.INT: (Integral,), Root.BIGINT: (Integral,),
    Root.FLOAT: (Real,), Root.DOUBLE: (Real,), Root.DECIMAL: (Decimal, Integral), Root.CHAR: (str,),
    Root.VARCHAR: (str,), Root.BINARY: _BYTES, Root.VARBINARY: _BYTES, Root.DATE: (datetime.date,),
    Root.TIME: (datetime.time,), Root.TIMESTAMP: (datetime.datetime, Instant),
    Root.TIMESTAMP_LTZ: (datetime.datetime, Instant), Root.INTERVAL_DAY_TIME: (datetime.timedelta,),
    Root.INTERVAL_YEAR_MONTH: (Integral,), Root.NULL: (),
}  # fmt: skip
"""The classes of values that a type takes."""
_BITS = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64, Root.INTERVAL_YEAR_MONTH: 32}
_REMEDY = "give a value of the type, or declare another one"


class ElementColumns:
    """Converts rows to columns of declared types.

    >>> row_type = DataTypes.ROW([("n", DataTypes.INT()), ("price", DataTypes.DECIMAL(4, 1))])
    >>> ElementColumns(row_type).table([(1, Decimal("2.25"))]).to_pylist()
    [{'n': 1, 'price': Decimal('2.3')}]

    Args:
        row_type: names and types of the columns; user-defined types become those in which they are stored.
        verifies: values of other classes than those of their type are errors, also strings that are too long; False:
            what Arrow can convert is converted.
    """

    def __init__(self, row_type: RowType, verifies: bool = True) -> None:
        self._row_type, self._verifies = row_type, verifies

    def table(self, elements: Values) -> pyarrow.Table:
        """Return the elements as columns.

        Args:
            elements: tuples, lists, Rows, dicts, objects with attributes; others are rows of one field.

        Raises:
            ElementTypeError: a value is of a class that its field does not take; names the field.
            ElementValueError: a value is None where its field is not null, out of range or too long.
        """
        import pyarrow

        columns = self._fields(self._row_type, elements, "")
        fields = [stored_type(field.type).to_arrow_field(field.name) for field in self._row_type.fields]
        arrays = [_arrow(column, arrow_field) for column, arrow_field in zip(columns, fields, strict=True)]
        return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields))

    def _fields(self, row_type: RowType, rows: Values, outer: str) -> list[Values]:
        """Return the plain values of each field; all are None where a row is."""
        width, names = len(row_type.fields), row_type.names
        takes_object = width == 1 and isinstance(row_type.fields[0].type, UserDefinedType)
        by_class = {row_class: _reader(row_class, outer == "", takes_object) for row_class in set(map(type, rows))}
        values = [by_class[type(row)](row, names, outer) for row in rows]
        columns: list[tuple[UserValue, ...]] = list(zip(*values, strict=True)) if values else [()] * width
        result = []
        for field, column in zip(row_type.fields, columns, strict=True):
            path = f"field {field.name!r} of {outer}" if outer else f"field {field.name!r}"
            result.append(self._column(field.type, column, path))
        return result

    def _column(self, kind: DataType, values: Values, path: str) -> Values:
        """Return the values of a column as pyarrow takes them."""
        if isinstance(kind, UserDefinedType):
            return self._column(kind.sql_type(), self._serialized(kind, values, path), path)
        if not kind.is_nullable and any(value is None for value in values):
            raise ElementValueError(f"{path}: found None, wanted {kind}", "give a value, or declare it nullable")
        if kind.root is Root.ARRAY:
            return self._array(kind, values, path)
        if kind.root in (Root.MAP, Root.MULTISET):
            return self._map(kind, values, path)
        if isinstance(kind, RowType):
            return self._row(kind, values, path)
        kind.to_arrow()
        if kind.root is Root.RAW:
            return [None if value is None else to_bytes(value) for value in values]
        self._check_classes(kind, _CLASSES.get(kind.root, ()), values, path)
        return self._atoms(kind, values, path)

    def _serialized(self, kind: UserDefinedType, values: Values, path: str) -> Values:
        wrong = next((value for value in values if value is not None and _user_type(value) != kind), None)
        if wrong is not None:
            problem = f"{path}: found {shorten(wrong, 80)} of {type(wrong).__name__}, wanted {kind}"
            raise ElementValueError(problem, "give an object whose class has that type as its __UDT__")
        return [None if value is None else kind.serialize(value) for value in values]

    def _array(self, kind: DataType, values: Values, path: str) -> Values:
        import numpy

        self._check_classes(kind, (list, tuple, array, numpy.ndarray), values, path)
        present = [value.tolist() if isinstance(value, numpy.ndarray) else value for value in _present(values)]
        elements = self._column(kind.items[0], list(chain.from_iterable(present)), f"element of {path}")
        rest, sizes = iter(elements), map(len, present)
        return [None if value is None else list(islice(rest, next(sizes))) for value in values]

    def _map(self, kind: DataType, values: Values, path: str) -> Values:
        self._check_classes(kind, (dict,) if kind.root is Root.MAP else (dict, list, tuple), values, path)
        present = _present(values) if kind.root is Root.MAP else list(map(counts_of, _present(values)))
        keys = list(chain.from_iterable(present))
        if any(key is None for key in keys):
            raise ElementValueError(f"{path}: found None as a key of {kind}", "give a key, or leave the entry out")
        item = kind.items[1] if kind.root is Root.MAP else DataTypes.INT(False)
        items = list(chain.from_iterable(value.values() for value in present))
        pairs = zip(
            self._column(kind.items[0], keys, f"key of {path}"), self._column(item, items, f"value of {path}"),
            strict=True,
        )  # fmt: skip
        sizes = map(len, present)
        return [None if value is None else list(islice(pairs, next(sizes))) for value in values]

    def _row(self, kind: RowType, values: Values, path: str) -> Values:
        names = kind.names
        rows = zip(*self._fields(kind, _present(values), path), strict=True) if names else iter([()] * len(values))
        return [None if value is None else dict(zip(names, next(rows), strict=True)) for value in values]

    def _check_classes(self, kind: DataType, classes: tuple[type, ...], values: Values, path: str) -> None:
        """Check that values are of classes that a type takes.

        Raises:
            ElementTypeError: one is not.
        """
        if not self._verifies and not (kind.items or kind.fields):
            return
        for value_class in set(map(type, values)) - {type(None)}:
            is_fit = is_truth(value_class) if kind.root is Root.BOOLEAN else issubclass(value_class, classes)
            if not is_fit or (kind.root is not Root.BOOLEAN and is_truth(value_class)):
                wrong = next(value for value in values if type(value) is value_class)
                problem = f"{path}: found {shorten(wrong, 80)} of {value_class.__name__}, wanted {kind}"
                raise ElementTypeError(problem, _REMEDY)

    def _atoms(self, kind: DataType, values: Values, path: str) -> Values:
        """Return the values of a column without values inside, in the form of their type."""
        if kind.root is Root.BOOLEAN and self._verifies:
            return [None if value is None else bool(value) for value in values]
        if bits := _BITS.get(kind.root):
            limit = 1 << (bits - 1)
            _refuse(values, lambda value: isinstance(value, Integral) and not -limit <= int(value) < limit, kind, path)
        elif kind.root is Root.DECIMAL:
            return _rounded(kind, values, path)
        elif kind.root in _TIMES:
            return [_TIMES[kind.root](value) for value in values]
        elif kind.is_timestamp:
            return without_instants(list(values), kind.to_arrow())
        elif kind.root is Root.INTERVAL_DAY_TIME:
            _refuse(values, lambda value: bool(getattr(value, "microseconds", 0) % 1000), kind, path)
        elif self._verifies and (kind.is_text or kind.is_bytes):
            is_fixed = kind.root in (Root.CHAR, Root.BINARY)
            _refuse(values, lambda value: len(value) > kind.length or is_fixed and len(value) < kind.length, kind, path)
        return values


def _arrow(values: Values, field: pyarrow.Field) -> pyarrow.Array:
    """Return plain values as a column.

    Raises:
        ElementValueError: Arrow has no such value.
        ElementTypeError: Arrow cannot convert one.
    """
    import pyarrow

    try:
        refuse_losses(values, field.type, f"field {field.name!r}")
    except ValueError as error:
        problem, _, remedy = str(error).rpartition("; ")
        raise ElementValueError(problem, remedy) from error
    try:
        return pyarrow.array(values, field.type)
    except TypeError as error:  # also Arrow's
        raise ElementTypeError(f"field {field.name!r} of Arrow's type {field.type}: {error}", _REMEDY) from error
    except (ValueError, OverflowError) as error:
        raise ElementValueError(f"field {field.name!r} of Arrow's type {field.type}: {error}", _REMEDY) from error


def _reader(row_class: type, is_element: bool, takes_object: bool) -> Callable[[UserValue, list[str], str], Values]:
    """Return the function that reads the fields of rows of a class.

    Args:
        is_element: the rows are elements, where another value stands for a row of one field.
        takes_object: that field is of a user-defined type.
    """
    if issubclass(row_class, Row):
        return _of_row
    if issubclass(row_class, dict):
        return lambda row, names, path: [row.get(name) for name in names]
    if issubclass(row_class, (tuple, list)):
        return _by_place
    family = family_of(row_class)
    is_user_defined = isinstance(family, UserDefinedType)
    if family is tuple or is_user_defined and has_attributes(row_class) and not (is_element and takes_object):
        return lambda row, names, path: _of_object(row, names)
    return _alone if is_element else _refuse_row


def _of_row(row: Row, names: list[str], path: str) -> Values:
    own: list[str] | None = getattr(row, "_fields", None)
    if own is None:
        return _by_place(list(row), names, path)
    if missing := next((name for name in names if name not in own), None):
        problem = f"{path or 'element'}: the Row has no field {missing!r}, its fields are {own}"
        raise ElementValueError(problem, "give the Row the fields that the schema names")
    return row.get_fields_by_names(names)


def _by_place(row: Values, names: list[str], path: str) -> Values:
    if len(row) != len(names):
        problem = f"{path or 'element'}: found {len(row)} fields in {shorten(row, 80)}, wanted {len(names)}: {names}"
        raise ElementValueError(problem, "give a value for each field")
    return list(row)


def _of_object(row: UserValue, names: list[str]) -> Values:
    attributes = attributes_of(row)
    return [attributes.get(name) for name in names]


def _alone(row: UserValue, names: list[str], path: str) -> Values:
    return _by_place([row], names, path)


def _refuse_row(row: UserValue, names: list[str], path: str) -> NoReturn:
    problem = f"{path}: found {shorten(row, 80)} of {type(row).__name__}, wanted a row of {names}"
    raise ElementTypeError(problem, "give a Row, tuple, dict or an object with attributes")


def _present(values: Values) -> list[UserValue]:
    return [value for value in values if value is not None]


def _user_type(value: UserValue) -> DataType | None:
    user_type: DataType | None = getattr(value, "__UDT__", None)
    return user_type


def _refuse(values: Values, is_wrong: Callable[[UserValue], bool], kind: DataType, path: str) -> None:
    wrong = next((value for value in values if value is not None and is_wrong(value)), None)
    if wrong is not None:
        raise ElementValueError(f"{path}: found {shorten(wrong, 80)}, which {kind} does not have", _REMEDY)


def _rounded(kind: DataType, values: Values, path: str) -> Values:
    """Return decimal numbers with the digits of their type, halves away from zero."""
    shorten_number, limit = rounded(kind), Decimal(1).scaleb(kind.precision - kind.scale)
    numbers = [None if value is None else shorten_number(value) for value in values]
    if not all(isinstance(value, Decimal) for value in numbers if value is not None):
        return numbers  # Arrow says what is wrong
    _refuse(numbers, lambda value: not value.is_finite() or abs(value) >= limit, kind, path)
    return numbers


def _as_date(value: UserValue) -> UserValue:
    return value.date() if isinstance(value, datetime.datetime) else value


def _as_time(value: UserValue) -> UserValue:
    offset = value.utcoffset() if isinstance(value, datetime.time) else None
    if offset is None:
        return value
    return (datetime.datetime.combine(datetime.date(2000, 1, 2), value.replace(tzinfo=None)) - offset).time()


_TIMES: dict[Root, Callable[[UserValue], UserValue]] = {Root.DATE: _as_date, Root.TIME: _as_time}
__all__ = ["ElementColumns"]
