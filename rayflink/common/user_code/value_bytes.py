"""Values as bytes for another process or for a file: pickled with classes by name, by value where a name finds none."""

from __future__ import annotations

import pickle
import struct
from typing import Any

from ..errors import NotSerializable
from . import code_pickler
from .unpicklable import cause

_WITH_BUFFERS = b"\x01"
"""The first byte of values with buffers; a pickled value begins with another."""


def to_bytes(value: object) -> bytes:
    """Pickle a value between processes of one job, or for disk: classes by name, so that a process has one of each.

    Ray's own serializer would send a class of the job's script by value with each value, and make another class of it.

    Raises:
        NotSerializable: something in it cannot be pickled; it names the way there.

    >>> from_bytes(to_bytes([("a", 1)]))
    [('a', 1)]
    """
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:  # a class or function that has no name to be found by, or what a user's __reduce__ raises
        try:
            return code_pickler.dumps(value)
        except Exception as error:
            raise NotSerializable(f"a {type(value).__name__}", cause(value, error)) from error


def to_pieces(value: object) -> list[bytes | memoryview]:
    """Return what `to_bytes` does in pieces that follow each other; read-only buffers of the value are not copied.

    Such are bytes that the value's `__reduce_ex__` wraps in `pickle.PickleBuffer`; `pickle.dumps` copies them several
    times. `from_bytes` returns them as views of the joined pieces.

    Raises:
        NotSerializable: as `to_bytes`.

    >>> pieces = to_pieces({"column": pickle.PickleBuffer(b"12345")})
    >>> bytes(from_bytes(b"".join(pieces))["column"])
    b'12345'
    """
    buffers: list[memoryview] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.readonly:
            buffers.append(view)
        return not view.readonly

    try:
        head = pickle.dumps(value, protocol=5, buffer_callback=stays)
    except Exception:  # what `to_bytes` pickles by value, or refuses with a reason
        return [to_bytes(value)]
    if not buffers:
        return [head]
    sizes = struct.pack(f"<{len(buffers) + 2}Q", len(buffers), len(head), *map(len, buffers))
    return [_WITH_BUFFERS + sizes + head, *buffers]


def from_bytes(data: bytes) -> Any:
    """Return the value that `to_bytes` or `to_pieces` wrote."""
    if data[:1] != _WITH_BUFFERS:
        return pickle.loads(data)
    (count,) = struct.unpack_from("<Q", data, 1)
    head, *sizes = struct.unpack_from(f"<{count + 1}Q", data, 9)
    place, view = 9 + 8 * (count + 1), memoryview(data)
    pickled, place = view[place : place + head], place + head
    buffers = []
    for size in sizes:
        buffers.append(view[place : place + size])
        place += size
    return pickle.loads(pickled, buffers=buffers)


__all__ = ["from_bytes", "to_bytes", "to_pieces"]
