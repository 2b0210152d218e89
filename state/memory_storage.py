"""A checkpoint storage in memory: for simulated clusters and tests, gone with its process."""

from __future__ import annotations

import threading
from pathlib import Path

from .storage import MissingFileError, StorageError, checked_path


class MemoryStorage:
    """Files as bytes in a dict.

    Args:
        url: what errors call it.

    >>> storage = MemoryStorage()
    >>> storage.put_if_absent("chk-1/_metadata", b"1"), storage.put_if_absent("chk-1/_metadata", b"2")
    (True, False)
    >>> storage.read("chk-1/_metadata"), storage.list("chk-1")
    (b'1', ['chk-1/_metadata'])
    """

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._files: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist, one of several callers wins; False, with nothing changed, when it does."""
        checked_path(path, self.url, "write")
        with self._lock:
            if path in self._files:
                return False
            if self._blocked(path):
                raise StorageError(f"write {path}", self.url, "a folder of that name, or a file above it, is there")
            self._files[path] = bytes(data)
            return True

    def upload(self, path: str, local: Path) -> None:
        """Write a file with the bytes of a local one."""
        try:
            data = local.read_bytes()
        except OSError as error:
            raise StorageError(f"write {path}", self.url, str(error)) from error
        if not self.put_if_absent(path, data):
            raise StorageError(f"write {path}", self.url, "there is a file of that name already")

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file, from `offset` on, `length` at most."""
        checked_path(path, self.url, "read")
        with self._lock:
            data = self._files.get(path)
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
        """The files in a folder and below it, sorted; [] when there is no such folder."""
        if folder:
            checked_path(folder, self.url, "list")
        with self._lock:
            return sorted(path for path in self._files if not folder or path.startswith(f"{folder}/"))

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        checked_path(path, self.url, "delete")
        with self._lock:
            self._files.pop(path, None)

    def _blocked(self, path: str) -> bool:
        """Whether a file system could not have this file beside the others."""
        steps = path.split("/")
        above = {"/".join(steps[:size]) for size in range(1, len(steps))}
        return bool(above & self._files.keys()) or any(other.startswith(f"{path}/") for other in self._files)


__all__ = ["MemoryStorage"]
