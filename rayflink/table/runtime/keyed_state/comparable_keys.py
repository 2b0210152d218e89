"""Key columns in the form in which they are compared: integers and strings, equal where the values are.

All NaNs are equal; 0.0 and -0.0 are not, as in Flink's keys and in groups of windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from rayflink.state.keys.key_columns import digest_columns

from ..aggregates.grouping import grouped
from ..aggregates.reductions import to_arrow, to_numpy
from .runs import first_of_runs, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DECIMAL_BYTES = 16


class KeyForms:
    """Converts the columns of a key to the form in which they are stored and compared, and back.

    Args:
        kinds: types of the columns.
    """

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._kinds = list(kinds)

    def encode(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the columns in the form in which they are compared; a decimal becomes two columns."""
        return [encoded for column in columns for encoded in _encode(column)]

    def decode(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the original columns; all NaNs are the same one."""
        encoded = iter(columns)
        return [_decode(kind, encoded) for kind in self._kinds]


def _encode(values: pa.Array) -> list[pa.Array]:
    kind = values.type
    if types.is_dictionary(kind):
        return _encode(values.dictionary_decode())
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    if types.is_floating(kind):
        numbers = to_numpy(values).copy()
        numbers[np.isnan(numbers)] = np.nan
        return [to_arrow(numbers, pa.int64() if kind.bit_width == 64 else pa.int32(), valid)]
    if types.is_temporal(kind) and kind.bit_width in (32, 64):
        return [values.view(pa.int64() if kind.bit_width == 64 else pa.int32())]
    if types.is_decimal128(kind):
        lanes = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), values.offset * _DECIMAL_BYTES)
        return [to_arrow(np.ascontiguousarray(lanes[first::2]), pa.int64(), valid) for first in (0, 1)]
    return [values]


def _decode(kind: pa.DataType, encoded: Iterator[pa.Array]) -> pa.Array:
    if types.is_decimal128(kind):
        low, high = next(encoded), next(encoded)
        lanes = np.stack([to_numpy(low), to_numpy(high)], axis=1)
        return pa.Array.from_buffers(kind, len(low), [_validity(low), pa.py_buffer(np.ascontiguousarray(lanes))])
    values = next(encoded)
    return values.view(kind) if types.is_floating(kind) or types.is_temporal(kind) else values


def _validity(values: pa.Array) -> Any:
    if not values.null_count:
        return None
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def fingerprints(keys: Sequence[pa.Array]) -> NDArray[np.uint32]:
    """Return a fingerprint of each key: uint32[n], never 0."""
    prints: NDArray[np.uint32] = np.maximum(digest_columns(keys).astype(np.uint32), np.uint32(1))
    return prints


def equal_keys(keys: pa.Array, others: pa.Array) -> NDArray[np.bool_]:
    """Return whether values of two columns of keys are equal, or both null: bool[n]."""
    equal = pc.equal(keys, others)
    if keys.null_count or others.null_count:
        equal = pc.or_(pc.fill_null(equal, False), pc.and_(keys.is_null(), others.is_null()))
    is_equal: NDArray[np.bool_] = equal.to_numpy(zero_copy_only=False)
    return is_equal


def distinct_keys(keys: Sequence[pa.Array], prints: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the number of each key among the distinct ones, intp[n], and where each of these comes first.

    Args:
        keys: at least one.
        prints: their fingerprints.
    """
    order = stable_order(prints)
    is_first = first_of_runs(prints[order])
    if is_first.all():
        return np.arange(len(prints)), np.arange(len(prints))
    runs = np.cumsum(is_first) - 1
    firsts = order[is_first]
    others = np.flatnonzero(~is_first)
    if not _are_equal(keys, order[others], firsts[runs[others]]):  # keys of equal prints differ
        groups = grouped(keys, len(prints))
        firsts = np.empty(groups.count, dtype=np.int64)
        firsts[groups.codes[::-1]] = np.arange(len(prints))[::-1]
        return groups.codes, firsts
    codes = np.empty(len(prints), dtype=np.intp)
    codes[order] = runs
    return codes, firsts


def _are_equal(keys: Sequence[pa.Array], rows: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
    chosen, other = pa.array(rows), pa.array(others)
    return all(equal_keys(column.take(chosen), column.take(other)).all() for column in keys)


__all__ = ["KeyForms", "distinct_keys", "equal_keys", "fingerprints"]
