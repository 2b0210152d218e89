"""Hashes of many keys at once: lists of keys and Arrow columns, equal to ``key_hash`` of each.

Columns of numbers, strings, dates and times are hashed in numpy, in blocks that stay in the CPU's cache; columns of
other types by their distinct values. numpy and pyarrow are loaded on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import InvalidKeyError
from .key_hash import (
    DIGEST_NONE,
    K1,
    K2,
    K4,
    LONGEST_IN_LANES,
    START_BYTES,
    START_DATE,
    START_DATETIME,
    START_DATETIME_UTC,
    START_FLOAT,
    START_INT,
    START_STR,
    START_TIME,
    START_TIMEDELTA,
    START_TUPLE,
    key_digest,
    key_hash,
    long_lane,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Digests = NDArray[np.uint64]

_FEW = 24
"""Below this many keys plain Python is faster than building arrays."""
_BLOCK = 16_384
_MASK64 = (1 << 64) - 1
_DAY_MS = 86_400_000
_INT64 = 2.0**63
_NAN_BITS = 0x7FF8_0000_0000_0000
_US_FACTORS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_LITTLE = sys.byteorder == "little"


def hash_keys(keys: Sequence[Any]) -> NDArray[np.uint32]:
    """Hash of each key: ``key_hash`` of a whole list, vectorised where all keys are of one common type.

    Fast for lists of int, str, bytes or float (None among them too) and of equally long tuples of these.

    Returns: uint32[n].
    Raises: InvalidKeyError: a value, or a part of it, cannot be a key.
    """
    import numpy as np

    if len(keys) < _FEW:
        return np.array([key_hash(key) for key in keys], dtype=np.uint32)
    return _upper(_digests_of_keys(keys))


def hash_column(column: pa.Array | pa.ChunkedArray) -> NDArray[np.uint32]:
    """Hash of each value of an Arrow column, equal to ``key_hash`` of the Python value; null is None.

    Returns: uint32[n].
    Raises: InvalidKeyError: the column's type, or a value in it, cannot be a key.
    """
    return _upper(_digests_of_column(column))


def hash_columns(columns: Sequence[pa.Array | pa.ChunkedArray]) -> NDArray[np.uint32]:
    """Hash of each row over several Arrow columns: ``key_hash`` of the tuple of its values.

    A single column is the bare key, not a tuple of one.

    Args:
        columns: at least one, all of one length.
    Returns: uint32[n].
    Raises:
        InvalidKeyError: a column's type, or a value in it, cannot be a key.
        ValueError: there is no column, or lengths differ.
    """
    return _upper(digest_columns(columns))


def digest_columns(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Digests:
    """Return the digest of each row over several Arrow columns: ``key_digest`` of its key, the upper half of which is
    the hash.

    Args:
        columns: as for `hash_columns`.
    Returns: uint64[n].
    Raises:
        InvalidKeyError: a column's type, or a value in it, cannot be a key.
        ValueError: there is no column, or lengths differ.
    """
    if len(columns) == 1:
        return _digests_of_column(columns[0])
    if len({len(column) for column in columns}) != 1:
        lengths = [len(column) for column in columns]
        raise ValueError(f"key columns have lengths {lengths}; pass one or more columns of one length")
    return _digests_of_rows([_digests_of_column(column) for column in columns])


def _upper(digests: Digests) -> NDArray[np.uint32]:
    import numpy as np

    upper: NDArray[np.uint32] = digests.view(np.uint32)[1 if _LITTLE else 0 :: 2].copy()
    return upper


def _digests_of_rows(columns: list[Digests]) -> Digests:
    import numpy as np

    n = len(columns[0])
    h = np.full(n, (START_TUPLE + len(columns) * K4) & _MASK64, dtype=np.uint64)
    spare = np.empty(n, dtype=np.uint64)
    for digests in columns:
        _absorb(h, digests, spare)
    return _finish(h, spare)


def _absorb(h: Digests, lane: Digests, spare: Digests) -> None:
    import numpy as np

    np.bitwise_xor(h, lane, out=h)
    np.multiply(h, np.uint64(K1), out=h)
    np.right_shift(h, np.uint64(32), out=spare)
    np.bitwise_xor(h, spare, out=h)


def _finish(h: Digests, spare: Digests) -> Digests:
    import numpy as np

    np.multiply(h, np.uint64(K2), out=h)
    np.right_shift(h, np.uint64(32), out=spare)
    np.bitwise_xor(h, spare, out=h)
    return h


# -- lists of Python keys ------------------------------------------------------------------------------------------


def _digests_of_keys(keys: Sequence[Any]) -> Digests:
    import numpy as np
    import pyarrow as pa

    kinds = set(map(type, keys))
    if kinds == {tuple} and len(lengths := set(map(len, keys))) == 1 and lengths != {0}:
        try:
            return _digests_of_rows([_digests_of_keys([key[i] for key in keys]) for i in range(lengths.pop())])
        except InvalidKeyError:
            return _one_by_one(keys)  # which says where inside the tuple
    kinds.discard(type(None))
    kind = kinds.pop() if len(kinds) == 1 else None
    arrow = {int: pa.int64(), str: pa.string(), bytes: pa.binary(), float: pa.float64(), bool: pa.bool_()}
    if kind not in arrow:
        return _one_by_one(keys)
    if kind is int:
        try:
            return _digests_of_int64(np.array(keys, dtype=np.int64))
        except (OverflowError, TypeError):
            pass  # beyond 64 bits, or None among them
    try:
        column = pa.array(keys, arrow[kind], from_pandas=False)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return _one_by_one(keys)  # ints beyond 64 bits, lone surrogates
    return _digests_of_column(column)


def _one_by_one(keys: Sequence[Any]) -> Digests:
    import numpy as np

    return np.array([key_digest(key) for key in keys], dtype=np.uint64)


# -- Arrow columns -------------------------------------------------------------------------------------------------


def _digests_of_column(column: pa.Array | pa.ChunkedArray) -> Digests:
    import numpy as np
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            parts = [_digests_of_column(chunk) for chunk in column.iterchunks()]
            return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
        column = column.chunk(0)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _digests_of_dictionary(column)
    digest = _vectorised(kind)
    if digest is None:
        return _digests_of_distinct(column)
    out = np.empty(len(column), dtype=np.uint64)
    for start in range(0, len(column), _BLOCK):
        block = column.slice(start, _BLOCK)
        digests = digest(block)
        if block.null_count:
            digests[block.is_null().to_numpy(zero_copy_only=False)] = DIGEST_NONE
        out[start : start + len(block)] = digests
    return out


def _vectorised(kind: pa.DataType) -> Callable[[pa.Array], Digests] | None:
    from pyarrow import types

    if types.is_integer(kind):
        return _integers
    if types.is_floating(kind):
        return _floats
    if types.is_boolean(kind):
        return _booleans
    if types.is_string(kind) or types.is_large_string(kind) or _is_view(kind, "string_view"):
        return _strings
    if types.is_binary(kind) or types.is_large_binary(kind) or _is_view(kind, "binary_view"):
        return _strings
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return _moments
    return None


def _is_view(kind: pa.DataType, name: str) -> bool:
    return str(kind) == name


def _digests_of_dictionary(column: pa.DictionaryArray) -> Digests:
    import numpy as np

    digests = np.append(_digests_of_column(column.dictionary), np.uint64(DIGEST_NONE))
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(column.dictionary)) if _fits(indices, len(digests)) else None
    if indices is None:
        indices = column.indices.cast("int64").fill_null(len(column.dictionary))
    result: Digests = digests.take(indices.to_numpy(zero_copy_only=False).astype(np.intp, copy=False))
    return result


def _fits(indices: pa.Array, count: int) -> bool:
    bits: int = indices.type.bit_width
    return count < 1 << (bits - 1)


def _digests_of_distinct(column: pa.Array) -> Digests:
    """Compute digests by way of Python values, each distinct one made once."""
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), DIGEST_NONE, dtype=np.uint64)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _one_by_one(column.to_pylist())
    if pa.types.is_nested(kind):
        raise InvalidKeyError(f"an Arrow column of type {kind}", "", "key by its parts as columns of their own")
    if isinstance(kind, pa.BaseExtensionType):
        return _one_by_one(column.to_pylist())
    distinct = column.dictionary_encode()
    digests = np.append(_one_by_one(distinct.dictionary.to_pylist()), np.uint64(DIGEST_NONE))
    row_digests: Digests = digests.take(
        distinct.indices.fill_null(len(distinct.dictionary)).to_numpy(zero_copy_only=False)
    )
    return row_digests


def _values(block: pa.Array, dtype: str) -> Any:
    """Return the values of a block of fixed width as numpy sees them, nulls holding anything; shares memory."""
    import numpy as np

    data = block.buffers()[1]
    if data is None:
        return np.zeros(len(block), dtype=dtype)
    size = np.dtype(dtype).itemsize
    return np.frombuffer(data, dtype=dtype, count=len(block), offset=block.offset * size)


def _integers(block: pa.Array) -> Digests:
    import numpy as np

    kind = block.type
    values = _values(block, f"{'i' if str(kind).startswith('int') else 'u'}{kind.bit_width // 8}")
    digests = _digests_of_int64(values.astype(np.int64, copy=False))
    if values.dtype == np.uint64:
        for position in np.flatnonzero(values >> np.uint64(63)):
            digests[position] = key_digest(int(values[position]))
    return digests


def _booleans(block: pa.Array) -> Digests:
    import numpy as np
    import pyarrow as pa

    return _digests_of_int64(_values(block.cast(pa.uint8()), "u1").astype(np.int64))


def _digests_of_int64(values: NDArray[np.int64], start: int = START_INT) -> Digests:
    import numpy as np

    out = np.empty(len(values), dtype=np.uint64)
    lanes = values.view(np.uint64)
    spare = np.empty(min(len(values), _BLOCK), dtype=np.uint64)
    for offset in range(0, len(values), _BLOCK):
        h = out[offset : offset + _BLOCK]
        np.bitwise_xor(lanes[offset : offset + _BLOCK], np.uint64(start), out=h)
        np.multiply(h, np.uint64(K1), out=h)
        shifted = spare[: len(h)]
        np.right_shift(h, np.uint64(32), out=shifted)
        np.bitwise_xor(h, shifted, out=h)
        _finish(h, shifted)
    return out


def _floats(block: pa.Array) -> Digests:
    import numpy as np

    values = _values(block, f"f{block.type.bit_width // 8}").astype(np.float64)  # a copy of ours
    with np.errstate(invalid="ignore"):
        integral = (np.floor(values) == values) & (values >= -_INT64) & (values < _INT64)
        lanes = values.view(np.uint64) ^ np.uint64(START_FLOAT)
        lanes[np.isnan(values)] = _NAN_BITS ^ START_FLOAT
        np.copyto(lanes, values.astype(np.int64).view(np.uint64) ^ np.uint64(START_INT), where=integral)
    return _digests_of_int64(lanes.view(np.int64), start=0)


def _moments(block: pa.Array) -> Digests:
    """Return the digest dates, times of day, timestamps and durations: one lane, in days or microseconds."""
    import numpy as np
    from pyarrow import types

    kind = block.type
    values = _values(block, f"i{kind.bit_width // 8}").astype(np.int64)
    if types.is_date(kind):
        return _digests_of_int64(values if types.is_date32(kind) else values // _DAY_MS, START_DATE)
    if types.is_timestamp(kind):
        start = START_DATETIME if kind.tz is None else START_DATETIME_UTC
    else:
        start = START_TIME if types.is_time(kind) else START_TIMEDELTA
    return _digests_of_int64(_microseconds(block, values), start)


def _microseconds(block: pa.Array, values: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    unit = block.type.unit
    if block.null_count:
        values[block.is_null().to_numpy(zero_copy_only=False)] = 0
    if unit == "ns":
        us: NDArray[np.int64] = values // 1000
        if not np.array_equal(us * 1000, values):
            raise InvalidKeyError(
                f"an Arrow {block.type} value with a part of a microsecond", "", "cast the column to unit 'us'"
            )
        return us
    # durations of days beyond 64 bits of microseconds wrap as the lane of a timedelta does
    with np.errstate(over="ignore"):
        values *= np.int64(_US_FACTORS[unit])
    return values


def _strings(block: pa.Array) -> Digests:
    """Return the digest a block of strings or byte strings: lanes gathered by offset, masked by length."""
    import numpy as np
    import pyarrow as pa

    kind = block.type
    text = "string" in str(kind)
    if _is_view(kind, "string_view") or _is_view(kind, "binary_view"):
        block = block.cast(pa.large_string() if text else pa.large_binary())
        kind = block.type
    width = 8 if str(kind).startswith("large") else 4
    _, offsets_buffer, data_buffer = block.buffers()
    offsets = np.frombuffer(offsets_buffer, f"i{width}", len(block) + 1, block.offset * width).astype(np.int64)
    first = int(offsets[0])
    offsets -= first
    size = int(offsets[-1])
    data = np.zeros(size + 8, dtype=np.uint8)
    if size:
        data[:size] = np.frombuffer(data_buffer, np.uint8, size, first)
    return _digests_of_slices(data, offsets, START_STR if text else START_BYTES)


def _digests_of_slices(data: NDArray[np.uint8], offsets: NDArray[np.int64], start: int) -> Digests:
    """Return the digests of ``data[offsets[i]:offsets[i + 1]]``; 8 bytes of padding follow the data."""
    import numpy as np

    starts = offsets[:-1]
    lengths = np.diff(offsets)
    words: Any = np.ndarray(len(data) - 7, dtype="<u8", buffer=data, strides=(1,))
    h = lengths.view(np.uint64) * np.uint64(K4)
    h += np.uint64(start)
    spare = np.empty(len(h), dtype=np.uint64)
    lane: Digests = words[starts]
    lane &= _masks()[np.minimum(lengths, 8)]
    longest = int(lengths.max(initial=0))
    if longest > LONGEST_IN_LANES:
        raw = data.tobytes()
        long = np.flatnonzero(lengths > LONGEST_IN_LANES)
        bounds = zip(starts[long].tolist(), offsets[long + 1].tolist(), strict=True)
        lane[long] = np.array([long_lane(raw[begin:end]) for begin, end in bounds], dtype=np.uint64)
    _absorb(h, lane, spare)
    for done in range(8, min(longest, LONGEST_IN_LANES), 8):
        rows = np.flatnonzero((lengths > done) & (lengths <= LONGEST_IN_LANES))
        lane = words[starts[rows] + done]
        lane &= _masks()[np.minimum(lengths[rows] - done, 8)]
        part = h[rows]
        _absorb(part, lane, spare[: len(rows)])
        h[rows] = part
    return _finish(h, spare)


@cache
def _masks() -> Digests:
    """Return the masks that keep the first n bytes of a little-endian lane: uint64[9]."""
    import numpy as np

    return np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
