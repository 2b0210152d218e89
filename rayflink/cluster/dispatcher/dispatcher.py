"""The dispatcher: every job that was accepted runs, or has ended; none is forgotten, none runs twice."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.common.errors import RayflinkError
from rayflink.common.text_output.logs import get_logger
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.state.storage.storage import Storage

from ..jobs.cluster_job import Document, JobHasEnded, JobView, RunningJob, UnknownJob
from ..jobs.trends import Trends
from ..registry.job_registry import AcceptedJob, JobRegistry
from ..registry.leadership import DispatcherFenced, Leadership
from ..runners.runner import Runner, StartedJob
from .absent_jobs import AbsentJob, StartAttempts
from .cancellations import Cancellations
from .dispatcher_parts import DispatcherParts
from .ended_jobs import EndedJobs
from .job_defaults import with_defaults
from .job_documents import began_ms, is_over, now_ms
from .job_ends import Archives, JobEnds
from .job_renewals import JobRenewals
from .job_restarts import JobRestarts, Lineage
from .job_starts import JobStarts
from .job_table import JobTable
from .renewal import RENEW_S, Renewal, RenewalPlan
from .start_threads import StartThreads
from .submissions import Submissions
from .supervision import Supervision

__all__ = ["Dispatcher", "DispatcherSettings", "NotReady"]

log = get_logger(__name__)
LOOK_EVERY_S = 0.5
"""Time between two looks at the jobs."""
CHECK_EVERY_S = 2.0
"""Time between two looks for another dispatcher."""
JOIN_S = 10.0


class NotReady(RayflinkError):
    """A dispatcher has not yet taken over its registry."""

    def __str__(self) -> str:
        return "the dispatcher begins; ask again in a moment"


@dataclass(frozen=True)
class DispatcherSettings:
    """The settings of a dispatcher.

    Args:
        ended_s: seconds for which an ended job stays in the list.
        most_ended: number of ended jobs in the list.
        storage_options: by which the coordinators of jobs reach the registry.
        job_defaults: options that hold for jobs where they say nothing themselves.
        archives: take each job that has ended; None: none are archived.
        at_fence: called when another dispatcher has taken over; None: this one stays, and refuses what it is asked.
        starters: run the calls that bring jobs back; None: some threads.
        most_bytes: of the ended jobs that are remembered after they were read.
    """

    ended_s: float = 3600.0
    most_ended: int = 1000
    storage_options: tuple[tuple[str, str], ...] = ()
    job_defaults: Mapping[str, str] = field(default_factory=dict)
    archives: Archives | None = None
    at_fence: Callable[[], None] | None = None
    starters: Executor | None = None
    most_bytes: int = 50 << 20


class Dispatcher:
    """Accepts jobs and looks after them: `ClusterJobs` of a session cluster.

    Each duty is a class of its own, over the same `DispatcherParts`; this one leads, and answers readers.

    Args:
        storage: of its registry.
        runner: of the jobs.
        settings: of this dispatcher.
    """

    def __init__(
        self, storage: Storage, runner: Runner, settings: DispatcherSettings = DispatcherSettings()
    ) -> None:
        self._storage, self._runner, self._settings = storage, runner, settings
        registry, how = JobRegistry(storage), dict(settings.storage_options)
        listed = EndedJobs(settings.ended_s, settings.most_ended)
        self._parts = DispatcherParts(
            registry, runner, JobTable(), JobStarts(registry, runner, how),
            JobEnds(registry, listed, settings.archives, settings.most_bytes), StartAttempts(), Lineage(),
            settings.starters or StartThreads(), Trends(), self._ensure_leads,
        )  # fmt: skip
        self._table, self._ends = self._parts.table, self._parts.ends
        self._submissions = Submissions(self._parts)
        self._cancellations = Cancellations(self._parts)
        self._supervision = Supervision(self._parts, self._cancellations)
        self._renewals = JobRenewals(self._parts)
        self.restarts = JobRestarts(
            self, registry, self._parts.lineage, self._ensure_leads, self._submissions.accept, how
        )  # fmt: skip
        """Starts jobs again."""
        self.lineage = self._parts.lineage
        """The jobs that are new starts of others."""
        self.trends = self._parts.trends
        """The figures of jobs over the last hour."""
        self._stopped = threading.Event()
        self.fenced: DispatcherFenced | None = None
        """The error of a dispatcher that has been taken over from."""
        self.recovered = 0
        """The number of jobs that were brought back at the beginning."""
        self._leadership: Leadership | None = None
        self.is_ready = False
        """Whether it has read its registry, so that a job that it does not know is nowhere."""
        self._thread = threading.Thread(target=self._look_after, name="dispatcher", daemon=True)

    # leading

    def start(self, url: str) -> None:
        """Take over the registry, bring back its jobs that have not ended, and look after them from now on.

        Args:
            url: at which it is asked, for those that look for it.

        Raises:
            StorageError: the registry cannot be read or written.
        """
        self.take_over(url)
        self.look_after()

    def look_after(self) -> None:
        """Look after the jobs from now on, in a thread."""
        self._thread.start()

    def take_over(self, url: str) -> None:
        """Take over the registry, and read which of its jobs have not ended.

        Raises:
            StorageError: the registry cannot be read or written.
        """
        parts = self._parts
        self._leadership = Leadership.claim(self._storage, os.urandom(16).hex(), url, now_ms())
        entries = parts.registry.entries()
        unread = parts.ends.restore([entry for entry in entries if entry.is_ended])
        due = [entry.job_id for entry in entries if entry.is_due]
        parts.starts.restore_cancellations(entry.job_id for entry in entries if entry.is_cancelling)
        listed = {job.job_id for job in parts.ends.all()}
        jobs = parts.registry.accepted([*due, *unread, *listed])
        for job in jobs:
            parts.lineage.note(job)
        begun = [job for job in jobs if job.job_id not in listed]
        parts.table.restore(begun)
        self.recovered = len(begun)
        self.is_ready = True

    def archive_missing(self, present: Collection[str]) -> None:
        """Have those jobs archived that ended when no dispatcher could do it.

        Args:
            present: jobs that have an archive.
        """
        self._ends.archive_missing(present)

    @property
    def epoch(self) -> int:
        """Return the number of this dispatcher among those of the registry, from 1; 0 before its start."""
        return 0 if self._leadership is None else self._leadership.leader.epoch

    def describe(self) -> dict[str, Any]:
        """Return this dispatcher as JSON: its epoch, registry and address, and what it has brought back."""
        leader = None if self._leadership is None else self._leadership.leader
        return {
            "epoch": self.epoch,
            "url": "" if leader is None else leader.url,
            "registry": self._parts.registry.url,
            "recovered": self.recovered,
            "leads": leader is not None and self.fenced is None,
            "damaged": dict(self._parts.registry.damaged),
        }

    def close(self) -> None:
        """End; jobs on a cluster go on, and those of this process are brought back by the next dispatcher."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)
            if self.fenced is None:
                self._supervision.note_last_ends()
        self._parts.starters.shutdown(wait=False, cancel_futures=True)
        self._runner.close()

    def _ensure_leads(self) -> None:
        if self.fenced is not None:
            raise self.fenced
        if self._leadership is None or not self.is_ready or self._stopped.is_set():
            raise NotReady
        self._leadership.check()

    def _look_after(self) -> None:
        checked_at = time.monotonic()
        while not self._stopped.is_set():
            try:
                if time.monotonic() - checked_at >= CHECK_EVERY_S:
                    checked_at = time.monotonic()
                    self._ensure_leads()
                self.look()
            except DispatcherFenced as error:
                log.warning("%s", error)
                self.fenced = error
                if self._settings.at_fence is not None:
                    self._settings.at_fence()
                return
            except RayflinkError as error:  # a storage or a cluster that does not answer now
                log.warning("the jobs could not be looked after: %s", error)
            except Exception:  # all jobs depend on this thread, whatever a job or a library raises
                log.exception("the jobs could not be looked after")
            self._stopped.wait(LOOK_EVERY_S)

    def look(self) -> None:
        """Compare the jobs that there should be with those that run: bring back some, note the ends of others.

        Raises:
            DispatcherFenced: another dispatcher leads.
            StorageError, RayflinkError: the registry or the cluster does not answer.
        """
        self._supervision.look()

    # for clients

    def submit(self, data: bytes, by: str, wait_s: float | None = None) -> str:
        """Accept a job, durably, start it, and return its id. The same submission again changes nothing.

        Args:
            data: an encoded `RemoteSubmission`.
            by: the name of the client.
            wait_s: time for its start; a job that needs longer has been accepted all the same, and what keeps it from
                its start then is its end. None: as long as it takes.

        Raises:
            JobExecutionError: it cannot be read; or, within the time, not be started here.
            DuplicateJob: another job has its id.
            DispatcherFenced: another dispatcher leads.
            StorageError: it cannot be stored, and is not accepted.
        """
        submission = with_defaults(RemoteSubmission.decode(data), self._settings.job_defaults)
        digest = hashlib.sha256(data).hexdigest()[:32]
        job = AcceptedJob(submission.job_id, submission.name, now_ms(), by, digest)
        self._submissions.accept(job, submission, wait_s)
        return submission.job_id

    def client(self, job_id: str) -> StartedJob:
        """Return a job for the client that draws its rows and waits for its result.

        Raises:
            UnknownJob: there is none, or its result is no longer kept.
        """
        job = self._runner.find(job_id)
        if job is None:
            raise UnknownJob(job_id)
        return job

    def statuses(self) -> list[Document]:
        """Return the status of every job, those that began last first."""
        running = {str(status["jid"]): status for status in self._runner.statuses()}
        for job in self._table.all():
            if job.job_id not in running:
                running[job.job_id] = self._parts.last_status(job)
        ended = {job.job_id: job.head for job in self._ends.all()}
        return sorted({**running, **ended}.values(), key=began_ms, reverse=True)

    def view(self, job_id: str) -> JobView:
        """Return a job to read.

        Raises:
            UnknownJob: there is none.
            StorageError, DamagedFileError: it has ended, and the registry cannot be read.
        """
        ended = self._ends.view(job_id)
        if ended is not None:
            return ended
        accepted = self._table.get(job_id)
        if accepted is not None and self._runner.status(job_id) is None:  # it begins, or comes back
            return JobArchive.of(self._parts.last_status(accepted))
        job = self._runner.known(job_id) or self._runner.find(job_id)
        if job is None:
            raise UnknownJob(job_id)
        return job

    def running(self, job_id: str) -> RunningJob:
        """Return a job to ask. Raises: `UnknownJob`, `JobHasEnded`."""
        ended = self._ends.get(job_id)
        if ended is not None:
            raise JobHasEnded(job_id, ended.state)
        job = self._runner.find(job_id)
        if job is None:
            accepted = self._table.get(job_id)
            if accepted is None:
                raise UnknownJob(job_id)
            cancel = partial(self._cancellations.cancel_absent, accepted)
            return AbsentJob(accepted, self._parts.attempts.reason(job_id), cancel)
        status = self._runner.status(job_id)
        if status is not None and is_over(status):
            raise JobHasEnded(job_id, str(status["state"]))
        return job

    def cancel(self, job_id: str, by: str = "the user") -> None:
        """Cancel a job; a dispatcher, or processes of the job, that are lost meanwhile make no difference.

        Raises:
            UnknownJob: there is none.
            JobHasEnded: it has ended.
            DispatcherFenced: another dispatcher leads.
            StorageError: it could not be noted, and the job goes on.
        """
        self._cancellations.cancel(job_id, self.running(job_id), by)

    def renewal_plan(self, job_id: str) -> RenewalPlan:
        """Return what `renew` would do with a job.

        Raises:
            UnknownJob: there is none.
            JobHasEnded: it has ended.
            StorageError, JobExecutionError: its submission cannot be read.
        """
        self.running(job_id)
        return self._renewals.plan(job_id)

    def renew(self, job_id: str, directory: str = "", wait_s: float = RENEW_S) -> Renewal:
        """Let a job go on in new processes, which have the versions that are installed now.

        It takes a savepoint, its processes end, and it begins anew from there, with the same id. One that cannot begin
        is tried again and again; nothing of it is lost.

        Args:
            job_id: of a job that was submitted to this cluster.
            directory: of the savepoint; "": as the job's options say, else one beside the registry.
            wait_s: seconds for the savepoint, and for the new beginning.

        Raises:
            UnknownJob: there is none.
            JobHasEnded: it has ended.
            JobExecutionError: it takes no checkpoints, gives no savepoint, or a program has started it by itself, and
                goes on as it was; or it has not begun anew in time.
        """
        self._ensure_leads()
        return self._renewals.renew(job_id, self.running(job_id), directory, wait_s)
