"""Jobs in this process, each in a thread: a cluster for a laptop and for tests, without Ray.

The jobs share one interpreter: two scripts that give different classes the same name, and store them in state without
a type, need clusters of their own. A cluster on Ray gives each job processes of its own.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rayflink.actors.on_ray.driver.user_program import unpack
from rayflink.actors.on_ray.task_log import Piece, read_pieces
from rayflink.actors.task.process_inspection import ProcessInspection
from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.python_archives import PythonArchive
from rayflink.common.user_code.python_files import IMPORT_REMEDY, put_on_path, unpacked
from rayflink.graph.job_graph import JobGraph
from rayflink.launch.remote_submission import RemoteSubmission

from ..jobs.cluster_job import Document
from ..jobs.cluster_process import ClusterProcesses
from .local_job import LocalJob
from .local_processes import LocalProcesses
from .printed_lines import PrintedLines

__all__ = ["LocalRunner"]

log = get_logger(__name__)
END_S = 10.0
"""Time for the jobs to end when the cluster ends."""
DRAW_S = 1.0
"""Time in which clients may draw the rows that are left when the cluster ends."""
REMEMBERED = 50
"""Jobs that have ended and whose results wait for their clients, the newest."""


class LocalRunner:
    """Runs jobs in threads of this process.

    Args:
        lines: takes what their functions print.
    """

    def __init__(self, lines: PrintedLines) -> None:
        self._lines = lines
        self._lock = threading.Lock()
        self._is_closed = False
        self._jobs: dict[str, LocalJob] = {}
        self._ended: dict[str, LocalJob] = {}
        self._processes = LocalProcesses(lines.folder, self.statuses, ProcessInspection())
        self._folders: dict[str, tempfile.TemporaryDirectory[str]] = {}
        """The files of the distributed cache, by job."""

    def start(self, submission: RemoteSubmission) -> LocalJob:
        """Load the program, and start its job.

        Raises:
            JobExecutionError: a module of the program is not here, or it wants an interpreter of its own.
            ControlPlaneTimeout: the cluster has ended; the next one starts the job.
        """
        if submission.executable:
            remedy = "leave python.executable out, or submit it to a cluster on Ray"
            raise JobExecutionError(submission.job_id, "wants another interpreter than the cluster's process", remedy)
        self._unpack_files(submission)
        try:
            graph = replace(_graph(submission), user_artifacts=tuple(self._cached_files(submission).items()))
            job = LocalJob(
                graph, submission.description, submission.submission.owner_timeout_ms, self._note_end,
                submission.submission.ends_at, submission.submission.began_ms,
            )  # fmt: skip
            with self._lock:
                if self._is_closed:
                    raise ControlPlaneTimeout("the start of a job", "a cluster that has ended", 0)
                self._jobs[job.job_id] = job
        except BaseException:
            self._remove_files(submission.job_id)
            raise
        job.begin(self._lines)
        return job

    def withdraw(self, job_id: str) -> bool:
        """Return False: a job that can be found here has begun."""
        return False

    def suspend(self, job_id: str) -> None:
        """End the thread of a job, which is not over.

        Raises:
            JobExecutionError: a function of the user does not return.
        """
        job = self._jobs.get(job_id)
        if job is None:
            return
        job.suspend()
        if not job.join(END_S):
            raise JobExecutionError(job_id, f"has not ended within {END_S:.0f} s", "wait for its functions, ask again")
        with self._lock:
            self._ended.pop(job_id, None)

    def find(self, job_id: str) -> LocalJob | None:
        """Return a job that runs, or has ended a short time ago."""
        return self._jobs.get(job_id) or self._ended.get(job_id)

    def known(self, job_id: str) -> LocalJob | None:
        """Return a job that runs, or has ended a short time ago."""
        return self.find(job_id)

    def status(self, job_id: str) -> Document | None:
        """Return the newest status of a job that runs, or has ended a short time ago."""
        job = self.find(job_id)
        return None if job is None else job.status()

    def statuses(self) -> Sequence[Document]:
        """Return the status of every job that runs."""
        return [job.status() for job in list(self._jobs.values())]

    def recorded(self, job_id: str) -> Document | None:
        """Return None: a job of this process leaves nothing that `find` does not have."""
        return None

    @property
    def processes(self) -> ClusterProcesses:
        """Return the processes that run tasks: this one."""
        return self._processes

    def log(self, job_id: str, positions: Mapping[str, int]) -> Sequence[Piece]:
        """Return what follows the positions in the log of a job; () where there is nothing."""
        return read_pieces(self._lines.folder / job_id, positions)

    def close(self) -> None:
        """Suspend the jobs, whose registry brings them back."""
        with self._lock:
            self._is_closed = True  # one that is being started now would run beside that of the next cluster
            jobs = list(self._jobs.values())
        for job in jobs:
            job.suspend()
        until = time.monotonic() + END_S
        for job in jobs:
            if not job.join(max(until - time.monotonic(), 0.0)):
                log.warning("a job has not ended within %.0f s", END_S, extra={"job": job.job_id})
        until = time.monotonic() + DRAW_S
        for job in jobs:
            if not job.wait_until_drawn(max(until - time.monotonic(), 0.0)):
                log.warning("rows of a job were not drawn and are lost", extra={"job": job.job_id})

    def _note_end(self, job: LocalJob) -> None:
        with self._lock:
            self._ended[job.job_id] = job
            self._jobs.pop(job.job_id, None)
            while len(self._ended) > REMEMBERED:
                del self._ended[next(iter(self._ended))]
        self._remove_files(job.job_id)

    def _remove_files(self, job_id: str) -> None:
        with self._lock:
            folder = self._folders.pop(job_id, None)
        if folder is not None:
            folder.cleanup()

    def _cached_files(self, submission: RemoteSubmission) -> dict[str, str]:
        """Return name -> path of the distributed cache, whose files are in a folder of the job from now on."""
        files = dict(submission.submission.cached_files)
        if submission.cached:
            folder = tempfile.TemporaryDirectory(prefix="rayflink-cached-")
            with self._lock:
                self._folders[submission.job_id] = folder
            for number, file in enumerate(submission.cached):
                packed = Path(folder.name) / f"{number}.zip"
                packed.write_bytes(file.content)
                PythonArchive(str(packed), str(number)).unpack(folder.name)
                packed.unlink()
                files[file.name] = str(Path(folder.name) / str(number) / file.target)
        return files

    def _unpack_files(self, submission: RemoteSubmission) -> None:
        if submission.submission.modules:
            put_on_path([unpacked(submission.submission.modules)])
        with tempfile.TemporaryDirectory(prefix="rayflink-archives-") as folder:
            for archive in submission.archives:
                path = Path(folder) / Path(archive.name).name
                path.write_bytes(archive.content)
                PythonArchive(str(path), archive.target).unpack(".")


def _graph(submission: RemoteSubmission) -> JobGraph:
    try:
        graph: JobGraph = submission.submission.under(unpack(submission.submission.program))
    except ModuleNotFoundError as error:
        raise JobExecutionError(submission.job_id, f"cannot be loaded: {error}", IMPORT_REMEDY) from error
    return graph
