"""The smallest units of stored bytes: varints, strings, and integers of fixed width.

Readers take ``(data, at)`` and return ``(value, next position)``.
"""

from __future__ import annotations

import struct
from typing import Literal

from .errors import MalformedBytesError, SerializationError

MAX_STRING_UNITS = (1 << 31) - 2
"""Most UTF-16 units a string may have: its length plus one must fit a positive 32-bit integer."""

ByteOrder = Literal["big", "little"]


def write_varint(out: bytearray, value: int) -> None:
    """Append a non-negative integer, seven bits a byte, lowest first; 0x80 marks that more follow."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: bytes, start: int) -> tuple[int, int]:
    """Read what ``write_varint`` wrote.

    Raises: MalformedBytesError: the bytes end inside the number.
    """
    value = shift = 0
    for position in range(start, len(data)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    raise MalformedBytesError("a varint", f"the end of the bytes at {len(data)}")


def take(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    """Read ``size`` bytes.

    Raises: MalformedBytesError: fewer are left.
    """
    end = position + size
    if end > len(data):
        raise MalformedBytesError(f"{size} bytes at {position}", f"the end of the bytes at {len(data)}")
    return data[position:end], end


def write_string(out: bytearray, value: str | None) -> None:
    """Append a string in Flink's format: a varint of its length plus one, then each UTF-16 unit as a varint.

    None is the single byte 0, so it differs from the empty string. Lone surrogates are kept; two that form a pair
    read back as the one character they stand for, as in any UTF-16.

    Raises: SerializationError: the string has more than 2**31 - 2 units.
    Source: apache/flink StringValue.writeString.

    >>> out = bytearray(); write_string(out, "flink"); out.hex(" ")
    '06 66 6c 69 6e 6b'
    """
    if value is None:
        out.append(0)
        return
    if value.isascii():
        _write_units(out, len(value))
        out += value.encode("ascii")
        return
    encoded = value.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(encoded) // 2}H", encoded)
    _write_units(out, len(units))
    for unit in units:
        if unit < 0x80:
            out.append(unit)
        elif unit < 0x4000:
            out += bytes((unit & 0x7F | 0x80, unit >> 7))
        else:
            out += bytes((unit & 0x7F | 0x80, unit >> 7 & 0x7F | 0x80, unit >> 14))


def read_string(data: bytes, position: int) -> tuple[str | None, int]:
    """Read what ``write_string`` wrote; a length of 0 is None.

    Raises: MalformedBytesError: the bytes end inside the string, or a unit exceeds 16 bits.
    Source: apache/flink StringValue.readString.
    """
    length, position = read_varint(data, position)
    if length == 0:
        return None, position
    count = length - 1
    plain = data[position : position + count]
    if len(plain) == count and plain.isascii():
        return plain.decode("ascii"), position + count
    units = bytearray()
    for _ in range(count):
        unit, position = read_varint(data, position)
        if unit > 0xFFFF:
            raise MalformedBytesError("a UTF-16 unit", f"{unit} before byte {position}")
        units += unit.to_bytes(2, "little")
    return units.decode("utf-16-le", "surrogatepass"), position


def write_int(value: int, width: int, order: ByteOrder = "big") -> bytes:
    """Append a signed integer as ``width`` bytes, most significant first unless ``order`` is "little".

    Raises: SerializationError: the value needs more bytes.

    >>> write_int(0x12345678, 4).hex(" "), write_int(0x12345678, 4, "little").hex(" ")
    ('12 34 56 78', '78 56 34 12')
    """
    try:
        return value.to_bytes(width, order, signed=True)
    except OverflowError:
        bits = 8 * width
        raise SerializationError(
            f"a {bits}-bit integer", f"{value}", f"keep it in [-2**{bits - 1}, 2**{bits - 1}) or use a wider type"
        ) from None


def read_int(data: bytes, position: int, width: int, order: ByteOrder = "big") -> tuple[int, int]:
    """Read what ``write_int`` wrote.

    Raises: MalformedBytesError: fewer than ``width`` bytes are left.
    """
    chunk, position = take(data, position, width)
    return int.from_bytes(chunk, order, signed=True), position


def _write_units(out: bytearray, units: int) -> None:
    if units > MAX_STRING_UNITS:
        raise SerializationError("StringSerializer", f"a string of {units} units, too long", "split it")
    write_varint(out, units + 1)
