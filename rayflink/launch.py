"""Where a job graph meets those who run it: the runner is chosen here, and what the user holds of a running job."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rayflink.actors.commands import JobResult
from rayflink.actors.in_process import InProcessCluster
from rayflink.actors.states import JobStatus
from rayflink.common import options
from rayflink.common.configuration import Configuration
from rayflink.common.errors import JobCancelled, JobExecutionError, JobFailed
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock


class JobExecutionResult:
    """What a finished job leaves behind."""

    def __init__(self, result: JobResult) -> None:
        self._result = result

    def get_job_id(self) -> str:
        """32 hex digits."""
        return self._result.job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from RUNNING to the end."""
        return self._result.runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The merged value of an accumulator; None where no task had one of that name."""
        return self._result.accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All accumulators, name -> merged value."""
        return dict(self._result.accumulators)

    def is_job_execution_result(self) -> bool:
        """True: the job has ended."""
        return True

    @property
    def vertices(self) -> tuple[Mapping[str, Any], ...]:
        """Per vertex: name, parallelism and counters."""
        return self._result.vertices

    def __str__(self) -> str:
        result = self._result
        return f"Job {result.job_name!r} (id {result.job_id}) {result.status.value} in {result.runtime_ms} ms"


class JobClient:
    """A submitted job.

    `status` and `wait` differ by runner; this class is what a program holds.
    """

    def __init__(self, graph: JobGraph) -> None:
        self._graph = graph
        self._result: JobResult | None = None

    def get_job_id(self) -> str:
        """32 hex digits."""
        return self._graph.id

    def get_job_status(self) -> JobStatus:
        """Where the job stands."""
        if self._result is not None:
            return self._result.status
        return JobStatus(self.status()["state"])

    def status(self) -> dict[str, Any]:
        """The job with its vertices, counters and exceptions, as plain data."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Ask for the job's cancellation."""
        raise NotImplementedError

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        """Wait for the end; `on_progress` is given the status about once a second."""
        raise NotImplementedError

    def get_job_execution_result(
        self, on_progress: Callable[[dict[str, Any]], None] | None = None
    ) -> JobExecutionResult:
        """Wait for the end.

        Raises:
            JobFailed: a function of the program raised.
            JobCancelled: the job was cancelled.
            JobExecutionError: it failed otherwise.
        """
        if self._result is None:
            self._result = self.wait(on_progress)
        return JobExecutionResult(checked(self._result))


class LocalJobClient(JobClient):
    """A job in this process; it runs while somebody waits for it."""

    def __init__(self, graph: JobGraph) -> None:
        super().__init__(graph)
        self._cluster = InProcessCluster(graph, SystemClock(), _sleep, dict(graph.user_artifacts))

    def status(self) -> dict[str, Any]:
        return self._cluster.job.describe()

    def cancel(self) -> None:
        self._cluster.cancel()

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        last = time.monotonic()

        def tell() -> None:
            nonlocal last
            if on_progress is not None and time.monotonic() - last >= 1:
                last = time.monotonic()
                on_progress(self.status())

        with _signals(lambda name: self._cluster.cancel(name)):
            return self._cluster.run(tell)


class RayJobClient(JobClient):
    """A job on Ray."""

    def __init__(self, graph: JobGraph, configuration: Configuration) -> None:
        super().__init__(graph)
        from rayflink.actors.ray_cluster import RayJob

        self._ends_with_driver = configuration.get(options.SHUTDOWN_ON_ATTACHED_EXIT)
        namespace = configuration.get(options.RAY_NAMESPACE)
        cached = dict(graph.user_artifacts)
        self._job = RayJob(graph, namespace, attached=self._ends_with_driver, cached_files=cached)

    def status(self) -> dict[str, Any]:
        return self._job.status()

    def cancel(self) -> None:
        self._job.cancel()

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        stopped_by: list[str] = []
        with _signals(stopped_by.append):
            while True:
                result = self._job.poll(1.0 if not stopped_by else 0.2)
                if result is not None:
                    self._job.release()
                    return result
                if stopped_by:
                    self._driver_ends(stopped_by.pop())
                if on_progress is not None:
                    on_progress(self._job.status())

    def _driver_ends(self, by: str) -> None:
        if self._ends_with_driver or self._job.owns_cluster:
            self._job.cancel(by)
            return
        raise JobExecutionError(
            self._graph.id,
            f"goes on without its driver, which was ended by {by}",
            "set execution.shutdown-on-attached-exit to end it with its driver; `rayflink cancel` ends it now",
        )


def submit(graph: JobGraph, configuration: Configuration) -> JobClient:
    """Start a job on the runner that `execution.target` names: `local` in this process, `ray` (the default) on Ray."""
    target = configuration.get(options.TARGET)
    if target is not None and target.name == "LOCAL":
        return LocalJobClient(graph)
    return RayJobClient(graph, configuration)


def checked(result: JobResult) -> JobResult:
    """The result of a job that finished.

    Raises:
        JobFailed, JobCancelled, JobExecutionError: it did not.
    """
    if result.status is JobStatus.FINISHED:
        return result
    if result.status is JobStatus.CANCELED:
        raise JobCancelled(result.job_id, "a cancel request")
    failure = result.failure
    assert failure is not None, "a failed job keeps its first failure"
    if failure.operator:
        raise JobFailed(
            result.job_id,
            failure.operator,
            result.failed_subtask,
            failure.record,
            failure.traceback or failure.message,
            failure.call_site,
        )
    raise JobExecutionError(result.job_id, f"failed: {failure.message}", "see the job's exceptions for the history")


def _sleep(milliseconds: float) -> None:
    if milliseconds > 0:
        time.sleep(milliseconds / 1000)


@contextmanager
def _signals(on_signal: Callable[[str], Any]) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a call of `on_signal`; a second one acts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: Any) -> None:
        signal.signal(number, before[signal.Signals(number)])
        on_signal(signal.Signals(number).name)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
