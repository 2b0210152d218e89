"""All requests about processes: those that run tasks, and the dispatcher's own."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.actors.on_ray.process_files import ProcessFiles
from rayflink.actors.task.process_inspection import ProcessInspection
from rayflink.serving.json_requests import Route

from ...jobs.cluster_job import ClusterJobs
from ...jobs.cluster_process import ClusterProcesses
from .flame_graphs import FlameGraphs
from .job_manager_endpoints import JobManagerEndpoints
from .profiles import Profiles
from .task_manager_endpoints import TaskManagerEndpoints

__all__ = ["ProcessEndpoints"]


class ProcessEndpoints:
    """Answers requests about processes.

    Args:
        jobs: of the cluster.
        processes: that run their tasks.
        configuration: of the cluster.
        files: that the dispatcher writes.
    """

    def __init__(
        self, jobs: ClusterJobs, processes: ClusterProcesses, configuration: Mapping[str, str], files: ProcessFiles
    ) -> None:
        profiles = Profiles()
        self._topics = (
            TaskManagerEndpoints(jobs, processes, profiles),
            JobManagerEndpoints(jobs, processes, configuration, ProcessInspection(), files, profiles),
            FlameGraphs(jobs, processes),
        )

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        return [route for topic in self._topics for route in topic.routes()]
