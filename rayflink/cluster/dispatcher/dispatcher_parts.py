"""The parts that the duties of a dispatcher share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from rayflink.actors.job.notes.job_archive import JobArchive

from ..jobs.cluster_job import Document
from ..jobs.trends import Trends
from ..registry.job_registry import AcceptedJob, JobRegistry
from ..runners.runner import Runner
from .absent_jobs import StartAttempts
from .job_documents import beginning_job
from .job_ends import JobEnds
from .job_restarts import Lineage
from .job_starts import JobStarts
from .job_table import JobTable

__all__ = ["DispatcherParts"]


@dataclass(frozen=True)
class DispatcherParts:
    """The parts of a dispatcher.

    Args:
        registry: of the jobs.
        runner: that runs them.
        table: of those that have not ended.
        starts: number and start them.
        ends: of those that have ended.
        attempts: that have failed, to start one.
        lineage: which job is a new start of which.
        starters: run the calls that start jobs.
        trends: remember the figures of those that run.
        ensure_leads: raises `DispatcherFenced` where another dispatcher leads, `NotReady` before this one does.
    """

    registry: JobRegistry
    runner: Runner
    table: JobTable
    starts: JobStarts
    ends: JobEnds
    attempts: StartAttempts
    lineage: Lineage
    starters: Executor
    trends: Trends
    ensure_leads: Callable[[], None]

    def note(self, archive: JobArchive) -> None:
        """Note the end of a job in the registry, and keep it for readers.

        Raises:
            StorageError: it could not be noted.
        """
        self.keep(self.ends.note(archive))

    def keep(self, archive: JobArchive) -> None:
        """Keep a job for readers whose end the registry has."""
        self.table.remove(archive.jid)
        self.attempts.forget(archive.jid)
        self.ends.keep(archive)

    def last_status(self, job: AcceptedJob) -> Document:
        """Return the last known status of a job, of which there may be a newer one that is not published yet."""
        status = self.runner.status(job.job_id) or self.table.status(job.job_id)
        if status is None:
            return beginning_job(job, reason=self.attempts.reason(job.job_id)).status()
        return status
