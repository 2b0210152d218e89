"""A job is accepted: first durably, then it is started; a submission that is repeated changes nothing."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as StartTimeout

from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError, TaskLost, described
from rayflink.common.text_output.logs import get_logger
from rayflink.launch.remote_submission import RemoteSubmission

from ..registry.job_registry import AcceptedJob
from .dispatcher_parts import DispatcherParts
from .job_documents import beginning_job

__all__ = ["Submissions"]

log = get_logger(__name__)
ENTRANCES = 64


class Submissions:
    """Accepts jobs of a dispatcher.

    Args:
        parts: of the dispatcher.
    """

    def __init__(self, parts: DispatcherParts) -> None:
        self._parts = parts
        self._entrances = tuple(threading.Lock() for _ in range(ENTRANCES))
        """A lock is held while a job with one of its ids is being accepted."""

    def accept(self, job: AcceptedJob, submission: RemoteSubmission, wait_s: float | None = None) -> None:
        """Accept a job, durably, and start it. The same one again changes nothing.

        Args:
            wait_s: time for its start, as in `Dispatcher.submit`.

        Raises:
            JobExecutionError: it can, within the time, not be started here.
            DuplicateJob: another job has its id.
            DispatcherFenced: another dispatcher leads.
            StorageError: it cannot be stored, and is not accepted.
        """
        parts, job_id = self._parts, job.job_id
        parts.ensure_leads()
        if not self._enter(job, submission.encode()):
            return
        parts.lineage.note(job)
        try:
            parts.ensure_leads()  # one that took over meanwhile may not know the job; the client asks it again
            # an error leaves it accepted, and it is brought back
            numbered = parts.starts.number(submission, job.accepted_ms)
            start = parts.starters.submit(self._start, numbered)
        except BaseException:
            parts.table.end_start(job_id)
            raise
        log.info("job %s was accepted from %s", job.name, job.by, extra={"job": job_id})
        try:
            start.result(wait_s)
        except CancelledError:  # the next dispatcher starts it
            pass
        except StartTimeout:
            if start.done():
                start.result()
            log.info("job %s waits for its processes", submission.name, extra={"job": job_id})

    def _enter(self, job: AcceptedJob, data: bytes) -> bool:
        """Accept a job, and return whether the caller has to start it: it is new.

        An accepted job that is not known here is brought back: its client had no answer when it was accepted, or an
        older dispatcher accepted it when this one had read the registry.
        """
        parts = self._parts
        with self._entrances[int(job.job_id, 16) % ENTRANCES]:
            is_new = parts.registry.accept(job, data)
            if is_new or not (parts.table.is_starting(job.job_id) or parts.ends.get(job.job_id) is not None):
                parts.table.add(job, is_starting=is_new)
            return is_new

    def _start(self, submission: RemoteSubmission) -> None:
        """Start a job that was accepted a moment ago."""
        try:
            self._parts.starts.start(submission)
        except (ControlPlaneTimeout, TaskLost) as error:  # it is started as soon as that is possible
            log.warning("job %s (%s) has not started yet: %s", submission.name, submission.job_id, error)
            self._parts.attempts.failed(submission.job_id, described(error))
        except Exception as error:
            self._give_up(submission, error)
            raise
        finally:
            self._parts.table.end_start(submission.job_id)

    def _give_up(self, submission: RemoteSubmission, error: Exception) -> None:
        """Note a job that cannot be started as one that has failed, so that its end can be read."""
        about = {"job": submission.job_id}
        log.error("job %s cannot be started: %s", submission.name, described(error), extra=about)
        job = self._parts.table.get(submission.job_id)
        if job is None:  # it was cancelled meanwhile
            return
        self._parts.ensure_leads()  # else another dispatcher starts it, and how it ends is not known here
        refusal = (error.reason, error.remedy) if isinstance(error, JobExecutionError) else None
        self._parts.note(beginning_job(job, submission.description, "FAILED", described(error), refusal))
