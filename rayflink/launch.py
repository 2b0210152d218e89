"""The place where a job graph meets those who run it: the choice of the runner, and handles of running jobs."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from rayflink.actors.job.job_outcome import raise_if_failed
from rayflink.actors.job.rates import Rates, averaged
from rayflink.actors.local.local_runs import LocalRows, apply_log_levels, sleep, warn_not_executed, without_restarts
from rayflink.common.completable_future import CompletableFuture
from rayflink.common.configuration import Configuration
from rayflink.common.errors import (
    DriverEnded,
    JobExecutionError,
)
from rayflink.common.job_client import JobClient
from rayflink.common.job_execution_result import DetachedJobExecutionResult, JobExecutionResult
from rayflink.common.job_status import JobStatus
from rayflink.common.metrics.job_report import has_begun
from rayflink.common.metrics.live_table import is_terminal, progress_shown
from rayflink.common.options import registry as options
from rayflink.common.options.ignored_options import warn_of_unheeded
from rayflink.common.options.log_levels import LogLevels
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.signals import heeding_signals
from rayflink.common.user_code.python_files import beside_program, check_python_file, put_on_path
from rayflink.connectors.collected import DrawnOnce, rows_go_to
from rayflink.connectors.frames.cached import BlockStore, FileBlocks
from rayflink.connectors.frames.frame_source import FrameFolder, FrameSource, FrameStore
from rayflink.graph.checks import warn_without_checkpoints, warn_without_sink
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock
from rayflink.state.storage.local_storage import folder_of

if TYPE_CHECKING:
    from rayflink.actors.local.in_process import InProcessCluster
    from rayflink.actors.messages.commands import JobResult
    from rayflink.actors.on_ray.driver.ray_cache import RayBlocks
    from rayflink.actors.on_ray.driver.ray_cluster import JobHandle, RayJob
    from rayflink.actors.on_ray.task_log import LogLine
    from rayflink.connectors.frames.frame_writing import Frame


TURN_S = 0.05
"""Seconds that a local job goes on when its status is asked for."""
STILL_RUNS_S = 3.0
"""Seconds after Ctrl-C at which a program prints which function keeps its job from ending."""
LEFT_TIMEOUT_S = 10.0
"""Seconds that the end of the program waits for a thread that still lets a local job run."""


class SubmittedJob(JobClient):
    """A job that runs somewhere; `status` and `wait` differ by runner.

    `shows_progress`: whoever waits for its end on a terminal sees how it gets on.
    """

    shows_progress = False

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self._result: JobResult | None = None
        self._rates = Rates()

    def status(self) -> dict[str, Any]:
        """Return the job as plain data: state, timestamps, exceptions, vertices with counters and current rates."""
        described = self._describe()
        return {**described, "vertices": self._rates.added(described["vertices"], time.monotonic())}

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        """Wait for the end; `on_progress` is given the status about once a second."""
        raise NotImplementedError

    def draw(self) -> list[Any] | None:
        """Return the next rows of a job with a `DrawnSink`, waiting for the first; None at its end.

        Raises: what `get_job_execution_result().result()` raises, in place of the end.
        """
        raise NotImplementedError

    def abandon(self) -> None:
        """Let the job be cancelled, on Ray without waiting: its remaining rows will not be drawn."""

    def _poll(self, timeout_s: float) -> JobResult | None:
        raise NotImplementedError

    def _describe(self) -> dict[str, Any]:
        raise NotImplementedError

    def _wait_shown(self, on_progress: Callable[[dict[str, Any]], None] | None) -> JobResult:
        if on_progress is not None or not self.shows_progress or not is_terminal(sys.stderr):
            return self.wait(on_progress)
        with progress_shown() as progress:
            return self.wait(progress)

    def detach(self) -> JobExecutionResult:
        """Let the job go on without this program, and print its id.

        Raises:
            JobExecutionError: it cannot, and is cancelled.
        """
        raise NotImplementedError

    def _ask_result(
        self, timeout_s: float | None, on_progress: Callable[[dict[str, Any]], None] | None = None
    ) -> JobExecutionResult:
        if self._result is None:
            self._result = self._wait_shown(on_progress) if timeout_s is None else self._poll(timeout_s)
        if self._result is None:
            pending: JobExecutionResult = CompletableFuture.PENDING
            return pending
        described = self._describe() if self._result.status is JobStatus.FAILED else {}
        result = raise_if_failed(self._result, described)
        vertices = tuple(averaged(vertex) for vertex in result.vertices)
        return JobExecutionResult(result.job_id, result.runtime_ms, result.accumulators, vertices)


class LocalJobClient(SubmittedJob):
    """A job in this process: it runs while the program waits for it, draws its rows, or asks for its status.

    It prints a note where the program has not let it run to its end.
    """

    def __init__(self, graph: JobGraph) -> None:
        super().__init__(graph.id)
        from rayflink.actors.local.in_process import InProcessCluster

        woken = threading.Event()
        files = dict(graph.user_artifacts)
        graph = without_restarts(graph)
        self._cluster = InProcessCluster(graph, SystemClock(), partial(sleep, woken), files, wake=woken.set)
        self._unasked = weakref.finalize(self, warn_not_executed, graph.name)
        self._rows, self._once = LocalRows(), DrawnOnce(graph.id)
        self._turning = threading.RLock()
        """Held by the thread that lets the job run."""
        self._left = weakref.finalize(self, _end_left, self._cluster, self._rows, self._turning, os.getpid())

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return where the job stands; it then runs on for a moment, so that a program which polls it sees progress."""
        asked = super().get_job_status()
        self._poll(TURN_S)
        return asked

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        self._unasked.detach()
        last = time.monotonic()

        def tell() -> None:
            nonlocal last
            if on_progress is not None and time.monotonic() - last >= 1:
                last = time.monotonic()
                on_progress(self.status())

        with self._turning, heeding_signals(self._interrupted), rows_go_to(self._rows):
            return self._cluster.run(tell)

    def draw(self) -> list[Any] | None:
        self._unasked.detach()
        while True:
            with self._turning, heeding_signals(self._interrupted), rows_go_to(self._rows):
                while not self._rows and self._cluster.result is None:
                    if not self._cluster.turn():
                        self._cluster.pause()
            if not self._rows:
                self._ask_result(None)
                return None
            try:
                if rows := self._once.new(self._rows.taken()):
                    return rows
            except JobExecutionError:
                self._left()
                raise

    def _interrupted(self, by: str) -> None:
        """End the job on a signal, as soon as the function that runs returns; one that does not is named."""
        self._cluster.cancel(by)
        timer = threading.Timer(STILL_RUNS_S, self._tell_what_runs, [threading.get_ident()])
        timer.daemon = True
        timer.start()

    def _tell_what_runs(self, thread: int) -> None:
        from rayflink.actors.task.stalls import running_code

        operator, at = running_code(sys._current_frames().get(thread))
        if operator and self._cluster.result is None:
            where = f" ({at})" if at else ""
            message = f"the job ends when {operator!r} returns{where}; another Ctrl-C interrupts that"
            print(message, file=sys.stderr, flush=True)

    def abandon(self) -> None:
        self._left()

    def detach(self) -> JobExecutionResult:
        self._cancel()
        reason = "cannot go on without this program: execution.target is local, and execution.attached is false"
        raise JobExecutionError(self._job_id, reason, "run it on a cluster, or attached")

    def _poll(self, timeout_s: float) -> JobResult | None:
        until = time.monotonic() + max(timeout_s, TURN_S)
        if self._turning.acquire(timeout=max(timeout_s, 0)):  # else another thread lets it run
            try:
                with rows_go_to(self._rows):
                    while self._cluster.result is None and time.monotonic() < until:
                        if self._cluster.turn():
                            continue
                        if timeout_s <= TURN_S:
                            break  # whoever only looks does not wait for it
                        self._cluster.pause()
            finally:
                self._turning.release()
        if self._cluster.result is not None:
            self._unasked.detach()
        return self._cluster.result

    def _cancel(self) -> None:
        self._unasked.detach()
        self._cluster.cancel()

    def _ask_savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float | None
    ) -> tuple[str, str] | None:
        from rayflink.actors.messages.commands import SavepointRequested

        answer = self._ask(SavepointRequested(request_id, directory, stop), timeout_s)
        return answer if answer is None else (answer.location, answer.failure)

    def _ask_rescale(
        self, request_id: str, parallelism: Mapping[str, int], timeout_s: float | None
    ) -> tuple[int, str] | None:
        from rayflink.actors.messages.commands import RescaleRequested

        answer = self._ask(RescaleRequested(request_id, parallelism), timeout_s)
        return answer if answer is None else (answer.pause_ms, answer.failure)

    def _ask(self, request: Any, timeout_s: float | None) -> Any:
        """Let the job run until it has answered; None where it has not within `timeout_s`."""
        cluster = self._cluster
        self._unasked.detach()
        cluster.request(request)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while request.request_id not in cluster.answers:
            if cluster.result is not None:
                return request.job_has_ended()
            if until is not None and time.monotonic() >= until:
                return None
            if not self._turning.acquire(timeout=TURN_S):
                continue  # another thread lets it run
            try:
                with rows_go_to(self._rows):
                    if request.request_id not in cluster.answers and not cluster.turn():
                        cluster.pause()
            finally:
                self._turning.release()
        return cluster.answers[request.request_id]

    def _checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        return self._cluster.job.checkpoints.history.describe(checkpoint_id)

    def _accumulators(self) -> dict[str, Any]:
        return self._cluster.job.report.accumulators()

    def _describe(self) -> dict[str, Any]:
        return self._cluster.job.report.describe()


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

    def __init__(self, graph: JobGraph, configuration: Configuration, stores: Sequence[RayBlocks] = ()) -> None:
        super().__init__(graph.id)
        from rayflink.actors.on_ray.driver.ray_cluster import RayJob, RayOptions

        attached = configuration.get(options.ATTACHED, True)
        self._waits = bool(configuration.get(options.WAIT_UNTIL_RUNNING))
        self._ends_with_driver = attached and configuration.get(options.SHUTDOWN_ON_ATTACHED_EXIT)
        how = RayOptions(
            configuration.get(options.RAY_NAMESPACE),
            attached=self._ends_with_driver,
            placement=configuration.get(options.PLACEMENT_STRATEGY).value,
            ask_timeout_s=configuration.get(options.ASK_TIMEOUT).to_millis() / 1000,
            python_files=_python_files(configuration),
            beside=beside_program() if configuration.get(options.MODULES_BESIDE) else (),
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
        from rayflink.actors.on_ray.driver.ray_cluster import attach

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


def attach(job_id: str, configuration: Configuration | None = None) -> AttachedJobClient:
    """Return the job of this id on the running cluster ($RAY_ADDRESS, or `ray start` on this machine).

    Raises:
        JobExecutionError: there is no cluster, or no such job on it.
    """
    return AttachedJobClient(job_id, configuration or Configuration())


def list_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]]:
    """Return the status of every job that runs, or has ended within a minute unknown to a driver; [] if no cluster."""
    from rayflink.actors.on_ray.driver.ray_cluster import list_jobs

    return list_jobs((configuration or Configuration()).get(options.RAY_NAMESPACE))


def published_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]] | None:
    """Return the status of every job that runs, at most some seconds old, without joining the cluster as a job.

    Returns: None where that is not possible, and `list_jobs` must be asked.
    Raises:
        ConfigError: the cluster refuses this process.
    """
    from rayflink.actors.on_ray.driver.ray_job_board import published_jobs

    return published_jobs((configuration or Configuration()).get(options.RAY_NAMESPACE))


def recorded_jobs(configuration: Configuration | None = None) -> list[dict[str, Any]]:
    """Return the last status of every job of which the nodes of the cluster have files, whether it runs or has ended.

    In order of their beginning. A job whose coordinator was killed is in the state in which it was last seen.
    """
    from rayflink.actors.on_ray.ray_job_files import recorded_jobs

    return recorded_jobs((configuration or Configuration()).get(options.RAY_NAMESPACE))


def job_log(job_id: str, configuration: Configuration | None = None) -> JobLog:
    """Return what the tasks and the coordinator of a job, which may have ended, have printed and logged."""
    from rayflink.actors.on_ray.ray_job_files import RayJobLog

    return RayJobLog(job_id, (configuration or Configuration()).get(options.RAY_NAMESPACE))


class JobLog(Protocol):
    """The log of a job."""

    def read(self) -> list[LogLine]:
        """Return the lines that have come since it was read last, in order of time."""


class KeptResult(Protocol):
    """A cached result that a job writes; see `rayflink.datastream.streams.cached.CachedResult`."""

    def begin(self, store: BlockStore, partitions: int) -> None:
        """Note that a job is about to write the result."""

    def written_by(self, job: JobClient) -> None:
        """Note that the job has been submitted."""


def submit(graph: JobGraph, configuration: Configuration, kept: Sequence[tuple[KeptResult, int]] = ()) -> SubmittedJob:
    """Start a job on the runner that `execution.target` names: `local` in this process, `ray` (the default) on Ray.

    Args:
        kept: the cached results that the job writes, each with the parallelism of its writer.
    """
    warn_of_unheeded(configuration)
    warn_without_sink(graph)
    warn_without_checkpoints(graph)
    put_on_path(_python_files(configuration))
    target = configuration.get(options.TARGET)
    client: SubmittedJob
    if target is not None and target.name == "LOCAL":
        apply_log_levels(configuration.to_dict())
        for result, partitions in kept:
            folder = folder_of((configuration.get(options.TMP_DIRS) or [tempfile.gettempdir()])[0])
            result.begin(FileBlocks(tempfile.mkdtemp(prefix="rayflink-cache-", dir=folder)), partitions)
        client = LocalJobClient(graph)
    else:
        LogLevels.of(configuration.to_dict())  # what is wrong there is said here
        client = _on_ray(graph, configuration, kept)
    for result, _ in kept:
        result.written_by(client)
    client.shows_progress = bool(configuration.get(options.TERMINAL_PROGRESS))
    return client


def frame_store(configuration: Configuration, on_ray: bool = False) -> FrameStore:
    """Return the store for the blocks of a DataFrame: Ray's object stores; without Ray, a folder of the local machine.

    Args:
        on_ray: on Ray in any case.

    Raises:
        ConfigError, RayCannotStart: jobs run on Ray, and there is none.
    """
    ray, target = sys.modules.get("ray"), configuration.get(options.TARGET)
    is_local = target is not None and target.name == "LOCAL" and not on_ray
    if is_local and not (ray is not None and ray.is_initialized()):
        folder = folder_of((configuration.get(options.TMP_DIRS) or [tempfile.gettempdir()])[0])
        return FrameFolder(tempfile.mkdtemp(prefix="rayflink-frame-", dir=folder))
    from rayflink.actors.on_ray.driver.ray_connection import connect
    from rayflink.actors.on_ray.driver.ray_frames import RayFrames

    namespace = configuration.get(options.RAY_NAMESPACE)
    connect(1, namespace)
    return RayFrames(namespace).open()


def ray_dataset(frame: Frame) -> Any:
    """Return a stream's result as a `ray.data.Dataset`."""
    from rayflink.actors.on_ray.driver.ray_dataset import dataset

    return dataset(frame)


def dataset_source(dataset: Any, configuration: Configuration) -> FrameSource:
    """Return a source of what Ray Data computes now.

    Raises:
        TypeMismatch: it is no `ray.data.Dataset`.
    """
    from rayflink.actors.on_ray.driver.ray_dataset import ensure_dataset, written

    ensure_dataset(dataset)
    return written(dataset, frame_store(configuration, on_ray=True))


def _python_files(configuration: Configuration) -> tuple[str, ...]:
    given = configuration.get(options.PYTHON_FILES) or ""
    return tuple(check_python_file(path.strip()) for path in given.split(",") if path.strip())


def _on_ray(graph: JobGraph, configuration: Configuration, kept: Sequence[tuple[KeptResult, int]]) -> RayJobClient:
    stores = []
    if kept:
        from rayflink.actors.on_ray.driver.ray_cache import RayBlocks

        for result, partitions in kept:
            stores.append(RayBlocks(configuration.get(options.RAY_NAMESPACE)))
            result.begin(stores[-1], partitions)
    return RayJobClient(graph, configuration, stores)


def _end_left(cluster: InProcessCluster, rows: LocalRows, turning: threading.RLock, process: int) -> None:
    """Cancel a job that has begun and will not be run further, so that its functions close and its files are removed.

    Args:
        turning: held by the thread that lets the job run; one that still does so at exit ends the job itself.
        process: that of the job; a fork of it leaves the job alone.
    """
    if cluster.result is not None or not cluster.has_started or os.getpid() != process:
        return
    cluster.cancel("the end of those who had a hold of it")
    if not turning.acquire(timeout=LEFT_TIMEOUT_S):
        print("a local job that another thread runs did not end with the program", file=sys.stderr)
        return
    until = time.monotonic() + LEFT_TIMEOUT_S
    try:
        with rows_go_to(rows):
            while cluster.result is None and time.monotonic() < until:
                if not cluster.turn():
                    if not cluster.tasks:  # an error on the way left none that could answer
                        break
                    cluster.pause()
    finally:
        for attempt in list(cluster.tasks):  # an error on the way left them
            cluster.kill(attempt, "its job was left")
        turning.release()
