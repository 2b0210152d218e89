"""Casts of arrays, maps and rows: element by element, and to strings."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.casts import Cast, cast_column, casts, sized
from rayflink.table.functions.nested_equality import elements, sizes
from rayflink.table.types import DataType, DataTypes


def lists_of(items: pyarrow.Array, counts: Any, nulls: Any) -> pyarrow.Array:
    """Lists of this many items each, null where said: bool[n]."""
    offsets = numpy.concatenate([[0], numpy.cumsum(counts)]).astype(numpy.int32)
    return pyarrow.ListArray.from_arrays(
        pyarrow.array(offsets), items, mask=pyarrow.array(nulls) if len(nulls) else None
    )


def maps_of(keys: pyarrow.Array, items: pyarrow.Array, counts: Any, nulls: Any) -> pyarrow.Array:
    """Maps of this many entries each, null where said: bool[n]."""
    offsets = numpy.concatenate([[0], numpy.cumsum(counts)]).astype(numpy.int32)
    maps = pyarrow.MapArray.from_arrays(pyarrow.array(offsets), keys, items)
    if not nulls.any():
        return maps
    buffers = [pyarrow.array(~nulls).buffers()[1], maps.buffers()[1]]
    return pyarrow.Array.from_buffers(maps.type, len(nulls), buffers, children=[_entries(maps)])


def _entries(maps: pyarrow.Array) -> pyarrow.Array:
    entry = maps.type
    return pyarrow.StructArray.from_arrays([maps.keys, maps.items], fields=[entry.key_field, entry.item_field])


def nulls_of(values: pyarrow.Array) -> Any:
    """Return which values are null: bool[n]."""
    return pc.is_null(values).to_numpy(zero_copy_only=False)


def _failed_rows(failed: Any, counts: Any) -> Any:
    """Lists with an element that could not be cast."""
    if failed is None:
        return None
    parents = numpy.repeat(numpy.arange(len(counts)), counts)
    rows = numpy.zeros(len(counts), bool)
    rows[parents[failed.to_numpy(zero_copy_only=False)]] = True
    return pyarrow.array(rows)


def _either(left: Any, right: Any) -> Any:
    return right if left is None else left if right is None else pc.or_(left, right)


@casts("array", "array")
def _array(values: pyarrow.Array, cast: Cast) -> Any:
    items, failed = cast_column(elements(values), Cast(cast.source.items[0], cast.target.items[0], cast.session))
    counts = sizes(values)
    return lists_of(items, counts, nulls_of(values)), _failed_rows(failed, counts)


@casts("map", "map")
@casts("multiset", "multiset")
def _map(values: pyarrow.Array, cast: Cast) -> Any:
    entries, counts = elements(values), sizes(values)
    columns, failed = [], None
    for index, (source, target) in enumerate(zip(_items(cast.source), _items(cast.target), strict=True)):
        column, wrong = cast_column(entries.field(index), Cast(source, target, cast.session))
        columns.append(column)
        failed = _either(failed, wrong)
    return maps_of(columns[0], columns[1], counts, nulls_of(values)).cast(cast.target.to_arrow()), _failed_rows(
        failed, counts
    )


def _items(kind: DataType) -> tuple[DataType, DataType]:
    return (kind.items[0], kind.items[1]) if len(kind.items) == 2 else (kind.items[0], DataTypes.INT())


@casts("row", "row")
def _row(values: pyarrow.Array, cast: Cast) -> Any:
    columns, failed = [], None
    for index, (source, target) in enumerate(zip(cast.source.fields, cast.target.fields, strict=True)):
        column, wrong = cast_column(pc.struct_field(values, [index]), Cast(source.type, target.type, cast.session))
        columns.append(column)
        failed = _either(failed, wrong)
    return rows_of(columns, cast.target, pc.is_null(values)), failed


def rows_of(columns: list[Any], kind: DataType, nulls: Any = None) -> pyarrow.Array:
    """Return rows of a type from the columns of their fields."""
    fields = list(kind.to_arrow())
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, fields, strict=True)
    ]
    if nulls is not None and not pc.any(nulls).as_py():
        nulls = None
    return pyarrow.StructArray.from_arrays(columns, fields=fields, mask=nulls)


_TEXT = DataTypes.STRING()


def _strings(values: pyarrow.Array, source: DataType, cast: Cast) -> Any:
    """Format the values within as strings, NULL for null."""
    strings, _ = cast_column(values, Cast(source, _TEXT, cast.session))
    return pc.fill_null(strings, "NULL")


def _enclosed(items: pyarrow.Array, values: pyarrow.Array, left: str, right: str) -> Any:
    lists = lists_of(items, sizes(values), nulls_of(values))
    return pc.binary_join_element_wise(left, pc.binary_join(lists, ", "), right, "")


@casts("array", "text")
def _text_of_array(values: pyarrow.Array, cast: Cast) -> Any:
    items = _strings(elements(values), cast.source.items[0], cast)
    return sized(_enclosed(items, values, "[", "]"), cast.target)


@casts(("map", "multiset"), "text")
def _text_of_map(values: pyarrow.Array, cast: Cast) -> Any:
    entries = elements(values)
    keys, items = (_strings(entries.field(index), kind, cast) for index, kind in enumerate(_items(cast.source)))
    return sized(_enclosed(pc.binary_join_element_wise(keys, items, "="), values, "{", "}"), cast.target)


@casts("row", "text")
def _text_of_row(values: pyarrow.Array, cast: Cast) -> Any:
    fields = enumerate(cast.source.fields)
    strings = [_strings(pc.struct_field(values, [index]), field.type, cast) for index, field in fields]
    joined = pc.binary_join_element_wise(*strings, ", ") if strings else pyarrow.array([""] * len(values))
    joined_strings = pc.binary_join_element_wise("(", joined, ")", "")
    return sized(pc.if_else(pc.is_null(values), pyarrow.scalar(None, pyarrow.string()), joined_strings), cast.target)
