"""Jobs go on in new processes, which have the versions that are installed now."""

from __future__ import annotations

import time

from rayflink.common.errors import JobExecutionError

from ..jobs.cluster_job import JobHasEnded, RunningJob
from .dispatcher_parts import DispatcherParts
from .renewal import Renewal, RenewalPlan, await_running, renewal_plan, savepoint_directory, take_savepoint

__all__ = ["JobRenewals"]


class JobRenewals:
    """Renews jobs of a dispatcher.

    Args:
        parts: of the dispatcher.
    """

    def __init__(self, parts: DispatcherParts) -> None:
        self._parts = parts

    def plan(self, job_id: str) -> RenewalPlan:
        """Return what `renew` would do with a job.

        Raises:
            StorageError, JobExecutionError: its submission cannot be read.
        """
        parts = self._parts
        job = parts.table.get(job_id)
        submission = None if job is None else parts.starts.stored(job)
        return renewal_plan(submission, parts.registry.url, parts.registry.starts(job_id))

    def renew(self, job_id: str, running: RunningJob, directory: str, wait_s: float) -> Renewal:
        """Let a job go on in new processes, as `Dispatcher.renew` describes it.

        Args:
            running: the same job.
        """
        parts = self._parts
        job, plan = parts.table.get(job_id), self.plan(job_id)
        if job is None or plan.reason:
            raise JobExecutionError(job_id, plan.reason, plan.remedy)
        submission = parts.starts.stored(job)
        directory = directory or savepoint_directory(submission.description, parts.registry.url)
        savepoint = take_savepoint(job_id, running, directory, wait_s)
        began = time.monotonic()
        if not parts.table.begin_start(job_id):
            raise JobExecutionError(job_id, "is being started already", "ask again when it runs")
        try:
            parts.runner.suspend(job_id)
            parts.table.forget_status(job_id)
            if (archive := parts.ends.read(job)) is not None:  # it came to its end after the savepoint
                parts.keep(archive)
                raise JobHasEnded(job_id, archive.state)
            parts.starts.start(parts.starts.number(submission, job.accepted_ms))
            await_running(job_id, parts.runner, wait_s)
        finally:
            parts.table.end_start(job_id)
        return Renewal(savepoint, time.monotonic() - began)
