"""The contract of checkpoint storages: files below one address, each written once, the same for every scheme.

A file appears whole or not at all, and what was written is durable when the call returns. Names are paths relative to
the storage's address, with "/" between folders. Folders need not be made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..errors import StateError


class StorageError(StateError):
    """Raised when a checkpoint storage refuses an operation.

    Args:
        action: what was tried, as in "write chk-7/_metadata".
        url: of the storage.
        cause: what it said.
    """

    def __init__(self, action: str, url: str, cause: str) -> None:
        super().__init__(action, url, cause)
        self.action, self.url, self.cause = action, url, cause

    def __str__(self) -> str:
        return (
            f"checkpoint storage {self.url} could not {self.action}: {self.cause}; look for a full disk or missing "
            "rights there, or set execution.checkpointing.dir to another place that every node reaches"
        )


class MissingFileError(StorageError):
    """Raised when a file that should be in a checkpoint storage is missing."""

    def __str__(self) -> str:
        return (
            f"checkpoint storage {self.url} could not {self.action}: there is no such file ({self.cause}); it was "
            "deleted by somebody else: start from an older checkpoint or from a savepoint"
        )


class StorageNotSupported(StorageError):
    """Raised when no storage can be opened at an address; the cause says what to do."""

    def __str__(self) -> str:
        return f"checkpoint storage {self.url} could not {self.action}: {self.cause}"


def checked_path(path: str, url: str, action: str) -> str:
    """Return the path, if it names a file inside a storage.

    Raises:
        StorageError: it is empty or absolute, or has a step that is empty, "." or "..".

    >>> checked_path("chk-7/_metadata", "/data", "read")
    'chk-7/_metadata'
    """
    if "\0" in path or any(step in ("", ".", "..") for step in path.split("/")):
        raise StorageError(f"{action} {path!r}", url, "it is not a path inside the storage, such as 'chk-7/_metadata'")
    return path


class Storage(Protocol):
    """The files below `url`; may be used by several threads. Every method may raise `StorageError`."""

    @property
    def url(self) -> str:
        """Return the address."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist, one of several callers wins; False, with nothing changed, when it does.

        Raises:
            StorageError: it could not be written, or it is unknown whether it was: the answer was lost.
        """
        ...

    def upload(self, path: str, local: Path) -> None:
        """Write a file with the bytes of a local one; no other process writes that name."""
        ...

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file from `offset` on, at most `length`.

        Raises:
            MissingFileError: there is none.
        """
        ...

    def download(self, path: str, local: Path) -> None:
        """Write the bytes of a file to a local one; raises as `read`."""
        ...

    def list(self, folder: str = "") -> list[str]:
        """Return the files in a folder and below it, sorted; [] when there is no such folder."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        ...


@runtime_checkable
class StorageOfPieces(Storage, Protocol):
    """A storage that writes bytes in pieces without joining them."""

    def put_pieces_if_absent(self, path: str, pieces: Sequence[bytes | memoryview]) -> bool:
        """Write pieces behind each other, as `put_if_absent` does."""
        ...


def put_pieces(storage: Storage, path: str, pieces: Sequence[bytes | memoryview]) -> bool:
    """Write pieces behind each other, as `put_if_absent` does, and without a copy where the storage can."""
    if isinstance(storage, StorageOfPieces):
        return storage.put_pieces_if_absent(path, pieces)
    return storage.put_if_absent(path, b"".join(pieces))


def put_own(storage: Storage, path: str, data: bytes) -> bool:
    """Put bytes that no other process writes, if absent; return True also where the first answer was lost.

    An object store's client repeats a request whose answer it did not get, and then finds what it has written itself.

    Raises:
        StorageError: it could not be written; or that is unknown, when it cannot be read either.
    """
    try:
        if storage.put_if_absent(path, data):
            return True
    except StorageError:
        try:
            present = storage.read(path)
        except StorageError:
            present = None
        if present != data:
            raise
        return True
    return storage.read(path) == data


__all__ = [
    "MissingFileError", "Storage", "StorageError", "StorageNotSupported", "StorageOfPieces", "checked_path", "put_own",
    "put_pieces",
]  # fmt: skip
