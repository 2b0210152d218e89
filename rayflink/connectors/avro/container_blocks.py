"""The blocks of Avro's object container files: headers, markers, and packed bytes.

Source: https://avro.apache.org/docs/1.12.0/specification/, "Object Container Files".
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import IO, NamedTuple

from .avro_schema import AvroSchema, BadAvroSchema
from .datum_columns import encoded_long

MAGIC = b"Obj\x01"
MARKER_BYTES = 16
_SEARCH_BYTES = 1 << 16
_MOST_LONG_BYTES = 10


class BadContainer(ValueError):
    """A file is no Avro file, or is damaged."""


class Header(NamedTuple):
    """The head of a file.

    Args:
        schema: of its records.
        codec: by which blocks are packed.
        marker: the bytes behind each block.
        stop: the position behind the head.
    """

    schema: AvroSchema
    codec: str
    marker: bytes
    stop: int


def read_header(file: IO[bytes]) -> Header:
    """Return the head of a file, from its beginning.

    Raises:
        BadContainer: it is no Avro file, or packed by an unknown codec.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise BadContainer("the file does not begin as Avro files do")
    metadata: dict[str, bytes] = {}
    while pairs := read_long(file):
        if pairs < 0:  # the number of bytes follows, which serves to skip them
            pairs = -pairs
            read_long(file)
        for _ in range(pairs):
            name = _read_bytes(file).decode("utf-8", "replace")
            metadata[name] = _read_bytes(file)
    marker = _read(file, MARKER_BYTES)
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in _UNPACK:
        raise BadContainer(f"the file is packed by the codec {codec!r}, one of {', '.join(_UNPACK)} is wanted")
    try:
        schema = AvroSchema.parse_string(metadata.get("avro.schema", b"").decode("utf-8", "replace"))
    except BadAvroSchema as error:
        raise BadContainer(f"the schema in the file: {error.problem}") from error
    return Header(schema, codec, marker, file.tell())


def write_header(schema: AvroSchema, codec: str, marker: bytes) -> bytes:
    """Return the head of a file."""
    pairs = {b"avro.schema": str(schema).encode(), b"avro.codec": codec.encode()}
    metadata = b"".join(encoded_long(len(part)) + part for pair in pairs.items() for part in pair)
    return MAGIC + encoded_long(len(pairs)) + metadata + b"\0" + marker


def find_marker(file: IO[bytes], start: int, marker: bytes) -> int | None:
    """Return the position behind the first marker that begins at `start` or later; None: there is none."""
    file.seek(start)
    window, position = b"", start
    while part := file.read(_SEARCH_BYTES):
        window += part
        place = window.find(marker)
        if place >= 0:
            return position + place + len(marker)
        position += max(len(window) - len(marker) + 1, 0)
        window = window[-len(marker) + 1 :]
    return None


def read_block(file: IO[bytes], header: Header) -> tuple[int, bytes] | None:
    """Return the number of records of the next block, and their bytes, unpacked; None: the file ends here.

    Raises:
        BadContainer: the block is cut or damaged.
    """
    first = file.read(1)
    if not first:
        return None
    count, size = read_long(file, first), read_long(file)
    if count < 0 or size < 0:
        raise BadContainer(f"a block has {count} records in {size} bytes")
    packed = _read(file, size)
    if _read(file, MARKER_BYTES) != header.marker:
        raise BadContainer("a block does not end with the marker of the file")
    try:
        return count, _UNPACK[header.codec](packed)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
        raise BadContainer(f"a block cannot be unpacked by {header.codec} ({error})") from error


def write_block(count: int, data: bytes, codec: str, marker: bytes) -> bytes:
    """Return a block of records."""
    packed = CODECS[codec](data)
    return b"".join((encoded_long(count), encoded_long(len(packed)), packed, marker))


def read_long(file: IO[bytes], first: bytes = b"") -> int:
    """Return the number at the position of a file.

    Args:
        first: its first byte, where that has been read.

    Raises:
        BadContainer: the file ends within it, or it is too long.
    """
    number = 0
    for place in range(_MOST_LONG_BYTES):
        part = (first if first and not place else _read(file, 1))[0]
        number |= (part & 0x7F) << (7 * place)
        if part < 0x80:
            return number >> 1 ^ -(number & 1)
    raise BadContainer("a number has more than 10 bytes")


def _read_bytes(file: IO[bytes]) -> bytes:
    return _read(file, read_long(file))


def _read(file: IO[bytes], size: int) -> bytes:
    data = file.read(size) if size >= 0 else b""
    if len(data) != size:
        raise BadContainer("the file ends within a block, or a length in it is damaged")
    return data


def _inflate(data: bytes) -> bytes:
    return zlib.decompress(data, -15)


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _from_snappy(data: bytes) -> bytes:
    import pyarrow

    packed = data[:-4]
    size, place, part = 0, 0, 0x80
    stream = io.BytesIO(packed)
    while part >= 0x80:  # the length is at the beginning, seven bits a byte
        part = _read(stream, 1)[0]
        size |= (part & 0x7F) << (7 * place)
        place += 1
    whole: bytes = pyarrow.decompress(packed, size, codec="snappy", asbytes=True)
    if zlib.crc32(whole) != int.from_bytes(data[-4:], "big"):
        raise ValueError("the checksum differs")
    return whole


def _to_snappy(data: bytes) -> bytes:
    import pyarrow

    packed: bytes = pyarrow.compress(data, codec="snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


def _from_zstandard(data: bytes) -> bytes:
    import pyarrow

    with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd") as stream:
        whole: bytes = stream.read()
    return whole


def _to_zstandard(data: bytes) -> bytes:
    import pyarrow

    packed: bytes = pyarrow.compress(data, codec="zstd", asbytes=True)
    return packed


_UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes, "deflate": _inflate, "snappy": _from_snappy, "bzip2": bz2.decompress, "xz": lzma.decompress,
    "zstandard": _from_zstandard,
}  # fmt: skip
CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes, "deflate": _deflate, "snappy": _to_snappy, "bzip2": bz2.compress, "xz": lzma.compress,
    "zstandard": _to_zstandard,
}  # fmt: skip
"""Name of a codec -> packs bytes."""

__all__ = [
    "CODECS", "MARKER_BYTES", "BadContainer", "Header", "find_marker", "read_block", "read_header", "write_block",
    "write_header",
]  # fmt: skip
