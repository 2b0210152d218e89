"""Packed files, known by their ending and unpacked while they are read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from typing import IO, Any

from ..file_systems.object_paths import ObjectPath
from ..file_systems.object_reading import open_object
from ..file_systems.store_errors import MissingObjectError

UNPACK_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, OSError)
"""Errors that the readers of packed files raise on bytes that are not of their format."""


def is_compressed(path: str) -> bool:
    """Return whether files with this name are unpacked while they are read: .gz, .gzip, .bz2, .xz, .zst, .zstd,
    .deflate.
    """
    return os.path.splitext(path)[1] in _OPENERS


def open_bytes(path: str) -> IO[bytes]:
    """Return the file's bytes, unpacked where its ending says so; seeking in packed files reads up to the place.

    Raises:
        FileNotFoundError: the file is gone.
    """
    if isinstance(path, ObjectPath):
        return _open_object(path)
    opener = _OPENERS.get(os.path.splitext(path)[1], open)
    try:
        opened: IO[bytes] = opener(path, "rb")
    except FileNotFoundError as error:
        remedy = "leave files in place until the job has read them, where every node sees them"
        raise FileNotFoundError(f"{path!r} is gone, or not on this node; {remedy}") from error
    return opened


def _open_object(path: ObjectPath) -> IO[bytes]:
    try:
        raw = open_object(path)
    except MissingObjectError as error:
        raise FileNotFoundError(str(error)) from error
    opener = _OPENERS.get(os.path.splitext(path)[1])
    opened: IO[bytes] = raw if opener is None else opener(raw, "rb")
    return opened


class _Unpacking(io.RawIOBase):
    """Bytes that can only be read forwards, with a position.

    Args:
        read: gives at least one byte and at most as many as asked for; none at the end.
        close: releases what `read` reads from.
    """

    def __init__(self, read: Callable[[int], bytes], close: Callable[[], None]) -> None:
        self._read, self._close = read, close
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        target = offset if whence == 0 else self._position + offset
        if whence == 2 or target < self._position:
            raise io.UnsupportedOperation("packed files are read forwards")
        while self._position < target:
            data = self._read(min(target - self._position, 1 << 20))
            if not data:
                break
            self._position += len(data)
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self.closed:
            self._close()
        super().close()


def _open_zstd(path: str | IO[bytes], mode: str) -> IO[bytes]:
    import pyarrow

    stream = pyarrow.CompressedInputStream(open(path, mode) if isinstance(path, str) else path, "zstd")
    return io.BufferedReader(_Unpacking(stream.read, stream.close), 1 << 16)


def _open_deflate(path: str | IO[bytes], mode: str) -> IO[bytes]:
    file = open(path, mode) if isinstance(path, str) else path
    inflate = zlib.decompressobj()

    def read(wanted: int) -> bytes:
        while not inflate.eof:
            packed = inflate.unconsumed_tail or file.read(1 << 16)
            if not packed:
                raise EOFError("the packed bytes end too early")
            if data := inflate.decompress(packed, wanted):
                return data
        return b""

    return io.BufferedReader(_Unpacking(read, file.close), 1 << 16)


_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".gzip": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
    ".zstd": _open_zstd,
    ".deflate": _open_deflate,
}
