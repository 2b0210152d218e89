"""The index of a file of sorted rows, read for the number of bytes that each key group has in it.

The index has an entry for each block of some kilobytes: a key that is not before its rows and before those of the next
one, and its place. So a file of 64 MB is known by reading some hundred kilobytes of it.

Source: facebook/rocksdb table/format.cc (footer), table/block_based/block.cc (entries), util/compression.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..binary import read_varint

_MAGIC = (0x88E241B785F4CFF7).to_bytes(8, "little")
_FOOTER = 53
_FORMAT = 5
"""The format of files that `RocksDBStore.settings` asks for."""
_CODECS = {4: "lz4_raw", 5: "lz4_raw", 7: "zstd"}
_NONE, _SNAPPY = 0, 1
_MOST_BYTES = 64 << 20
"""The size of an index at most, that of a file of many gigabytes; a larger one is damaged."""


def bytes_by_group(file: Path) -> dict[int, int] | None:
    """Return how many bytes of rows each key group has in a file of sorted rows; None where its index is not known.

    Args:
        file: whose rows begin with their key group, in two bytes.

    Raises:
        OSError, ValueError, MalformedBytesError: it cannot be read, or is damaged.
    """
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(max(0, size - _FOOTER))
        footer = opened.read(_FOOTER)
        if footer[-8:] != _MAGIC or int.from_bytes(footer[-12:-8], "little") != _FORMAT:
            return None
        position = 1
        places = []
        for _ in range(4):  # of the index of the file's other parts, and of the index
            number, position = read_varint(footer, position)
            places.append(number)
        opened.seek(places[2])
        block = opened.read(places[3] + 1)
    index = _uncompressed(block[:-1], block[-1])
    return None if index is None else _shares(index)


def _uncompressed(block: bytes, codec: int) -> bytes | None:
    """Return the content of a block; None where nothing here can."""
    import pyarrow as pa

    if codec == _NONE:
        return block
    name = "snappy" if codec == _SNAPPY else _CODECS.get(codec, "")
    if not name or not pa.Codec.is_available(name):
        return None
    length, start = read_varint(block, 0)
    if length > _MOST_BYTES:
        return None
    content = block if codec == _SNAPPY else block[start:]  # snappy itself begins with the length
    return pa.Codec(name).decompress(content, length, asbytes=True)  # type: ignore[no-any-return]


def _shares(index: bytes) -> dict[int, int]:
    shares: dict[int, int] = {}
    first: int | None = None
    for last, size in _blocks(index):
        groups = range(last if first is None else min(first, last), last + 1)
        for place, group in enumerate(groups):
            part = size * (place + 1) // len(groups) - size * place // len(groups)
            shares[group] = shares.get(group, 0) + part
        first = last
    return shares


def _blocks(index: bytes) -> Iterator[tuple[int, int]]:
    """Yield (key group of its last row, bytes) of each block; entries stand by themselves, none shares bytes."""
    restarts = int.from_bytes(index[-4:], "little") & 0x7FFF_FFFF
    end = len(index) - 4 * (restarts + 1)
    position = 0
    while position < end:
        _, position = read_varint(index, position)
        length, position = read_varint(index, position)
        key, position = index[position : position + length], position + length
        _, position = read_varint(index, position)
        size, position = read_varint(index, position)
        group = int.from_bytes(key[:2].ljust(2, b"\0"), "big")
        yield group - (length <= 2), size  # a key that was shortened to its group is that of the group before, plus 1


__all__ = ["bytes_by_group"]
