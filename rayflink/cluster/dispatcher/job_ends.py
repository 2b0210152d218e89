"""The ends of jobs: noted in the registry, listed for readers, archived, and forgotten after a time.

Archives of jobs that have ended enter; the list has their heads in memory, and all else is read from the registry.
"""

from __future__ import annotations

from collections.abc import Callable

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError, RayflinkError, TaskLost
from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import DamagedFileError

from ..jobs.cluster_job import JobView, archive_of
from ..jobs.recent_archives import RecentArchives
from ..registry.job_registry import AcceptedJob, JobRegistry
from ..runners.runner import StartedJob
from .ended_jobs import EndedJobs, ListedJob
from .job_documents import beginning_job, is_over

__all__ = ["JobEnds", "archive_of_ended"]

log = get_logger(__name__)
FORGET_AT_A_TIME = 50


class JobEnds:
    """The jobs of a cluster that have ended.

    Args:
        registry: in which an end forbids another start.
        listed: those that clients find in the list of jobs.
        archive: takes each job that has ended; None: none are archived.
        most_bytes: of the archives that are remembered after they were read.
    """

    def __init__(
        self, registry: JobRegistry, listed: EndedJobs, archive: Callable[[JobView], None] | None = None,
        most_bytes: int = 50 << 20,
    ) -> None:  # fmt: skip
        self._registry, self._listed, self._archive = registry, listed, archive
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
        try:
            return self._registry.ended(job.job_id)
        except DamagedFileError as error:  # whatever it said: the job has ended, and must not begin anew
            archive = beginning_job(job, None, "FAILED", f"how it has ended is lost: {error}")
            self._unnoted[job.job_id] = archive.encode()
            return archive

    def restore(self, archive: JobArchive) -> None:
        """Put a job that ended under an earlier dispatcher into the list."""
        self._listed.restore(ListedJob.of(archive))

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
        self._leave(self._listed.add(ListedJob.of(archive)))
        if self._archive is not None:
            try:
                self._archive(archive)
            except RayflinkError as error:
                log.warning("a job could not be archived: %s", error, extra={"job": archive.jid})

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
        archive = self._recent.get(job_id)
        if archive is None:
            unnoted = self._unnoted.get(job_id)
            where = f"the end of job {job_id}"
            archive = self._registry.ended(job_id) if unnoted is None else JobArchive.decode(unnoted, where)
        if archive is not None:
            self._recent.add(archive)
        return archive

    def all(self) -> list[ListedJob]:
        """Return all jobs of the list."""
        return self._listed.all()

    def forget_some(self, forget: Callable[[str], None]) -> None:
        """Delete from the registry what has left the list, a part at a time.

        Args:
            forget: called with the id of each job that was deleted.

        Raises:
            StorageError: one could not be deleted; the next call tries again.
        """
        self._leave(self._listed.remove_old())
        for _ in range(min(len(self._leaving), FORGET_AT_A_TIME)):
            self._registry.forget(self._leaving[0])
            forget(self._leaving.pop(0))

    def _leave(self, job_ids: list[str]) -> None:
        self._leaving += job_ids
        for job_id in job_ids:
            self._unnoted.pop(job_id, None)
            self._recent.forget(job_id)


def archive_of_ended(started: StartedJob) -> JobArchive | None:
    """Return a job, if it has ended; None: it has not, or cannot be asked just now."""
    try:
        return archive_of(started) if is_over(started.status()) else None
    except (ControlPlaneTimeout, TaskLost, JobExecutionError) as error:
        log.info("a job cannot be asked yet: %s", error)
        return None
