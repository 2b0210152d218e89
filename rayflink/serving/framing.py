"""Several pieces of bytes in one body: each behind its length."""

from __future__ import annotations

import struct

__all__ = ["framed", "unframed"]

_LENGTH = struct.Struct(">Q")


def framed(*pieces: bytes) -> bytes:
    """Join pieces so that `unframed` finds them.

    >>> unframed(framed(b"head", b"", b"rows"))
    [b'head', b'', b'rows']
    """
    return b"".join(part for piece in pieces for part in (_LENGTH.pack(len(piece)), piece))


def unframed(body: bytes) -> list[bytes]:
    """Return the pieces of a body.

    Raises:
        ValueError: it is cut off.
    """
    pieces, begin = [], 0
    while begin < len(body):
        if begin + _LENGTH.size > len(body):
            raise ValueError(f"the body is cut off after {len(body)} bytes")
        (length,) = _LENGTH.unpack_from(body, begin)
        begin += _LENGTH.size
        if begin + length > len(body):
            raise ValueError(f"the body is cut off: {length} bytes wanted, {len(body) - begin} there")
        pieces.append(body[begin : begin + length])
        begin += length
    return pieces
