"""The clients of jobs on Ray: those that this process submitted, and those of other processes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.common.configuration import Configuration
from rayflink.common.errors import JobExecutionError
from rayflink.common.job_execution_result import DetachedJobExecutionResult, JobExecutionResult
from rayflink.common.options import registry as options
from rayflink.common.user_code.python_files import beside_program
from rayflink.graph.job_graph import JobGraph

from .followed_job import AttachedJob, FollowedJob
from .python_dependencies import PythonDependencies

if TYPE_CHECKING:
    from rayflink.actors.on_ray.driver.ray_cache import RayBlocks
    from rayflink.actors.on_ray.driver.ray_cluster import RayJob


class RayJobClient(FollowedJob):
    """A job on Ray that this process submitted.

    Its tasks' output is printed here, by a thread, for as long as this process lives.
    """

    _job: RayJob

    def __init__(
        self, graph: JobGraph, configuration: Configuration, dependencies: PythonDependencies,
        stores: Sequence[RayBlocks] = (),
    ) -> None:  # fmt: skip
        from rayflink.actors.on_ray.driver.ray_cluster import RayJob, RayOptions  # slow: it loads Ray

        attached = configuration.get(options.ATTACHED, True)
        self._waits = bool(configuration.get(options.WAIT_UNTIL_RUNNING))
        ends_with_driver = attached and configuration.get(options.SHUTDOWN_ON_ATTACHED_EXIT)
        how = RayOptions(
            configuration.get(options.RAY_NAMESPACE),
            attached=ends_with_driver,
            placement=configuration.get(options.PLACEMENT_STRATEGY).value,
            ask_timeout_s=configuration.get(options.ASK_TIMEOUT).to_millis() / 1000,
            python_files=dependencies.files,
            archives=dependencies.archives,
            executable=dependencies.executable,
            beside=beside_program() if configuration.get(options.MODULES_BESIDE) else (),
            idle_s=configuration.get(options.IDLE_PROCESS_TIMEOUT).to_millis() / 1000,
            may_lack=attached or configuration.get(options.ALLOW_WAITING),
        )
        super().__init__(graph.id, RayJob(graph, how, dict(graph.user_artifacts), stores), ends_with_driver)

    def detach(self) -> JobExecutionResult:
        if self._job.owns_cluster:
            self._job.cancel("the end of its Ray")
            reason = "cannot go on without this program, which started its Ray"
            raise JobExecutionError(self._job_id, reason, "start a cluster with `ray start --head`, or set RAY_ADDRESS")
        print(f"Job has been submitted with JobID {self._job_id}", flush=True)
        if lack := self._job.lack():
            print(f"rayflink: job {self._job.graph.name!r} {lack}", file=sys.stderr)
        if self._waits:
            self._wait_until_running()
        self._job.release()
        return DetachedJobExecutionResult(self._job_id)


class AttachedJobClient(AttachedJob):
    """A job on Ray that another process submitted.

    Raises:
        JobExecutionError: no such job runs.
    """

    def __init__(self, job_id: str, configuration: Configuration) -> None:
        super().__init__(job_id)
        from rayflink.actors.on_ray.driver.ray_cluster import attach  # slow: it loads Ray

        ask_timeout_s = configuration.get(options.ASK_TIMEOUT).to_millis() / 1000
        self._job = attach(job_id, configuration.get(options.RAY_NAMESPACE), ask_timeout_s)


__all__ = ["AttachedJobClient", "RayJobClient"]
