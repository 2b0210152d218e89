"""The writer and reader of snapshots whose parts are in files of a checkpoint storage."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ..errors import DamagedFileError
from ..snapshots import Blob, FileSlice, Pieces
from .local_copies import LocalCopies
from .manifest import SHARED_FOLDER, checkpoint_folder
from .storage import Storage, StorageError, put_pieces

PACKED_BYTES = 64 << 20
"""Parts are put into one file up to this size; a part that is larger has a file of its own."""
_PACKED_FILE_BYTES = 1 << 20
_READ_AT_ONCE = 16 << 20
_CHECKED_AT_ONCE = 8 << 20
"""Bytes of short pieces that are joined before their checksum is computed."""
_READ_AHEAD = 4 << 20


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """The place of a snapshot's parts in a storage.

    Args:
        checkpoint_id: number of the checkpoint.
        folder: for files of this snapshot alone, below the storage's address; "" for none.
        shared_folder: for files that later checkpoints may refer to; None where nothing is shared.
        is_savepoint: whether it is a savepoint.
        inline_bytes: most bytes of all parts together that stay in the values instead of files.
    """

    checkpoint_id: int
    folder: str
    shared_folder: str | None
    is_savepoint: bool
    inline_bytes: int

    @staticmethod
    def of_checkpoint(checkpoint_id: int, inline_bytes: int) -> SnapshotPlace:
        """Return the place of a checkpoint, below the base of a job's checkpoints."""
        return SnapshotPlace(checkpoint_id, checkpoint_folder(checkpoint_id), SHARED_FOLDER, False, inline_bytes)

    @staticmethod
    def of_savepoint(checkpoint_id: int, inline_bytes: int) -> SnapshotPlace:
        """Return the place of a savepoint: its folder, which is the storage's address."""
        return SnapshotPlace(checkpoint_id, "", None, True, inline_bytes)


def random_name() -> str:
    """Return a file name that no other process chooses."""
    return uuid.uuid4().hex


class SnapshotFileWriter:
    """A `SnapshotWriter` whose larger parts are in files; used by one thread.

    Files are stored by other threads meanwhile. So a value that it gives is good only after `finish()`, and a local
    file must stay until then. After an error, or instead of `finish()`, `abort()` is called.

    Args:
        storage: where the files are.
        place: which files they are.
        uploads: most files that are stored at the same time; 0: each by the calling thread, before the call returns.
        new_name: returns a file name that no other process chooses.
        copies: keeps shared files on this node as well; None: nothing does.
    """

    def __init__(
        self,
        storage: Storage,
        place: SnapshotPlace,
        uploads: int = 4,
        new_name: Callable[[], str] = random_name,
        copies: LocalCopies | None = None,
    ) -> None:
        self._copies = copies
        self._storage, self._place, self._uploads, self._new_name = storage, place, uploads, new_name
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: set[Future[None]] = set()
        self._paths: list[str] = []
        self._packed: list[bytes | memoryview] = []
        self._packed_path, self._packed_bytes = "", 0
        self._inline_left = place.inline_bytes
        self.bytes_written = 0
        """Bytes of all parts that were put, those that are in no file included."""

    @property
    def checkpoint_id(self) -> int:
        """Return the number of the checkpoint."""
        return self._place.checkpoint_id

    @property
    def is_savepoint(self) -> bool:
        """Return whether the snapshot is a savepoint."""
        return self._place.is_savepoint

    def put(self, data: bytes) -> Blob:
        """Keep some bytes: as they are while there is room for that, else in a file with others.

        Raises:
            StorageError: these, or others before them, cannot be stored.
        """
        return self.put_pieces((data,))

    def put_pieces(self, pieces: Pieces) -> Blob:
        """Keep the bytes of pieces, as `put` does, which nothing changes until `finish` returns."""
        size = sum(map(len, pieces))
        self.bytes_written += size
        if size <= self._inline_left:
            self._inline_left -= size
            return b"".join(pieces)
        if self._packed and self._packed_bytes + size > PACKED_BYTES:
            self._store_packed()
        if not self._packed:
            self._packed_path = self._new_path(self._place.folder)
        checksum = checksum_of_pieces(pieces)
        part = FileSlice(self._packed_path, self._packed_bytes, size, checksum)
        self._packed += pieces
        self._packed_bytes += size
        return part

    def put_file(self, local: Path, shared: bool) -> Blob:
        """Keep the bytes of a local file: in a file of its own, or, when it is small and not shared, as `put` does.

        Raises:
            StorageError: it cannot be read or stored, or another before it.
        """
        try:
            length = local.stat().st_size
            if length <= _PACKED_FILE_BYTES and (not shared or self._place.shared_folder is None):
                return self.put(local.read_bytes())
            checksum = _checksum_of(local)
        except OSError as error:
            raise StorageError(f"take the file {local}", self._storage.url, str(error)) from error
        self.bytes_written += length
        folder = self._place.shared_folder if shared else None
        path = self._new_path(self._place.folder if folder is None else folder)
        self._store(path, partial(self._storage.upload, path, local))
        if shared and self._copies is not None:
            self._copies.keep(self.checkpoint_id, path, local)
        return FileSlice(path, 0, length, checksum)

    def finish(self) -> None:
        """Wait until all is stored.

        Raises:
            StorageError: something cannot be stored.
        """
        if self._packed:
            self._store_packed()
        while self._under_way:
            self._wait_for_one()
        self._end_threads()

    def abort(self) -> tuple[str, ...]:
        """Delete what was stored: the files that are left, because they cannot be deleted."""
        for upload in self._under_way:
            upload.cancel()
        self._end_threads()
        self._under_way.clear()
        self._packed.clear()
        left = tuple(path for path in self._paths if not self._deleted(path))
        self._paths.clear()
        return left

    def _store_packed(self) -> None:
        pieces, self._packed = self._packed, []
        self._packed_bytes = 0
        path = self._packed_path
        self._store(path, partial(self._put_new, path, pieces))

    def _put_new(self, path: str, pieces: Pieces) -> None:
        if not put_pieces(self._storage, path, pieces):
            raise StorageError(f"write {path}", self._storage.url, "a file of that name exists already")

    def _store(self, path: str, store: Callable[[], None]) -> None:
        """Store a file now, or as soon as fewer than the most are under way."""
        self._paths.append(path)
        if self._uploads == 0:
            store()
            return
        while len(self._under_way) >= self._uploads:
            self._wait_for_one()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._uploads, thread_name_prefix="snapshot-upload")
        self._under_way.add(self._threads.submit(store))

    def _wait_for_one(self) -> None:
        done, self._under_way = wait(self._under_way, return_when=FIRST_COMPLETED)
        for upload in done:
            upload.result()

    def _end_threads(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    def _deleted(self, path: str) -> bool:
        try:
            self._storage.delete(path)
        except StorageError:
            return False
        return True

    def _new_path(self, folder: str) -> str:
        return f"{folder}/{self._new_name()}" if folder else self._new_name()


class SnapshotFileReader:
    """A `SnapshotReader` of what a `SnapshotFileWriter` stored; may be used by several threads.

    Where parts are read in their order it reads ahead, so that many key groups are few requests.

    Args:
        storage: at the base that the names of files begin at.
        copies: files of it that are on this node; None: none are.
    """

    def __init__(self, storage: Storage, copies: LocalCopies | None = None) -> None:
        self._storage, self._copies = storage, copies
        self._next = "", 0
        self._ahead = "", 0, b""

    def read(self, blob: Blob) -> bytes:
        """Return the bytes.

        Raises:
            StorageError: the file is missing, or cannot be read.
            DamagedFileError: they are not the bytes that were written.
        """
        if not isinstance(blob, FileSlice):
            return blob
        data = self._part(blob)
        self._check(blob, len(data), zlib.crc32(data))
        return data

    def copy(self, blob: Blob, local: Path) -> None:
        """Write the bytes to a local file that does not exist yet; raises as `read`, and leaves no file then."""
        if self._copies is not None and isinstance(blob, FileSlice) and self._copies.take(blob, local):
            return
        try:
            target = local.open("xb")
        except OSError as error:
            raise StorageError(f"copy a file to {local}", self._storage.url, str(error)) from error
        try:
            with target:
                self._copy(blob, target)
        except OSError as error:
            local.unlink(missing_ok=True)
            raise StorageError(f"copy a file to {local}", self._storage.url, str(error)) from error
        except BaseException:
            local.unlink(missing_ok=True)
            raise

    def _part(self, part: FileSlice) -> bytes:
        """Return the bytes of a part. The remembered bytes are replaced as a whole, so threads need no lock."""
        path, start, data = self._ahead
        offset, end = part.offset - start, part.offset + part.length - start
        follows, self._next = self._next == (part.path, part.offset), (part.path, part.offset + part.length)
        if path == part.path and 0 <= offset and end <= len(data):
            return data[offset:end]
        if not follows or part.length >= _READ_AHEAD:
            return self._storage.read(part.path, part.offset, part.length)
        data = self._storage.read(part.path, part.offset, _READ_AHEAD)
        self._ahead = part.path, part.offset, data
        return data[: part.length]

    def _copy(self, blob: Blob, target: BinaryIO) -> None:
        if not isinstance(blob, FileSlice):
            target.write(blob)
            return
        length = checksum = 0
        while length < blob.length:
            wanted = min(_READ_AT_ONCE, blob.length - length)
            data = self._storage.read(blob.path, blob.offset + length, wanted)
            target.write(data)
            length, checksum = length + len(data), zlib.crc32(data, checksum)
            if len(data) < wanted:
                break
        self._check(blob, length, checksum)

    def _check(self, part: FileSlice, length: int, checksum: int) -> None:
        """Raise where these are not the bytes that were written."""
        file, where = f"{self._storage.url}/{part.path}", f"bytes {part.offset} to {part.offset + part.length}"
        if length != part.length:
            raise DamagedFileError(file, where, f"{length} bytes", f"{part.length} bytes")
        if checksum != part.checksum:
            raise DamagedFileError(file, where, f"checksum {checksum:08x}", f"checksum {part.checksum:08x}")


def checksum_of_pieces(pieces: Pieces) -> int:
    """Return the CRC-32 of pieces behind each other.

    zlib gives the interpreter away while it computes, and a task that computes gives it back after 5 ms: hundreds of
    short pieces would take seconds, so that they are joined to few long ones.

    >>> checksum_of_pieces([b"a" * 9_000, b"b"]) == zlib.crc32(b"a" * 9_000 + b"b")
    True
    """
    checksum, waiting, size = 0, list[bytes | memoryview](), 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _CHECKED_AT_ONCE:
            checksum, waiting, size = zlib.crc32(_joined(waiting), checksum), [], 0
    return zlib.crc32(_joined(waiting), checksum) if waiting else checksum


def _joined(pieces: list[bytes | memoryview]) -> bytes | memoryview:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _checksum_of(local: Path) -> int:
    checksum = 0
    with local.open("rb") as source:
        while data := source.read(_READ_AT_ONCE):
            checksum = zlib.crc32(data, checksum)
    return checksum


__all__ = [
    "PACKED_BYTES", "SnapshotFileReader", "SnapshotFileWriter", "SnapshotPlace", "random_name",
]  # fmt: skip
