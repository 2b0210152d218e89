"""Batches <-> bytes on the wire. Never used for state.

Rows go by pickle 5. Small rows are written without pickle's memo, which halves the time and loses nothing but the
identity of objects shared by several records; large rows, where a shared object is worth sending once, and rows that
contain themselves are written with it. (marshal would be as fast only after a look at every type: it turns numpy
scalars, arrays and bytearrays into bytes without a word.) Arrow goes as an IPC stream of compacted columns, never as
a slice that drags its parent's buffers along; rows held as columns go as columns (`column_codec`).

Layout: kind (1 byte), 7 bytes of padding, number of rows (uint32), bytes of timestamps (uint32, 0 where there are
none), the timestamps (int64, little endian), the values. The values start at a multiple of 8. Several batches in one
body: J, 3 bytes of padding, their number (uint32), their lengths (uint32 each) and, where their number is odd, 4 bytes
of padding, then one behind the other.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import shorten
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch
from rayflink.common.records.row_columns import RowColumns
from rayflink.user_types import UserRecord, UserValue

from .arrow_slices import compact
from .column_codec import decode_columns, encode_columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HEAD = struct.Struct("<c7xII")
_JOINT = struct.Struct("<cxxxI")
_SAMPLE_ROWS = 16
_SMALL_ROW_BYTES = 256
_SWAPS = sys.byteorder != "little"


class CodecError(Exception):
    """Bytes from a channel are not a batch, or a record cannot be written; names what was found.

    Args:
        problem: what was found, and the remedy.
        record: which cannot be written, shortened; "" where it is not known.
    """

    def __init__(self, problem: str, record: str = "") -> None:
        super().__init__(problem, record)
        self.problem, self.record = problem, record

    def __str__(self) -> str:
        return self.problem


Pieces = Sequence[Any]
"""One encoded batch in parts that have bytes, not yet copied together."""


def encode_batch(batch: Batch) -> bytes:
    """Encode the batch as bytes.

    Raises:
        CodecError: a record cannot be pickled, or a timestamp is no int64; names what was found and the remedy.
    """
    return b"".join(encode_pieces(batch))


def encode_pieces(batch: Batch) -> Pieces:
    """Encode the batch as several pieces of bytes; raises as `encode_batch` does."""
    if isinstance(batch, ArrowBatch):
        return _encode_arrow(batch)
    if isinstance(batch, RowColumns):
        stamps = b"" if batch.stamps is None else batch.stamps.astype("<i8", copy=False).tobytes()
        return _HEAD.pack(b"C", len(batch), len(stamps)), stamps, encode_columns(batch)
    values = batch.values
    body = _pickled(values)
    stamps = b"" if batch.timestamps is None else _stamp_bytes(batch.timestamps)
    return _HEAD.pack(b"P", len(values), len(stamps)), stamps, body


def decode_batch(data: bytes | memoryview) -> Batch:
    """Decode the batch that `encode_batch` wrote; an empty batch comes back without timestamps.

    Raises:
        CodecError: the bytes are none of ours.
    """
    if len(data) < _HEAD.size:
        raise CodecError(f"found {len(data)} bytes on a channel, a batch has at least {_HEAD.size}; they were damaged")
    kind, count, stamp_bytes = _HEAD.unpack_from(data)
    start = _HEAD.size + stamp_bytes
    if kind not in (b"P", b"C", b"A"):
        raise CodecError(f"found a batch of kind {kind!r} on a channel, wanted P, C or A; run one version on all nodes")
    if stamp_bytes not in (0, 8 * count):
        raise CodecError(f"found {stamp_bytes} bytes of timestamps for {count} records; the bytes were damaged")
    body = memoryview(data)[start:]
    try:
        if kind == b"A":
            return _decode_arrow(body, data, stamp_bytes, count)
        if kind == b"C":
            return decode_columns(body, count, _stamp_array(data, stamp_bytes, count))
        values: list[UserRecord] = pickle.loads(body)
    except Exception as error:  # unpickling runs a user's code, damaged bytes any code
        raise CodecError(
            f"a batch of {count} records cannot be read ({type(error).__name__}: {error}); the bytes were damaged, or "
            "a class in them cannot be loaded here: make its module importable on all nodes"
        ) from error
    if len(values) != count:
        raise CodecError(f"found {len(values)} records in a batch of {count}; the bytes were damaged on their way")
    return RowBatch(values, _stamps(data, stamp_bytes).tolist() if stamp_bytes else None)


def join_batches(batches: Sequence[Pieces]) -> bytes:
    """Join encoded batches into one body; a single one stays as it is."""
    pieces = [piece for batch in batches for piece in batch]
    count = len(batches)
    if count == 1:
        return b"".join(pieces)
    lengths = struct.pack(f"<{count}I", *[sum(map(len, batch)) for batch in batches])
    return b"".join((_JOINT.pack(b"J", count), lengths, bytes(4 * (count % 2)), *pieces))


def joint_bytes(count: int) -> int:
    """Return by how many bytes the joint body of `count` batches is longer than the batches."""
    return _JOINT.size + 4 * (count + count % 2) if count > 1 else 0


def split_batches(body: bytes) -> list[bytes | memoryview]:
    """Split a body into its encoded batches, in order.

    Raises:
        CodecError: the bytes are none of ours.
    """
    if body[:1] != b"J":
        return [body]
    try:
        _, count = _JOINT.unpack_from(body)
        lengths = struct.unpack_from(f"<{count}I", body, _JOINT.size)
    except struct.error as error:
        raise CodecError(f"found {len(body)} bytes of several batches that cannot be separated: {error}") from error
    start = joint_bytes(count)
    if start + sum(lengths) != len(body):
        wanted = start + sum(lengths)
        raise CodecError(f"found {len(body)} bytes, wanted {wanted} for {count} batches; they were damaged")
    view = memoryview(body)
    parts: list[bytes | memoryview] = []
    for length in lengths:
        parts.append(view[start : start + length])
        start += length
    return parts


def rows_in(data: bytes | memoryview) -> int:
    """Return the number of records in an encoded batch, without decoding it."""
    return int(_HEAD.unpack_from(data)[1])


def _stamp_bytes(timestamps: list[int]) -> bytes:
    try:
        stamps = array("q", timestamps)
    except (OverflowError, TypeError) as error:
        wrong = next(stamp for stamp in timestamps if not _fits(stamp))
        raise CodecError(
            f"a record has timestamp {wrong!r}; a timestamp is an int, epoch milliseconds that fit 64 bits"
        ) from error
    if _SWAPS:
        stamps.byteswap()
    return stamps.tobytes()


def _fits(stamp: UserValue) -> bool:
    try:
        return len(array("q", (stamp,))) == 1
    except (OverflowError, TypeError):
        return False


def _stamps(data: bytes | memoryview, stamp_bytes: int) -> array[int]:
    stamps = array("q")
    stamps.frombytes(data[_HEAD.size : _HEAD.size + stamp_bytes])
    if _SWAPS:
        stamps.byteswap()
    return stamps


def _pickled(values: list[UserRecord]) -> bytes:
    try:
        sample = values[:_SAMPLE_ROWS]
        if len(values) > len(sample) and len(_without_memo(sample)) < _SAMPLE_ROWS * _SMALL_ROW_BYTES:
            return _without_memo(values)
        return pickle.dumps(values, 5)
    except (ValueError, RecursionError):
        return _with_memo(values)  # a record that contains itself
    except Exception as error:
        raise _culprit(values, error) from error


def _without_memo(values: list[UserRecord]) -> bytes:
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5)
    pickler.fast = True
    pickler.dump(values)
    return file.getvalue()


def _with_memo(values: list[UserRecord]) -> bytes:
    try:
        return pickle.dumps(values, 5)
    except Exception as error:
        raise _culprit(values, error) from error


def _culprit(values: list[UserRecord], error: Exception) -> CodecError:
    """Find the record that cannot be pickled, and the reason."""
    for value in values:
        try:
            pickle.dumps(value, 5)
        except Exception as cause:  # a user's __reduce__ may raise anything
            return CodecError(
                f"a record of type {type(value).__module__}.{type(value).__qualname__} cannot be pickled "
                f"({cause}); emit plain data, or define the class at the top level of a module",
                shorten(value),
            )
    return CodecError(f"a batch of {len(values)} records cannot be pickled: {error}")


def _encode_arrow(batch: ArrowBatch) -> Pieces:
    import pyarrow as pa

    stamps = b"" if batch.timestamps is None else batch.timestamps.astype("<i8").tobytes()
    data = compact(batch.data)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_batch(data)
    return _HEAD.pack(b"A", len(batch), len(stamps)), stamps, sink.getvalue()


def _decode_arrow(body: memoryview, data: bytes | memoryview, stamp_bytes: int, count: int) -> ArrowBatch:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        columns = reader.read_next_batch()
    if columns.num_rows != count:
        raise CodecError(f"found {columns.num_rows} rows in an Arrow batch of {count}; the bytes were damaged")
    return ArrowBatch(columns, _stamp_array(data, stamp_bytes, count))


def _stamp_array(data: bytes | memoryview, stamp_bytes: int, count: int) -> NDArray[np.int64] | None:
    import numpy as np

    return np.frombuffer(data, dtype="<i8", count=count, offset=_HEAD.size) if stamp_bytes else None
