"""Key columns in the form in which they are compared: whole numbers and strings, equal where the values are.

All NaNs are one value; 0.0 and -0.0 are two, as in Flink's keys and in groups of windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from rayflink.state.keys.key_columns import digest_columns

from ..aggregates.reductions import to_arrow, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DECIMAL_BYTES = 16


class KeyForms:
    """The stored form of the columns of a key.

    Args:
        kinds: their types.
    """

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._kinds = list(kinds)

    def of(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the columns as they are kept; a decimal becomes two."""
        return [made for one in columns for made in _kept(one)]

    def back(self, kept: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the columns as they came in, but for which NaN it was."""
        given = iter(kept)
        return [_given(kind, given) for kind in self._kinds]


def _kept(values: pa.Array) -> list[pa.Array]:
    kind = values.type
    if types.is_dictionary(kind):
        return _kept(values.dictionary_decode())
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    if types.is_floating(kind):
        numbers = to_numpy(values).copy()
        numbers[np.isnan(numbers)] = np.nan
        return [to_arrow(numbers, pa.int64() if kind.bit_width == 64 else pa.int32(), valid)]
    if types.is_temporal(kind) and kind.bit_width in (32, 64):
        return [values.view(pa.int64() if kind.bit_width == 64 else pa.int32())]
    if types.is_decimal128(kind):
        lanes = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), values.offset * _DECIMAL_BYTES)
        return [to_arrow(np.ascontiguousarray(lanes[at::2]), pa.int64(), valid) for at in (0, 1)]
    return [values]


def _given(kind: pa.DataType, kept: Any) -> pa.Array:
    if types.is_decimal128(kind):
        low, high = next(kept), next(kept)
        lanes = np.stack([to_numpy(low), to_numpy(high)], axis=1)
        return pa.Array.from_buffers(kind, len(low), [_validity(low), pa.py_buffer(np.ascontiguousarray(lanes))])
    made = next(kept)
    if types.is_floating(kind) or types.is_temporal(kind):
        return made.view(kind)
    return made


def _validity(values: pa.Array) -> Any:
    if not values.null_count:
        return None
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def prints_of(kept: Sequence[pa.Array]) -> NDArray[np.uint32]:
    """Return a fingerprint of each key: uint32[n], never 0."""
    found: NDArray[np.uint32] = np.maximum(digest_columns(kept).astype(np.uint32), np.uint32(1))
    return found


__all__ = ["KeyForms", "prints_of"]
