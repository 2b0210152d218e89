"""A checkpoint storage in memory, for simulated clusters and tests; it ends with its process."""

from __future__ import annotations

import threading
from pathlib import Path

from .storage import MissingFileError, StorageError, checked_path


class MemoryStorage:
    """Files as bytes in a dict.

    Args:
        url: what errors call it.
        files: where they are, by `above` and their path; None: in a dict of its own. Several storages may share one.
        above: what stands before each path in it.

    >>> storage = MemoryStorage()
    >>> storage.put_if_absent("chk-1/_metadata", b"1"), storage.put_if_absent("chk-1/_metadata", b"2")
    (True, False)
    >>> storage.read("chk-1/_metadata"), storage.list("chk-1")
    (b'1', ['chk-1/_metadata'])
    """

    def __init__(self, url: str = "memory:", files: dict[str, bytes] | None = None, above: str = "") -> None:
        self.url = url
        self._files: dict[str, bytes] = {} if files is None else files
        self._above = above
        self._lock = threading.Lock()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist, one of several callers wins; False, with nothing changed, when it does."""
        full_path = self._whole(path, "write")
        with self._lock:
            if full_path in self._files:
                return False
            if self._blocked(full_path):
                raise StorageError(f"write {path}", self.url, "a folder of that name, or a file above it, is there")
            self._files[full_path] = bytes(data)
            return True

    def upload(self, path: str, local: Path) -> None:
        """Write a file with the bytes of a local one."""
        try:
            data = local.read_bytes()
        except OSError as error:
            raise StorageError(f"write {path}", self.url, str(error)) from error
        if not self.put_if_absent(path, data):
            raise StorageError(f"write {path}", self.url, "a file of that name exists already")

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file from `offset` on, at most `length`."""
        full_path = self._whole(path, "read")
        with self._lock:
            data = self._files.get(full_path)
        if data is None:
            raise MissingFileError(f"read {path}", self.url, path)
        return data[offset:] if length is None else data[offset : offset + length]

    def download(self, path: str, local: Path) -> None:
        """Write the bytes of a file to a local one."""
        data = self.read(path)
        try:
            local.write_bytes(data)
        except OSError as error:
            raise StorageError(f"read {path}", self.url, str(error)) from error

    def list(self, folder: str = "") -> list[str]:
        """Return the files in a folder and below it, sorted; [] when there is no such folder."""
        start, cut = f"{self._whole(folder, 'list')}/" if folder else self._above, len(self._above)
        with self._lock:
            return sorted(path[cut:] for path in self._files if path.startswith(start))

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        full_path = self._whole(path, "delete")
        with self._lock:
            self._files.pop(full_path, None)

    def _whole(self, path: str, action: str) -> str:
        return self._above + checked_path(path, self.url, action)

    def _blocked(self, full_path: str) -> bool:
        """Return whether a file system could not have this file beside the others."""
        place = full_path.find("/", len(self._above))
        while place >= 0:
            if full_path[:place] in self._files:
                return True
            place = full_path.find("/", place + 1)
        return any(other.startswith(f"{full_path}/") for other in self._files)


__all__ = ["MemoryStorage"]
