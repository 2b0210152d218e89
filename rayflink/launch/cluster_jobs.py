"""The jobs of the running cluster: their list, their clients and their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options

from .ray_jobs import AttachedJobClient

if TYPE_CHECKING:
    from rayflink.actors.on_ray.task_log import LogLine


def attach(job_id: str, configuration: Configuration | None = None) -> AttachedJobClient:
    """Return the job of this id on the running cluster ($RAY_ADDRESS, or `ray start` on this machine).

    Raises:
        JobExecutionError: there is no cluster, or no such job on it.
    """
    return AttachedJobClient(job_id, configuration or Configuration())


def list_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]]:
    """Return the status of every job that runs, or has ended within a minute unknown to a driver; [] if no cluster."""
    from rayflink.actors.on_ray.driver.ray_cluster import list_jobs  # slow: it loads Ray

    return list_jobs((configuration or Configuration()).get(options.RAY_NAMESPACE))


def published_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]] | None:
    """Return the status of every job that runs, at most some seconds old, without joining the cluster as a job.

    Returns: None where that is not possible, and `list_jobs` must be asked.
    Raises:
        ConfigError: the cluster refuses this process.
    """
    from rayflink.actors.on_ray.driver.ray_job_board import published_jobs  # slow: it loads Ray

    return published_jobs((configuration or Configuration()).get(options.RAY_NAMESPACE))


def recorded_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]]:
    """Return the last status of every job of which the nodes of the cluster have files, whether it runs or has ended.

    In order of their beginning. A job whose coordinator was killed is in the state in which it was last seen.
    """
    from rayflink.actors.on_ray.ray_job_files import recorded_jobs  # slow: it loads Ray

    return recorded_jobs((configuration or Configuration()).get(options.RAY_NAMESPACE))


def job_log(job_id: str, configuration: Configuration | None = None) -> JobLog:
    """Return what the tasks and the coordinator of a job, which may have ended, have printed and logged."""
    from rayflink.actors.on_ray.ray_job_files import RayJobLog  # slow: it loads Ray

    return RayJobLog(job_id, (configuration or Configuration()).get(options.RAY_NAMESPACE))


class JobLog(Protocol):
    """The log of a job."""

    def read(self) -> list[LogLine]:
        """Return the lines that have come since it was read last, in order of time."""


__all__ = ["JobLog", "attach", "job_log", "list_jobs", "published_jobs", "recorded_jobs"]
