"""Batches <-> bytes on the wire. Never used for state.

Rows go by marshal, which is three times faster than pickle, but only when every value is of a type which marshal keeps
(it turns numpy scalars, arrays and bytearrays into bytes without a word); all other rows go by pickle 5. Arrow goes as an
IPC stream of compacted columns, never as a slice that drags its parent's buffers along.

Layout: kind (1 byte), number of rows (uint32), bytes of timestamps (uint32, 0 where there are none), the timestamps
(int64, little endian), the values.
"""

from __future__ import annotations

import marshal
import pickle
import struct
from array import array
from itertools import chain
from typing import Any

from rayflink.common.batches import ArrowBatch, Batch, RowBatch

_HEAD = struct.Struct("<cII")
_ATOMS = frozenset({type(None), bool, int, float, str, bytes})
_NESTED = ({tuple}, {list})
_MARSHAL_VERSION = 4


class CodecError(Exception):
    """Bytes from a channel are not a batch, or a record cannot be written; names what was found."""


def is_plain(values: list[Any]) -> bool:
    """Whether marshal keeps all `values` exactly: atoms, or tuples, lists or dicts of atoms."""
    kinds = set(map(type, values))
    if kinds <= _ATOMS:
        return True
    if kinds in _NESTED:
        return set(map(type, chain.from_iterable(values))) <= _ATOMS
    if kinds == {dict}:
        parts = set(map(type, chain.from_iterable(values)))
        return parts <= _ATOMS and set(map(type, chain.from_iterable(map(dict.values, values)))) <= _ATOMS
    return False


def encode_batch(batch: Batch) -> bytes:
    """The batch as bytes.

    Raises:
        CodecError: a record cannot be pickled; names its type and the remedy.
    """
    if isinstance(batch, ArrowBatch):
        return _encode_arrow(batch)
    values = batch.values
    if is_plain(values):
        kind, body = b"M", marshal.dumps(values, _MARSHAL_VERSION)
    else:
        kind, body = b"P", _pickled(values)
    stamps = b"" if batch.timestamps is None else array("q", batch.timestamps).tobytes()
    return b"".join((_HEAD.pack(kind, len(values), len(stamps)), stamps, body))


def decode_batch(data: bytes) -> Batch:
    """The batch that `encode_batch` wrote.

    Raises:
        CodecError: the bytes are none of ours.
    """
    kind, count, stamp_bytes = _HEAD.unpack_from(data)
    view = memoryview(data)
    start = _HEAD.size + stamp_bytes
    stamps = array("q", view[_HEAD.size : start].tobytes()) if stamp_bytes else None
    if kind == b"M":
        values = marshal.loads(view[start:])
    elif kind == b"P":
        values = pickle.loads(view[start:])
    elif kind == b"A":
        return _decode_arrow(view[start:], stamps)
    else:
        raise CodecError(f"found a batch of kind {kind!r} on a channel, wanted M, P or A; all nodes must run one version")
    if len(values) != count:
        raise CodecError(f"found {len(values)} records in a batch of {count}; the bytes were damaged on their way")
    return RowBatch(values, None if stamps is None else stamps.tolist())


def rows_in(data: bytes) -> int:
    """How many records an encoded batch holds, without decoding it."""
    return int(_HEAD.unpack_from(data)[1])


def _pickled(values: list[Any]) -> bytes:
    try:
        return pickle.dumps(values, 5)
    except Exception as error:
        for value in values:
            try:
                pickle.dumps(value, 5)
            except Exception as cause:
                raise CodecError(
                    f"a record of type {type(value).__module__}.{type(value).__qualname__} cannot be pickled ({cause}); "
                    "emit plain data, or define the class at the top level of a module"
                ) from cause
        raise CodecError(f"a batch of {len(values)} records cannot be pickled: {error}") from error


def _encode_arrow(batch: ArrowBatch) -> bytes:
    import pyarrow as pa

    stamps = b"" if batch.timestamps is None else batch.timestamps.astype("<i8").tobytes()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.data.schema) as writer:
        writer.write_batch(batch.data)
    return b"".join((_HEAD.pack(b"A", len(batch), len(stamps)), stamps, sink.getvalue()))


def _decode_arrow(view: memoryview, stamps: array[int] | None) -> ArrowBatch:
    import numpy as np
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(view)) as reader:
        data = reader.read_next_batch()
    return ArrowBatch(data, None if stamps is None else np.frombuffer(stamps, dtype=np.int64))
