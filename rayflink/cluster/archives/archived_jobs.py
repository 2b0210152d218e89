"""The archived jobs of several folders, with bounded memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rayflink.actors.job.notes.job_archive import DamagedArchive, JobArchive, read_head
from rayflink.state.clock import Clock
from rayflink.state.storage.storage import MissingFileError, StorageError

from ..jobs.cluster_job import Document, JobHasEnded, JobView, RunningJob, UnknownJob
from ..jobs.recent_archives import RecentArchives
from .archive_store import ArchiveFile, ArchiveStore

__all__ = ["ArchiveRetention", "ArchivedJobs"]

log = logging.getLogger(__name__)
MOST_LISTED = 10_000
"""Jobs of a list, those that ended last; older ones are answered by their id."""


@dataclass(frozen=True, slots=True)
class ArchiveRetention:
    """Says which archives stay.

    Args:
        newest: archives of each folder; None: all.
        age_ms: time since a job's end; None: for ever.
        deletes: whether the files of others are deleted, too, or only not shown.
    """

    newest: int | None = None
    age_ms: int | None = None
    deletes: bool = False

    def expired(self, files: Sequence[ArchiveFile], now_ms: int) -> list[ArchiveFile]:
        """Return those of a folder that do not stay.

        >>> files = [ArchiveFile(end, "a" * 32, str(end)) for end in (30, 20, 10)]
        >>> [file.name for file in ArchiveRetention(2, 15).expired(files, 40)]
        ['20', '10']

        Args:
            files: the job that ended last first.
            now_ms: the time, epoch milliseconds.
        """
        most = len(files) if self.newest is None else self.newest
        oldest_ms = 0 if self.age_ms is None else now_ms - self.age_ms
        return [file for number, file in enumerate(files) if number >= most or file.ended_ms < oldest_ms]


KEEP_ALL = ArchiveRetention()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A job in the index.

    Args:
        store: where its archive is.
        file: its archive.
        head: for lists, encoded; None: it is too old for them, or its file could not be read yet.
    """

    store: ArchiveStore
    file: ArchiveFile
    head: bytes | None


class ArchivedJobs:
    """The jobs of folders of archives. It may be used by several threads.

    In memory are the names of all files, the heads of the newest jobs, and the archives that were read last. A file
    that cannot be read as an archive is reported, counted, and left out.

    Args:
        stores: the folders.
        clock: for the age of archives.
        retention: which of them stay.
        most_bytes: of archives that were read last.
    """

    def __init__(
        self, stores: Sequence[ArchiveStore], clock: Clock, retention: ArchiveRetention = KEEP_ALL,
        most_bytes: int = 50 << 20,
    ) -> None:  # fmt: skip
        self._stores, self._clock, self._retention = tuple(stores), clock, retention
        self._index: dict[str, _Entry] = {}
        """Job id -> its newest archive, the job that ended last first."""
        self._damaged: dict[str, str] = {}
        """Address of a file -> what is wrong with it."""
        self._unreachable: dict[str, str] = {}
        """Address of a folder -> why it could not be listed."""
        self._recent = RecentArchives(most_bytes)
        self._lock, self._refreshing = threading.Lock(), threading.Lock()

    def figures(self) -> dict[str, int]:
        """Count archives, and what is wrong with them."""
        with self._lock:
            return {
                "archives": len(self._index),
                "archivesDamaged": len(self._damaged),
                "foldersUnreachable": len(self._unreachable),
                "bytesInMemory": self._recent.bytes + sum(len(entry.head or b"") for entry in self._index.values()),
            }

    def refresh(self) -> None:
        """Look for new archives, and forget those that are gone or have expired."""
        with self._refreshing:
            entries: list[_Entry] = []
            now_ms = self._clock.now_ms()
            with self._lock:
                known = {entry.store.url + entry.file.name: entry for entry in self._index.values()}
            for store in self._stores:
                files = self._files(store)
                if files is None:
                    entries += [entry for entry in known.values() if entry.store is store]
                    continue
                expired = self._retention.expired(files, now_ms)
                self._delete(store, expired)
                gone = set(expired)
                entries += [
                    known.get(store.url + file.name) or _Entry(store, file, None) for file in files if file not in gone
                ]
            index, damaged = self._read_heads(_in_order(entries))
            with self._lock:
                self._index, self._damaged = index, damaged

    def statuses(self) -> list[Document]:
        """Return the statuses of the newest jobs, without subtasks and exceptions; those that began last first."""
        with self._lock:
            heads = [entry.head for entry in self._index.values() if entry.head is not None]
        return sorted(map(_decoded, heads), key=_begin_ms, reverse=True)

    def view(self, job_id: str) -> JobView:
        """Return a job to read.

        Raises:
            UnknownJob: it has no archive.
            StorageError: its archive cannot be read now.
            DamagedArchive: its archive cannot be read.
        """
        with self._lock:
            entry = self._index.get(job_id)
        if entry is None:
            raise UnknownJob(job_id)
        archive = self._recent.get(job_id)
        if archive is not None:
            return archive
        try:
            archive = JobArchive.decode(entry.store.read(entry.file.name), f"{entry.store.url}/{entry.file.name}")
        except MissingFileError as error:
            raise UnknownJob(job_id) from error
        self._recent.add(archive)
        return archive

    def running(self, job_id: str) -> RunningJob:
        """Refuse to ask a job that has ended.

        Raises:
            UnknownJob: it has no archive.
            JobHasEnded: it has.
        """
        raise JobHasEnded(job_id, str(self.view(job_id).status()["state"]))

    def cancel(self, job_id: str, by: str) -> None:
        """Refuse to cancel a job that has ended. Raises: `UnknownJob`, `JobHasEnded`."""
        self.running(job_id)

    def _files(self, store: ArchiveStore) -> list[ArchiveFile] | None:
        """Return the archives of a folder; None where it cannot be listed, which is reported once."""
        try:
            files = store.files()
        except StorageError as error:
            if store.url not in self._unreachable:
                log.warning("archives cannot be listed", extra={"folder": store.url}, exc_info=error)
            self._unreachable[store.url] = str(error)
            return None
        self._unreachable.pop(store.url, None)
        return files

    def _delete(self, store: ArchiveStore, files: Sequence[ArchiveFile]) -> None:
        for file in files if self._retention.deletes else ():
            try:
                store.delete(file.name)
            except StorageError as error:  # the next look tries again
                log.warning("archive not deleted", extra={"archive": file.name}, exc_info=error)
                return

    def _read_heads(self, index: dict[str, _Entry]) -> tuple[dict[str, _Entry], dict[str, str]]:
        """Return the index with the heads of its newest jobs, without damaged files, and what is wrong with those."""
        readable: dict[str, _Entry] = {}
        damaged: dict[str, str] = {}
        for job_id, entry in index.items():
            address = f"{entry.store.url}/{entry.file.name}"
            head = entry.head
            if len(readable) >= MOST_LISTED:
                head = None
            elif address in self._damaged:
                damaged[address] = self._damaged[address]
                continue
            elif head is None:
                try:
                    head = read_head(entry.store.read(entry.file.name), address)
                except DamagedArchive as error:
                    log.warning("archive damaged", extra={"archive": address}, exc_info=error)
                    damaged[address] = error.problem
                    continue
                except StorageError as error:  # it is gone, or read at the next look
                    log.warning("archive not read", extra={"archive": address}, exc_info=error)
            readable[job_id] = entry if head is entry.head else _Entry(entry.store, entry.file, head)
        return readable, damaged


def _in_order(entries: Sequence[_Entry]) -> dict[str, _Entry]:
    """Return the newest archive of each job, the job that ended last first."""
    index: dict[str, _Entry] = {}
    for entry in sorted(entries, key=lambda entry: entry.file, reverse=True):
        index.setdefault(entry.file.job_id, entry)
    return index


def _begin_ms(status: Document) -> int:
    return min(status["timestamps"].values(), default=0)


def _decoded(head: bytes) -> dict[str, Any]:
    status: dict[str, Any] = msgspec.json.decode(head)
    return status
