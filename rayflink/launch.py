"""Where a job graph meets those who run it: the runner is chosen here, and what the user holds of a running job."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rayflink.actors.rates import Rates, averaged
from rayflink.actors.states import JobStatus
from rayflink.common import options
from rayflink.common.configuration import Configuration
from rayflink.common.errors import JobCancelled, JobExecutionError, JobFailed, NoResourceAvailable, TaskLost
from rayflink.common.unheeded import warn_of_unheeded
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock

if TYPE_CHECKING:
    from rayflink.actors.commands import JobResult


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
        """Per vertex: name, parallelism, counters summed over subtasks, average rates, and each subtask's report."""
        return tuple(averaged(vertex) for vertex in self._result.vertices)

    def __str__(self) -> str:
        result = self._result
        return f"Job {result.job_name!r} (id {result.job_id}) {result.status.value} in {result.runtime_ms} ms"


class JobClient:
    """A submitted job.

    `status` and `wait` differ by runner; this class is what a program holds.
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._result: JobResult | None = None
        self._rates = Rates()

    def get_job_id(self) -> str:
        """32 hex digits."""
        return self._job_id

    def get_job_status(self) -> JobStatus:
        """Where the job stands."""
        if self._result is not None:
            return self._result.status
        return JobStatus(self.status()["state"])

    def status(self) -> dict[str, Any]:
        """The job as plain data: state, timestamps, exceptions, vertices with counters and rates since last asked."""
        described = self._describe()
        return {**described, "vertices": self._rates.added(described["vertices"], time.monotonic())}

    def cancel(self) -> None:
        """Ask for the job's cancellation."""
        raise NotImplementedError

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        """Wait for the end; `on_progress` is given the status about once a second."""
        raise NotImplementedError

    def _describe(self) -> dict[str, Any]:
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
        described = self._describe() if self._result.status is JobStatus.FAILED else {}
        return JobExecutionResult(checked(self._result, described))


class LocalJobClient(JobClient):
    """A job in this process; it runs while somebody waits for it, and says so at its end if nobody ever did."""

    def __init__(self, graph: JobGraph) -> None:
        super().__init__(graph.id)
        self._unasked = weakref.finalize(self, _tell_unasked, graph.name)
        from rayflink.actors.in_process import InProcessCluster

        self._cluster = InProcessCluster(graph, SystemClock(), _sleep, dict(graph.user_artifacts))

    def _describe(self) -> dict[str, Any]:
        return self._cluster.job.describe()

    def cancel(self) -> None:
        self._unasked.detach()
        self._cluster.cancel()

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        self._unasked.detach()
        last = time.monotonic()

        def tell() -> None:
            nonlocal last
            if on_progress is not None and time.monotonic() - last >= 1:
                last = time.monotonic()
                on_progress(self.status())

        with _signals(lambda name: self._cluster.cancel(name)):
            return self._cluster.run(tell)


class RayJobClient(JobClient):
    """A job on Ray that this process submitted.

    Its tasks' output is printed here, by a thread, for as long as this process lives.
    """

    def __init__(self, graph: JobGraph, configuration: Configuration) -> None:
        super().__init__(graph.id)
        from rayflink.actors.ray_cluster import RayJob, RayOptions

        self._ends_with_driver = configuration.get(options.SHUTDOWN_ON_ATTACHED_EXIT)
        how = RayOptions(
            configuration.get(options.RAY_NAMESPACE),
            attached=self._ends_with_driver,
            placement=configuration.get(options.PLACEMENT_STRATEGY).value,
            ask_timeout_s=configuration.get(options.ASK_TIMEOUT).to_millis() / 1000,
        )
        self._job = RayJob(graph, how, dict(graph.user_artifacts))

    def cancel(self) -> None:
        self._job.cancel()

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        stopped_by: list[str] = []
        told = time.monotonic()
        with _signals(stopped_by.append):
            while True:
                result = self._job.poll(0.2)
                if result is not None:
                    return result
                if stopped_by:
                    self._driver_ends(stopped_by.pop())
                if on_progress is not None and time.monotonic() - told >= 1:
                    told = time.monotonic()
                    on_progress(self.status())

    def _describe(self) -> dict[str, Any]:
        return self._job.status()

    def _driver_ends(self, by: str) -> None:
        if self._ends_with_driver or self._job.owns_cluster:
            self._job.cancel(by)
            return
        self._job.release()
        raise JobExecutionError(
            self._job_id,
            f"goes on without its driver, which was ended by {by}",
            "set execution.shutdown-on-attached-exit to end it with its driver; `rayflink cancel` ends it now",
        )


class AttachedJobClient(JobClient):
    """A job on Ray that another process submitted.

    Raises:
        JobExecutionError: no such job runs.
    """

    def __init__(self, job_id: str, configuration: Configuration) -> None:
        super().__init__(job_id)
        from rayflink.actors.ray_cluster import attach

        ask_timeout_s = configuration.get(options.ASK_TIMEOUT).to_millis() / 1000
        self._job = attach(job_id, configuration.get(options.RAY_NAMESPACE), ask_timeout_s)

    def cancel(self) -> None:
        self._job.cancel()

    def stop(self) -> None:
        """Let the sources end, then the job finish."""
        self._job.stop()

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        while True:
            result = self._job.poll(1.0)
            if result is not None:
                return result
            if on_progress is not None:
                on_progress(self.status())

    def _describe(self) -> dict[str, Any]:
        return self._job.status()


def attach(job_id: str, configuration: Configuration | None = None) -> AttachedJobClient:
    """The job of this id on the running cluster ($RAY_ADDRESS, or `ray start` on this machine).

    Raises:
        JobExecutionError: there is no cluster, or no such job on it.
    """
    return AttachedJobClient(job_id, configuration or Configuration())


def list_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]]:
    """The status of every job that runs, or has ended within a minute and no driver knows it; [] without a cluster."""
    from rayflink.actors.ray_cluster import list_jobs

    return list_jobs((configuration or Configuration()).get(options.RAY_NAMESPACE))


def submit(graph: JobGraph, configuration: Configuration) -> JobClient:
    """Start a job on the runner that `execution.target` names: `local` in this process, `ray` (the default) on Ray."""
    warn_of_unheeded(configuration)
    target = configuration.get(options.TARGET)
    if target is not None and target.name == "LOCAL":
        return LocalJobClient(graph)
    return RayJobClient(graph, configuration)


def checked(result: JobResult, described: Mapping[str, Any] | None = None) -> JobResult:
    """The result of a job that finished.

    Args:
        described: the job as plain data, for what the result does not hold.

    Raises:
        JobFailed: a function of the program raised.
        TaskLost: the process of a task died or stopped answering.
        NoResourceAvailable: the cluster did not give the job its slots in time.
        JobCancelled, JobExecutionError: it ended otherwise.
    """
    if result.status is JobStatus.FINISHED:
        return result
    if result.status is JobStatus.CANCELED:
        raise JobCancelled(result.job_id, result.cancelled_by)
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
    if described and failure.kind == "TaskLost":
        raise _lost(result, described)
    if described and failure.kind == "NoResourceAvailable":
        stamps = described["timestamps"]
        waited = stamps[JobStatus.FAILING.value] - stamps[JobStatus.CREATED.value]
        raise NoResourceAvailable(f"all slots of job {result.job_name!r}", failure.message, waited)
    raise JobExecutionError(result.job_id, f"failed: {failure.message}", "see the job's exceptions for the history")


def _lost(result: JobResult, described: Mapping[str, Any]) -> TaskLost:
    """The first failure, with the place and the last report of the task that is lost."""
    first = described["exceptions"][0]
    subtasks = {
        f"{vertex['name']} ({subtask['subtask'] + 1}/{vertex['parallelism']})": subtask["metrics"]
        for vertex in described["vertices"]
        for subtask in vertex["subtasks"]
    }
    metrics = subtasks.get(first["task"], {})
    place = f"{metrics['host']} (pid {metrics['pid']})" if "pid" in metrics else ""
    silent = first["timestamp"] - metrics.get("reportedMs", first["timestamp"])
    assert result.failure is not None, "a failed job keeps its first failure"
    cause = re.sub(r"^lost task .* \(attempt #\d+\): ", "", result.failure.message)
    return TaskLost(first["task"], place, max(0, silent), cause)


def _tell_unasked(job: str) -> None:
    remedy = "call get_job_execution_result() of the client, or execute() instead of execute_async()"
    print(f"job {job!r} never ran: a local job runs while somebody waits for it; {remedy}", file=sys.stderr)


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
