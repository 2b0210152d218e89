"""The ends of jobs: noted in the registry, listed for readers, archived, and forgotten after a time.

Archives of jobs that have ended enter; the list has their heads in memory, and all else is read from the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from itertools import islice
from typing import Protocol

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError, TaskLost
from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import DamagedFileError
from rayflink.state.storage.storage import StorageError

from ..jobs.cluster_job import JobView, archive_of
from ..jobs.recent_archives import RecentArchives
from ..registry.job_registry import AcceptedJob, JobRegistry, RegistryEntry
from ..runners.runner import StartedJob
from .ended_jobs import EndedJobs, ListedJob
from .job_documents import beginning_job, is_over

__all__ = ["JobEnds", "archive_of_ended"]

log = get_logger(__name__)
FORGET_AT_A_TIME = 50


class Archives(Protocol):
    """Stores the archives of jobs, some time after they were added."""

    def add(self, job_id: str, read: Callable[[], JobView | None]) -> None:
        """Have a job archived.

        Args:
            job_id: 32 hex digits.
            read: gives the job when it is its turn; None: it is gone.
        """

    def is_pending(self, job_id: str) -> bool:
        """Return whether a job waits for its archive."""


class JobEnds:
    """The jobs of a cluster that have ended.

    Args:
        registry: in which an end forbids another start.
        listed: those that clients find in the list of jobs.
        archives: take each job that has ended; None: none are archived.
        most_bytes: of the archives that are remembered after they were read.
    """

    def __init__(
        self, registry: JobRegistry, listed: EndedJobs, archives: Archives | None = None, most_bytes: int = 50 << 20
    ) -> None:
        self._registry, self._listed, self._archives = registry, listed, archives
        self._recent = RecentArchives(most_bytes)
        self._unnoted: dict[str, bytes] = {}
        """The ends that no registry has: of jobs of programs, and of those whose own is damaged. Encoded."""
        self._leaving: list[str] = []
        """Jobs that are no longer in the list, and are about to be deleted from the registry."""

    def read(self, job: AcceptedJob) -> JobArchive | None:
        """Return a job as the registry has its end; None where it has none.

        Raises:
            StorageError: that cannot be read.
        """
        return self._end_of(job.job_id)

    def restore(self, entries: Collection[RegistryEntry]) -> list[str]:
        """Put the jobs that ended under earlier dispatchers into the list, as many as stay there.

        The ends of others are not read: they leave the registry, unless their time is not known without.

        Args:
            entries: of jobs that have ended.

        Returns: the jobs whose ends cannot be read now.
        """
        timed = sorted((entry for entry in entries if entry.ended_ms is not None), key=_ended_ms, reverse=True)
        stays = self._listed.stays(map(_ended_ms, timed))
        self._leaving += [entry.job_id for entry in timed[stays:]]
        untimed = [entry.job_id for entry in entries if entry.ended_ms is None]
        return self._restored([entry.job_id for entry in timed[:stays]], False) + self._restored(untimed, True)

    def _restored(self, job_ids: list[str], is_untimed: bool) -> list[str]:
        def read(job_id: str) -> ListedJob | None:
            try:
                archive = self._end_of(job_id)
            except StorageError as error:  # is read again before the job is started
                log.warning("how a job has ended cannot be read now: %s", error, extra={"job": job_id})
                return None
            if archive is not None and is_untimed:
                self._registry.note_end_time(archive)
            return None if archive is None else ListedJob.of(archive)

        jobs = self._registry.each(read, job_ids)
        for job in jobs:
            if job is not None:
                self._listed.restore(job)
        return [job_id for job_id, job in zip(job_ids, jobs, strict=True) if job is None]

    def _end_of(self, job_id: str) -> JobArchive | None:
        """Return a job as it ended; where that is damaged, one that has failed, as it must not begin anew."""
        try:
            return self._registry.ended(job_id)
        except DamagedFileError as error:
            [job] = self._registry.accepted([job_id]) or [AcceptedJob(job_id, job_id, 0, "", "")]
            archive = beginning_job(job, None, "FAILED", f"how it has ended is lost: {error}")
            self._unnoted[job_id] = archive.encode()
            return archive

    def archive_missing(self, present: Collection[str]) -> None:
        """Have those jobs archived that are in the registry or the list, and have no archive yet.

        Args:
            present: jobs that have one.
        """
        for job_id in [*self._leaving, *(job.job_id for job in self._listed.all())]:
            if job_id not in present:
                self._have_archived(job_id)

    def _have_archived(self, job_id: str) -> None:
        if self._archives is not None:
            self._archives.add(job_id, partial(self._read_end, job_id))

    def note(self, archive: JobArchive) -> JobArchive:
        """Note the end of an accepted job in the registry: it is not started again.

        Returns: the end that the registry has, which somebody else may have noted before.

        Raises:
            StorageError: it could not be written.
        """
        if self._registry.end(archive):
            return archive
        try:
            return self._registry.ended(archive.jid) or archive
        except DamagedFileError:
            self._unnoted[archive.jid] = archive.encode()
            return archive

    def keep(self, archive: JobArchive, is_noted: bool = True) -> None:
        """Put a job into the list and the archive.

        Args:
            is_noted: whether the registry has its end.
        """
        if not is_noted:
            self._unnoted[archive.jid] = archive.encode()
        self._recent.add(archive)
        self._have_archived(archive.jid)
        self._leaving += self._listed.add(ListedJob.of(archive))

    def get(self, job_id: str) -> ListedJob | None:
        """Return the entry of a job in the list; None: it is not there."""
        return self._listed.get(job_id)

    def view(self, job_id: str) -> JobView | None:
        """Return a job of the list to read; None: it is not there.

        Raises:
            StorageError, DamagedFileError: the registry cannot be read.
        """
        if self._listed.get(job_id) is None:
            return None
        archive = self._recent.get(job_id) or self._read_end(job_id)
        if archive is not None:
            self._recent.add(archive)
        return archive

    def _read_end(self, job_id: str) -> JobArchive | None:
        unnoted = self._unnoted.get(job_id)
        if unnoted is not None:
            return JobArchive.decode(unnoted, f"the end of job {job_id}")
        return self._registry.ended(job_id)

    def all(self) -> list[ListedJob]:
        """Return all jobs of the list."""
        return self._listed.all()

    def forget_some(self, forget: Callable[[str], None]) -> None:
        """Delete from the registry what has left the list and waits for no archive, a part at a time.

        Args:
            forget: called with the id of each job that was deleted.

        Raises:
            StorageError: one could not be deleted; the next call tries again.
        """
        self._leaving += self._listed.remove_old()
        ready = (job_id for job_id in self._leaving if self._archives is None or not self._archives.is_pending(job_id))
        for job_id in list(islice(ready, FORGET_AT_A_TIME)):
            self._registry.forget(job_id)
            forget(job_id)
            self._leaving.remove(job_id)
            self._unnoted.pop(job_id, None)
            self._recent.forget(job_id)


def _ended_ms(entry: RegistryEntry) -> int:
    return entry.ended_ms or 0


def archive_of_ended(started: StartedJob) -> JobArchive | None:
    """Return a job, if it has ended; None: it has not, or cannot be asked just now."""
    try:
        return archive_of(started) if is_over(started.status()) else None
    except (ControlPlaneTimeout, TaskLost, JobExecutionError) as error:
        log.info("a job cannot be asked yet: %s", error)
        return None
