"""Jobs on the Ray cluster of this process, each with processes of its own, which outlive the dispatcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rayflink.actors.on_ray.driver.dispatched_jobs import Dispatched, DispatchedJob, DispatchedJobs
from rayflink.actors.on_ray.driver.slot_calls import SlotCalls
from rayflink.actors.on_ray.task_log import Piece
from rayflink.launch.remote_submission import RemoteSubmission

from ..jobs.cluster_job import Document
from ..jobs.cluster_process import ClusterProcesses
from .ray_processes import RayProcesses
from .shared_settings import shared_settings

__all__ = ["RayRunner"]

CACHED = "rayflink-cached"
"""Folder of the distributed cache."""


class RayRunner:
    """Runs jobs on Ray, which this process has joined.

    Args:
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, namespace: str) -> None:
        self._jobs = DispatchedJobs(namespace)
        self._processes = RayProcesses(self._jobs.statuses, self._calls)

    def start(self, submission: RemoteSubmission) -> DispatchedJob:
        """Start a job; one that has begun before goes on from its newest checkpoint.

        Raises:
            JobExecutionError: it cannot be loaded on the cluster.
        """
        archives = [(archive.name, archive.target, archive.content) for archive in submission.archives]
        files = dict(submission.submission.cached_files)
        for number, file in enumerate(submission.cached):  # relative to the folder of each process of the job
            archives.append((f"{number}.zip", f"{CACHED}/{number}", file.content))
            files[file.name] = f"{CACHED}/{number}/{file.target}"
        inner = replace(submission.submission, cached_files=files)
        job = Dispatched(
            submission.job_id, submission.name, inner, submission.stored, submission.executable, archives,
            shared_settings(submission),
        )
        return self._jobs.start(job)

    def withdraw(self, job_id: str) -> bool:
        """End the coordinator of a job in which no start has arrived; return whether it was one."""
        return self._jobs.withdraw(job_id)

    def suspend(self, job_id: str) -> None:
        """End coordinator and slots of a job, which is not over."""
        self._jobs.suspend(job_id)

    def known(self, job_id: str) -> DispatchedJob | None:
        """Return a job to read, which may have ended a moment ago."""
        return self._jobs.known(job_id)

    def find(self, job_id: str) -> DispatchedJob | None:
        """Return a job that has a coordinator."""
        return self._jobs.find(job_id)

    def status(self, job_id: str) -> Document | None:
        """Return the newest status that a job has published."""
        return self._jobs.status(job_id)

    def statuses(self) -> Sequence[Document]:
        """Return the status of every job of the namespace."""
        return self._jobs.statuses()

    def recorded(self, job_id: str) -> Document | None:
        """Return the last status that a job has left on the nodes."""
        return self._jobs.recorded(job_id)

    @property
    def processes(self) -> ClusterProcesses:
        """Return the processes of the slots of all jobs."""
        return self._processes

    def _calls(self, job_id: str, attempt: str) -> SlotCalls | None:
        job = self._jobs.find(job_id)
        return None if job is None else job.process(attempt)

    def log(self, job_id: str, positions: Mapping[str, int]) -> Sequence[Piece]:
        """Return what follows the positions in the log of a job, on all nodes."""
        return self._jobs.log(job_id, positions)

    def close(self) -> None:
        """Stop looking after the jobs, which go on."""
        self._jobs.close()
