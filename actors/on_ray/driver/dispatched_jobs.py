"""Jobs that a dispatcher starts on its Ray cluster, from what a client has packed, and finds again."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from ray.exceptions import GetTimeoutError, RaySystemError, RpcError

from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError, RayflinkError
from rayflink.common.metrics.job_report import short
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.python_archives import PythonArchive
from rayflink.common.user_code.python_files import unpacked

from ...exchange.frames import TaskAddress
from ...job.submission import Stored, Submission
from ..coordinator_actor import coordinator_class
from ..coordinators.find_coordinator import COORDINATOR, end_coordinator, find_coordinator
from ..coordinators.shared_hosts import SharedHosts
from ..ray_handles import RayActor
from ..ray_job_files import log_pieces, recorded_jobs
from ..ray_remains import remove_remains
from ..task_log import Piece
from .ray_cluster import START_TIMEOUT_S, JobHandle
from .ray_job_board import LATE_S, JobBoard, JobEntry
from .ray_python_files import runtime_env_with
from .slot_calls import SlotCalls
from .terminal import News

log = get_logger(__name__)
Document: TypeAlias = "dict[str, Any]"
"""A JSON object."""
CONTROL_SERVICE_LOST = (GetTimeoutError, RaySystemError, RpcError)
"""What Ray raises without its control service. Errors of a job have other classes: that of its environment is none."""
SUSPEND_S = 30.0
FRESH_S = 0.5
"""Seconds between two looks at what jobs have published."""


@dataclass(frozen=True)
class Dispatched:
    """A job to start.

    Args:
        job_id: 32 hex digits.
        name: of the job.
        submission: of its client.
        stored: where it stores its checkpoints; None: it takes none.
        executable: interpreter of its processes; "": that of the nodes.
        archives: (name of the file, folder to unpack it into, content).
        shares: settings of a process that its coordinator may share with others; None: it has one of its own.
    """

    job_id: str
    name: str
    submission: Submission
    stored: Stored | None
    executable: str = ""
    archives: Sequence[tuple[str, str, bytes]] = ()
    shares: str | None = None


class DispatchedJob(JobHandle):
    """A job on Ray, as its dispatcher reads and asks it; readers are answered from what was read a moment ago."""

    _board: StatusBoard | None = None
    _description: Document | None = None

    def published_on(self, board: StatusBoard) -> DispatchedJob:
        """Take the status of the job from a board from now on, and return the job."""
        self._board = board
        return self

    def begin(self, submission: Submission) -> None:
        """Start the job.

        Raises:
            JobExecutionError: it cannot be loaded on the cluster.
        """
        self._ask("start", submission, timeout_s=START_TIMEOUT_S)

    def withdraw(self) -> bool:
        """Return whether the coordinator has no job, and takes none from now on.

        Raises:
            TaskLost, ControlPlaneTimeout: it is dead, or does not answer.
        """
        if not hasattr(self._coordinator, "withdraw"):  # of an earlier build
            return False
        is_withdrawn: bool = self._ask("withdraw")
        return is_withdrawn

    def end(self) -> None:
        """End the process of the coordinator, for good."""
        end_coordinator(self._coordinator)

    def is_same(self, other: JobHandle) -> bool:
        """Return whether both have one coordinator, and not one that came after the other."""
        return bool(other._coordinator == self._coordinator)

    def status(self) -> Document:
        """Return the job as plain data, at most some seconds old."""
        return (self._board and self._board.status(self.job_id)) or super().status()

    def description(self) -> Document:
        """Return the plan and the configuration of the job."""
        if self._description is None:
            self._description = dict(self._ask("description"))
        return self._description

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        """Return statistics of the job's checkpoints, or of one; None when it is not remembered."""
        entry = self._board.entry(self.job_id) if self._board is not None and checkpoint_id is None else None
        if entry is not None and entry.checkpoints is not None:
            return entry.checkpoints
        return super().checkpoints(checkpoint_id)

    def process(self, attempt: str) -> SlotCalls | None:
        """Return the process in which an attempt runs; None: it is gone."""
        try:
            return SlotCalls(self._ask("process_of", TaskAddress(attempt)))
        except RayflinkError:  # the attempt has ended meanwhile, or the job
            return None

    def news(self, timeout_s: float, with_texts: bool) -> News:
        """Return what was printed, and the result at the end; the call also shows that the client lives."""
        news: News = self._ask("follow", timeout_s, with_texts, timeout_s=timeout_s + self._ask_timeout_s)
        return news

    def rows(self, timeout_s: float) -> tuple[bytes, ...] | None:
        """Return blocks of collected rows, waiting for the first; None when all have been drawn."""
        blocks: tuple[bytes, ...] | None = self._ask("rows", timeout_s, timeout_s=timeout_s + self._ask_timeout_s)
        return blocks

    def result(self, timeout_s: float) -> bytes | None:
        """Return the `JobResult`, packed; None when the job has not ended in time."""
        packed: bytes | None = self._ask("result", timeout_s, timeout_s=timeout_s + self._ask_timeout_s)
        return packed

    def packed_accumulators(self) -> bytes:
        """Return name -> value, packed, of the subtasks that have finished."""
        packed: bytes = self._ask("accumulators")
        return packed


class StatusBoard:
    """The newest statuses of the jobs of a namespace, which a thread reads twice a second, so that no reader waits.

    Args:
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._board: JobBoard | None = None
        self._reading = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._read_at = float("-inf")
        self._error: JobExecutionError | None = None
        self._entries: dict[str, JobEntry] = {}

    def entries(self) -> dict[str, JobEntry]:
        """Return job id -> its entry; those of dead coordinators are removed.

        Raises:
            JobExecutionError: the cluster's control service does not answer.
        """
        if self._thread is None:
            self._begin()
        error = self._error
        if error is not None and time.monotonic() - self._read_at > LATE_S:
            raise error
        return self._entries

    def _begin(self) -> None:
        with self._reading:
            if self._thread is None:
                self._refresh()
                self._thread = threading.Thread(target=self._read_again, name="statuses", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread, which must not outlive the cluster: Ray ends a process that calls a lost one for a minute."""
        self._closed.set()
        with self._reading:  # a call under way returns first
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _read_again(self) -> None:
        while not self._closed.wait(FRESH_S):
            with self._reading:
                self._refresh()

    def _refresh(self) -> None:
        try:
            self._entries, self._error = self._read(), None
            self._read_at = time.monotonic()
        except Exception as error:  # whatever Ray raises: all readers depend on this thread
            remedy = "see whether the head node is alive (`ray status`)"
            self._error = JobExecutionError("statuses", f"cannot be read: {error}", remedy)

    def entry(self, job_id: str) -> JobEntry | None:
        """Return the newest entry of a job; None where none is published."""
        return self.entries().get(job_id)

    def status(self, job_id: str) -> Document | None:
        """Return the newest status of a job; None where none is published."""
        entry = self.entry(job_id)
        return None if entry is None else entry.status

    def remove(self, job_id: str) -> None:
        """Remove the entry of a job whose coordinator was ended."""
        with self._reading:
            if self._board is not None:
                self._board.remove(job_id)
            self._entries = {key: entry for key, entry in self._entries.items() if key != job_id}

    def _read(self) -> dict[str, JobEntry]:
        if self._board is None:
            self._board = JobBoard.of_cluster(self._namespace)
        now_ms, entries = time.time() * 1000, {}
        for entry in self._board.entries():
            job_id = str(entry.status["jid"])
            if now_ms - entry.next_ms > LATE_S * 1000 and find_coordinator(job_id, self._namespace) is None:
                self._board.remove(job_id)
            else:
                entries[job_id] = entry
        return entries


class DispatchedJobs:
    """Starts and finds jobs on the Ray cluster that this process has joined.

    Args:
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._board, self._hosts = StatusBoard(namespace), SharedHosts(namespace)
        self._jobs: dict[str, DispatchedJob] = {}

    def start(self, job: Dispatched) -> DispatchedJob:
        """Start a job.

        Raises:
            JobExecutionError: it cannot be loaded on the cluster.
            TaskLost, ControlPlaneTimeout: its coordinator or Ray's control service is lost; it may start all the same.
        """
        began = time.monotonic()
        try:
            return self._start(job)
        except CONTROL_SERVICE_LOST as error:
            waited_ms = int((time.monotonic() - began) * 1000)
            raise ControlPlaneTimeout("the start of a job", "the control service (GCS) of Ray", waited_ms) from error

    def _start(self, job: Dispatched) -> DispatchedJob:
        coordinator = self._new_coordinator(job)
        started = DispatchedJob(job.job_id, coordinator).published_on(self._board)
        try:
            started.begin(replace(job.submission, namespace=self._namespace))
        except Exception:
            end_coordinator(coordinator, with_process=False)
            raise
        self._jobs[job.job_id] = started
        return started

    def _new_coordinator(self, job: Dispatched) -> RayActor:
        if job.shares is not None and job.stored is not None:
            archives = [part for archive in job.archives for part in archive]
            packages = [job.shares, job.executable, job.submission.modules, *archives]
            return self._hosts.place(job.job_id, job.stored, packages, lambda: _runtime_env(job))
        blueprint = coordinator_class().options(
            name=f"{job.job_id}/{COORDINATOR}",
            namespace=self._namespace,
            lifetime="detached",
            max_restarts=0 if job.stored is None else -1,
            runtime_env=_runtime_env(job),
        )
        return blueprint.remote(job.job_id, job.stored, f"{short(job.name, 60)} ({job.job_id[:8]})")

    def withdraw(self, job_id: str) -> bool:
        """End the coordinator of a job in which no start has arrived; return whether it was one.

        Raises:
            TaskLost, ControlPlaneTimeout: it is dead, or does not answer.
        """
        job = self.find(job_id)
        if job is None or not job.withdraw():
            return False
        job.end()  # this one, and not one of the same name that another dispatcher has made meanwhile
        return True

    def suspend(self, job_id: str) -> None:
        """End coordinator and slots of a job, so that another coordinator can go on from its newest checkpoint.

        Raises:
            JobExecutionError: its coordinator does not end.
        """
        coordinator = find_coordinator(job_id, self._namespace)
        if coordinator is not None:
            end_coordinator(coordinator)
        until = time.monotonic() + SUSPEND_S
        while find_coordinator(job_id, self._namespace) is not None:
            if time.monotonic() > until:
                raise JobExecutionError(job_id, f"has not ended within {SUSPEND_S:.0f} s", "ask again")
            time.sleep(0.05)
        self._jobs.pop(job_id, None)
        self._board.remove(job_id)
        remove_remains(job_id, self._namespace)

    def known(self, job_id: str) -> DispatchedJob | None:
        """Return a job to read without asking Ray for its coordinator, which may have ended a moment ago."""
        return None if self._board.entry(job_id) is None else self._jobs.get(job_id)

    def find(self, job_id: str) -> DispatchedJob | None:
        """Return a job that has a coordinator; None: there is none of this id."""
        coordinator = find_coordinator(job_id, self._namespace)
        if coordinator is None:
            self._jobs.pop(job_id, None)
            return None
        job, present = DispatchedJob(job_id, coordinator), self._jobs.get(job_id)
        if present is None or not present.is_same(job):
            self._jobs[job_id] = present = job.published_on(self._board)
        return present

    def status(self, job_id: str) -> Document | None:
        """Return the newest status that a job has published; None: it has published none."""
        return self._board.status(job_id)

    def statuses(self) -> list[Document]:
        """Return the status of each job that runs, at most some seconds old."""
        return [entry.status for entry in self._board.entries().values()]

    def recorded(self, job_id: str) -> Document | None:
        """Return the last status that a job has left on the nodes; None: there is none."""
        records = (record for record in recorded_jobs(self._namespace) if record["jid"] == job_id)
        return next(records, None)

    def log(self, job_id: str, positions: Mapping[str, int]) -> Sequence[Piece]:
        """Return what follows the positions in the log of a job, on all nodes."""
        return log_pieces(job_id, self._namespace, dict(positions))

    def close(self) -> None:
        """Stop reading statuses; the jobs go on."""
        self._board.close()


def _runtime_env(job: Dispatched) -> Document:
    files = [unpacked(job.submission.modules)] if job.submission.modules else []
    with tempfile.TemporaryDirectory(prefix="rayflink-archives-") as folder:
        archives = []
        for number, (name, target, content) in enumerate(job.archives):
            path = Path(folder) / f"{number}-{Path(name).name}"
            path.write_bytes(content)
            archives.append(PythonArchive(str(path), target))
        return runtime_env_with(files, archives, job.executable)


__all__ = ["Dispatched", "DispatchedJob", "DispatchedJobs"]
