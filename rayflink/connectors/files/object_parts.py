"""Part files in an object store: uploaded while they are written, visible when the upload is completed at a commit."""

from __future__ import annotations

import io
import re
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer

from ..file_systems.object_paths import ObjectPath
from ..file_systems.object_store import ObjectStores
from ..file_systems.store_errors import MissingObjectError, ObjectStoreError
from ..file_systems.uploads import PART_BYTES, UploadedPart, Uploads, finish, uploads_to

INLINE_BYTES = 256 << 10
"""A file that ends smaller is in the committable itself, and written with one request at the commit."""
IN_FLIGHT = 4
"""Parts that a subtask uploads at the same time; one more waits, and the task with it."""
COMMITS_AT_ONCE = 8


@dataclass(frozen=True)
class PendingObject:
    """An object that waits to be made visible.

    Args:
        visible: its address.
        token: unique, in the metadata of the object.
        upload_id: of the upload in parts; "": all bytes are in `tail`.
        parts: those in the store.
        tail: the bytes behind them.
    """

    visible: str
    token: str
    upload_id: str = ""
    parts: tuple[UploadedPart, ...] = ()
    tail: bytes = b""

    @property
    def hidden(self) -> str:
        """Return a name of the file being written, the same as long as it is."""
        return f"{self.visible}#{self.token}"

    @property
    def size(self) -> int:
        """Return the number of its bytes."""
        return sum(part.size for part in self.parts) + len(self.tail)

    def __repr__(self) -> str:
        return f"object {self.visible!r} of {self.size} bytes, {len(self.parts)} parts of which are uploaded"


class LostUpload(ObjectStoreError):
    """An upload is gone that was to be completed, and its object is not there."""


class ObjectPart:
    """A file being written: full parts are uploaded by other threads.

    Args:
        path: the visible address.
        uploads: of its store.
        pool: uploads the parts.
        now_ms: processing time.
    """

    def __init__(self, path: ObjectPath, uploads: Uploads, pool: ThreadPoolExecutor, now_ms: int) -> None:
        self.visible, self._path, self._uploads, self._pool = str(path), path, uploads, pool
        self._token = uuid.uuid4().hex
        self.hidden = f"{self.visible}#{self._token}"
        self.begun_ms = self.touched_ms = now_ms
        self.file = _PartStream(self._upload)
        self._upload_id = self._saved_id = ""
        self._count = 0
        self._parts: list[UploadedPart] = []
        self._running: deque[Future[UploadedPart]] = deque()

    def sync(self) -> PendingObject:
        """Wait for the parts; return what the file is so far."""
        self._wait(0)
        self._saved_id = self._upload_id
        return PendingObject(self.visible, self._token, self._upload_id, tuple(self._parts), self.file.rest())

    def end(self) -> PendingObject:
        """Upload what is left; return the whole file."""
        rest = self.file.rest()
        if self._upload_id or len(rest) > INLINE_BYTES:
            if rest:
                self._upload(rest)
            rest = b""
        self._wait(0)
        return PendingObject(self.visible, self._token, self._upload_id, tuple(self._parts), rest)

    def _upload(self, data: bytes) -> None:
        if not self._upload_id:
            self._upload_id = self._uploads.begin(self._path.key, self._token)
        self._count += 1
        self._running.append(self._pool.submit(self._add, self._count, data))
        self._wait(IN_FLIGHT - 1)

    def _add(self, number: int, data: bytes) -> UploadedPart:
        return UploadedPart(number, self._uploads.add(self._path.key, self._upload_id, number, data), len(data))

    def _wait(self, most: int) -> None:
        while len(self._running) > most:
            self._parts.append(self._running.popleft().result())

    def leave(self) -> None:
        """Leave it to the next attempt, which needs no more of it than was in a checkpoint."""
        if self._upload_id != self._saved_id:
            self.discard()

    def discard(self) -> None:
        """Abort the upload."""
        for future in self._running:
            future.cancel()
        if self._upload_id:
            self._uploads.abort(self._path.key, self._upload_id)


class _PartStream(io.RawIOBase):
    """Collects what is written, and gives full parts away.

    Args:
        upload: takes a part.
    """

    def __init__(self, upload: Callable[[bytes], None]) -> None:
        self._upload, self._buffer, self._given = upload, bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # of bytes, as its callers have it
        written = memoryview(data).nbytes
        self._buffer += data
        while len(self._buffer) >= PART_BYTES:
            part = bytes(memoryview(self._buffer)[:PART_BYTES])
            del self._buffer[:PART_BYTES]
            self._given += len(part)
            self._upload(part)
        return written

    def tell(self) -> int:
        return self._given + len(self._buffer)

    def rest(self) -> bytes:
        """Return the bytes that are in no part yet."""
        return bytes(self._buffer)


class ObjectPlace:
    """A folder of part files in an object store.

    Args:
        folder: its address.
    """

    def __init__(self, folder: ObjectPath) -> None:
        self._folder, self._store = folder, folder.store
        self._uploads = uploads_to(folder.store)
        self._pool = ThreadPoolExecutor(IN_FLIGHT, "upload part")

    def ensure_writable(self) -> None:
        """Check that the store answers, and knows bucket and credentials; it is not found out if writing is permitted.

        Raises:
            ObjectStoreError: it refuses.
        """
        self._store.folders(f"{self._folder.key}/.rayflink".lstrip("/"))

    def exists(self, path: str) -> bool:
        """Return whether an object is there."""
        return self._store.find(self._at(path).key) is not None

    def open_part(self, folder: str, name: str, attempt: tuple[int, int], now_ms: int) -> ObjectPart:
        """Return a new file."""
        del attempt
        return ObjectPart(self._at(f"{folder}/{name}"), self._uploads, self._pool, now_ms)

    def settle(self, folder: str) -> None:
        """Do nothing: there are no folders whose names are to be written."""

    def discard(self, pending: PendingObject) -> None:
        """Delete a file that will not be visible."""
        if pending.upload_id:
            self._uploads.abort(self._at(pending.visible).key, pending.upload_id)

    def remove_leftovers(
        self, names: tuple[str, str], firsts: Mapping[int, int], before: tuple[int, int] | None, subtask: int
    ) -> None:
        """Abort uploads that earlier attempts of some subtasks began and no checkpoint knows, in all buckets.

        An attempt that does so writes down first that it runs. So one that was believed to be dead, and looks later,
        finds that out and leaves what is not its own.

        Args:
            names: beginning and end of the visible names, around subtask and number.
            firsts: subtask -> the number of its first file after the checkpoint.
            before: epoch and number of the attempt that looks; None: whosever they are.
            subtask: which one it is of.
        """
        unfinished = self._uploads.unfinished(f"{self._folder.key}/".lstrip("/"))  # before it is known who runs
        beginning, end = map(re.escape, names)
        ours = re.compile(rf"{beginning}(\d+)-(\d+){end}")
        old = {number for number in firsts if before is None or self._newest(names[0], number) <= before}
        if before is None:
            for number in firsts:
                self._store.delete(self._note(names[0], number))
        elif subtask in old:
            self._store.put(self._note(names[0], subtask), "{} {}".format(*before).encode())
        for key, upload_id in unfinished:
            match = ours.fullmatch(key.rpartition("/")[2])
            if match is None or int(match[1]) not in old:
                continue
            is_after = int(match[2]) >= firsts[int(match[1])]
            if is_after or self._store.find(key) is not None:  # complete by another upload
                self._uploads.abort(key, upload_id)

    def _note(self, beginning: str, subtask: int) -> str:
        return f"{self._folder.key}/.{beginning}{subtask}.attempt".lstrip("/")

    def _newest(self, beginning: str, subtask: int) -> tuple[int, int]:
        """Return epoch and number of the last attempt of a subtask that is known to have run."""
        key = self._note(beginning, subtask)
        entry = self._store.find(key)
        if entry is None:
            return -1, -1
        epoch, _, number = bytes(self._store.read(key, 0, entry.size)).decode().partition(" ")
        return int(epoch), int(number)

    def close(self) -> None:
        """Release the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _at(self, address: str) -> ObjectPath:
        return ObjectPath(address, self._store)


class ObjectCommitter(Committer):
    """Makes objects visible; one that is so already stays as it is.

    Args:
        stores: where they are.
    """

    in_background = True

    def __init__(self, stores: ObjectStores) -> None:
        self._stores = stores
        self._uploads: dict[str, Uploads] = {}
        self._pool: ThreadPoolExecutor | None = None

    def commit(self, requests: Sequence[CommitRequest[PendingObject]]) -> None:
        if len(requests) == 1:
            return self._commit(requests[0])
        if self._pool is None:
            self._pool = ThreadPoolExecutor(COMMITS_AT_ONCE, "commit object")
        list(self._pool.map(self._commit, requests))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def show(self, pending: PendingObject, is_restored: bool = True) -> bool:
        """Make an object visible; return False where it is so already.

        Args:
            is_restored: uploads of its name that no checkpoint has are aborted.

        Raises:
            LostUpload: it cannot be made visible any more.
            ObjectStoreError: the store refuses it.
        """
        path = self._stores.path(pending.visible)
        uploads = self._uploads.setdefault(path.store.root, uploads_to(path.store))
        try:
            is_new = finish(
                path.store, uploads, path.key, (pending.upload_id, pending.parts, pending.tail, pending.token)
            )
        except MissingObjectError as error:
            remedy = "let the bucket's rule for incomplete uploads wait longer than a job may stand still"
            reason = "its upload was aborted, or the object was deleted or replaced after it was complete"
            raise LostUpload("complete", pending.visible, reason, remedy) from error
        if is_restored and not pending.upload_id:
            for key, upload_id in uploads.unfinished(path.key):
                if key == path.key:
                    uploads.abort(key, upload_id)
        return is_new

    def _commit(self, request: CommitRequest[PendingObject]) -> None:
        try:
            if not self.show(request.get_committable(), request.restored):
                request.signal_already_committed()
        except LostUpload as error:
            request.signal_failed_with_unknown_reason(error)
        except ObjectStoreError as error:
            request.retry_later(error)


__all__ = ["LostUpload", "ObjectCommitter", "ObjectPart", "ObjectPlace", "PendingObject"]
