"""Objects read as files: by ranges, ahead of a reader that goes forward."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import IO

from .object_paths import ObjectPath

FIRST_BYTES = 128 << 10
"""The first range that is read; each one that follows it directly is twice as long, up to `MOST_BYTES`."""
MOST_BYTES = 4 << 20
AHEAD = 2
"""Ranges that are requested before they are asked for, once a reader has gone forward for `MOST_BYTES`."""


class _Range:
    """Bytes of an object that a thread is reading."""

    def __init__(self, start: int, stop: int, read: Callable[[int, int], memoryview]) -> None:
        self.start, self.stop, self._read = start, stop, read
        self._data: memoryview | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._data = self._read(self.start, self.stop)
        except Exception as error:  # raised where the bytes are asked for
            self._error = error

    def bytes(self) -> memoryview:
        """Return the bytes, when they are there.

        Raises: what kept them from being read.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._data is not None
        return self._data


class ObjectFile(io.RawIOBase):
    """An object as a file that can be read and sought in; its bytes are of one version.

    At most `AHEAD` + 1 ranges are in memory. Read from its beginning to its end it has about one request for each
    `MOST_BYTES`; a large read elsewhere is one request.

    Args:
        path: of the object.

    Raises:
        MissingObjectError: there is none.
    """

    def __init__(self, path: ObjectPath) -> None:
        self._path, entry = path, path.known()
        self._size, self._version = entry.size, entry.version
        limit = path.read_ahead_to
        self._limit = self._size if limit is None else min(self._size, limit)
        self._position = 0
        self._start, self._data = 0, memoryview(b"")
        self._width = FIRST_BYTES
        self._ahead: list[_Range] = []

    @property
    def name(self) -> str:
        """Return the address."""
        return str(self._path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"position {base + offset} is before the beginning of {self.name}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # of bytes, as its callers have it
        wanted = memoryview(buffer).cast("B")
        done = 0
        while done < len(wanted) and self._position < self._size:
            have = self._bytes_here(len(wanted) - done)
            count = min(len(have), len(wanted) - done)
            wanted[done : done + count] = have[:count]
            done += count
            self._position += count
        return done

    def close(self) -> None:
        self._ahead, self._data = [], memoryview(b"")
        super().close()

    def _bytes_here(self, wanted: int) -> memoryview:
        """Return bytes from the position on, one at least; as many as wanted where one request gives them."""
        offset = self._position - self._start
        if 0 <= offset < len(self._data):
            return self._data[offset:]
        goes_on = self._position == self._start + len(self._data)
        self._width = min(max(self._width, wanted) * 2, MOST_BYTES) if goes_on else FIRST_BYTES
        if self._ahead and self._ahead[0].start == self._position:
            self._start, self._data = self._position, self._ahead.pop(0).bytes()
        else:
            self._ahead = []
            stop = self._position + wanted
            if wanted < self._width:
                stop = max(stop, min(self._position + self._width, self._limit))
            stop = min(stop, self._size)
            self._start, self._data = self._position, self._read(self._position, stop)
        if goes_on and self._width == MOST_BYTES:
            self._read_ahead()
        return self._data

    def _read_ahead(self) -> None:
        while len(self._ahead) < AHEAD:
            start = self._ahead[-1].stop if self._ahead else self._start + len(self._data)
            if start >= self._limit:
                return
            self._ahead.append(_Range(start, min(start + MOST_BYTES, self._limit), self._read))

    def _read(self, start: int, stop: int) -> memoryview:
        return self._path.store.read(self._path.key, start, stop, self._version)


def open_object(path: ObjectPath) -> IO[bytes]:
    """Return an object as a file.

    Raises:
        MissingObjectError: there is none.
    """
    return io.BufferedReader(ObjectFile(path), 1 << 16)


__all__ = ["ObjectFile", "open_object"]
