"""Values of state as Arrow columns.

None, truth values, numbers, strings, bytes, decimals, dates and times are themselves. A dataclass, a named tuple and a
`Row` with names are a struct of their fields, a tuple and any other `Row` a struct of f0, f1 and so on. Lists and sets
are lists, dicts are lists of structs of `key` and `value`. A member of an enum is its name, a UUID its text. A column
with a value that is none of these, or whose values have no type in common, is the text of `repr` of every value; its
field says so in its metadata: `form` is `repr`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rayflink.common.records.lossy_arrow_casts import refuse_losses
from rayflink.common.records.mixed_arrow_types import refuse_mixture, refuse_types
from rayflink.common.types import Row
from rayflink.state.classes.unknown_objects import UnknownObject
from rayflink.state.schema.evolution import written_fields
from rayflink.user_types import UserValue

if TYPE_CHECKING:
    import pyarrow

_PLAIN = frozenset({type(None), bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta})
REPR = {b"form": b"repr"}
"""Metadata of a field whose values are strings of `repr`."""


class NoColumnError(ValueError):
    """Raised when a value has no form in columns."""


def columnar(value: UserValue) -> Any:
    """Return a value as `pyarrow.array` takes it.

    >>> columnar(("a", {1: 2}, {3}))
    {'f0': 'a', 'f1': [{'key': 1, 'value': 2}], 'f2': [3]}

    Raises:
        NoColumnError: it has no such form.
    """
    if value.__class__ in _PLAIN:
        return value
    fields = fields_of(value)
    if fields is not None:
        return {name: columnar(part) for name, part in fields.items()}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (list, deque)):
        return [columnar(part) for part in value]
    if isinstance(value, Set):
        return [columnar(part) for part in _sorted(value)]
    if isinstance(value, Mapping):
        return [{"key": columnar(key), "value": columnar(part)} for key, part in value.items()]
    if isinstance(value, (bool, int, float, str, bytes)):
        return value
    item = getattr(value, "item", None)
    if type(value).__module__ == "numpy" and callable(item) and getattr(value, "ndim", 1) == 0:
        return item()
    raise NoColumnError(f"a {type(value).__qualname__} has no form in columns")


def fields_of(value: UserValue) -> dict[str, Any] | None:
    """Return the fields of a record by name; None for a value that is no record."""
    if isinstance(value, Row):
        return dict(zip(value._names or _numbered(value), value, strict=False))
    if isinstance(value, tuple):
        return dict(zip(getattr(value, "_fields", None) or _numbered(value), value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if isinstance(value, UnknownObject):
        return written_fields(value, value.names) or None
    return None


def array(values: Sequence[Any], field: pyarrow.Field | None = None) -> tuple[pyarrow.Array, pyarrow.Field]:
    """Return the values as a column of that field, or of a field that fits them; the field's name is ""."""
    import pyarrow as pa

    if field is None or field.metadata != REPR:
        try:
            column_values = [columnar(value) for value in values]
            _refuse(column_values, field)
            column = pa.array(column_values, type=None if field is None else field.type)
            if field is not None or not _has_no_fields(column.type):
                return column, pa.field("", column.type) if field is None else field
        except (NoColumnError, pa.ArrowException, OverflowError, RecursionError):
            if field is not None:
                raise
    strings = pa.array([None if value is None else repr(value) for value in values], type=pa.string())
    return strings, pa.field("", pa.string(), metadata=REPR)


def common_field(name: str, field: pyarrow.Field | None, other: pyarrow.Field) -> pyarrow.Field:
    """Return a field for the values of both."""
    import pyarrow as pa

    other = other.with_name(name)
    if field is None or field.equals(other, check_metadata=True):
        return other
    if REPR not in (field.metadata, other.metadata):
        try:
            refuse_types(name, [field.type, other.type], decimals=True)
            return pa.unify_schemas([pa.schema([field]), pa.schema([other])], promote_options="permissive").field(0)
        except (TypeError, pa.ArrowException):
            pass
    return pa.field(name, pa.string(), metadata=REPR)


def _refuse(values: Sequence[Any], field: pyarrow.Field | None) -> None:
    """Refuse values that Arrow would change, without a word, in a column of that field, or in one of their own.

    Raises:
        NoColumnError: there are some.
    """
    try:
        if field is None:
            refuse_mixture("", values, decimals=True)
        else:
            refuse_losses(values, field.type, field.name)
    except (TypeError, ValueError) as error:
        raise NoColumnError(str(error)) from error


def _has_no_fields(kind: pyarrow.DataType) -> bool:
    """Return whether files could not hold it: a struct without fields."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any(_has_no_fields(field.type) for field in kind)
    return bool(pa.types.is_list(kind)) and _has_no_fields(kind.value_type)


def _numbered(values: Iterable[Any]) -> Iterator[str]:
    return (f"f{index}" for index, _ in enumerate(values))


def _sorted(values: Set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


__all__ = ["REPR", "NoColumnError", "array", "columnar", "common_field", "fields_of"]
