"""Jobs that have ended and are still in the list: the newest, for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from rayflink.actors.job.notes.job_archive import JobArchive

from ..jobs.cluster_job import Document

__all__ = ["ListedJob", "EndedJobs"]


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job of the list.

    Args:
        job_id: 32 hex digits.
        state: in which it ended.
        ended_ms: when, epoch milliseconds.
        head: its status without subtasks, with its newest exception.
    """

    job_id: str
    state: str
    ended_ms: int
    head: Document

    @classmethod
    def of(cls, archive: JobArchive) -> ListedJob:
        """Return the entry of an archive."""
        return cls(archive.jid, archive.state, archive.ended_ms, archive.head())


class EndedJobs:
    """A bounded list of ended jobs.

    Args:
        longest_s: seconds after its end for which a job stays.
        most: number of jobs; of more, those that ended first go.
        now_ms: epoch milliseconds.
    """

    def __init__(
        self, longest_s: float, most: int, now_ms: Callable[[], float] = lambda: time.time() * 1000
    ) -> None:
        self._longest_s, self._most, self._now_ms = longest_s, most, now_ms
        self._lock = threading.Lock()
        self._jobs: dict[str, ListedJob] = {}

    def stays(self, ended_ms: Iterable[int]) -> int:
        """Return how many jobs stay in the list, of some that ended at these times, the latest first."""
        limit = self._now_ms() - self._longest_s * 1000
        return sum(stamp >= limit for stamp in islice(ended_ms, self._most))

    def restore(self, job: ListedJob) -> None:
        """Add a job that ended before this list began; `remove_old` removes it where it is too old."""
        with self._lock:
            self._jobs[job.job_id] = job

    def add(self, job: ListedJob) -> list[str]:
        """Add a job, and return the ids of those that go."""
        with self._lock:
            self._jobs[job.job_id] = job
            return self._remove_old(job)

    def remove_old(self) -> list[str]:
        """Remove jobs that are in the list for too long, or too many, and return their ids."""
        with self._lock:
            return self._remove_old(None)

    def _remove_old(self, newest: ListedJob | None) -> list[str]:
        limit = self._now_ms() - self._longest_s * 1000
        in_order = sorted(self._jobs.values(), key=lambda job: job.ended_ms)
        most = len(in_order) - self._most
        old = [job for rank, job in enumerate(in_order) if rank < most or job.ended_ms < limit and job is not newest]
        for job in old:
            del self._jobs[job.job_id]
        return [job.job_id for job in old]

    def get(self, job_id: str) -> ListedJob | None:
        """Return a job; None: it is not in the list."""
        return self._jobs.get(job_id)

    def all(self) -> list[ListedJob]:
        """Return all jobs."""
        with self._lock:
            return list(self._jobs.values())
