"""The jobs of a dispatcher that have not ended, with their newest statuses and the starts that are under way."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ..jobs.cluster_job import Document
from ..registry.job_registry import AcceptedJob

__all__ = ["JobTable"]


class JobTable:
    """The accepted jobs that have not ended, as far as it is known here; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, AcceptedJob] = {}
        self._starting: set[str] = set()
        self._statuses: dict[str, Document] = {}

    def restore(self, jobs: Iterable[AcceptedJob]) -> None:
        """Take over the jobs of a registry."""
        with self._lock:
            self._jobs = {job.job_id: job for job in jobs}

    def add(self, job: AcceptedJob, is_starting: bool) -> None:
        """Add a job.

        Args:
            is_starting: whether the caller starts it, so that no one else does.
        """
        with self._lock:
            if is_starting:
                self._starting.add(job.job_id)
            self._jobs.setdefault(job.job_id, job)

    def get(self, job_id: str) -> AcceptedJob | None:
        """Return a job; None: it is not in the table."""
        with self._lock:
            return self._jobs.get(job_id)

    def all(self) -> list[AcceptedJob]:
        """Return all jobs."""
        with self._lock:
            return list(self._jobs.values())

    def at_rest(self) -> list[AcceptedJob]:
        """Return the jobs of which no start is under way."""
        with self._lock:
            return [job for job in self._jobs.values() if job.job_id not in self._starting]

    def remove(self, job_id: str) -> None:
        """Remove a job, which has ended."""
        with self._lock:
            self._jobs.pop(job_id, None)
            self._statuses.pop(job_id, None)

    def begin_start(self, job_id: str) -> bool:
        """Note that the caller starts a job; False: somebody else does already."""
        with self._lock:
            is_first = job_id not in self._starting
            self._starting.add(job_id)
            return is_first

    def end_start(self, job_id: str) -> None:
        """Note that the start of a job is no longer under way."""
        with self._lock:
            self._starting.discard(job_id)

    def is_starting(self, job_id: str) -> bool:
        """Return whether a start of a job is under way."""
        return job_id in self._starting

    def note_status(self, job_id: str, status: Document) -> None:
        """Remember what a job has published."""
        self._statuses[job_id] = status

    def status(self, job_id: str) -> Document | None:
        """Return what a job published last; None: nothing is remembered."""
        return self._statuses.get(job_id)

    def forget_status(self, job_id: str) -> None:
        """Forget what a job published, which begins anew."""
        self._statuses.pop(job_id, None)
