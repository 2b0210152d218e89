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
    found = pyarrow.MapArray.from_arrays(pyarrow.array(offsets), keys, items)
    if not nulls.any():
        return found
    buffers = [pyarrow.array(~nulls).buffers()[1], found.buffers()[1]]
    return pyarrow.Array.from_buffers(found.type, len(nulls), buffers, children=[_entries(found)])


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


def _either(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else pc.or_(one, other)


@casts("array", "array")
def _array(values: Any, cast: Cast) -> Any:
    items, failed = cast_column(elements(values), Cast(cast.found.items[0], cast.wanted.items[0], cast.session))
    counts = sizes(values)
    return lists_of(items, counts, nulls_of(values)), _failed_rows(failed, counts)


@casts("map", "map")
@casts("multiset", "multiset")
def _map(values: Any, cast: Cast) -> Any:
    entries, counts = elements(values), sizes(values)
    made, failed = [], None
    for at, (found, wanted) in enumerate(zip(_items(cast.found), _items(cast.wanted), strict=True)):
        part, wrong = cast_column(entries.field(at), Cast(found, wanted, cast.session))
        made.append(part)
        failed = _either(failed, wrong)
    return maps_of(made[0], made[1], counts, nulls_of(values)).cast(cast.wanted.to_arrow()), _failed_rows(
        failed, counts
    )


def _items(kind: DataType) -> tuple[DataType, DataType]:
    return (kind.items[0], kind.items[1]) if len(kind.items) == 2 else (kind.items[0], DataTypes.INT())


@casts("row", "row")
def _row(values: Any, cast: Cast) -> Any:
    made, failed = [], None
    for at, (found, wanted) in enumerate(zip(cast.found.fields, cast.wanted.fields, strict=True)):
        part, wrong = cast_column(pc.struct_field(values, [at]), Cast(found.type, wanted.type, cast.session))
        made.append(part)
        failed = _either(failed, wrong)
    return rows_of(made, cast.wanted, pc.is_null(values)), failed


def rows_of(columns: list[Any], kind: DataType, nulls: Any = None) -> pyarrow.Array:
    """Return rows of a type from the columns of their fields."""
    fields = list(kind.to_arrow())
    columns = [
        one if one.type == field.type else one.cast(field.type) for one, field in zip(columns, fields, strict=True)
    ]
    if nulls is not None and not pc.any(nulls).as_py():
        nulls = None
    return pyarrow.StructArray.from_arrays(columns, fields=fields, mask=nulls)


_TEXT = DataTypes.STRING()


def _strings(values: Any, found: DataType, cast: Cast) -> Any:
    """Format the values within as strings, NULL for null."""
    made, _ = cast_column(values, Cast(found, _TEXT, cast.session))
    return pc.fill_null(made, "NULL")


def _enclosed(items: Any, values: Any, left: str, right: str) -> Any:
    lists = lists_of(items, sizes(values), nulls_of(values))
    return pc.binary_join_element_wise(left, pc.binary_join(lists, ", "), right, "")


@casts("array", "text")
def _text_of_array(values: Any, cast: Cast) -> Any:
    items = _strings(elements(values), cast.found.items[0], cast)
    return sized(_enclosed(items, values, "[", "]"), cast.wanted)


@casts(("map", "multiset"), "text")
def _text_of_map(values: Any, cast: Cast) -> Any:
    entries = elements(values)
    keys, items = (_strings(entries.field(at), kind, cast) for at, kind in enumerate(_items(cast.found)))
    return sized(_enclosed(pc.binary_join_element_wise(keys, items, "="), values, "{", "}"), cast.wanted)


@casts("row", "text")
def _text_of_row(values: Any, cast: Cast) -> Any:
    fields = enumerate(cast.found.fields)
    strings = [_strings(pc.struct_field(values, [at]), field.type, cast) for at, field in fields]
    joined = pc.binary_join_element_wise(*strings, ", ") if strings else pyarrow.array([""] * len(values))
    found = pc.binary_join_element_wise("(", joined, ")", "")
    return sized(pc.if_else(pc.is_null(values), pyarrow.scalar(None, pyarrow.string()), found), cast.wanted)
