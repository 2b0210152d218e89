"""Columns of tables in the types that lakes have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...conversion.arrow_columns import arrow_schema
from ...errors import SqlError
from ...plan.logical import Schema

if TYPE_CHECKING:
    import pyarrow


def lake_schema(table: str, schema: Schema, lake: str, has_times: bool) -> pyarrow.Schema:
    """Return the columns of a table with the types that a lake stores: times in microseconds.

    Args:
        table: for messages.
        lake: for messages.
        has_times: whether it has times of day.

    Raises:
        SqlError: the lake has no such type for a column.
    """
    import pyarrow

    fields = []
    for column, field in zip(schema, arrow_schema(schema), strict=True):
        stored = _stored(field.type, has_times)
        if stored is None:
            problem = f"column {column.name!r} of {table} is of type {column.type}, which {lake} does not have"
            raise SqlError(problem, "CAST it in the query, to BIGINT or STRING for example, and declare that type")
        fields.append(pyarrow.field(column.name, stored, field.nullable))
    return pyarrow.schema(fields)


def check_types(table: str, schema: Schema, stored: pyarrow.Schema, lake: str) -> None:
    """Check that the declared columns are in the table of a lake, with types that can be read.

    Raises:
        SqlError: one is missing, or of another kind.
    """
    for column, field in zip(schema, arrow_schema(schema), strict=True):
        if column.name not in stored.names:
            problem = f"column {column.name!r} of {table} is not in {lake}"
            raise SqlError(problem, f"its columns are {', '.join(stored.names)}")
        stored_type = stored.field(column.name).type
        if not _is_readable(stored_type, field.type):
            problem = f"column {column.name!r} of {table} is declared as {column.type}, and is {stored_type} in {lake}"
            raise SqlError(problem, "declare the type that it has")


def _is_readable(stored: pyarrow.DataType, wanted: pyarrow.DataType) -> bool:
    from pyarrow import types

    if types.is_timestamp(stored) and types.is_timestamp(wanted):
        return bool((stored.tz is None) == (wanted.tz is None))
    if types.is_integer(stored) and types.is_integer(wanted):
        return True  # a value that does not fit is reported when it is read
    if types.is_floating(stored) and types.is_floating(wanted):
        return bool(stored.bit_width <= wanted.bit_width)
    if types.is_decimal(stored) and types.is_decimal(wanted):
        return bool(stored.scale == wanted.scale and stored.precision <= wanted.precision)
    if types.is_struct(stored) and types.is_struct(wanted):
        names = [field.name for field in stored]
        return names == [field.name for field in wanted] and all(map(_is_readable, _inner(stored), _inner(wanted)))
    if (_is_list(stored) and _is_list(wanted)) or (types.is_map(stored) and types.is_map(wanted)):
        return all(map(_is_readable, _inner(stored), _inner(wanted)))
    pairs = ((types.is_time, types.is_time), (_is_string, _is_string), (_is_binary, _is_binary))
    return stored == wanted or any(first(stored) and second(wanted) for first, second in pairs)


def _inner(kind: pyarrow.DataType) -> list[pyarrow.DataType]:
    """Return the types of the fields of a row, of the elements of a list, or of the keys and values of a map."""
    from pyarrow import types

    if types.is_struct(kind):
        return [field.type for field in kind]
    return [kind.key_type, kind.item_type] if types.is_map(kind) else [kind.value_type]


def _is_list(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind))


def _is_string(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_binary(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def _stored(kind: pyarrow.DataType, has_times: bool) -> pyarrow.DataType | None:
    """Return the type in which a lake stores values of a type; None: it cannot."""
    import pyarrow
    from pyarrow import types

    if types.is_timestamp(kind):
        return pyarrow.timestamp("us", kind.tz)
    if types.is_time(kind):
        return pyarrow.time64("us") if has_times else None
    if types.is_duration(kind) or types.is_null(kind) or types.is_interval(kind):
        return None
    if types.is_list(kind):
        item = _stored(kind.value_type, has_times)
        return None if item is None else pyarrow.list_(kind.value_field.with_type(item))
    if types.is_map(kind):
        key, value = _stored(kind.key_type, has_times), _stored(kind.item_type, has_times)
        return None if key is None or value is None else pyarrow.map_(key, kind.item_field.with_type(value))
    if types.is_struct(kind):
        fields = [(field, _stored(field.type, has_times)) for field in kind]
        if any(stored is None for _, stored in fields):
            return None
        return pyarrow.struct([field.with_type(stored) for field, stored in fields])
    return kind


__all__ = ["check_types", "lake_schema"]
