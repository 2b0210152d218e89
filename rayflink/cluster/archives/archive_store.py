"""The archives of one folder: a file for each job."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rayflink.actors.job.notes.job_archive import is_packed
from rayflink.state.storage.storage import Storage, put_own

from ..jobs.cluster_job import JobView, archive_of

__all__ = ["ArchiveFile", "ArchiveStore"]

_NAME = re.compile(r"(\d{13})-([0-9a-f]{32})\.json(\.zst)?")


@dataclass(frozen=True, order=True, slots=True)
class ArchiveFile:
    """The name of an archive, which says what retention must know.

    Args:
        ended_ms: when the job ended, epoch milliseconds.
        job_id: 32 hex digits.
        name: of the file.
    """

    ended_ms: int
    job_id: str
    name: str


class ArchiveStore:
    """Writes, lists, reads and deletes archives.

    Args:
        storage: the folder; other files in it are left alone.
        for_flink: gives an archive in the layout of Flink, which is written beside ours, named by the job; None: none.
    """

    def __init__(self, storage: Storage, for_flink: Callable[[JobView], bytes] | None = None) -> None:
        self._storage, self._for_flink = storage, for_flink

    @property
    def url(self) -> str:
        """Return the address of the folder."""
        return self._storage.url

    def store(self, view: JobView) -> ArchiveFile:
        """Write the archive of a job that has ended. One that was written before, by whomever, stays as it is.

        Raises:
            StorageError: it could not be written.
        """
        archive = archive_of(view)
        data = archive.encode()
        ending = ".json.zst" if is_packed(data) else ".json"
        at_ms = min(max(archive.ended_ms, 0), 10**13 - 1)
        name = f"{at_ms:013d}-{archive.jid}{ending}"
        if self._for_flink is not None:
            put_own(self._storage, archive.jid, self._for_flink(archive))
        put_own(self._storage, name, data)
        return ArchiveFile(at_ms, archive.jid, name)

    def files(self) -> list[ArchiveFile]:
        """Return the archives, the job that ended last first.

        Raises:
            StorageError: the folder cannot be listed.
        """
        matches = [match for match in map(_NAME.fullmatch, self._storage.list()) if match]
        return sorted((ArchiveFile(int(match[1]), match[2], match[0]) for match in matches), reverse=True)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            MissingFileError: there is none.
            StorageError: it cannot be read.
        """
        return self._storage.read(name)

    def delete(self, name: str) -> None:
        """Delete an archive, also that in the layout of Flink; one that is not there is no error.

        Raises:
            StorageError: it cannot be deleted.
        """
        match = _NAME.fullmatch(name)
        if match is not None:
            self._storage.delete(match[2])
        self._storage.delete(name)
