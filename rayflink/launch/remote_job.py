"""The clients of jobs on a cluster that a dispatcher runs: of this process, and of others."""

from __future__ import annotations

import atexit
import getpass
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rayflink.actors.messages.commands import JobResult
from rayflink.actors.on_ray.driver.driver_output import DriverOutput
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, JobExecutionError, PlanError
from rayflink.common.job_execution_result import DetachedJobExecutionResult, JobExecutionResult
from rayflink.common.job_status import JobStatus
from rayflink.common.options import registry as options
from rayflink.common.user_code.python_files import beside_program
from rayflink.connectors.collected import DrawnOnce, RowBlock
from rayflink.connectors.frames.cached import CacheSource
from rayflink.connectors.frames.frame_source import FrameSource
from rayflink.graph.job_graph import JobGraph

from .cluster_client import ClusterClient, ClusterRequest, RequestRefused
from .followed_job import AttachedJob, FollowedJob
from .python_dependencies import PythonDependencies
from .remote_handle import RemoteHandle
from .remote_submission import PackedArchive, RemoteSubmission

__all__ = ["AttachedRemoteJob", "RemoteJob", "RemoteJobClient", "ensure_sent"]

FOLLOW_S = 1.0
"""Seconds that the dispatcher may keep a client waiting for news."""
SUBMIT_S = 60.0
"""Time that the dispatcher may take to store a job."""
START_S = 1.0
"""Seconds for which the answer to a submission waits for the start of the job."""
LOOK_S = 0.2
"""Seconds between two looks at a job that was accepted and waits for its processes."""
NOTE_EVERY_S = 5.0
"""Seconds between two messages about what the job waits for."""
CANCEL_S = 30.0
"""Seconds that a client whose rows are in error waits for the end of its job."""
SECRETS = (options.REST_TOKEN.key, options.REST_KEY.key)
"""Options of the client that no job takes along."""


class RemoteJob(RemoteHandle):
    """A job that this process submits, follows in a thread, and whose output it prints; the thread keeps its result.

    Args:
        submission: of the job.
        cluster: that shall run it.
        ends_with_client: it is cancelled when this process ends.
        starts_anew: it begins with no rows before its first, as one that starts from a savepoint has.

    Raises:
        ClusterUnreachable: the cluster does not answer.
        JobExecutionError: the cluster does not accept it, or cannot start it.
    """

    owns_cluster = False

    def __init__(
        self, submission: RemoteSubmission, cluster: ClusterClient, ends_with_client: bool, starts_anew: bool
    ) -> None:
        super().__init__(submission.job_id, cluster)
        self._name, self._ends_with_client = submission.name, ends_with_client
        self._result_here: JobResult | None = None
        self._error: Exception | None = None
        self._last_status: dict[str, Any] | None = None
        self._output = DriverOutput(f"screen of job {self._name}")
        self._ended = threading.Event()
        self._once = DrawnOnce(self.job_id, starts_anew)
        self._drawing = threading.Lock()
        """Held while rows are asked for."""
        self._numbers = {"news": 0, "rows": 0}
        """The number of the last request of each kind, by which one that is repeated is recognized."""
        self._leaving = self._rows_are_lost = False
        self._noted_at = 0.0
        self._follower = threading.Thread(target=self._follow, name=f"job {self._name}", daemon=True)
        self._submit(submission)
        atexit.register(self._leave)
        self._follower.start()

    def _submit(self, submission: RemoteSubmission) -> None:
        try:
            query = {"client": _client_name(), "wait_s": START_S}
            request = ClusterRequest("POST", "/rayflink/jobs", query, submission.encode(), SUBMIT_S)
            self._cluster.ask(request, patient=True)
            self._await_start()
        except RequestRefused as error:
            if error.status == 422:
                raise self._refused(error) from error
            said = "; ".join(error.messages) or f"HTTP {error.status}"
            reason = f"was not accepted by the cluster at {self._cluster.url}: {said}"
            raise JobExecutionError(self.job_id, reason, error.remedy) from error
        except KeyboardInterrupt:
            end = f"`rayflink cancel {self.job_id} -D execution.target=remote` ends it"
            print(f"job {self._name!r} was interrupted as it was submitted; if it has begun, {end}", file=sys.stderr)
            raise

    def _await_start(self) -> None:
        """Wait until the accepted job has begun, or cannot begin now and is tried again.

        Raises:
            JobExecutionError: it cannot be started there.
        """
        noted_at = time.monotonic()
        while True:
            status = super().status()
            failures = status.get("exceptions", ())
            if status["state"] != JobStatus.INITIALIZING.value or failures:
                break
            if time.monotonic() - noted_at >= NOTE_EVERY_S:
                noted_at = time.monotonic()
                print(f"job {self._name!r}: accepted, waiting for processes", file=sys.stderr)
            time.sleep(LOOK_S)
        for failure in failures if status["state"] == JobStatus.FAILED.value else ():
            if refusal := failure.get("refusal"):
                raise JobExecutionError(self.job_id, *refusal)

    def status(self) -> dict[str, Any]:
        """Return the job as plain data; after its end, the last status."""
        return super().status() if self._last_status is None else self._last_status

    def cancel(self, by: str = "the user") -> None:
        """Request cancellation; does nothing to a job that has ended."""
        if not self._ended.is_set() and self._last_status is None:
            super().cancel(by)

    def poll(self, timeout_s: float) -> JobResult | None:
        """Return the result, or None when the job still runs after `timeout_s`.

        Raises:
            ClusterUnreachable: the cluster does not answer.
            JobExecutionError: the cluster does not know the job any more.
        """
        self._ended.wait(timeout_s)
        if self._error is not None:
            raise self._error
        return self._result_here

    def accumulators(self) -> dict[str, Any]:
        """Return name -> value, merged over the subtasks that have finished."""
        return super().accumulators() if self._result_here is None else dict(self._result_here.accumulators)

    def rows(self, timeout_s: float) -> list[Any] | None:
        """Return rows collected since the last call, [] when none came within `timeout_s`; None when there will be no
        more.

        Raises:
            ClusterUnreachable: the cluster does not answer.
            JobExecutionError: the rows cannot be read in this process, would repeat others, or some are lost.
        """
        with self._drawing:
            if self._ended.is_set() or self._last_status is not None:
                return None
            head, *blocks = self._numbered("rows", timeout_s)
        if not head["are_more"]:
            self._rows_are_lost = bool(head["are_lost"])
            return None
        return self._new_rows([block for block in blocks if block])

    def ensure_all_drawn(self) -> None:
        """Check, at the end of a job that has finished, that its rows have come.

        Raises:
            JobExecutionError: the cluster has ended with rows that had not been drawn.
        """
        if self._rows_are_lost:
            reason = "has finished, and rows of it that had not been drawn were lost with its dispatcher"
            raise JobExecutionError(self.job_id, reason, "run the program again, or write to a sink")

    def release(self) -> None:
        """Release the job, which goes on without this process."""
        self._leaving = True
        atexit.unregister(self._leave)
        atexit.register(self._follower.join, FOLLOW_S + 1)

    def _new_rows(self, blocks: Sequence[bytes]) -> list[Any]:
        try:
            return self._once.new(map(self._block, blocks))
        except JobExecutionError:
            self.cancel("the error of its rows")
            self._ended.wait(CANCEL_S)
            raise

    def _block(self, packed: bytes) -> RowBlock:
        block: RowBlock = self._read(packed)
        return replace(block, rows=self._read(block.rows)) if isinstance(block.rows, bytes) else block

    def _numbered(self, what: str, wait_s: float, **query: str) -> list[Any]:
        """Ask for what the dispatcher gives away once; the next number is used when the answer is here."""
        number = self._numbers[what] + 1
        pieces = self._pieces(what, {"number": number, "wait_s": wait_s, **query}, wait_s)
        self._numbers[what] = number
        return pieces

    def _is_wanted(self) -> bool:
        return not self._leaving

    # the thread that follows the job

    def _follow(self) -> None:
        try:
            while not self._leaving:
                has_room = self._output.wait_for_room(FOLLOW_S)
                output = "true" if has_room else "false"
                head, packed = self._numbered("news", FOLLOW_S if has_room else 0.0, output=output)[:2]
                self._show(head)
                if head["has_ended"]:
                    self._end(head, packed)
                    return
        except Exception as error:  # raised where the program waits for the job
            self._error = None if self._leaving else error
        finally:
            try:
                self._output.finish()
            except Exception as error:
                self._error = self._error or error
            self._ended.set()

    def _end(self, head: Mapping[str, Any], packed: bytes) -> None:
        result = self._result(head, packed)
        status = dict(head["status"]) if "status" in head else super().status()
        with self._drawing:  # rows that the dispatcher has given away may still be on their way
            self._last_status = status
        self._output.finish()
        atexit.unregister(self._leave)
        self._result_here = result

    def _show(self, head: Mapping[str, Any]) -> None:
        self._output.put([(bool(to_stderr), str(text)) for to_stderr, text in head["chunks"]])
        now = time.monotonic()
        if head["note"] and now - self._noted_at >= NOTE_EVERY_S:
            self._noted_at = now
            self._output.put([(True, f"job {self._name!r}: {head['note']}\n")])

    def _leave(self) -> None:
        """Leave the job: this process ends before it, or before all its output was written."""
        if self._last_status is None and not self._ended.is_set():
            end = f"`rayflink cancel {self.job_id} -D execution.target=remote` ends it"
            if not self._ends_with_client:
                print(f"job {self._name!r} goes on without this program, which has ended; {end}", file=sys.stderr)
            else:
                self._leaving = True  # the request is sent once
                try:
                    self.cancel("the end of its driver")
                except Exception as error:  # the process ends: nothing is left to catch it
                    print(f"job {self._name!r} could not be cancelled: {error}; {end}", file=sys.stderr)
        self._leaving = True
        self._follower.join(FOLLOW_S + 1)


class RemoteJobClient(FollowedJob):
    """A job that this process has submitted to a cluster.

    Its tasks' output is printed here, by a thread, for as long as this process lives.
    """

    _job: RemoteJob

    def __init__(self, graph: JobGraph, configuration: Configuration, dependencies: PythonDependencies) -> None:
        get = configuration.get
        self._waits = bool(get(options.WAIT_UNTIL_RUNNING))
        ends_with_driver = get(options.ATTACHED, True) and get(options.SHUTDOWN_ON_ATTACHED_EXIT)
        cluster = ClusterClient.of(configuration)
        ensure_sent(graph)
        own_options = {key: value for key, value in graph.configuration.items() if key not in SECRETS}
        submission = RemoteSubmission.of(
            replace(graph, configuration=own_options),
            (*dependencies.files, *(beside_program() if get(options.MODULES_BESIDE) else ())),
            get(options.CLIENT_TIMEOUT).to_millis() if ends_with_driver else None,
            dependencies.executable,
            [PackedArchive(os.path.basename(archive.path), archive.name, _content(archive.path))
             for archive in dependencies.archives],
            get(options.PLACEMENT_STRATEGY).value,
        )  # fmt: skip
        starts_anew = get(options.RESTORE_PATH) is None
        super().__init__(graph.id, RemoteJob(submission, cluster, ends_with_driver, starts_anew), ends_with_driver)

    def status(self) -> dict[str, Any]:
        return self._describe()  # the cluster has measured the rates

    def draw(self) -> list[Any] | None:
        rows = super().draw()
        if rows is None:
            self._job.ensure_all_drawn()
        return rows

    def detach(self) -> JobExecutionResult:
        print(f"Job has been submitted with JobID {self._job_id}", flush=True)
        if self._waits:
            self._wait_until_running()
        self._job.release()
        return DetachedJobExecutionResult(self._job_id)


class AttachedRemoteJob(AttachedJob):
    """A job of a cluster that another process has submitted.

    Raises:
        JobExecutionError: the cluster does not know it.
        ClusterUnreachable: the cluster does not answer.
    """

    def __init__(self, job_id: str, configuration: Configuration) -> None:
        super().__init__(job_id)
        self._job = RemoteHandle(str(self._job_id), ClusterClient.of(configuration))
        self._job.status()

    def status(self) -> dict[str, Any]:
        return self._describe()  # the cluster has measured the rates


def ensure_sent(graph: JobGraph) -> None:
    """Check that the sources of a job lie where a cluster reaches them.

    Raises:
        PlanError: blocks of a DataFrame, a Dataset or a cached stream lie with this program.
    """
    for vertex in graph.vertices:
        for operator in vertex.operators:
            what = _left_here(getattr(operator.factory, "source", None))
            if what:
                problem = f"{operator.name!r} reads {what}, which lies with this program and not where the cluster is"
                how = "as env.from_spark(df, path=...) or a FileSink does"
                remedy = f"write it to files that the cluster reaches, {how}; or set execution.target: ray"
                raise PlanError(problem, remedy, operator.call_site)


def _left_here(source: object) -> str:
    if isinstance(source, FrameSource) and not source.store.travels:
        return "a DataFrame"
    if isinstance(source, CacheSource):
        return "a cached stream"
    inner: Sequence[object] = getattr(source, "wrapped_functions", ())
    return next(filter(None, map(_left_here, inner)), "")


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        remedy = f"the archive is sent to the cluster from here: {error.strerror or error}"
        raise ConfigError(options.PYTHON_ARCHIVES.key, path, "an archive that can be read", remedy) from error


def _client_name() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError, ImportError):  # a process whose user has no name
        return socket.gethostname()
