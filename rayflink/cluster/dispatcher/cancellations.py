"""A cancellation is noted in the registry before it is carried out, so that it outlives whoever carries it out."""

from __future__ import annotations

import time

from rayflink.common.job_status import JobStatus
from rayflink.common.text_output.logs import get_logger

from ..jobs.cluster_job import Document, RunningJob
from ..registry.job_registry import AcceptedJob
from .dispatcher_parts import DispatcherParts
from .job_documents import beginning_job

__all__ = ["Cancellations"]

log = get_logger(__name__)
CANCEL_EVERY_S = 10.0
"""Time between two requests to a job that is to be cancelled and does not end."""


class Cancellations:
    """Cancels jobs of a dispatcher.

    Args:
        parts: of the dispatcher.
    """

    def __init__(self, parts: DispatcherParts) -> None:
        self._parts = parts
        self._asked_at: dict[str, float] = {}
        """When each job was asked last, seconds of the monotonic clock."""

    def cancel(self, job_id: str, job: RunningJob, by: str) -> None:
        """Cancel a job.

        Args:
            job: the same one.
            by: who wants it.

        Raises:
            DispatcherFenced: another dispatcher leads.
            StorageError: it could not be noted, and the job goes on.
        """
        if self._parts.table.get(job_id) is not None:  # it was accepted here, and would be brought back
            self._parts.ensure_leads()
            self._parts.starts.cancel(job_id)
            self._asked_at[job_id] = time.monotonic()
        job.cancel(by)

    def cancel_absent(self, job: AcceptedJob, by: str) -> None:
        """Note that a job which does not run has been cancelled; one that has begun meanwhile is asked itself."""
        parts = self._parts
        parts.ensure_leads()
        parts.starts.cancel(job.job_id)  # first: whoever starts it now sees this, or it is found below
        started = parts.runner.find(job.job_id)
        if started is not None:
            started.cancel(by)
            return
        parts.note(beginning_job(job, None, "CANCELED", f"cancelled by {by} while it did not run"))

    def look_at(self, job_id: str, status: Document) -> None:
        """Ask a job again that forgot its cancellation: its coordinator was lost, and another one has taken over."""
        if not self._parts.starts.is_cancelled(job_id) or JobStatus(status["state"]) is JobStatus.CANCELLING:
            return
        now_s = time.monotonic()
        if now_s - self._asked_at.get(job_id, float("-inf")) < CANCEL_EVERY_S:
            return
        self._asked_at[job_id] = now_s
        started = self._parts.runner.find(job_id)
        if started is not None:
            log.warning("a job is asked again for its cancellation", extra={"job": job_id})
            self._parts.starters.submit(started.cancel)

    def forget(self, job_id: str) -> None:
        """Forget a job that is no longer known."""
        self._parts.starts.forget(job_id)
        self._asked_at.pop(job_id, None)
