"""The protocol of runners: start a job, find it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rayflink.actors.on_ray.driver.terminal import News
from rayflink.actors.on_ray.task_log import Piece
from rayflink.launch.remote_submission import RemoteSubmission

from ..jobs.cluster_job import Document, RunningJob
from ..jobs.cluster_process import ClusterProcesses

__all__ = ["Runner", "StartedJob"]


class StartedJob(RunningJob, Protocol):
    """A job that runs, or has ended a short time ago, with what its client draws from it."""

    def news(self, timeout_s: float, with_texts: bool) -> News:
        """Return what was printed, and the result at the end; the call also shows that the client lives."""

    def rows(self, timeout_s: float) -> tuple[bytes, ...] | None:
        """Return blocks of collected rows, waiting for the first; None when all have been drawn."""

    def result(self, timeout_s: float) -> bytes | None:
        """Return the `JobResult`, packed; None when the job has not ended in time."""

    def packed_accumulators(self) -> bytes:
        """Return name -> value, packed, of the subtasks that have finished."""


class Runner(Protocol):
    """Runs jobs."""

    def start(self, submission: RemoteSubmission) -> StartedJob:
        """Start a job; one with checkpoints goes on from its newest, if it has begun before.

        Raises: whatever keeps the job from starting.
        """

    def withdraw(self, job_id: str) -> bool:
        """End the process that waits for the start of a job, of which none has arrived; return whether there was one.

        A start that is under way to it does not take place.

        Raises:
            RayflinkError: that process does not answer.
        """

    def suspend(self, job_id: str) -> None:
        """End the processes of a job that is not over: started again, it goes on from its newest checkpoint."""

    def find(self, job_id: str) -> StartedJob | None:
        """Return a job that runs here already, whoever started it; None: there is none."""

    def known(self, job_id: str) -> StartedJob | None:
        """Return a job to read, which may have ended a moment ago; None: it has to be found."""

    def status(self, job_id: str) -> Document | None:
        """Return the newest status of a job that is known without asking for it; None: none is."""

    def statuses(self) -> Sequence[Document]:
        """Return the status of every job that runs here, whoever started it, at most some seconds old."""

    def recorded(self, job_id: str) -> Document | None:
        """Return the last status that the processes of a job have left; None: there is none."""

    @property
    def processes(self) -> ClusterProcesses:
        """Return the processes that run tasks."""

    def log(self, job_id: str, positions: Mapping[str, int]) -> Sequence[Piece]:
        """Return what follows the positions in the files of a job's log, a bounded part of each; () at their ends.

        Args:
            positions: file -> position behind what has been read; a file that is absent is read from its beginning.
        """

    def close(self) -> None:
        """End what only lives with this process; jobs on a cluster go on."""
