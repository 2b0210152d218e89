"""The starts of jobs: each has a number in the registry, by which the processes of earlier starts end.

Submissions enter, jobs that run leave. When a job is started, and how often it is tried, is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rayflink.actors.job.submission import Stored
from rayflink.launch.remote_submission import RemoteSubmission

from ..registry.job_registry import AcceptedJob, JobRegistry
from ..runners.runner import Runner, StartedJob

__all__ = ["JobStarts"]


class JobStarts:
    """Starts jobs of a registry.

    Args:
        registry: with their submissions.
        runner: that runs them.
        storage_options: by which the coordinators of jobs reach the registry.
    """

    def __init__(self, registry: JobRegistry, runner: Runner, storage_options: Mapping[str, str]) -> None:
        self._registry, self._runner, self._storage_options = registry, runner, dict(storage_options)
        self._cancelled: set[str] = set()
        """Jobs whose cancellation was asked for; one that starts at this moment is cancelled then."""

    def stored(self, job: AcceptedJob) -> RemoteSubmission:
        """Return the submission of a job.

        Raises:
            StorageError, JobExecutionError: it cannot be read.
        """
        return RemoteSubmission.decode(self._registry.submission(job), other_rayflink=True)

    def number(self, submission: RemoteSubmission, accepted_ms: int) -> RemoteSubmission:
        """Note that a job is about to start, and return its submission with the number of the start.

        Args:
            accepted_ms: when the job was accepted, epoch milliseconds: it began then, whatever starts it.

        Raises:
            StorageError: it could not be noted, and the job must not be started now.
        """
        place = Stored(self._registry.folder(submission.job_id), dict(self._storage_options))
        start_number = self._registry.begin(submission.job_id)
        inner = replace(submission.submission, ends_at=place, start_number=start_number, began_ms=accepted_ms)
        return replace(submission, submission=inner)

    def start(self, submission: RemoteSubmission) -> StartedJob:
        """Start a job whose start has a number; one that was cancelled meanwhile is cancelled at once.

        Raises: whatever keeps the job from starting.
        """
        started = self._runner.start(submission)
        if submission.job_id in self._cancelled:
            started.cancel("the user")
        return started

    def cancel(self, job_id: str) -> None:
        """Note in the registry that a job is to be cancelled; it is not started again, and is cancelled if it starts.

        Raises:
            StorageError: that could not be noted.
        """
        self._registry.cancel(job_id)
        self._cancelled.add(job_id)

    def restore_cancellations(self, job_ids: Iterable[str]) -> None:
        """Take over what the registry says of jobs that are to be cancelled."""
        self._cancelled.update(job_ids)

    def is_cancelled(self, job_id: str) -> bool:
        """Return whether a job is to be cancelled."""
        return job_id in self._cancelled

    def forget(self, job_id: str) -> None:
        """Forget a job that is no longer known."""
        self._cancelled.discard(job_id)
