"""The protocols of jobs that a cluster knows: read, ask, find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.common.errors import RayflinkError
from rayflink.common.options.stop_mode import StopMode

__all__ = ["ClusterJobs", "Document", "JobHasEnded", "JobView", "RunningJob", "UnknownJob", "archive_of"]

Document: TypeAlias = Mapping[str, Any]
"""A JSON object."""


class UnknownJob(RayflinkError):
    """No job of this id is known.

    Args:
        job_id: that was asked for.
    """

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"Could not find Flink job ({self.job_id}); the list of jobs shows those that are known"


class JobHasEnded(RayflinkError):
    """A job that has ended can be read and no longer be asked for anything.

    Args:
        job_id: of the job.
        state: in which it ended.
    """

    def __init__(self, job_id: str, state: str) -> None:
        super().__init__(job_id, state)
        self.job_id, self.state = job_id, state

    def __str__(self) -> str:
        return f"job {self.job_id} has ended ({self.state}); start it again, from a savepoint or its last checkpoint"


class JobView(Protocol):
    """A job to read, whether it runs or has ended. All that it returns is JSON."""

    def status(self) -> Document:
        """Return the job's state, timestamps, vertices with subtasks and metrics, exceptions, recovery and metrics.

        The form is that of `JobClient.status()`, with current rates. It may be some seconds old.
        """

    def description(self) -> Document:
        """Return the plan and the configuration of the job, as `rayflink.graph.job_description` describes them."""

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        """Return statistics of all checkpoints, or details of one; None when it is not remembered.

        The form is that of `JobClient.checkpoints()`.
        """

    def accumulators(self) -> Document:
        """Return the values of the job's accumulators by name, of the subtasks that have finished."""


class RunningJob(JobView, Protocol):
    """A job that can be asked for something. The calls return soon; what takes time is asked for again and again."""

    def cancel(self, by: str = "the user") -> None:
        """Ask for the job's cancellation; its status shows when it is done."""

    def stop(self) -> None:
        """Let the sources end, then the job finish."""

    def savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float
    ) -> tuple[str, str] | None:
        """Return the address of a savepoint, and why there is none; None where neither is known in time.

        Args:
            request_id: 32 hex digits of the caller's choice. The same one means the same savepoint.
            directory: in which the savepoint gets a folder; "": as execution.checkpointing.savepoint-dir says.
            stop: end the job with it; None: it goes on.
            timeout_s: the longest time to wait.
        """

    def checkpoint(self, request_id: str, timeout_s: float) -> tuple[int, str] | None:
        """Return the number of a checkpoint taken now, and why there is none; None where neither is known in time.

        Args:
            request_id: as in `savepoint`.
            timeout_s: the longest time to wait.
        """

    def rescale(self, request_id: str, parallelism: Mapping[str, int], timeout_s: float) -> tuple[int, str] | None:
        """Return the pause in milliseconds, and why nothing changed; None where neither is known in time.

        Args:
            request_id: as in `savepoint`.
            parallelism: vertex or operator -> subtasks, as in `JobClient.rescale`.
            timeout_s: the longest time to wait.
        """


class ClusterJobs(Protocol):
    """The jobs that a cluster knows: those that run, and those that have ended and are not forgotten yet."""

    def statuses(self) -> list[Document]:
        """Return the status of every job, those that began last first."""

    def view(self, job_id: str) -> JobView:
        """Return a job to read.

        Args:
            job_id: 32 hex digits.

        Raises:
            UnknownJob: there is none of this id.
        """

    def running(self, job_id: str) -> RunningJob:
        """Return a job to ask.

        Raises:
            UnknownJob: there is none of this id.
            JobHasEnded: it has ended.
        """

    def cancel(self, job_id: str, by: str) -> None:
        """Ask for the cancellation of a job, which survives whoever carries it out.

        Args:
            by: who wants it.

        Raises:
            UnknownJob: there is none of this id.
            JobHasEnded: it has ended.
        """


def archive_of(view: JobView) -> JobArchive:
    """Read everything of a job, at once.

    Raises: what the view raises.
    """
    if isinstance(view, JobArchive):
        return view
    return JobArchive.of(view.status(), view.description(), view.checkpoints, view.accumulators())
