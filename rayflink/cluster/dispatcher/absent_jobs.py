"""Accepted jobs that do not run now: when they are started again, what kept them from it, and what can be asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rayflink.common.errors import JobExecutionError
from rayflink.common.options.stop_mode import StopMode

from ..jobs.cluster_job import Document
from ..registry.job_registry import AcceptedJob
from .job_documents import beginning_job

__all__ = ["AbsentJob", "StartAttempts"]

FIRST_S = 1.0
MOST_S = 60.0
"""The longest time between two attempts to start a job."""


@dataclass
class _Attempt:
    failures: int
    due_s: float
    reason: str


class StartAttempts:
    """The attempts to start jobs again; each failure doubles the time until the next one.

    Args:
        now_s: monotonic seconds.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._attempts: dict[str, _Attempt] = {}

    def is_due(self, job_id: str) -> bool:
        """Return whether a job may be started now."""
        attempt = self._attempts.get(job_id)
        return attempt is None or self._now_s() >= attempt.due_s

    def failed(self, job_id: str, reason: str) -> float:
        """Note a failure, and return the seconds until the next attempt."""
        before = self._attempts.get(job_id)
        failures = 1 if before is None else before.failures + 1
        pause_s = min(FIRST_S * 2.0 ** min(failures - 1, 10), MOST_S)
        self._attempts[job_id] = _Attempt(failures, self._now_s() + pause_s, reason)
        return pause_s

    def reason(self, job_id: str) -> str:
        """Return what kept a job from its start the last time; "": nothing has."""
        attempt = self._attempts.get(job_id)
        return "" if attempt is None else attempt.reason

    def forget(self, job_id: str) -> None:
        """Forget the failures of a job, which runs or has ended."""
        self._attempts.pop(job_id, None)


class AbsentJob:
    """A job that is being brought back: it can be read and cancelled, and everything else is refused.

    Args:
        job: of the registry.
        reason: what kept it from its start the last time; "": nothing has.
        cancel: notes its end.
    """

    def __init__(self, job: AcceptedJob, reason: str, cancel: Callable[[str], None]) -> None:
        self._job, self._reason, self._cancel = job, reason, cancel
        self._view = beginning_job(job, reason=reason)

    def status(self) -> Document:
        return self._view.status()

    def description(self) -> Document:
        return self._view.description()

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        return self._view.checkpoints(checkpoint_id)

    def accumulators(self) -> Document:
        return self._view.accumulators()

    def cancel(self, by: str = "the user") -> None:
        """End the job without starting it again; its checkpoints stay."""
        self._cancel(by)

    def stop(self) -> None:
        """Refuse. Raises: `JobExecutionError`."""
        raise self._refusal()

    def savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float
    ) -> tuple[str, str] | None:
        """Refuse. Raises: `JobExecutionError`."""
        raise self._refusal()

    def checkpoint(self, request_id: str, timeout_s: float) -> tuple[int, str] | None:
        """Refuse. Raises: `JobExecutionError`."""
        raise self._refusal()

    def rescale(self, request_id: str, parallelism: Mapping[str, int], timeout_s: float) -> tuple[int, str] | None:
        """Refuse. Raises: `JobExecutionError`."""
        raise self._refusal()

    def _refusal(self) -> JobExecutionError:
        why = f": {self._reason}" if self._reason else ""
        reason = f"does not run now, and is being brought back{why}"
        return JobExecutionError(self._job.job_id, reason, "ask again later")
