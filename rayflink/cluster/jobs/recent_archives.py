"""The archives of jobs that were read last, with bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict

from rayflink.actors.job.notes.job_archive import JobArchive

__all__ = ["RecentArchives"]


class RecentArchives:
    """Archives by the id of their job; of too many, those that were asked for first go. Several threads may use it.

    >>> from rayflink.actors.job.notes.job_archive import archive_of_example
    >>> recent = RecentArchives(most_bytes=50 << 20)
    >>> recent.add(archive_of_example())
    >>> recent.get("0" * 32).state, recent.get("1" * 32)
    ('FINISHED', None)

    Args:
        most_bytes: of all; one archive may be larger.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._archives: OrderedDict[str, JobArchive] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """Return the bytes that the archives take."""
        return self._bytes

    def get(self, job_id: str) -> JobArchive | None:
        """Return the archive of a job; None: it is not here."""
        with self._lock:
            archive = self._archives.get(job_id)
            if archive is not None:
                self._archives.move_to_end(job_id)
            return archive

    def add(self, archive: JobArchive) -> None:
        """Remember an archive, in place of an earlier one of its job."""
        with self._lock:
            self._forget(archive.jid)
            self._archives[archive.jid] = archive
            self._bytes += archive.size
            while self._bytes > self._most_bytes and len(self._archives) > 1:
                self._forget(next(iter(self._archives)))

    def forget(self, job_id: str) -> None:
        """Forget the archive of a job."""
        with self._lock:
            self._forget(job_id)

    def _forget(self, job_id: str) -> None:
        archive = self._archives.pop(job_id, None)
        if archive is not None:
            self._bytes -= archive.size
