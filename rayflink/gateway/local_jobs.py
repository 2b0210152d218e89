"""The jobs of INSERTs that run in the gateway's own process."""

from __future__ import annotations

import logging
import threading

from rayflink.common.errors import JobCancelled, RayflinkError
from rayflink.shell.sql_session import ShellJob

__all__ = ["LocalJobs"]

log = logging.getLogger(__name__)
END_S = 10.0
"""Seconds that the end of the gateway waits for a job that it cancels."""


class LocalJobs:
    """Lets jobs run to their end, each in a thread: a local job runs while some thread waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, tuple[ShellJob, threading.Thread]] = {}
        self._is_closed = False
        self.failures = 0
        """Number of jobs that failed; SHOW JOBS of their session shows them."""

    def let_run(self, job: ShellJob) -> None:
        """Let a job run; it goes on when its session is closed, as one on a cluster does.

        A job that comes when the gateway ends is cancelled at once.
        """
        thread = threading.Thread(target=self._run, args=(job,), name=f"job {job.job_id}", daemon=True)
        with self._lock:
            is_late = self._is_closed
            if not is_late:
                self._running[job.job_id] = job, thread
                thread.start()
        if is_late:
            self._cancel(job)

    @property
    def running(self) -> int:
        """Return the number of jobs that run."""
        return len(self._running)

    def close(self) -> None:
        """Cancel the jobs that still run, and wait for their end."""
        with self._lock:
            self._is_closed = True
            running = list(self._running.values())
        for job, _ in running:
            self._cancel(job)
        for _, thread in running:
            thread.join(END_S)

    def _cancel(self, job: ShellJob) -> None:
        log.warning("job ends with the gateway", extra={"job_id": job.job_id})
        job.client.cancel()

    def _run(self, job: ShellJob) -> None:
        try:
            job.client.get_job_execution_result().result()
        except JobCancelled:
            log.info("job was cancelled", extra={"job_id": job.job_id})
        except RayflinkError as error:
            self.failures += 1
            log.warning("job failed", extra={"job_id": job.job_id}, exc_info=error)
        finally:
            with self._lock:
                del self._running[job.job_id]
