"""The ends of jobs: noted in the registry, listed for readers, archived, and forgotten after a time.

Snapshots of jobs that have ended enter; they can be read here until they have left the list, and in the archive later.
"""

from __future__ import annotations

from collections.abc import Callable

from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError, RayflinkError, TaskLost
from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import DamagedFileError

from ..jobs.cluster_job import JobView
from ..jobs.job_snapshot import JobSnapshot
from ..registry.job_registry import AcceptedJob, JobRegistry
from ..runners.runner import StartedJob
from .ended_jobs import EndedJobs
from .job_documents import beginning_document, is_over

__all__ = ["JobEnds", "snapshot_of_ended"]

log = get_logger(__name__)
FORGET_AT_A_TIME = 50


class JobEnds:
    """The jobs of a cluster that have ended.

    Args:
        registry: in which an end forbids another start.
        listed: those that clients find in the list of jobs.
        archive: takes each job that has ended; None: none are archived.
    """

    def __init__(
        self, registry: JobRegistry, listed: EndedJobs, archive: Callable[[JobView], None] | None = None
    ) -> None:
        self._registry, self._listed, self._archive = registry, listed, archive
        self._leaving: list[str] = []
        """Jobs that are no longer in the list, and are about to be deleted from the registry."""

    def read(self, job: AcceptedJob) -> JobSnapshot | None:
        """Return a job as the registry has its end; None where it has none.

        Raises:
            StorageError: that cannot be read.
        """
        try:
            return self._registry.ended(job.job_id)
        except DamagedFileError as error:  # whatever it said: the job has ended, and must not begin anew
            return JobSnapshot(beginning_document(job, None, "FAILED", f"how it has ended is lost: {error}"))

    def restore(self, snapshot: JobSnapshot) -> None:
        """Put a job that ended under an earlier dispatcher into the list."""
        self._listed.restore(snapshot)

    def note(self, snapshot: JobSnapshot) -> None:
        """Note the end of an accepted job in the registry: it is not started again.

        Raises:
            StorageError: it could not be written.
        """
        self._registry.end(snapshot)

    def keep(self, snapshot: JobSnapshot) -> None:
        """Put a job into the list and the archive."""
        self._leaving += self._listed.add(snapshot)
        if self._archive is not None:
            try:
                self._archive(snapshot)
            except RayflinkError as error:
                log.warning("a job could not be archived: %s", error, extra={"job": snapshot.job_id})

    def get(self, job_id: str) -> JobSnapshot | None:
        """Return a job of the list; None: it is not there."""
        return self._listed.get(job_id)

    def all(self) -> list[JobSnapshot]:
        """Return all jobs of the list."""
        return self._listed.all()

    def forget_some(self, forget: Callable[[str], None]) -> None:
        """Delete from the registry what has left the list, a part at a time.

        Args:
            forget: called with the id of each job that was deleted.

        Raises:
            StorageError: one could not be deleted; the next call tries again.
        """
        self._leaving += self._listed.remove_old()
        for _ in range(min(len(self._leaving), FORGET_AT_A_TIME)):
            self._registry.forget(self._leaving[0])
            forget(self._leaving.pop(0))


def snapshot_of_ended(started: StartedJob) -> JobSnapshot | None:
    """Return a job, if it has ended; None: it has not, or cannot be asked just now."""
    try:
        return JobSnapshot.of(started) if is_over(started.status()) else None
    except (ControlPlaneTimeout, TaskLost, JobExecutionError) as error:
        log.info("a job cannot be asked yet: %s", error)
        return None
