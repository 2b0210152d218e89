"""The jobs that there should be are compared with those that run: some are brought back, the ends of others noted."""

from __future__ import annotations

from rayflink.common.errors import RayflinkError, described
from rayflink.common.text_output.logs import get_logger

from ..jobs.cluster_job import Document
from ..registry.job_registry import AcceptedJob
from ..registry.leadership import DispatcherFenced
from .cancellations import Cancellations
from .dispatcher_parts import DispatcherParts
from .foreign_jobs import ForeignJobs
from .job_documents import beginning_job, is_over, now_ms
from .job_ends import archive_of_ended
from .renewal import is_end

__all__ = ["Supervision"]

log = get_logger(__name__)


class Supervision:
    """Looks after the jobs of a dispatcher.

    Args:
        parts: of the dispatcher.
        cancellations: of its jobs.
    """

    def __init__(self, parts: DispatcherParts, cancellations: Cancellations) -> None:
        self._parts, self._cancellations = parts, cancellations
        self._foreign = ForeignJobs(parts.runner)

    def look(self) -> None:
        """Compare the jobs that there should be with those that run: bring back some, note the ends of others.

        Raises:
            DispatcherFenced: another dispatcher leads.
            StorageError, RayflinkError: the registry or the cluster does not answer.
        """
        parts = self._parts
        statuses = {str(status["jid"]): status for status in parts.runner.statuses()}
        for job in parts.table.at_rest():
            try:
                self._look_at(job, statuses.get(job.job_id))
            except DispatcherFenced:
                raise
            except Exception as error:  # one job keeps no other one from being looked after
                log.warning("a job could not be looked after: %s", described(error), extra={"job": job.job_id})
        own = {job.job_id for job in parts.table.all()}
        for archive in self._foreign.look(statuses, lambda key: key in own or parts.ends.get(key) is not None):
            parts.ends.keep(archive, is_noted=False)
        parts.ends.forget_some(self._forget)
        parts.trends.note(statuses.values(), now_ms())

    def note_last_ends(self) -> None:
        """Note and archive the jobs that have ended since the last look."""
        for job in self._parts.table.all():
            status, started = self._parts.runner.status(job.job_id), self._parts.runner.find(job.job_id)
            if status is None or started is None or not is_over(status):
                continue
            try:
                if (archive := archive_of_ended(started)) is not None:
                    self._parts.note(archive)
            except RayflinkError as error:  # the next dispatcher does it
                log.warning("the end of a job could not be noted: %s", error, extra={"job": job.job_id})

    def _forget(self, job_id: str) -> None:
        self._cancellations.forget(job_id)
        self._parts.lineage.forget(job_id)

    def _look_at(self, job: AcceptedJob, status: Document | None) -> None:
        parts, job_id = self._parts, job.job_id
        if status is not None and not is_over(status):
            parts.table.note_status(job_id, status)
            self._cancellations.look_at(job_id, status)
            return
        started = parts.runner.find(job_id)
        if started is not None:
            if (archive := parts.ends.read(job)) is not None:  # its coordinator has noted it
                parts.keep(archive)
            elif status is None:
                parts.table.begin_start(job_id)
                parts.starters.submit(self._examine, job)
            elif (archive := archive_of_ended(started)) is not None:
                parts.note(archive)
        elif parts.attempts.is_due(job_id):
            parts.table.begin_start(job_id)
            parts.starters.submit(self._bring_back, job)

    def _examine(self, job: AcceptedJob) -> None:
        """See to a job that has a process and no status: it begins, or has ended, or the process has no job at all.

        A dispatcher that dies while it starts a job may have made the process alone.
        """
        parts = self._parts
        try:
            parts.ensure_leads()  # else the process is that of a newer dispatcher, which is about to start the job
            started = parts.runner.find(job.job_id)
            if parts.runner.withdraw(job.job_id):
                log.warning("a process had no job, and is ended", extra={"job": job.job_id})
            elif started is not None and (archive := archive_of_ended(started)) is not None:
                parts.note(archive)
        except RayflinkError as error:
            log.warning("a job could not be looked after: %s", described(error), extra={"job": job.job_id})
        finally:
            parts.table.end_start(job.job_id)

    def _bring_back(self, job: AcceptedJob) -> None:
        """Start a job again that was accepted, does not run, and has not ended."""
        try:
            self._start_again(job)
        except Exception as error:  # of the user's code as well: it is shown, and tried again
            pause_s = self._parts.attempts.failed(job.job_id, described(error))
            text = "job %s could not be brought back, and is tried again in %.0f s: %s"
            log.warning(text, job.name, pause_s, described(error), extra={"job": job.job_id})
        finally:
            self._parts.table.end_start(job.job_id)

    def _start_again(self, job: AcceptedJob) -> None:
        parts = self._parts
        archive = parts.ends.read(job)
        if archive is not None:
            parts.keep(archive)
            return
        parts.ensure_leads()
        submission = parts.starts.stored(job)
        if parts.starts.is_cancelled(job.job_id):
            text = "its processes were lost while it was being cancelled"
            parts.note(beginning_job(job, submission.description, "CANCELED", text))
            return
        log.warning("job %s does not run, and is brought back", job.name, extra={"job": job.job_id})
        try:
            parts.starts.start(parts.starts.number(submission, job.accepted_ms))
        except RayflinkError as error:
            if not is_end(error):
                raise
            # its checkpoints say that it has ended; how, was lost with its coordinator
            parts.note(beginning_job(job, submission.description, "FINISHED", described(error)))
            return
        parts.attempts.forget(job.job_id)
