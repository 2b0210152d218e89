"""Sums, extremes and the like of a column by group: a value for each group, null where a group has none.

`values` have no nulls, and `codes`, intp[n], are the groups of their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .grouping import Codes


def counts(codes: Codes, count: int) -> NDArray[np.int64]:
    """Count the rows of each group: int64[count]."""
    return np.bincount(codes, minlength=count)


def sums(values: pa.Array, codes: Codes, count: int) -> pa.Array:
    """Sum by group: integers as int64, which wraps; floating point as float64; decimals with all digits."""
    kind = values.type
    if types.is_decimal(kind):
        return _by_arrow(values, codes, count, "sum")
    numbers = to_numpy(values)
    if types.is_floating(kind):
        return to_arrow(np.bincount(codes, numbers, count), pa.float64(), has_values(codes, count))
    totals = np.zeros(count, dtype=np.int64)
    np.add.at(totals, codes, numbers)
    return to_arrow(totals, pa.int64(), has_values(codes, count))


def extremes(values: pa.Array, codes: Codes, count: int, greatest: bool) -> pa.Array:
    """Return the least or the greatest value of each group; NaN only where a group has no other value."""
    kind = values.type
    if not has_numpy_type(kind):
        return _by_arrow(values, codes, count, "max" if greatest else "min")
    numbers = to_numpy(values)
    if numbers.dtype.kind == "f":
        results = np.full(count, np.nan, dtype=numbers.dtype)
        (np.fmax if greatest else np.fmin).at(results, codes, numbers)
    else:
        limits = np.iinfo(numbers.dtype)
        results = np.full(count, limits.min if greatest else limits.max, dtype=numbers.dtype)
        (np.maximum if greatest else np.minimum).at(results, codes, numbers)
    return to_arrow(results, kind, has_values(codes, count))


def first_or_last(values: pa.Array, codes: Codes, count: int, last: bool) -> pa.Array:
    """Return the first or the last value of each group."""
    places = np.full(count, -1, dtype=np.int64)
    rows = np.arange(len(codes))
    if last:
        places[codes] = rows
    else:
        places[codes[::-1]] = rows[::-1]
    return values.take(pa.array(places, mask=places < 0))


def has_values(codes: Codes, count: int) -> NDArray[np.bool_]:
    """Return whether each group has a row: bool[count]."""
    flags = np.zeros(count, dtype=np.bool_)
    flags[codes] = True
    return flags


def _by_arrow(values: pa.Array, codes: Codes, count: int, function: str) -> pa.Array:
    """Reduce values of types that numpy lacks."""
    table = pa.table({"code": codes, "value": values})
    reduced = table.group_by("code", use_threads=False).aggregate([("value", function)])
    places = np.full(count, -1, dtype=np.int64)
    places[reduced.column("code").to_numpy()] = np.arange(len(reduced))
    values = reduced.column(f"value_{function}")
    return combine_chunks(values).take(pa.array(places, mask=places < 0))


# conversion between Arrow columns and numpy arrays, which share their memory


def has_numpy_type(kind: pa.DataType) -> bool:
    """Return whether numpy has a type for the values: numbers, times and booleans."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind) or types.is_boolean(kind))


def to_numpy(values: pa.Array) -> NDArray[Any]:
    """Return numbers, times and booleans as numpy numbers; the number in place of a null is undefined."""
    kind = values.type
    if types.is_boolean(kind):
        values = pc.fill_null(values, False).cast(pa.uint8())
        kind = values.type
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    dtype = np.dtype(f"{letter}{kind.bit_width // 8}")
    data = values.buffers()[1]
    if data is None:
        return np.zeros(len(values), dtype=dtype)
    return np.frombuffer(data, dtype=dtype, count=len(values), offset=values.offset * dtype.itemsize)


def to_arrow(numbers: NDArray[Any], kind: pa.DataType, valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers as an Arrow column of a type of their width; null where `valid` is false."""
    if types.is_boolean(kind):
        return pa.array(numbers.astype(np.bool_), kind, mask=None if valid is None else ~valid)
    bits = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [bits, pa.py_buffer(np.ascontiguousarray(numbers))])


def combine_chunks(chunked: Any) -> pa.Array:
    """Return a column in one chunk."""
    if isinstance(chunked, pa.ChunkedArray):
        return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
    return chunked


__all__ = [
    "combine_chunks", "counts", "extremes", "first_or_last", "has_numpy_type", "has_values", "sums", "to_arrow",
    "to_numpy",
]  # fmt: skip
