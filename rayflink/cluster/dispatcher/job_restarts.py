"""Jobs that are started again: from which of their checkpoints they can be, and as which jobs they were."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from rayflink.common.configuration import Configuration
from rayflink.common.errors import JobExecutionError
from rayflink.common.options import registry as options
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.masked import MASK
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.state.storage.storage import StorageError
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state.storage.stored_checkpoints import read_manifest

from ..jobs.cluster_job import ClusterJobs, JobHasEnded, JobView, RunningJob
from ..jobs.restart_points import RestartPoint, present_points, restart_points
from ..registry.job_registry import AcceptedJob, DuplicateJob, JobRegistry
from .job_documents import is_over, now_ms
from .renewal import savepoint_directory
from .restarted_submission import RestartChanges, restarted_submission

__all__ = ["JobRestarts", "Lineage", "Restart", "RestartOffer"]

SAVEPOINT_S = 300.0
"""Seconds for the savepoint with which a running job is stopped."""
ASK_S = 1.0
END_S = 30.0
"""Seconds in which the end of a job with a savepoint is noted."""
LOOK_S = 0.05


@dataclass(frozen=True)
class Restart:
    """A job that is a new start of another one.

    Args:
        job_id: of the new job.
        start_from: checkpoint or savepoint that it started from; "": none.
    """

    job_id: str
    start_from: str


class RestartOffer(msgspec.Struct, frozen=True):
    """The ways in which a job can be started again.

    Args:
        refusal: why it cannot be; "": it can.
        points: checkpoints and savepoints that are there, the newest first.
        remark: why there are none, or none of some; "": nothing is remarkable.
        restarted_from: id of the job of which it is a new start; "": of none.
        restarted_as: ids of the jobs that are new starts of it, the first first.
    """

    refusal: str
    points: tuple[RestartPoint, ...] = ()
    remark: str = ""
    restarted_from: str = ""
    restarted_as: tuple[str, ...] = ()


class Lineage:
    """The jobs that are new starts of others; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._origins: dict[str, str] = {}
        self._successors: dict[str, tuple[str, ...]] = {}

    def note(self, job: AcceptedJob) -> None:
        """Note an accepted job."""
        old = job.restarted_from
        with self._lock:
            if old and job.job_id not in self._origins:
                self._origins[job.job_id] = old
                self._successors[old] = (*self._successors.get(old, ()), job.job_id)

    def forget(self, job_id: str) -> None:
        """Forget a job that is no longer known."""
        with self._lock:
            self._successors.pop(job_id, None)
            old = self._origins.pop(job_id, "")
            left = tuple(new for new in self._successors.get(old, ()) if new != job_id)
            if left:
                self._successors[old] = left
            else:
                self._successors.pop(old, None)

    def origin(self, job_id: str) -> str:
        """Return the job of which this one is a new start; "": of none."""
        return self._origins.get(job_id, "")

    def successors(self, job_id: str) -> tuple[str, ...]:
        """Return the jobs that are new starts of this one, the first first."""
        return self._successors.get(job_id, ())


class JobRestarts:
    """Starts jobs of a registry again.

    Args:
        jobs: of the cluster.
        registry: with their submissions.
        lineage: of the jobs.
        ensure_leads: raises `DispatcherFenced` where another dispatcher leads.
        accept: accepts and starts a job, durably, by its entry and its submission; the same ones again change nothing.
        storage_options: by which the stores of checkpoints are reached, beside the options of the job.
    """

    def __init__(
        self,
        jobs: ClusterJobs,
        registry: JobRegistry,
        lineage: Lineage,
        ensure_leads: Callable[[], None],
        accept: Callable[[AcceptedJob, RemoteSubmission], None],
        storage_options: Mapping[str, str],
    ) -> None:
        self._jobs, self._registry, self._lineage = jobs, registry, lineage
        self._ensure_leads, self._accept, self._storage_options = ensure_leads, accept, dict(storage_options)

    def offer(self, job_id: str) -> RestartOffer:
        """Return how a job can be started again.

        Raises:
            UnknownJob: there is none.
            StorageError: the registry does not answer.
        """
        view = self._jobs.view(job_id)
        family = self._lineage.origin(job_id), self._lineage.successors(job_id)
        try:
            submission = self._stored(job_id)
        except JobExecutionError as error:
            return RestartOffer(str(error), (), "", *family)
        if not is_over(view.status()):
            return RestartOffer("", (), "", *family)
        try:
            points = self._points(view, submission)
        except StorageError as error:
            return RestartOffer("", (), f"its checkpoints cannot be looked for: {error}", *family)
        return RestartOffer("", tuple(points), _remark(view, points), *family)

    def restart(
        self, job_id: str, new_id: str, start_from: str | None, changes: RestartChanges, by: str
    ) -> Restart:
        """Start a job again, by its stored program, as a new job; one that runs is stopped with a savepoint before.

        Args:
            job_id: of a job that was submitted to this cluster.
            new_id: 32 hex digits; the same one again starts nothing.
            start_from: checkpoint or savepoint; "": none; None: the newest.
            changes: that are wanted.
            by: who wants it.

        Raises:
            DispatcherFenced: another dispatcher leads.
            UnknownJob: there is none.
            DuplicateJob: the new id is that of another job.
            JobExecutionError: it cannot be started again so, or not be stopped.
            ConfigError, PlanError: a change is wrong.
            NoCheckpointError, StorageError, StateError: what it should start from cannot be read.
        """
        self._ensure_leads()
        if (known := self._registry.entry(new_id)) is not None:
            if known.restarted_from != job_id:
                raise DuplicateJob(new_id)
            return Restart(new_id, _start_of(self._stored(new_id)))
        view = self._jobs.view(job_id)
        submission = self._stored(job_id)
        ran = {vertex["id"]: int(vertex["parallelism"]) for vertex in view.status()["vertices"]}
        restarted_submission(submission, ran, new_id, start_from or "", changes)  # before the job is stopped
        if start_from:
            read_manifest(start_from, self._options_of(submission))
        if is_over(view.status()):
            path = self._newest(job_id, view, submission) if start_from is None else start_from
        elif start_from is not None:
            remedy = "cancel it before, or leave out where to start from: then it stops with a savepoint"
            raise JobExecutionError(job_id, "has not ended", remedy)
        else:
            path = self._stopped_with_savepoint(job_id, new_id, submission)
        new = restarted_submission(submission, ran, new_id, path, changes)
        digest = hashlib.sha256(new.encode()).hexdigest()[:32]
        self._accept(AcceptedJob(new_id, new.name, now_ms(), by, digest, job_id), new)
        return Restart(new_id, path)

    def _stored(self, job_id: str) -> RemoteSubmission:
        """Return the submission of a job.

        Raises:
            JobExecutionError: the registry does not have it, or other versions have packed it.
        """
        entry = self._registry.entry(job_id)
        if entry is None:
            reason = "is not in the registry of this cluster: its program has started it by itself"
            raise JobExecutionError(job_id, reason, "run the program again, with -s for its state")
        try:
            return RemoteSubmission.decode(self._registry.submission(entry), other_rayflink=True)
        except JobExecutionError as error:
            raise JobExecutionError(job_id, error.reason, error.remedy) from error

    def _options_of(self, submission: RemoteSubmission) -> dict[str, str]:
        own = {} if submission.stored is None else submission.stored.options
        return {**self._storage_options, **own}

    def _points(self, view: JobView, submission: RemoteSubmission) -> list[RestartPoint]:
        shown = submission.description["configuration"]
        configuration = {key: value for key, value in shown.items() if MASK not in value}
        directory = Configuration.from_dict(configuration).get(options.CHECKPOINT_DIRECTORY)
        folder = f"{directory.rstrip('/')}/{submission.job_id}" if directory else ""
        how = self._options_of(submission)
        known = restart_points(view.checkpoints(), configuration)
        return present_points(known, folder, lambda url: open_storage(url, how))

    def _newest(self, job_id: str, view: JobView, submission: RemoteSubmission) -> str:
        points = self._points(view, submission)
        if not points:
            remedy = "choose to start it from nothing, or give the path of a savepoint"
            raise JobExecutionError(job_id, f"cannot go on: {_remark(view, points)}", remedy)
        return points[0].path

    def _stopped_with_savepoint(self, job_id: str, request_id: str, submission: RemoteSubmission) -> str:
        """Stop a job, and return the address of its savepoint."""
        directory = savepoint_directory(submission.description, self._registry.url)
        until = time.monotonic() + SAVEPOINT_S
        try:
            job: RunningJob = self._jobs.running(job_id)
            while (answer := job.savepoint(request_id, directory, StopMode.SUSPEND, ASK_S)) is None:
                if time.monotonic() > until:
                    reason = f"has given no savepoint within {SAVEPOINT_S:.0f} s, and ends when it has"
                    raise JobExecutionError(job_id, reason, "see which of its functions do not return, or cancel it")
        except JobHasEnded as error:
            raise JobExecutionError(job_id, f"has ended meanwhile ({error.state})", "start it again") from error
        location, failure = answer
        if failure:
            raise JobExecutionError(job_id, f"gives no savepoint: {failure}", "it goes on as it was; or cancel it")
        until = time.monotonic() + END_S  # two jobs of one program do not run at a time
        while not is_over(self._jobs.view(job_id).status()) and time.monotonic() < until:
            time.sleep(LOOK_S)
        return location


def _remark(view: JobView, points: list[RestartPoint]) -> str:
    """Return why a job that has ended left no checkpoint; "" where it left some."""
    if any(point.kind != "start" for point in points):
        return ""
    counts = (view.checkpoints() or {}).get("counts") or {}
    if not counts.get("completed"):
        return "it has completed no checkpoint"
    setting = f"{options.CHECKPOINT_RETENTION.key}: RETAIN_ON_CANCELLATION"
    return f"its checkpoints were deleted when it ended, as its options say; {setting} keeps them"


def _start_of(submission: RemoteSubmission) -> str:
    changes = submission.submission.changes
    return "" if changes is None else changes.start_from
