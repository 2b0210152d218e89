"""Compares arrays, maps and rows, column by column."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.types import Root

NESTED = (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW)


def equal_or_both_null(left: pyarrow.Array, right: pyarrow.Array) -> pyarrow.Array:
    """Return whether two values of one type are equal, or both are null; so it is within nested ones too.

    >>> equal_or_both_null(pyarrow.array([[1, None], [2]]), pyarrow.array([[1, None], [3]])).to_pylist()
    [True, False]
    """
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    both_valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    if pyarrow.types.is_struct(left.type):
        result = both_valid
        for index in range(left.type.num_fields):
            result = pc.and_(
                result, equal_or_both_null(pc.struct_field(left, [index]), pc.struct_field(right, [index]))
            )
    elif pyarrow.types.is_list(left.type) or pyarrow.types.is_map(left.type):
        result = _equal_lists(left, right, both_valid)
    elif pyarrow.types.is_null(left.type):
        result = both_valid
    else:
        result = pc.and_(both_valid, pc.fill_null(pc.equal(left, right), False))
    return pc.or_(result, both_null)


def sizes(values: pyarrow.Array) -> Any:
    """Return the number of elements of each list or map, 0 where it is null: int64[n]."""
    lengths = numpy.diff(values.offsets.to_numpy()).astype(numpy.int64)
    if values.null_count:
        lengths[pc.is_null(values).to_numpy(zero_copy_only=False)] = 0
    return lengths


def elements(values: pyarrow.Array) -> pyarrow.Array:
    """Return the elements of all lists, or keys and values of all maps, one after the other, without those of nulls."""
    if pyarrow.types.is_map(values.type):
        entry = values.type
        plain = pyarrow.list_(pyarrow.struct([entry.key_field, entry.item_field]))
        values = values.cast(plain)
    return values.flatten()


def _equal_lists(left: pyarrow.Array, right: pyarrow.Array, both_valid: pyarrow.Array) -> pyarrow.Array:
    rows = both_valid.to_numpy(zero_copy_only=False) & (sizes(left) == sizes(right))
    alike = pyarrow.array(rows)
    left_lists, right_lists = left.filter(alike), right.filter(alike)
    if pyarrow.types.is_map(left.type):
        left_lists, right_lists = _by_key(left_lists), _by_key(right_lists)
    same = equal_or_both_null(elements(left_lists), elements(right_lists)).to_numpy(zero_copy_only=False)
    counts = sizes(left_lists)
    wrong = numpy.concatenate([[0], numpy.cumsum(~same)])
    ends = numpy.cumsum(counts)
    rows[rows] = wrong[ends] == wrong[ends - counts]
    return pyarrow.array(rows)


def _by_key(maps: pyarrow.Array) -> pyarrow.Array:
    """Return each map's entries in the order of their keys, as lists."""
    entries, counts = elements(maps), sizes(maps)
    parent = numpy.repeat(numpy.arange(len(counts)), counts)
    keys = entries.field(0)
    if pyarrow.types.is_nested(keys.type):
        keys = pyarrow.array(numpy.zeros(len(keys), numpy.int8))
    table = pyarrow.table({"row": parent, "key": keys})
    order = pc.sort_indices(table, [("row", "ascending"), ("key", "ascending")])
    offsets = numpy.concatenate([[0], numpy.cumsum(counts)]).astype(numpy.int32)
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), entries.take(order))
