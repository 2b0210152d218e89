"""The clients of jobs on Ray: those that this process submitted, and those of other processes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.completable_future import CompletableFuture
from rayflink.common.configuration import Configuration
from rayflink.common.errors import DriverEnded, JobExecutionError
from rayflink.common.job_execution_result import DetachedJobExecutionResult, JobExecutionResult
from rayflink.common.metrics.job_report import has_begun
from rayflink.common.options import registry as options
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.signals import heeding_signals
from rayflink.common.user_code.python_files import beside_program
from rayflink.graph.job_graph import JobGraph

from .python_dependencies import PythonDependencies
from .submitted_job import SubmittedJob

if TYPE_CHECKING:
    from rayflink.actors.messages.commands import JobResult
    from rayflink.actors.on_ray.driver.ray_cache import RayBlocks
    from rayflink.actors.on_ray.driver.ray_cluster import JobHandle, RayJob


class _JobOnRay(SubmittedJob):
    """A job on Ray, by its handle."""

    _job: JobHandle

    def _cancel(self) -> None:
        self._job.cancel()

    def _ask_savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float | None
    ) -> tuple[str, str] | None:
        wait_s = 1.0 if timeout_s is None else timeout_s
        while (answer := self._job.savepoint(request_id, directory, stop, wait_s)) is None:
            if timeout_s is not None:
                return None
        return answer

    def _ask_rescale(
        self, request_id: str, parallelism: Mapping[str, int], timeout_s: float | None
    ) -> tuple[int, str] | None:
        wait_s = 1.0 if timeout_s is None else timeout_s
        while (answer := self._job.rescale(request_id, parallelism, wait_s)) is None:
            if timeout_s is not None:
                return None
        return answer

    def _checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        return self._job.checkpoints(checkpoint_id)

    def _accumulators(self) -> dict[str, Any]:
        return self._job.accumulators()

    def _poll(self, timeout_s: float) -> JobResult | None:
        return self._job.poll(timeout_s)

    def _describe(self) -> dict[str, Any]:
        return self._job.status()


class RayJobClient(_JobOnRay):
    """A job on Ray that this process submitted.

    Its tasks' output is printed here, by a thread, for as long as this process lives.
    """

    _job: RayJob

    def __init__(
        self, graph: JobGraph, configuration: Configuration, dependencies: PythonDependencies,
        stores: Sequence[RayBlocks] = (),
    ) -> None:  # fmt: skip
        super().__init__(graph.id)
        from rayflink.actors.on_ray.driver.ray_cluster import RayJob, RayOptions  # slow: it loads Ray

        attached = configuration.get(options.ATTACHED, True)
        self._waits = bool(configuration.get(options.WAIT_UNTIL_RUNNING))
        self._ends_with_driver = attached and configuration.get(options.SHUTDOWN_ON_ATTACHED_EXIT)
        how = RayOptions(
            configuration.get(options.RAY_NAMESPACE),
            attached=self._ends_with_driver,
            placement=configuration.get(options.PLACEMENT_STRATEGY).value,
            ask_timeout_s=configuration.get(options.ASK_TIMEOUT).to_millis() / 1000,
            python_files=dependencies.files,
            archives=dependencies.archives,
            executable=dependencies.executable,
            beside=beside_program() if configuration.get(options.MODULES_BESIDE) else (),
            idle_s=configuration.get(options.IDLE_PROCESS_TIMEOUT).to_millis() / 1000,
            may_lack=attached or configuration.get(options.ALLOW_WAITING),
        )
        self._job = RayJob(graph, how, dict(graph.user_artifacts), stores)

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        stopped_by: list[str] = []
        reported_at = time.monotonic()
        with heeding_signals(stopped_by.append):
            while True:
                result = self._job.poll(0.2)
                if result is not None:
                    return result
                if stopped_by:
                    self._driver_ends(stopped_by.pop())
                if on_progress is not None and time.monotonic() - reported_at >= 1:
                    reported_at = time.monotonic()
                    on_progress(self.status())

    def draw(self) -> list[Any] | None:
        stopped_by: list[str] = []
        with heeding_signals(stopped_by.append):
            while (rows := self._job.rows(0.2)) is not None:
                if rows:
                    return rows
                if stopped_by:
                    self._driver_ends(stopped_by.pop())
        self._ask_result(None)
        return None

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

    def abandon(self) -> None:
        cancel = threading.Thread(target=self._job.cancel, args=("the end of its iterator",), daemon=True)
        cancel.start()  # a collection of garbage must not wait for calls

    def _wait_until_running(self) -> None:
        stopped_by: list[str] = []
        with heeding_signals(stopped_by.append):
            while not has_begun(self.status()):
                if self._ask_result(0.2) is not CompletableFuture.PENDING:
                    return
                if stopped_by:
                    self._driver_ends(stopped_by.pop())

    def _driver_ends(self, by: str) -> None:
        if not self._ends_with_driver and not self._job.owns_cluster:
            self._job.release()
            raise DriverEnded(self._job_id, by)
        self._job.cancel(by)


class AttachedJobClient(_JobOnRay):
    """A job on Ray that another process submitted.

    Raises:
        JobExecutionError: no such job runs.
    """

    def __init__(self, job_id: str, configuration: Configuration) -> None:
        super().__init__(job_id)
        from rayflink.actors.on_ray.driver.ray_cluster import attach  # slow: it loads Ray

        ask_timeout_s = configuration.get(options.ASK_TIMEOUT).to_millis() / 1000
        self._job = attach(job_id, configuration.get(options.RAY_NAMESPACE), ask_timeout_s)

    def stop(self) -> None:
        """Let the sources end, then the job finish."""
        self._job.stop()

    def detach(self) -> JobExecutionResult:
        return DetachedJobExecutionResult(self._job_id)

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        while True:
            result = self._job.poll(1.0)
            if result is not None:
                return result
            if on_progress is not None:
                on_progress(self.status())


__all__ = ["AttachedJobClient", "RayJobClient"]
