"""The driver's side of a job on Ray: submit, follow, ask, cancel; find a job again, and list them."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayActorError, RayError, RayTaskError

from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError, RayflinkError, TaskLost, described
from rayflink.common.metrics.job_report import short
from rayflink.common.options.log_levels import LogLevels
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.user_code.python_archives import PythonArchive
from rayflink.common.user_code.python_files import IMPORT_REMEDY, newest_change, packed
from rayflink.common.user_code.value_bytes import from_bytes
from rayflink.connectors.collected import DrawnOnce, RowBlock
from rayflink.graph.job_graph import JobGraph

from ...job.submission import Stored, Submission, slot_cpus
from ...messages.commands import CheckpointRequested, RescaleRequested, SavepointRequested
from ...messages.scheduling import cpus_of
from ..coordinator_actor import coordinator_class
from ..coordinators.find_coordinator import COORDINATOR, find_coordinator, job_names
from ..coordinators.hosted_coordinator import CoordinatorBusy, CoordinatorGone
from ..ray_handles import RayActor
from .driver_output import DriverOutput
from .idle_coordinator import IDLE, Processes
from .ray_cache import RayBlocks
from .ray_connection import ControlService, connect, join
from .ray_python_files import runtime_env_with
from .ray_resources import has_autoscaler, lacking, refuse_lack, waiting_for
from .terminal import News
from .user_program import pack_with_classes

if TYPE_CHECKING:
    from ...messages.commands import JobResult

ASK_TIMEOUT_S = 10.0
"""A control call that is not answered by then is an error (pekko.ask.timeout)."""
START_TIMEOUT_S = 60.0
"""Time for the coordinator's process to start and load the program."""
OWNER_TIMEOUT_MS = 10_000
"""A job that ends with its driver is cancelled when the driver was not heard of for so long."""
CANCEL_S = 30.0
"""Seconds that a driver whose rows are in error waits for the end of its job."""
FOLLOW_S = 0.5
"""Seconds that the coordinator may keep a driver waiting for news."""
NOTE_EVERY_S = 5.0
"""Seconds between two messages of the driver about the slots that its job waits for."""
COMES_BACK_S = 150.0
"""A coordinator that is lost has so long to go on elsewhere."""
ASK_AGAIN_S = 0.2
"""Seconds between two calls to a lost coordinator."""
_SPOKEN = {"follow": "news", "answer_to": "a request"}


class JobHandle:
    """A job that runs on Ray, as any client sees it.

    Args:
        job_id: 32 hex digits.
        coordinator: its actor.
        ask_timeout_s: how long an answer may take.
    """

    def __init__(self, job_id: str, coordinator: RayActor, ask_timeout_s: float = ASK_TIMEOUT_S) -> None:
        self.job_id, self._coordinator, self._ask_timeout_s = job_id, coordinator, ask_timeout_s
        self._control_service = ControlService.joined()

    def status(self) -> dict[str, Any]:
        """Return the job as plain data."""
        return dict(self._ask("status"))

    def cancel(self, by: str = "the user") -> None:
        """Request cancellation; `poll` shows when it is done."""
        self._ask("cancel", by)

    def stop(self) -> None:
        """Request that the sources end and the job finishes."""
        self._ask("stop")

    def savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float
    ) -> tuple[str, str] | None:
        """Return the address of a savepoint, and why there is none; None where it is not known within `timeout_s`."""
        request = SavepointRequested(request_id, directory, stop)
        answer = self._ask("answer_to", request, timeout_s, timeout_s=timeout_s + self._ask_timeout_s)
        return None if answer is None else (answer.location, answer.failure)

    def checkpoint(self, request_id: str, timeout_s: float) -> tuple[int, str] | None:
        """Return the number of a checkpoint, and why there is none; None where it is not known within `timeout_s`."""
        request = CheckpointRequested(request_id)
        answer = self._ask("answer_to", request, timeout_s, timeout_s=timeout_s + self._ask_timeout_s)
        return None if answer is None else (answer.checkpoint_id, answer.failure)

    def rescale(self, request_id: str, parallelism: Mapping[str, int], timeout_s: float) -> tuple[int, str] | None:
        """Return the pause in milliseconds, and why there is no change; None if unknown within `timeout_s`."""
        request = RescaleRequested(request_id, parallelism)
        answer = self._ask("answer_to", request, timeout_s, timeout_s=timeout_s + self._ask_timeout_s)
        return None if answer is None else (answer.pause_ms, answer.failure)

    def checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        """Return statistics of the job's checkpoints, or of one; None when it is not remembered."""
        details: dict[str, Any] | None = self._ask("checkpoints", checkpoint_id)
        return details

    def accumulators(self) -> dict[str, Any]:
        """Return name -> value, merged over the subtasks that have finished."""
        return dict(self._read(self._ask("accumulators")))

    def poll(self, timeout_s: float) -> JobResult | None:
        """Return the result, or None when the job still runs after `timeout_s`.

        Raises:
            TaskLost: the coordinator is dead.
            ControlPlaneTimeout: it does not answer.
            JobExecutionError: the cluster's control service is gone.
        """
        self._look_for_control_service()
        packed = self._ask("result", timeout_s, timeout_s=timeout_s + self._ask_timeout_s)
        result: JobResult | None = None if packed is None else self._read(packed)
        return result

    def _look_for_control_service(self) -> None:
        """Check the control service: without it, Ray would end this process without an error that the program sees."""
        gone_s = self._control_service.lost_for_s()
        if gone_s is not None:
            where = self._control_service.address
            reason = f"is out of sight: its cluster's control service (GCS) at {where} has been gone for {gone_s:.0f} s"
            remedy = "see gcs_server.out in the logs of Ray's head node; start the cluster and submit the job again"
            raise JobExecutionError(self.job_id, reason, remedy)

    def _read(self, packed: bytes) -> Any:
        try:
            return from_bytes(packed)
        except Exception as error:  # a user's class may raise anything while it is unpickled
            reason = f"has sent results that cannot be read here: {described(error)}"
            remedy = "values that are collected must come through pickle in every process; give their class __reduce__"
            raise JobExecutionError(self.job_id, reason, remedy) from error

    def _ask(self, what: str, *arguments: object, timeout_s: float | None = None) -> Any:
        """Return the answer of a coordinator, which may be lost and come back meanwhile."""
        wait_s = self._ask_timeout_s if timeout_s is None else timeout_s
        lost_at: float | None = None
        while True:
            started = time.monotonic()
            try:
                return ray.get(getattr(self._coordinator, what).remote(*arguments), timeout=wait_s)
            except GetTimeoutError as error:
                if not _comes_back(lost_at):
                    waited = int((time.monotonic() - started) * 1000)
                    raise ControlPlaneTimeout(
                        _SPOKEN.get(what, what), f"the coordinator of job {self.job_id}", waited
                    ) from error
            except RayTaskError as error:
                if isinstance(error.cause, CoordinatorGone):
                    raise self._lost(started, error) from error
                if not isinstance(error.cause, CoordinatorBusy):
                    raise refused(self.job_id, what, error.cause) from error
                lost_at = self._ask_again(what, lost_at or started, started, error)
            except ActorUnavailableError as error:
                lost_at = self._ask_again(what, lost_at or started, started, error)
            except RayActorError as error:
                raise self._lost(started, error) from error

    def _ask_again(self, what: str, lost_at: float, started: float, error: RayError) -> float:
        """Wait for a coordinator that comes back, and return since when it is lost.

        Raises:
            TaskLost: it does not come back in time.
        """
        if what == "start" or not _comes_back(lost_at):
            raise self._lost(started, error) from error
        time.sleep(ASK_AGAIN_S)
        return lost_at

    def _lost(self, since: float, error: RayError) -> TaskLost:
        waited = int((time.monotonic() - since) * 1000)
        return TaskLost(f"{COORDINATOR} of job {self.job_id}", "its node", waited, str(error))


def refused(job_id: str, what: str, cause: BaseException) -> JobExecutionError:
    """Return the error for a driver whose call the coordinator could not answer.

    >>> print(refused("0f", "start", ModuleNotFoundError("No module named 'mine'")))  # doctest: +ELLIPSIS
    job 0f could not start: ModuleNotFoundError: No module named 'mine'; every module of the program must be ...
    """
    reason = f"could not answer {_SPOKEN.get(what, what)!r}: {type(cause).__name__}: {cause}"
    remedy = "the log of its coordinator, among the workers' logs of Ray, has more"
    if what == "start" and isinstance(cause, RayflinkError):
        return JobExecutionError(job_id, "could not start", str(cause))
    if what == "start":
        reason = f"could not start: {type(cause).__name__}: {cause}"
        remedy = f"every module of the program must be importable on all nodes of the cluster: {IMPORT_REMEDY}"
    return JobExecutionError(job_id, reason, remedy)


def _comes_back(lost_at: float | None) -> bool:
    """Return whether a coordinator that was lost at that time may still come back; None: it was not lost."""
    return lost_at is not None and time.monotonic() - lost_at < COMES_BACK_S


@dataclass(frozen=True, slots=True)
class RayOptions:
    """The options by which a job runs on Ray.

    Args:
        namespace: Ray namespace of its actors.
        attached: the job is cancelled when its driver ends or is lost.
        slot_cpus: CPUs of one slot; 0: as the options of the job say.
        placement: Ray's strategy for the slots: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
        ask_timeout_s: how long an answer of the coordinator may take.
        python_files: modules that the processes of the job import.
        archives: unpacked in their current folder.
        executable: their interpreter; "": that of the node.
        beside: those in the program's folder, which processes on its own node find there.
        may_lack: whether it is started also where the cluster is too small for it and does not grow by itself.
        idle_s: how long its processes wait for another job when it has finished, on a Ray that this process started.
    """

    namespace: str = "rayflink"
    attached: bool = True
    slot_cpus: float = 0.0
    placement: str = "PACK"
    ask_timeout_s: float = ASK_TIMEOUT_S
    python_files: tuple[str, ...] = ()
    archives: tuple[PythonArchive, ...] = ()
    executable: str = ""
    beside: tuple[str, ...] = ()
    may_lack: bool = True
    idle_s: float = 0.0


class RayJob(JobHandle):
    """A job submitted by this process, which follows it in a thread, prints what its tasks print, and keeps its result.

    Args:
        graph: the job.
        options: how it is run.
        cached_files: name -> path of the distributed cache.
        stores: of cached results, which the job writes.

    Raises:
        NotSerializable: the program cannot be sent.
        JobExecutionError: it cannot be loaded on the cluster, or the cluster is too small for it, and it may not lack.
        ConfigError: RAY_ADDRESS names a cluster that does not answer.
    """

    def __init__(
        self,
        graph: JobGraph,
        options: RayOptions = RayOptions(),
        cached_files: Mapping[str, str] | None = None,
        stores: Sequence[RayBlocks] = (),
    ) -> None:
        self.graph = graph
        program, classes = pack_with_classes(graph, f"job {graph.name!r}")
        namespace = options.namespace
        options = replace(options, slot_cpus=options.slot_cpus or slot_cpus(graph))
        stored = Stored.of(graph)
        self._likeness = _likeness(graph, options) if options.idle_s and not cached_files and stored is None else None
        every_file = (*options.python_files, *options.beside)
        archives = [archive.path for archive in options.archives]
        idle = IDLE.take(self._likeness, newest_change((*every_file, *archives) if options.idle_s else ()))
        started = time.time()
        self.owns_cluster = connect(cpus_of(graph, options.slot_cpus), namespace)
        if not options.may_lack:
            refuse_lack(graph, options.slot_cpus)
        for store in stores:
            store.open(classes)
        blueprint = coordinator_class().options(
            name=f"{graph.id}/{COORDINATOR}",
            namespace=namespace,
            lifetime="detached",
            max_restarts=0 if stored is None else -1,
            runtime_env=runtime_env_with(
                options.python_files if self.owns_cluster else every_file, options.archives, options.executable
            ),
        )
        title = f"{short(graph.name, 60)} ({graph.id[:8]})"
        self._processes = idle or Processes(blueprint.remote(graph.id, stored, title), started)
        super().__init__(graph.id, self._processes.coordinator, options.ask_timeout_s)
        self._idle_s = options.idle_s if self.owns_cluster and self._likeness is not None else 0.0
        self._attached, self._slot_cpus = options.attached, options.slot_cpus
        limit = OWNER_TIMEOUT_MS if options.attached else None
        modules = b"" if stored is None else packed(every_file)
        submission = Submission(
            program, dict(cached_files or {}), options.slot_cpus, namespace, options.placement, limit, modules
        )
        self._result: JobResult | None = None
        self._error: Exception | None = None
        self._last_status: dict[str, Any] | None = None
        self._output = DriverOutput(f"screen of job {graph.name}")
        self._ended = threading.Event()
        self._once = DrawnOnce(graph.id)
        self._drawing = threading.Lock()
        """Held while rows are asked for."""
        self._leaving = self._is_over = False
        self._noted_at = 0.0
        self._follower = threading.Thread(target=self._follow, name=f"job {graph.name}", daemon=True)
        self._begin(submission)

    def _begin(self, submission: Submission) -> None:
        try:
            self._ask("start", submission, timeout_s=START_TIMEOUT_S)
            atexit.register(self._leave)
            self._follower.start()
        except BaseException as error:  # Ctrl-C as well: it is detached, and nothing else would end it
            ray.kill(self._coordinator)
            atexit.unregister(self._leave)
            if isinstance(error, KeyboardInterrupt):
                message = f"job {self.graph.name!r} ({self.job_id}) was interrupted as it began, and has ended"
                print(message, file=sys.stderr)
            raise

    def status(self) -> dict[str, Any]:
        """Return the job as plain data; after its end, the last status."""
        if self._last_status is not None:
            return self._last_status
        return super().status()

    def cancel(self, by: str = "the user") -> None:
        """Request cancellation; does nothing to a job that has ended."""
        if not self._ended.is_set() and self._last_status is None:
            super().cancel(by)

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None, every_s: float = 1.0) -> JobResult:
        """Wait for the end; `on_progress` is given the status every `every_s` seconds.

        Raises:
            TaskLost: the coordinator is dead.
            ControlPlaneTimeout: it does not answer.
            JobExecutionError: the cluster's control service is gone.
        """
        while True:
            result = self.poll(every_s)
            if result is not None:
                return result
            if on_progress is not None:
                on_progress(self.status())

    def poll(self, timeout_s: float) -> JobResult | None:
        """Return the result, or None when the job still runs after `timeout_s`.

        Raises:
            TaskLost: the coordinator is dead.
            ControlPlaneTimeout: it does not answer.
            JobExecutionError: the cluster's control service is gone.
        """
        self._ended.wait(timeout_s)
        if self._error is not None:
            raise self._error
        return self._result

    def accumulators(self) -> dict[str, Any]:
        """Return name -> value, merged over the subtasks that have finished."""
        if self._result is not None:
            return dict(self._result.accumulators)
        return super().accumulators()

    def rows(self, timeout_s: float) -> list[Any] | None:
        """Return rows collected since the last call, [] when none came within `timeout_s`; None when there will be no
        more.

        Raises:
            TaskLost: the coordinator is dead.
            ControlPlaneTimeout: it does not answer.
            JobExecutionError: the rows cannot be read in this process, or would repeat others.
        """
        with self._drawing:
            if self._ended.is_set() or self._last_status is not None:
                return None
            blocks = self._ask("rows", timeout_s, timeout_s=timeout_s + self._ask_timeout_s)
        return None if blocks is None else self._new_rows(blocks)

    def _new_rows(self, blocks: Sequence[bytes]) -> list[Any]:
        try:
            return self._once.new(map(self._block, blocks))
        except JobExecutionError:
            self.cancel("the error of its rows")
            self._ended.wait(CANCEL_S)  # so that its coordinator need not stay for a driver that may come
            raise

    def _block(self, packed: bytes) -> RowBlock:
        block: RowBlock = self._read(packed)
        return replace(block, rows=self._read(block.rows)) if isinstance(block.rows, bytes) else block

    def lack(self) -> str:
        """Return the resources that the job lacks where the whole cluster is too small for it; "" where it is not."""
        wanted = lacking(self.graph, self._slot_cpus)
        return waiting_for(wanted, has_autoscaler()) if wanted else ""

    def release(self) -> None:
        """Release the job; one that still runs goes on without this driver.

        The thread that follows it ends before the process leaves Ray, which would print an error of its own otherwise.
        """
        self._leaving = True
        atexit.unregister(self._leave)
        atexit.register(self._follower.join, FOLLOW_S + 1)

    def _follow(self) -> None:
        try:
            while not self._leaving:
                self._look_for_control_service()
                room = self._output.wait_for_room(FOLLOW_S)
                within_s = FOLLOW_S + self._ask_timeout_s
                news: News = self._ask("follow", FOLLOW_S if room else 0.0, room, timeout_s=within_s)
                self._show(news)
                if news.result is not None:
                    self._last_status = super().status()
                    with self._drawing:  # rows that it has given away may still be on their way
                        self._let_go(self._last_status.get("state", ""))
                    self._output.finish()
                    atexit.unregister(self._leave)
                    self._result = self._read(news.result)
                    return
        except SystemExit:  # what Ray raises in a thread that waits when the program calls ray.shutdown()
            remedy = "wait for the job first; a job on a cluster is found again with attach()"
            self._error = JobExecutionError(self.job_id, "is out of sight: this process has left Ray", remedy)
        except Exception as error:  # raised where the program waits for the job
            self._error = error
        finally:
            try:
                self._output.finish()
            except Exception as error:
                self._error = self._error or error
            self._ended.set()

    def _let_go(self, state: str) -> None:
        """End the coordinator of the job, or let it wait for another job that is like this one."""
        self._is_over = True
        if self._idle_s and state == "FINISHED":
            IDLE.put(self._processes, self._likeness, self._idle_s)
        else:
            ray.kill(self._coordinator)

    def _ask(self, what: str, *arguments: object, timeout_s: float | None = None) -> Any:
        if self._is_over:  # its coordinator may be that of another job
            raise TaskLost(f"{COORDINATOR} of job {self.job_id}", "its node", 0, "the job has ended")
        return super()._ask(what, *arguments, timeout_s=timeout_s)

    def _show(self, news: News) -> None:
        self._output.put(news.chunks)
        now = time.monotonic()
        if news.note and now - self._noted_at >= NOTE_EVERY_S:
            self._noted_at = now
            self._output.put([(True, f"job {self.graph.name!r}: {news.note}\n")])

    def _leave(self) -> None:
        """Leave the job: the driver ends before its job, or before all its output was written."""
        if self._last_status is not None:
            pass
        elif self._attached and not self._ended.is_set():
            try:
                self.cancel("the end of its driver")
            except Exception as error:  # the process ends: nothing is left to catch it
                print(f"job {self.graph.name!r} could not be cancelled: {error}", file=sys.stderr)
        elif self.owns_cluster and not self._ended.is_set():
            remedy = "wait for it with get_job_execution_result().result(), or start a cluster with `ray start --head`"
            print(f"job {self.graph.name!r} ends with this program, which started its Ray; {remedy}", file=sys.stderr)
        elif not self._ended.is_set():
            end = f"`rayflink cancel {self.job_id}` ends it"
            print(f"job {self.graph.name!r} goes on without this program, which has ended; {end}", file=sys.stderr)
        self._leaving = True
        self._follower.join(FOLLOW_S + 1)


def _likeness(graph: JobGraph, options: RayOptions) -> Hashable:
    """Return what a job must have in common with another one to take over its processes."""
    levels = repr(LogLevels.of(graph.configuration))
    taken_along = options.python_files, options.archives, options.executable
    return options.namespace, options.placement, cpus_of(graph, options.slot_cpus), levels, taken_along


def attach(job_id: str, namespace: str = "rayflink", ask_timeout_s: float = ASK_TIMEOUT_S) -> JobHandle:
    """Return the job of this id on the running cluster.

    Raises:
        JobExecutionError: there is no cluster, or no such job on it.
    """
    if not join(namespace):
        remedy = "start one with `ray start --head`, or set RAY_ADDRESS"
        raise JobExecutionError(job_id, "cannot be found: no Ray cluster runs here", remedy)
    coordinator = find_coordinator(job_id, namespace)
    if coordinator is None:
        reason = f"is not on this cluster (jobs there: {', '.join(job_names(namespace)) or 'none'})"
        raise JobExecutionError(job_id, reason, "it has ended, or was given another rayflink.ray.namespace")
    handle = JobHandle(job_id, coordinator, ask_timeout_s)
    if handle.status()["jid"] != job_id:  # its processes run another job of its program
        raise JobExecutionError(job_id, "has ended", "the jobs of a program are those that `rayflink list` shows")
    return handle


def list_jobs(namespace: str = "rayflink") -> list[dict[str, Any]]:
    """Return `status()` of every job on the running cluster, in order of id; [] when no cluster runs."""
    if not join(namespace):
        return []
    jobs = []
    for job_id in job_names(namespace):
        coordinator = find_coordinator(job_id, namespace)
        try:
            if coordinator is not None:
                jobs.append(JobHandle(job_id, coordinator).status())
        except (JobExecutionError, TaskLost):
            continue  # it ended while the others were asked
    return jobs
