"""A checkpoint storage in a folder of a file system that every node reaches."""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import unquote, urlsplit

from .storage import MissingFileError, StorageError, StorageNotSupported, checked_path

T = TypeVar("T")

UNFINISHED = ".unfinished"
"""The folder below a storage's address where files are written before they get their names."""
_ABANDONED_AFTER_S = 3_600
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_COPIED_AT_ONCE = 1 << 20
_TRIES = 100
_PIECES_AT_ONCE = 1_024
"""Most pieces that Linux writes in one call."""


class LocalStorage:
    """The files in a folder, by a path or a ``file://`` URL.

    A file is written under another name, made durable, and then linked to its own name, which fails when there is one:
    so it appears whole or not at all, and one of several writers wins, over NFS too. What a writer that was killed
    left behind is removed an hour later by the next one. Folders that become empty go with their last file.

    Args:
        address: absolute, or relative to the current folder.

    Raises:
        StorageNotSupported: a ``file://`` URL that names another host, or what cannot be meant as a path.
    """

    def __init__(self, address: str | Path) -> None:
        text = os.fspath(address)
        self._root = folder_of(text)
        self.url = self._root.as_uri() if text.startswith("file:") else str(self._root)
        self._swept = False

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that does not exist, one of several callers wins; False, with nothing changed, when it does."""
        with self._errors("write", path):
            return self._write(path, lambda out: out.write(data))

    def put_pieces_if_absent(self, path: str, pieces: Sequence[bytes | memoryview]) -> bool:
        """Write pieces behind each other, as `put_if_absent` does."""
        with self._errors("write", path):
            return self._write(path, lambda out: write_pieces(out.fileno(), pieces))

    def upload(self, path: str, local: Path) -> None:
        """Write a file with the bytes of a local one."""
        with self._errors("write", path), local.open("rb") as source:
            if not self._write(path, lambda out: shutil.copyfileobj(source, out, _COPIED_AT_ONCE)):
                raise FileExistsError(errno.EEXIST, "a file of that name exists already")

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file from `offset` on, at most `length`."""
        with self._open(path) as source:
            source.seek(offset)
            return source.read() if length is None else source.read(length)

    def download(self, path: str, local: Path) -> None:
        """Write the bytes of a file to a local one."""
        with self._open(path) as source, local.open("wb") as target:
            shutil.copyfileobj(source, target, _COPIED_AT_ONCE)

    def list(self, folder: str = "") -> list[str]:
        """Return the files in a folder and below it, sorted; [] when there is no such folder."""
        with self._errors("list", folder or "its files"):
            if folder:
                checked_path(folder, self.url, "list")
            return sorted(self._walk(folder))

    def delete(self, path: str) -> None:
        """Delete a file; one that is not there is no error."""
        with self._errors("delete", path):
            target = self._root / checked_path(path, self.url, "delete")
            try:
                target.unlink()
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                return
            self._prune(target.parent)

    @contextmanager
    def _open(self, path: str) -> Iterator[BinaryIO]:
        with self._errors("read", path):
            target = self._root / checked_path(path, self.url, "read")
            try:
                source = target.open("rb")
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                raise MissingFileError(f"read {path}", self.url, str(target)) from error
            with source:
                yield source

    def _walk(self, folder: str) -> Iterator[str]:
        """Yield the files below a folder; those deleted meanwhile may be among them or not."""
        try:
            with os.scandir(self._root / folder) as entries:
                files = list(entries)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
            return
        for entry in files:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir():
                if name != UNFINISHED:
                    yield from self._walk(name)
            elif entry.is_file():
                yield name

    def _write(self, path: str, fill: Callable[[BinaryIO], object]) -> bool:
        """Let a file appear with what `fill` writes; False when there is one."""
        target = self._root / checked_path(path, self.url, "write")
        if target.exists():
            return False
        self._sweep()
        unfinished = self._root / UNFINISHED / uuid.uuid4().hex
        try:
            with _made_again(unfinished, lambda: unfinished.open("xb")) as out:
                fill(out)
                out.flush()
                os.fsync(out.fileno())
            if not _made_again(target, lambda: _linked(unfinished, target)):
                return False
        finally:
            with suppress(OSError):  # what is left is swept later
                unfinished.unlink()
        _sync(target.parent)
        return True

    def _sweep(self) -> None:
        """Remove what was abandoned unfinished, once in the life of this object."""
        if self._swept:
            return
        self._swept = True
        latest = time.time() - _ABANDONED_AFTER_S
        for name in self._walk(UNFINISHED):
            abandoned = self._root / name
            try:
                if abandoned.stat().st_mtime < latest:
                    abandoned.unlink()
            except FileNotFoundError:
                continue  # its writer was not dead, or somebody else sweeps too

    def _prune(self, folder: Path) -> None:
        """Remove folders that are empty, from this one up to the root."""
        while folder != self._root:
            if not _removed(folder):
                return
            folder = folder.parent
        if _removed(self._root / UNFINISHED):
            _removed(self._root)

    @contextmanager
    def _errors(self, verb: str, path: str) -> Iterator[None]:
        """Raise errors of the operating system as errors of a storage."""
        try:
            yield
        except OSError as error:
            raise StorageError(f"{verb} {path}", self.url, _cause(error)) from error


def write_pieces(file: int, pieces: Sequence[bytes | memoryview]) -> None:
    """Write pieces behind each other to a file descriptor, many in one call, so that a thread seldom waits for others.

    Raises:
        OSError: the system cannot write them all.
    """
    for start in range(0, len(pieces), _PIECES_AT_ONCE):
        left = list(pieces[start : start + _PIECES_AT_ONCE])
        written = os.writev(file, left)
        while written < sum(map(len, left)):  # a call writes 2 GiB at most, or less where the disk is nearly full
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            left[0] = memoryview(left[0])[written:]
            written = os.writev(file, left)


def folder_of(address: str) -> Path:
    """Return the folder that a path or a ``file://`` URL names, from the root.

    >>> folder_of("file:///data/db/") == folder_of("/data/db")
    True

    Raises:
        StorageNotSupported: it names none.
    """
    check_address(address)
    if not address.startswith("file:"):
        return Path(address).absolute()
    return Path(unquote(urlsplit(address).path)).absolute()


def check_address(address: str) -> None:
    """Make sure that an address without a store's scheme can be meant as that of a folder.

    Raises:
        StorageNotSupported: it cannot.
    """
    scheme, colon, rest = address.partition(":")
    problem = ""
    if "\0" in address:
        problem = "found a null byte in it; write a path"
    elif address != address.lstrip():
        problem = f"found {address!r}, which begins with a blank; write a path"
    elif address.startswith("~"):
        problem = "found '~', which only a shell makes a folder of; write the folder out"
    elif colon and scheme.isalnum() and scheme != "file" and rest[:1] in ("", "/"):
        problem = f"found {scheme}: and no more of a URL; write it as in {scheme}://bucket/folder"
    elif scheme == "file" and (parts := urlsplit(address)).netloc not in ("", "localhost"):
        problem = f"found the host {parts.netloc!r}, wanted none; write file:///{parts.netloc}{parts.path}"
    if problem:
        raise StorageNotSupported("be opened", address, problem)


def _made_again(target: Path, make: Callable[[], T]) -> T:
    """Return the result of `make`, after making the target's folder, also when a deletion removes it meanwhile."""
    for _ in range(_TRIES):
        try:
            _make_folder(target.parent)
            return make()
        except FileNotFoundError as error:
            missing = error
    raise missing


def _make_folder(folder: Path) -> None:
    """Make a folder that lasts, and those above it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    try:
        folder.mkdir()
    except FileExistsError:
        if folder.is_file():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a file, a folder is wanted") from None
        return
    _sync(folder.parent)


def _linked(source: Path, target: Path) -> bool:
    """Give a file a second name; return False when another file has it."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise OSError(error.errno, f"{error.strerror}; a file system with hard links is wanted") from error
        if error.errno != errno.EEXIST:
            raise
        return source.stat().st_nlink == 2  # over NFS a call that is repeated finds what it did itself
    return True


def _removed(folder: Path) -> bool:
    """Remove a folder that is empty; False when it is still there: then it is in use."""
    try:
        folder.rmdir()
    except OSError:
        return not folder.exists()
    return True


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _cause(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return f"{error.strerror or error} ({name})" + (f": {error.filename}" if error.filename else "")


__all__ = ["UNFINISHED", "LocalStorage", "check_address"]
