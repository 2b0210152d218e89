"""The dispatcher: every job that was accepted runs, or has ended; none is forgotten, none runs twice."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StartTimeout
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError, RayflinkError, TaskLost, described
from rayflink.common.job_status import JobStatus
from rayflink.common.text_output.logs import get_logger
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.state.storage.storage import Storage

from ..jobs.cluster_job import Document, JobHasEnded, JobView, RunningJob, UnknownJob, archive_of
from ..registry.job_registry import AcceptedJob, JobRegistry
from ..registry.leadership import DispatcherFenced, Leadership
from ..runners.runner import Runner, StartedJob
from .absent_jobs import AbsentJob, StartAttempts
from .ended_jobs import EndedJobs
from .foreign_jobs import ForeignJobs
from .job_defaults import with_defaults
from .job_documents import began_ms, beginning_job, is_over, now_ms
from .job_ends import Archives, JobEnds, archive_of_ended
from .job_restarts import JobRestarts, Lineage
from .job_starts import JobStarts
from .renewal import (
    RENEW_S,
    Renewal,
    RenewalPlan,
    await_running,
    is_end,
    renewal_plan,
    savepoint_directory,
    take_savepoint,
)

__all__ = ["Dispatcher", "DispatcherSettings", "NotReady"]

log = get_logger(__name__)
LOOK_EVERY_S = 0.5
"""Time between two looks at the jobs."""
CHECK_EVERY_S = 2.0
"""Time between two looks for another dispatcher."""
JOIN_S = 10.0
ENTRANCES = 64
CANCEL_EVERY_S = 10.0
"""Time between two requests to a job that is to be cancelled and does not end."""
STARTERS = 4
"""Jobs that are brought back at a time."""


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

    Args:
        storage: of its registry.
        runner: of the jobs.
        settings: of this dispatcher.
    """

    def __init__(
        self, storage: Storage, runner: Runner, settings: DispatcherSettings = DispatcherSettings()
    ) -> None:
        self._storage, self._runner, self._settings = storage, runner, settings
        self._registry = JobRegistry(storage)
        self._lock = threading.RLock()
        self._accepted: dict[str, AcceptedJob] = {}
        """Jobs that have not ended, as far as it is known here."""
        self._foreign = ForeignJobs(runner)
        self._starts = JobStarts(self._registry, runner, dict(settings.storage_options))
        listed = EndedJobs(settings.ended_s, settings.most_ended)
        self._ends = JobEnds(self._registry, listed, settings.archives, settings.most_bytes)
        self.lineage = Lineage()
        """The jobs that are new starts of others."""
        how = dict(settings.storage_options)
        self.restarts = JobRestarts(self, self._registry, self.lineage, self._ensure_leads, self._accept, how)
        """Starts jobs again."""
        self._seen: dict[str, Document] = {}
        """The newest status of each accepted job that was published."""
        self._attempts = StartAttempts()
        self._asked_at: dict[str, float] = {}
        """When each job that is to be cancelled was asked last, seconds of the monotonic clock."""
        self._starting: set[str] = set()
        self._entrances = tuple(threading.Lock() for _ in range(ENTRANCES))
        """A lock is held while a job with one of its ids is being accepted."""
        self._starters = settings.starters or ThreadPoolExecutor(STARTERS, "start job")
        self._stopped, self._woken = threading.Event(), threading.Event()
        self.fenced: DispatcherFenced | None = None
        """The error of a dispatcher that has been taken over from."""
        self.recovered = 0
        """The number of jobs that were brought back at the beginning."""
        self._leadership: Leadership | None = None
        self.is_ready = False
        """Whether it has read its registry, so that a job that it does not know is nowhere."""
        self._thread = threading.Thread(target=self._look_after, name="dispatcher", daemon=True)

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
        self._leadership = Leadership.claim(self._storage, os.urandom(16).hex(), url, now_ms())
        entries = self._registry.entries()
        unread = self._ends.restore([entry for entry in entries if entry.is_ended])
        due = [entry.job_id for entry in entries if entry.is_due]
        self._starts.restore_cancellations(entry.job_id for entry in entries if entry.is_cancelling)
        listed = {job.job_id for job in self._ends.all()}
        jobs = self._registry.accepted([*due, *unread, *listed])
        for job in sorted(jobs, key=attrgetter("accepted_ms")):
            self.lineage.note(job)
        self._accepted = {job.job_id: job for job in jobs if job.job_id not in listed}
        self.recovered = len(self._accepted)
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
            "registry": self._registry.url,
            "recovered": self.recovered,
            "leads": leader is not None and self.fenced is None,
            "damaged": dict(self._registry.damaged),
        }

    def close(self) -> None:
        """End; jobs on a cluster go on, and those of this process are brought back by the next dispatcher."""
        self._stopped.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)
            self._note_last_ends()
        self._starters.shutdown(wait=False, cancel_futures=True)
        self._runner.close()

    def _note_last_ends(self) -> None:
        """Note and archive the jobs that have ended since the last look."""
        with self._lock:
            accepted = list(self._accepted)
        for job_id in accepted if self.fenced is None else ():
            status, started = self._runner.status(job_id), self._runner.find(job_id)
            if status is None or started is None or not is_over(status):
                continue
            try:
                self._note(archive_of(started))
            except RayflinkError as error:  # the next dispatcher does it
                log.warning("the end of a job could not be noted: %s", error, extra={"job": job_id})

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
        self._accept(AcceptedJob(submission.job_id, submission.name, now_ms(), by, digest), submission, wait_s)
        return submission.job_id

    def _accept(self, job: AcceptedJob, submission: RemoteSubmission, wait_s: float | None = None) -> None:
        """Accept a job, durably, and start it. The same one again changes nothing. Raises: as `submit` does."""
        job_id = job.job_id
        self._ensure_leads()
        if not self._enter(job, submission.encode()):
            return
        self.lineage.note(job)
        try:
            self._ensure_leads()  # one that took over meanwhile may not know the job; the client asks it again
            # an error leaves it accepted, and it is brought back
            numbered = self._starts.number(submission, job.accepted_ms)
            start = self._starters.submit(self._start_first, numbered)
        except BaseException:
            self._starting.discard(job_id)
            raise
        log.info("job %s was accepted from %s", job.name, job.by, extra={"job": job_id})
        try:
            start.result(wait_s)
        except CancelledError:  # the next dispatcher starts it
            pass
        except StartTimeout:
            if start.done():
                start.result()
            log.info("job %s waits for its processes", submission.name, extra={"job": job_id})

    def _start_first(self, submission: RemoteSubmission) -> None:
        """Start a job that was accepted a moment ago."""
        try:
            self._starts.start(submission)
        except (ControlPlaneTimeout, TaskLost) as error:  # it is started as soon as that is possible
            log.warning("job %s (%s) has not started yet: %s", submission.name, submission.job_id, error)
            self._attempts.failed(submission.job_id, described(error))
        except Exception as error:
            self._give_up(submission, error)
            raise
        finally:
            self._starting.discard(submission.job_id)

    def _enter(self, job: AcceptedJob, data: bytes) -> bool:
        """Accept a job, and return whether the caller has to start it: it is new.

        An accepted job that is not known here is brought back: its client had no answer when it was accepted, or an
        older dispatcher accepted it when this one had read the registry.
        """
        with self._entrances[int(job.job_id, 16) % ENTRANCES]:
            is_new = self._registry.accept(job, data)
            with self._lock:
                if is_new:
                    self._starting.add(job.job_id)
                if is_new or not (job.job_id in self._starting or self._ends.get(job.job_id) is not None):
                    self._accepted.setdefault(job.job_id, job)
            return is_new

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
        with self._lock:
            accepted = list(self._accepted.values())
        for job in accepted:
            if job.job_id not in running:
                running[job.job_id] = self._last_status(job)
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
        with self._lock:
            accepted = self._accepted.get(job_id)
        if accepted is not None and self._runner.status(job_id) is None:  # it begins, or comes back
            return JobArchive.of(self._last_status(accepted))
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
            with self._lock:
                accepted = self._accepted.get(job_id)
            if accepted is None:
                raise UnknownJob(job_id)
            return AbsentJob(accepted, self._attempts.reason(job_id), partial(self._cancel_absent, accepted))
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
        job = self.running(job_id)
        with self._lock:
            is_own = job_id in self._accepted
        if is_own:
            self._ensure_leads()
            self._starts.cancel(job_id)
            self._asked_at[job_id] = time.monotonic()
        job.cancel(by)

    def _cancel_again(self, job_id: str, status: Document) -> None:
        """Ask for the cancellation of a job that forgot it: its coordinator was lost, and another has taken over."""
        if JobStatus(status["state"]) is JobStatus.CANCELLING:
            return
        now_s = time.monotonic()
        if now_s - self._asked_at.get(job_id, float("-inf")) < CANCEL_EVERY_S:
            return
        self._asked_at[job_id] = now_s
        started = self._runner.find(job_id)
        if started is not None:
            log.warning("the cancellation of a job that was lost is asked for again", extra={"job": job_id})
            self._starters.submit(started.cancel)

    def _last_status(self, job: AcceptedJob) -> Document:
        """Return the last known status of a job, of which there may be a newer one that is not published yet."""
        status = self._runner.status(job.job_id) or self._seen.get(job.job_id)
        if status is None:
            return beginning_job(job, reason=self._attempts.reason(job.job_id)).status()
        return status

    def renewal_plan(self, job_id: str) -> RenewalPlan:
        """Return what `renew` would do with a job.

        Raises:
            UnknownJob: there is none.
            JobHasEnded: it has ended.
            StorageError, JobExecutionError: its submission cannot be read.
        """
        with self._lock:
            job = self._accepted.get(job_id)
        self.running(job_id)
        submission = None if job is None else self._starts.stored(job)
        return renewal_plan(submission, self._registry.url, self._registry.starts(job_id))

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
        with self._lock:
            job = self._accepted.get(job_id)
        running, plan = self.running(job_id), self.renewal_plan(job_id)
        if job is None or plan.reason:
            raise JobExecutionError(job_id, plan.reason, plan.remedy)
        submission = self._starts.stored(job)
        directory = directory or savepoint_directory(submission.description, self._registry.url)
        savepoint = take_savepoint(job_id, running, directory, wait_s)
        began = time.monotonic()
        with self._lock:
            if job_id in self._starting:
                raise JobExecutionError(job_id, "is being started already", "ask again when it runs")
            self._starting.add(job_id)
        try:
            self._runner.suspend(job_id)
            self._seen.pop(job_id, None)
            if (archive := self._ends.read(job)) is not None:  # it came to its end after the savepoint
                self._keep(archive)
                raise JobHasEnded(job_id, archive.state)
            self._starts.start(self._starts.number(submission, job.accepted_ms))
            await_running(job_id, self._runner, wait_s)
        finally:
            self._starting.discard(job_id)
        return Renewal(savepoint, time.monotonic() - began)

    # starting

    def _give_up(self, submission: RemoteSubmission, error: Exception) -> None:
        """Note a job that cannot be started as one that has failed, so that its end can be read."""
        about = {"job": submission.job_id}
        log.error("job %s cannot be started: %s", submission.name, described(error), extra=about)
        with self._lock:
            job = self._accepted.get(submission.job_id)
        if job is None:  # it was cancelled meanwhile
            return
        self._ensure_leads()  # else another dispatcher starts it, and how it ends is not known here
        refusal = (error.reason, error.remedy) if isinstance(error, JobExecutionError) else None
        self._note(beginning_job(job, submission.description, "FAILED", described(error), refusal))

    def _ensure_leads(self) -> None:
        if self.fenced is not None:
            raise self.fenced
        if self._leadership is None or not self.is_ready or self._stopped.is_set():
            raise NotReady
        self._leadership.check()

    # looking after jobs

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
            self._woken.wait(LOOK_EVERY_S)

    def look(self) -> None:
        """Compare the jobs that there should be with those that run: bring back some, note the ends of others.

        Raises:
            DispatcherFenced: another dispatcher leads.
            StorageError, RayflinkError: the registry or the cluster does not answer.
        """
        statuses = {str(status["jid"]): status for status in self._runner.statuses()}
        with self._lock:
            accepted = {key: job for key, job in self._accepted.items() if key not in self._starting}
        for job_id, job in accepted.items():
            try:
                self._look_at(job, statuses.get(job_id))
            except DispatcherFenced:
                raise
            except Exception as error:  # one job keeps no other one from being looked after
                log.warning("a job could not be looked after: %s", described(error), extra={"job": job_id})
        with self._lock:
            own = set(self._accepted)
        for archive in self._foreign.look(statuses, lambda key: key in own or self._ends.get(key) is not None):
            self._ends.keep(archive, is_noted=False)
        self._ends.forget_some(self._forget)

    def _forget(self, job_id: str) -> None:
        self._starts.forget(job_id)
        self._asked_at.pop(job_id, None)
        self.lineage.forget(job_id)

    def _look_at(self, job: AcceptedJob, status: Document | None) -> None:
        job_id = job.job_id
        if status is not None and not is_over(status):
            self._seen[job_id] = status
            if self._starts.is_cancelled(job_id):
                self._cancel_again(job_id, status)
            return
        started = self._runner.find(job_id)
        if started is not None:
            if (archive := self._ends.read(job)) is not None:  # its coordinator has noted it
                self._keep(archive)
            elif status is None:
                self._starting.add(job_id)
                self._starters.submit(self._examine, job)
            elif (archive := archive_of_ended(started)) is not None:
                self._note(archive)
        elif self._attempts.is_due(job_id):
            self._starting.add(job_id)
            self._starters.submit(self._bring_back, job)

    def _examine(self, job: AcceptedJob) -> None:
        """See to a job that has a process and no status: it begins, or has ended, or the process has no job at all.

        A dispatcher that dies while it starts a job may have made the process alone.
        """
        try:
            self._ensure_leads()  # else the process is that of a newer dispatcher, which is about to start the job
            started = self._runner.find(job.job_id)
            if self._runner.withdraw(job.job_id):
                log.warning("a process had no job, and is ended", extra={"job": job.job_id})
            elif started is not None and (archive := archive_of_ended(started)) is not None:
                self._note(archive)
        except RayflinkError as error:
            log.warning("a job could not be looked after: %s", described(error), extra={"job": job.job_id})
        finally:
            self._starting.discard(job.job_id)

    def _bring_back(self, job: AcceptedJob) -> None:
        """Start a job again that was accepted, does not run, and has not ended."""
        try:
            self._start_again(job)
        except Exception as error:  # of the user's code as well: it is shown, and tried again
            pause_s = self._attempts.failed(job.job_id, described(error))
            text = "job %s could not be brought back, and is tried again in %.0f s: %s"
            log.warning(text, job.name, pause_s, described(error), extra={"job": job.job_id})
        finally:
            self._starting.discard(job.job_id)

    def _start_again(self, job: AcceptedJob) -> None:
        archive = self._ends.read(job)
        if archive is not None:
            self._keep(archive)
            return
        self._ensure_leads()
        if self._starts.is_cancelled(job.job_id):
            description = self._starts.stored(job).description
            text = "its processes were lost while it was being cancelled"
            self._note(beginning_job(job, description, "CANCELED", text))
            return
        submission = self._starts.stored(job)
        log.warning("job %s does not run, and is brought back", job.name, extra={"job": job.job_id})
        try:
            self._starts.start(self._starts.number(submission, job.accepted_ms))
        except RayflinkError as error:
            if not is_end(error):
                raise
            # its checkpoints say that it has ended; how, was lost with its coordinator
            self._note(beginning_job(job, submission.description, "FINISHED", described(error)))
            return
        self._attempts.forget(job.job_id)

    def _cancel_absent(self, job: AcceptedJob, by: str) -> None:
        """Note that a job which does not run has been cancelled; one that has begun meanwhile is asked itself."""
        self._ensure_leads()
        self._starts.cancel(job.job_id)  # first: whoever starts it now sees this, or it is found below
        started = self._runner.find(job.job_id)
        if started is not None:
            started.cancel(by)
            return
        self._note(beginning_job(job, None, "CANCELED", f"cancelled by {by} while it did not run"))

    def _note(self, archive: JobArchive) -> None:
        """Note the end of a job in the registry, and keep it for readers."""
        self._keep(self._ends.note(archive))

    def _keep(self, archive: JobArchive) -> None:
        """Keep a job for readers whose end the registry has."""
        with self._lock:
            self._accepted.pop(archive.jid, None)
            self._seen.pop(archive.jid, None)
        self._attempts.forget(archive.jid)
        self._ends.keep(archive)
