"""All requests of Flink that read jobs, whether these run or have ended."""

from __future__ import annotations

from rayflink.serving.json_requests import Route

from ..jobs.cluster_job import ClusterJobs
from ..jobs.cluster_process import ClusterProcesses
from .checkpoint_endpoints import CheckpointEndpoints
from .exception_endpoints import ExceptionEndpoints
from .job_endpoints import JobEndpoints
from .metric_endpoints import MetricEndpoints
from .overview_endpoints import OverviewEndpoints
from .rescale_endpoints import RescaleEndpoints
from .vertex_endpoints import VertexEndpoints

__all__ = ["ReadingEndpoints"]


class ReadingEndpoints:
    """Answers requests about jobs.

    Args:
        jobs: of the cluster.
        refresh_ms: the time between two looks of a page.
        processes: that run tasks; None: those of which subtasks that run have reported.
        is_history: whether there are only jobs that have ended.
    """

    def __init__(
        self,
        jobs: ClusterJobs,
        refresh_ms: int = 3_000,
        processes: ClusterProcesses | None = None,
        is_history: bool = False,
    ) -> None:
        self._topics = (
            OverviewEndpoints(jobs, refresh_ms, processes, is_history), JobEndpoints(jobs), ExceptionEndpoints(jobs),
            VertexEndpoints(jobs), MetricEndpoints(jobs), CheckpointEndpoints(jobs), RescaleEndpoints(jobs),
        )  # fmt: skip

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        return [route for topic in self._topics for route in topic.routes()]
