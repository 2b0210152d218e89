"""The jobs of the running cluster: their list, their clients and their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options

from .followed_job import AttachedJob
from .ray_jobs import AttachedJobClient
from .remote_job import AttachedRemoteJob
from .remote_list import RemoteJobLog, RemoteJobs

if TYPE_CHECKING:
    from rayflink.actors.on_ray.task_log import LogLine


def attach(job_id: str, configuration: Configuration | None = None) -> AttachedJob:
    """Return the job of this id on the running cluster.

    That is the cluster of rest.address where execution.target is remote, else Ray's: $RAY_ADDRESS, or the one that
    `ray start` has started on this machine.

    Raises:
        JobExecutionError: there is no cluster, or no such job on it.
    """
    configuration = configuration or Configuration()
    if _is_remote(configuration):
        return AttachedRemoteJob(job_id, configuration)
    return AttachedJobClient(job_id, configuration)


def list_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]]:
    """Return the status of every job that runs, or has ended within a minute unknown to a driver; [] if no cluster."""
    configuration = configuration or Configuration()
    if _is_remote(configuration):
        return RemoteJobs(configuration).running()
    from rayflink.actors.on_ray.driver.ray_cluster import list_jobs  # slow: it loads Ray

    return list_jobs(configuration.get(options.RAY_NAMESPACE))


def published_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]] | None:
    """Return the status of every job that runs, at most some seconds old, without joining the cluster as a job.

    Returns: None where that is not possible, and `list_jobs` must be asked.
    Raises:
        ConfigError: the cluster refuses this process.
    """
    configuration = configuration or Configuration()
    if _is_remote(configuration):
        return RemoteJobs(configuration).running()
    from rayflink.actors.on_ray.driver.ray_job_board import published_jobs  # slow: it loads Ray

    return published_jobs(configuration.get(options.RAY_NAMESPACE))


def recorded_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]]:
    """Return the last status of every job that the cluster remembers, whether it runs or has ended.

    In order of their beginning. On Ray, those of which the nodes have files; a job whose coordinator was killed is in
    the state in which it was last seen.
    """
    configuration = configuration or Configuration()
    if _is_remote(configuration):
        return RemoteJobs(configuration).all()
    from rayflink.actors.on_ray.ray_job_files import recorded_jobs  # slow: it loads Ray

    return recorded_jobs(configuration.get(options.RAY_NAMESPACE))


def job_log(job_id: str, configuration: Configuration | None = None) -> JobLog:
    """Return what the tasks and the coordinator of a job, which may have ended, have printed and logged."""
    configuration = configuration or Configuration()
    if _is_remote(configuration):
        return RemoteJobLog(job_id, configuration)
    from rayflink.actors.on_ray.ray_job_files import RayJobLog  # slow: it loads Ray

    return RayJobLog(job_id, configuration.get(options.RAY_NAMESPACE))


def _is_remote(configuration: Configuration) -> bool:
    return configuration.get(options.TARGET) is options.Target.REMOTE


class JobLog(Protocol):
    """The log of a job."""

    def read(self) -> list[LogLine]:
        """Return the lines that have come since it was read last, in order of time."""


__all__ = ["JobLog", "attach", "job_log", "list_jobs", "published_jobs", "recorded_jobs"]
