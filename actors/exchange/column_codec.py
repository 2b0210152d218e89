"""`RowColumns` <-> bytes on the wire.

The body is a pickle of (key column, columns). A column: a list of strings; or ("n", dtype, bytes) with whole numbers in
the fewest bytes that hold them; or ("=", value) when they are all one; or ("c", strings that occur, dtype, bytes) with
each row's place among them. Numbers are little-endian.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from rayflink.common.records.row_columns import Coded, Column, RowColumns, in_use

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def encode_columns(batch: RowColumns) -> bytes:
    """Encode the columns of a batch, without its timestamps."""
    return pickle.dumps((batch.key_column, [_encoded(column) for column in batch.columns]), 5)


def decode_columns(body: memoryview, count: int, stamps: NDArray[np.int64] | None) -> RowColumns:
    """Decode the batch of `count` rows that `encode_columns` wrote; may raise anything when the bytes were damaged."""
    key_column, packed = pickle.loads(body)
    columns = [_decoded(column, count) for column in packed]
    lengths = {len(column) for column in columns}
    if lengths != {count}:
        raise ValueError(f"columns of {sorted(lengths)} rows")
    return RowColumns(columns, stamps, key_column)


def _encoded(column: Column) -> Any:
    import numpy as np

    if isinstance(column, list):
        return column
    if isinstance(column, Coded):
        strings, places = in_use(column)
        return ("c", strings, *_packed(places.astype(np.uint8) if len(strings) <= 256 else places))
    if column.dtype.kind == "i":
        low, high = int(column.min()), int(column.max())
        if low == high:
            return ("=", low)
        for width in ("<i1", "<i2", "<i4"):
            edge = 1 << 8 * int(width[2]) - 1
            if -edge <= low and high < edge:
                return ("n", *_packed(column.astype(width)))
    return ("n", *_packed(column))


def _decoded(packed: Any, count: int) -> Column:
    import numpy as np

    if isinstance(packed, list):
        return packed
    if packed[0] == "=":
        return np.full(count, packed[1], np.int64)
    numbers = np.frombuffer(packed[-1], packed[-2])
    if packed[0] == "c":
        if len(numbers) and int(numbers.max()) >= len(packed[1]):
            raise ValueError(f"text {int(numbers.max())} of a table of {len(packed[1])}")
        return Coded(packed[1], numbers.astype(np.uint16, copy=False))
    kind = {"i": np.int64, "f": np.float64, "b": np.bool_}[numbers.dtype.kind]
    return numbers.astype(kind, copy=False)


def _packed(numbers: NDArray[Any]) -> tuple[str, bytes]:
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return little.dtype.str, little.tobytes()
