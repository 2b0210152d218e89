"""Rows with equal keys: each row gets the number of its group.

Integers and times that lie close together, or a step apart, are numbered by place; other values by a hash table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from .reductions import to_arrow, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.intp]
    Numbers = NDArray[np.integer[Any]]

_LEAST_ROOM = 1024
_ROOM_PER_ROW = 4
"""Places for each row at most: numbering by place is much faster than a hash table."""
_SAMPLE = 64
"""Number of values from which a step is estimated."""
_FAR = 2**62


@dataclass(frozen=True)
class Groups:
    """Rows in groups.

    Args:
        codes: intp[n]: the group of each row, in [0, count).
        count: number of groups.
        keys: a column for each part of the key, with a row for each group.
    """

    codes: Codes
    count: int
    keys: list[Any]


@dataclass(frozen=True)
class _Part:
    """A column of the key as numbers.

    Args:
        numbers: [n], in [0, width).
        is_full: each of [0, width) has a row.
        values: converts numbers to the values that they stand for.
    """

    numbers: Numbers
    width: int
    is_full: bool
    values: Callable[[Codes], pa.Array]


def grouped(columns: Sequence[pa.Array], rows: int) -> Groups:
    """Group rows by their keys; groups are in no order, and nulls are equal.

    Args:
        columns: parts of the key, each of `rows` values; none: all rows are one group.
    """
    if not columns:
        return Groups(np.zeros(rows, dtype=np.intp), 1 if rows else 0, [])
    room = max(_ROOM_PER_ROW * rows, _LEAST_ROOM)
    parts = [_part(column, room) for column in columns]
    numbers, width, is_full = parts[0].numbers, parts[0].width, parts[0].is_full
    renumbered: list[Codes | None] = []  # for each further part, what numbers before it stood for
    for part in parts[1:]:
        before = None
        if width * part.width > room and not is_full:
            numbers, before = _distinct(numbers, width, room)
            width = len(before)
        renumbered.append(before)
        if width == 1:
            numbers, is_full = part.numbers, part.is_full
        elif part.width > 1:
            numbers = numbers.astype(np.int64)
            numbers *= part.width
            numbers += part.numbers
            is_full = False
        width *= part.width
    if is_full:
        left = np.arange(width, dtype=np.intp)
    else:
        numbers, left = _distinct(numbers, width, room)
    codes, count = numbers.astype(np.intp, copy=False), len(left)
    keys: list[pa.Array] = []
    for part, before in zip(reversed(parts[1:]), reversed(renumbered), strict=True):
        left, own_numbers = np.divmod(left, part.width) if part.width > 1 else (left, np.zeros(count, dtype=np.intp))
        keys.append(part.values(own_numbers))
        left = left if before is None else before[left]
    keys.append(parts[0].values(left))
    return Groups(codes, count, keys[::-1])


def _distinct(numbers: Numbers, width: int, room: int) -> tuple[Numbers, Codes]:
    """Return the place of each number among the distinct ones, and these."""
    if width > room:
        places, values = encoded(pa.array(numbers))
        return places, values.to_numpy()
    occurs = np.zeros(width, dtype=np.bool_)
    occurs[numbers] = True
    distinct = np.flatnonzero(occurs)
    places = np.empty(width, dtype=np.intp)
    places[distinct] = np.arange(len(distinct))
    return places[numbers], distinct


def _part(values: pa.Array, room: int) -> _Part:
    kind = values.type
    if len(values) and not values.null_count and _is_number(kind):
        part = _part_by_place(to_numpy(values), kind, room)
        if part is not None:
            return part
    numbers, distinct = encoded(values)
    return _Part(numbers, len(distinct), True, lambda chosen: distinct.take(pa.array(chosen)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_temporal(kind)) and kind.bit_width <= 64


def _part_by_place(numbers: Numbers, kind: pa.DataType, room: int) -> _Part | None:
    """Number values by their distance from the least, in their common step; None: they are too far apart."""
    least, most = int(numbers.min()), int(numbers.max())
    if most - least >= _FAR:
        return None
    wide = numbers.astype(np.uint64 if numbers.dtype == np.uint64 else np.int64, copy=False)
    first = wide.dtype.type(least)
    step = 1
    if most - least >= room:
        step = int(np.gcd.reduce(wide[:: max(len(wide) // _SAMPLE, 1)] - first))
        if not step or (most - least) // step >= room:
            return None
    places = wide - first
    if step > 1:
        steps = places // wide.dtype.type(step)
        if (steps * wide.dtype.type(step) != places).any():
            return None
        places = steps

    def values(chosen: Codes) -> pa.Array:
        return to_arrow((chosen.astype(wide.dtype) * wide.dtype.type(step) + first).astype(numbers.dtype), kind)

    return _Part(places.astype(np.int64, copy=False), (most - least) // step + 1, False, values)


def encoded(column: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """Return the number of each value among the distinct ones, int32[n], and these in order of appearance."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    dictionary = pc.dictionary_encode(column, null_encoding="encode")
    return dictionary.indices.to_numpy(), dictionary.dictionary


__all__ = ["Groups", "encoded", "grouped"]
