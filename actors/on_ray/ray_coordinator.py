"""The coordinator of one job on Ray: carries out what `JobMaster` decides.

It owns the processes of the slots and their placement group, so that its end is theirs. One thread decides; calls
leave events.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from ray.util import get_node_ip_address as node_address

from rayflink.common.errors import JobExecutionError, PlanError, described
from rayflink.common.metrics.trace_reporter import TraceReporter, trace_reporter
from rayflink.common.options.log_levels import LogLevels
from rayflink.common.options.store_options import storage_options
from rayflink.common.text_output.logs import bind, get_logger, keep_logs
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.connectors.frames.frame_source import hold_blocks
from rayflink.graph.job_description import describe_graph
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock
from rayflink.state.storage.storage_schemes import open_storage

from ..checkpoints.completed import CompletedCheckpoint
from ..checkpoints.storage_work import StorageWork
from ..exchange.frames import TaskAddress
from ..job.autoscaling.reactive import ReactiveSettings, fitted_graph
from ..job.command_performer import deployments_first, perform
from ..job.history.history_writer import HistoryWriter
from ..job.job_master import JobMaster
from ..job.job_rescale import refused
from ..job.notes.job_archive import JobArchive
from ..job.notes.registry_notes import await_newer_start, note_end
from ..job.recovery import recover_or_start
from ..job.recovery_times import RecoveryLog
from ..job.rescaled_graph import rescaled_graph
from ..job.slot_wait import described_waiting
from ..job.start_checks import ensure_can_start
from ..job.submission import Stored, Submission, delete_submissions, read_submission, store_submission
from ..messages.commands import (
    Answer,
    AnswerRescale,
    CallForEnumerator,
    CancelRequested,
    Command,
    DeployTask,
    DiscardFiles,
    EndJob,
    JobResult,
    KillTask,
    PublishCheckpoint,
    Request,
    RequestRescale,
    RequestSlots,
    RescaleRefused,
    RescaleRequested,
    SendToTask,
    Signal,
    SlotsAvailable,
    StopRequested,
    Tick,
)
from ..messages.messages import TaskReport, ToCoordinator
from ..messages.settings import JobSettings
from ..messages.states import JobStatus
from .coordinators.awaited_answers import AwaitedAnswers
from .coordinators.coordinator_home import CoordinatorHome, OwnProcess
from .driver.ray_job_board import StatusPublisher
from .driver.ray_resources import free_slots
from .driver.terminal import News, Terminal, Text
from .driver.user_program import unpack
from .ray_handles import RayActor
from .ray_job_files import job_folder, write_record
from .ray_metrics import PrometheusReports
from .ray_more_slots import MoreSlots
from .ray_remains import patiently, remove_remains
from .ray_slots import Leader, SlotProcesses
from .reports import read_reports
from .result_buffer import ResultBuffer
from .slots.idle_slots import IdleSlots
from .task_log import TaskLog
from .tick_pace import StatusPace, TickPace

log = get_logger(__name__)

COUNT_SLOTS_S = 2.0
"""Seconds between two looks of a job in reactive mode at the slots of its cluster."""
STORAGE_ENDS_WITHIN_S = 60.0
"""Time for the storage of checkpoints to delete what is not kept of a job that has ended."""
LINGER_S = 60.0
"""Time for which the result of an ended job is kept after the driver's last sign of life."""
STARTS_EVERY_S = 10.0
"""Time between two looks whether a job without checkpoints was started anew elsewhere."""
IDLE_MARGIN_S = 10.0
"""Time for which slots wait longer than a driver counts on them."""
MOST_LINGER_S = 3600.0
"""Longest time for which it is kept (jobstore.expiration-time)."""
_RUNS = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING)


class Coordinator:
    """Shell around `JobMaster`; each method may be called by a thread of its own.

    Args:
        stored: where the job is; None: nowhere.
        is_first: whether this process has had no job before.
        idle: slots of the job before.
        home: the process in which it lives; None: this one, which has no other coordinator.
    """

    def __init__(
        self,
        stored: Stored | None = None,
        is_first: bool = True,
        idle: IdleSlots | None = None,
        home: CoordinatorHome | None = None,
    ) -> None:
        self._stored, self._is_first, self._idle = stored, is_first, idle
        self._home = home or OwnProcess(returns=stored is not None)
        self._idle_s = 0.0
        self._idle_lock = threading.Lock()
        self._succeeded = threading.Event()
        self._clock = SystemClock()
        self._events: queue.Queue[ToCoordinator | Signal] = queue.Queue()
        self._storage_work = StorageWork()
        self._leader_id = os.urandom(16).hex()
        self._recovery_log = RecoveryLog()
        self._came_back, self._counted_slots = False, 0.0
        self._history: HistoryWriter | None = None
        self._pace, self._status_pace = TickPace(time.monotonic()), StatusPace()
        self._traces: TraceReporter | None = None
        self._ended, self._has_to_leave, self._has_left = threading.Event(), threading.Event(), threading.Event()
        self._answers = AwaitedAnswers(self._events.put, self._ended)
        self._rows = ResultBuffer(lambda: not self._ended.is_set() and self._job.status in _RUNS)
        self._terminal = Terminal()
        self._result: JobResult | None = None
        self._owner_seen = time.monotonic()
        self._owner_timeout_s: float | None = None
        self._fault: str | None = None
        self._description: dict[str, Any] = {}
        self._published: StatusPublisher | None = None
        self._milestone: tuple[JobStatus, Mapping[str, int]] | None = None
        self._ends_at: Stored | None = None
        self._is_reactive = False
        self._job_status: Mapping[str, Any] = {}
        """The job as of the newest event; the deciding thread replaces it as a whole, and it is never changed."""

    # calls of the driver

    def start(self, submission: Submission) -> None:
        """Load the program, and start the thread that decides.

        Raises: whatever loading the program here raises.
        """
        if self._is_first:
            keep_logs(sys.stderr, warn=False)
        graph = submission.under(unpack(submission.program))
        submission = submission.begun(graph, self._clock.now_ms())
        self._open_storage = lru_cache(partial(open_storage, options=storage_options(graph.configuration)))
        beginning = recover_or_start(
            graph, lambda: self._leader_id, self._open_storage, partial(self._store, submission, graph)
        )
        graph = beginning.laid_out(graph)
        self._is_reactive = ReactiveSettings.of(graph.configuration).enabled
        if self._is_reactive:
            graph = fitted_graph(graph, free_slots(submission.slot_cpus))
        self._description, self._ends_at = describe_graph(graph), submission.ends_at
        self._files = beginning.files
        beginning_here = replace(beginning.start, began_ms=submission.began_ms)
        self._job = JobMaster(graph, lambda: os.urandom(16).hex(), submission.cached_files, start=beginning_here)
        self._job.report.metrics.located(node_address())  # type: ignore[no-untyped-call]
        self._job.autoscaler.slot_cpus = submission.slot_cpus
        self._history = HistoryWriter.beside(
            partial(self._open_storage, self._files.base), beginning.start, beginning.recovered,
            self._job.history_revision,
        )  # fmt: skip
        self._update_status()
        self._prometheus = PrometheusReports(graph.configuration)
        self._traces = trace_reporter(graph.configuration, self._job.report.metrics.group)
        idle, self._idle = self._idle, None
        leader = Leader(self._home.actor(), self._leader_id, self._home.starts, self._home.hosts)
        self._slots = SlotProcesses(self._job, submission, leader, self._events.put, self._came_back, idle)
        settings = JobSettings.of(graph.configuration)
        self._idle_s = settings.idle_process_ms / 1000 if self._stored is None else 0.0
        timeout_s, self._cancel_s = settings.slot_timeout_ms / 1000, settings.cancellation_timeout_ms // 1000
        self._more_slots = MoreSlots(submission, timeout_s, self._events.put, self._refuse_rescale)
        self._folder = job_folder(submission.namespace, graph.id)
        self._home.log_goes_to(TaskLog(self._folder, "coordinator"))
        LogLevels.of(graph.configuration).apply()
        limit = submission.owner_timeout_ms
        self._owner_timeout_s = None if limit is None else limit / 1000
        for operator in (operator for vertex in graph.vertices for operator in vertex.operators):
            hold_blocks(getattr(operator.factory, "source", None))
        if submission.start_number and submission.ends_at is not None and self._stored is None:
            watch = partial(self._watch_starts, submission.ends_at, submission.start_number)
            threading.Thread(target=watch, name="starts", daemon=True).start()
        self._published = StatusPublisher(submission.namespace, self.status, partial(self.checkpoints, None))
        self._home.answer()
        threading.Thread(target=self._decide, name="coordinator", daemon=True).start()

    def _store(self, submission: Submission, graph: JobGraph, named: Sequence[CompletedCheckpoint] | None) -> None:
        """Store a job that can start, before it does.

        Raises: whatever prevents its start.
        """
        if named is not None and not self._came_back:
            ensure_can_start(graph, named)
        if self._stored is not None:
            store_submission(self._stored.open(), submission)

    def come_back(self, job_id: str) -> None:
        """Go on with a job whose coordinator was lost.

        Raises: whatever prevents that.
        """
        assert self._stored is not None, "Ray restarts no other coordinators"
        stored, self._came_back = self._stored, True
        try:
            submission = patiently(lambda: read_submission(stored.open(), job_id))
        except JobExecutionError as error:
            reason = "had ended, or was about to, when its coordinator was lost: its result went with that"
            raise JobExecutionError(job_id, reason, error.reason) from error
        remove_remains(job_id, submission.namespace)
        patiently(lambda: self.start(submission))

    def successor(self) -> Coordinator:
        """Return the coordinator of the next job in this process, with the slots of this one, which has finished."""
        self._succeeded.set()
        return Coordinator(None, False, self._idle_slots(), self._home)

    def _idle_slots(self) -> IdleSlots | None:
        with self._idle_lock:
            idle, self._idle = self._idle, None
        return idle

    def leave(self) -> None:
        """End this coordinator, for good, and its process unless others live there."""
        self._home.leave()

    def discard(self) -> None:
        """End what is left of a start that has failed."""
        self._storage_work.close()

    def abandon(self, within_s: float) -> bool:
        """End this coordinator as the end of its process would, and return whether it has: its job is not over.

        Its slots end with it. What it writes to the storage, for which there is as much time again, is finished or
        dropped when this returns True.
        """
        self._has_to_leave.set()
        self._events.put(Tick())
        return self._has_left.wait(within_s) and self._storage_work.abandon(within_s)

    def cancel(self, by: str) -> None:
        """Ask for cancellation; rows that wait for the driver are dropped."""
        self._rows.discard()
        self._events.put(CancelRequested(by))

    def stop(self) -> None:
        """Let the sources end."""
        self._events.put(StopRequested())

    def answer_to(self, request: Request, timeout_s: float) -> Answer | None:
        """Ask for something, or wait on for what was asked for; None when it takes longer than `timeout_s`."""
        return self._answers.answer_to(request, timeout_s)

    def status(self) -> dict[str, Any]:
        """Return the job as plain data."""
        described = described_waiting(self._job_status, self._slots.wait.reason)
        described["slots"] = f"waiting for {missing} slots" if (missing := self._slots.missing) else "granted"
        if note := self._note() or self._more_slots.note:
            described["note"] = note
        if self._fault is not None:
            described["fault"] = self._fault
        return described

    def description(self) -> dict[str, Any]:
        """Return the plan and the configuration of the job, secrets masked, as plain data."""
        return self._description

    def checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        """Return statistics of the job's checkpoints, or of one; None when it is not remembered."""
        return self._job.checkpoints.history.describe(checkpoint_id)

    def result(self, timeout_s: float) -> bytes | None:
        """Return the result, or None when the job has not ended within `timeout_s`."""
        self._ended.wait(timeout_s)
        self._raise_fault()
        return None if self._result is None else to_bytes(self._result)

    def follow(self, timeout_s: float, with_texts: bool) -> News:
        """Return news for the driver, within `timeout_s`; the call also shows that the driver lives.

        Without strings, which a driver has no room for while its terminal is paused, that is all: they wait here.
        """
        self._owner_seen = time.monotonic()
        if not with_texts:
            self._terminal.attend()
            self._raise_fault()
            return News((), self._note())
        chunks = self._terminal.take(timeout_s)
        self._owner_seen = time.monotonic()
        if not chunks:
            self._raise_fault()
        ended = self._ended.is_set() and self._terminal.is_empty and self._rows.is_empty
        return News(chunks, self._note(), to_bytes(self._result) if ended else None)

    def _note(self) -> str:
        """Describe what a job waits for that has no slots, or that cannot end or restart yet."""
        if self._job.status not in (JobStatus.CANCELLING, JobStatus.FAILING, JobStatus.RESTARTING):
            return self._slots.wait.note
        stalled = [text for text in (execution.stalled for execution in self._job.attempts.live) if text]
        end = f"its process is ended after {self._cancel_s} s (task.cancellation.timeout)"
        return f"waits for its tasks to end; {stalled[0]}; {end}" if stalled else self._slots.wait.note

    def rows(self, timeout_s: float) -> tuple[bytes, ...] | None:
        """Return blocks of collected rows, waiting for the first at most `timeout_s`; None when all have been drawn."""
        self._raise_fault()
        return self._rows.take(timeout_s)

    def accumulators(self) -> bytes:
        """Return a mapping of name to value, packed, with the accumulators of the subtasks that have finished."""
        return to_bytes(self._job.report.accumulators())

    # calls of the tasks

    def report(self, reports: bytes) -> None:
        """Take a report of a task: a list of messages."""
        for item in read_reports(reports):
            self._slots.calls.answered(item.attempt)
            self._events.put(item)

    def printed(self, chunks: list[Text]) -> None:
        """Take the output that a task has printed; returns when there is room for more."""
        self._terminal.put(chunks)

    def collected(self, block: bytes) -> None:
        """Take rows for the driver; returns when there is room for more."""
        self._rows.put(block)

    def process_of(self, attempt: TaskAddress) -> RayActor:
        """Return the actor in which an attempt runs, for a peer that was deployed before it."""
        return self._slots.actors[attempt]

    # the deciding thread

    def _decide(self) -> None:
        bind(job=self._job.graph.id)
        try:
            commands = self._job.start(self._clock.now_ms())
            self._update_status()
            self._perform(commands)
            self._record()
            last_tick = 0.0
            due = self._next_tick(last_tick)
            while self._result is None and not self._has_to_leave.is_set():
                if self._next_event(due):
                    due = self._next_tick(last_tick)
                now = time.monotonic()
                if now >= due:
                    last_tick = now
                    self._tick(now)
                    due = self._next_tick(last_tick)
        except BaseException as error:  # the last resort: whoever waits for the job must learn of it
            log.exception("coordinator failed")
            self._fault = f"the coordinator of job {self._job.graph.name!r} failed: {described(error)}"
            self._release_all_the_same()
        self._slots.end()
        if is_abandoned := self._has_to_leave.is_set() and self._result is None:
            self._release_all_the_same()
        else:
            self._record()
            self._note_end()
        if self._published is not None:
            self._published.close(self._job.graph.id)
        self._ended.set()
        self._rows.close()
        self._terminal.close()
        if self._traces is not None:
            self._traces.close()
        self._has_left.set()
        if not is_abandoned:
            self._linger()
        self._storage_work.close()
        if not self._succeeded.is_set():
            self.leave()

    def _release_all_the_same(self) -> None:
        """Answer the clients of the job and end this process, even where Ray no longer answers."""
        try:
            self._slots.release()
        except Exception:  # what goes with this process, goes then
            log.exception("the processes of the job could not be released")

    def _record(self) -> None:
        """Record the status for readers after this process is gone."""
        self._update_status()
        status = self._job_status
        log.info("Job %s (%s) is %s.", status["name"], status["jid"], status["state"])
        for failed in self._job.exceptions:
            log.error("%s: %s", failed.task, failed.failure.describe())
        try:
            write_record(self._folder, status)
        except OSError as error:
            log.warning("the record of the job could not be written: %s", error)

    def _watch_starts(self, place: Stored, number: int) -> None:
        """Cancel a job without checkpoints when a dispatcher elsewhere has started it anew."""
        if newest := await_newer_start(place.open, number, self._ended, STARTS_EVERY_S):
            log.warning("the job was started anew by another dispatcher (start %d, here %d)", newest, number)
            self._ends_at = None
            self.cancel("another dispatcher, which has started the job anew")

    def _note_end(self) -> None:
        """Note the end of the job in the registry of its cluster, so that no dispatcher starts it again."""
        if self._ends_at is None or not self._job.status.is_terminal:
            return
        totals = {} if self._result is None else self._result.accumulators
        details = self._job.checkpoints.history.describe
        try:
            note_end(self._ends_at.open(), JobArchive.of(self._job_status, self._description, details, totals))
        except Exception as error:  # whatever it is, the clients that wait for the end have to learn of it
            log.warning("the end of the job could not be noted in the registry of its cluster: %s", described(error))

    def _linger(self) -> None:
        """Keep the result and idle slots for a time, or until there is a successor."""
        ended_at = time.monotonic()
        idle_until = ended_at + self._idle_s + IDLE_MARGIN_S if self._idle is not None else ended_at
        while not self._succeeded.is_set():
            now = time.monotonic()
            is_wanted = now - ended_at < MOST_LINGER_S and now - max(self._owner_seen, ended_at) < LINGER_S
            if now >= idle_until and (idle := self._idle_slots()) is not None:
                idle.release()
            if now >= idle_until and not is_wanted:
                return
            if self._has_to_leave.is_set() or self._succeeded.wait(1):
                return

    def _next_tick(self, last: float) -> float:
        """Return when the tick after the one at `last` is due, in seconds of `time.monotonic`."""
        now, due_ms = time.monotonic(), self._job.next_tick_ms
        due = None if due_ms is None else now + (due_ms - self._clock.now_ms()) / 1000
        return self._pace.next_tick(last, now, self._job.status, due)

    def _next_event(self, until: float) -> bool:
        """Handle the next event; return whether one came in time."""
        try:
            event = self._events.get(timeout=max(until - time.monotonic(), 0.0))
        except queue.Empty:
            return False
        self._status_pace.changed()
        if not isinstance(event, TaskReport):
            self._pace.changed(time.monotonic())
        if isinstance(event, RescaleRequested) and self._waits_for_slots(event):
            return True
        commands = self._job.handle(event, self._clock.now_ms())
        self._report_traces()
        if self._is_status_due(event, commands):
            self._update_status()
        self._perform(commands)
        self._store_history()
        return True

    def _store_history(self) -> None:
        """Store the history of the job where it has changed; the autoscaler decides at ticks."""
        if self._history is not None:
            self._history.observe(self._job.history_revision, lambda: self._job.report.past)

    def _is_status_due(self, event: ToCoordinator | Signal, commands: list[Command]) -> bool:
        """Return whether the status is updated for this event; if not, it is for a later one or by the next tick.

        Heartbeats wait for the tick, and events in a row for the last of them. A request is answered after the update.
        """
        answers = any(isinstance(command, Answer | EndJob) for command in commands)
        return answers or not isinstance(event, TaskReport) and self._events.empty()

    def _waits_for_slots(self, request: RescaleRequested) -> bool:
        try:
            after = rescaled_graph(self._job.graph, request.parallelism)
        except PlanError:  # the job says so itself
            return False
        is_refused = bool(refused(self._job.status, self._job.checkpoints))
        return not is_refused and self._more_slots.hold(request, self._job.graph, after)

    def _tick(self, now: float) -> None:
        if self._is_reactive and now - self._counted_slots >= COUNT_SLOTS_S:
            self._counted_slots = now
            event = SlotsAvailable(self._slots.available(self._more_slots.groups))
            self._perform(self._job.handle(event, self._clock.now_ms()))
        while self._job.restarts.notices:  # in a thread of its own: a slow terminal must not hold up decisions
            line = (True, f"rayflink: {self._job.restarts.notices.popleft()}\n")
            threading.Thread(target=self._terminal.put, args=([line],), daemon=True).start()
        for attempt in self._slots.tick(now):  # Ray reports when a process cannot start
            self._perform(self._job.handle(TaskReport(attempt, {}), self._clock.now_ms()))
        if self._owner_timeout_s is not None and now - self._owner_seen > self._owner_timeout_s:
            self._rows.discard()
            self._owner_timeout_s = None
            self._events.put(CancelRequested("the loss of its driver"))
        if not self._slots.is_overdue(now) and (commands := self._job.handle(Tick(), self._clock.now_ms())):
            self._status_pace.changed()
            self._perform(commands)
        self._store_history()
        self._report_traces()
        if self._status_pace.is_due(now):
            self._update_status()
            self._recovery_log.report(self._job_status["recovery"])
        self._prometheus.report(self._job.report.metrics.group, now)

    # the commands of the job master: a `CommandPerformer`

    def _perform(self, commands: Sequence[Command]) -> None:
        perform(deployments_first(commands), self)

    def request_slots(self, command: RequestSlots) -> None:
        """Ask Ray for the processes of the slots."""
        self._more_slots.give_back()
        self._slots.request(command.slots)

    def deploy_tasks(self, commands: Sequence[DeployTask]) -> None:
        """Send each slot the deployments of its tasks."""
        self._slots.deploy(commands)

    def send_to_task(self, command: SendToTask) -> None:
        """Send a task a message, by a call of its slot."""
        self._slots.send(command.attempt, command.message)

    def kill_task(self, command: KillTask) -> None:
        """End the process of a task that did not stop in time."""
        if stalled := self._job.attempts.stalled(command.attempt):
            log.warning("the process of a task is ended: %s", stalled)
        self._slots.kill(command.attempt)

    def publish_checkpoint(self, command: PublishCheckpoint) -> None:
        """Write the metadata of a checkpoint beside the decisions: a slow storage delays no heartbeat."""
        self._storage_work.submit(lambda: self._events.put(self._files.publish(command)))

    def discard_files(self, command: DiscardFiles) -> None:
        """Delete files of a checkpoint beside the decisions, after all earlier work on files."""
        self._storage_work.submit(self._discard, command)

    def _discard(self, command: DiscardFiles) -> None:
        if command.folder == "" and self._history is not None:
            self._history.end()
        self._files.discard(command)
        if self._stored is not None and command.folder == "":
            delete_submissions(self._stored.open())

    def call_for_enumerator(self, command: CallForEnumerator) -> None:
        """Run work of an enumerator in a thread of its own: an outside system that hangs delays no decision."""
        run, work = copy_context().run, lambda: self._events.put(command.run())
        threading.Thread(target=run, args=(work,), name="enumerator", daemon=True).start()

    def request_rescale(self, command: RequestRescale) -> None:
        """Queue the job's own request; it waits for its slots like one of a client."""
        self._events.put(command.request)

    def _refuse_rescale(self, answer: AnswerRescale) -> None:
        self.answer(answer)
        self._events.put(RescaleRefused(answer))

    def answer(self, answer: Answer) -> None:
        """Give the answer to the clients that wait for it."""
        self._more_slots.answered(answer.request_id)
        self._answers.give(answer)

    def end_job(self, command: EndJob) -> None:
        """Release the slots, finish the work on files and hand the result on."""
        self._more_slots.give_back()
        if self._idle_s and command.result.status is JobStatus.FINISHED and not self._job.restarts.count:
            self._idle = self._slots.keep()
        if self._idle is None:
            self._slots.release()
        self._storage_work.end(STORAGE_ENDS_WITHIN_S)
        self._result = command.result

    def _report_traces(self) -> None:
        if self._traces is not None:
            self._traces.report(self._job.traces.take())

    def _update_status(self) -> None:
        """Describe the job for other threads; called by the thread that decides, which alone reads the job's parts."""
        self._job_status = self._job.report.describe()
        self._status_pace.described(time.monotonic())
        before, self._milestone = self._milestone, (self._job.status, self._job.checkpoints.history.counts())
        if self._published is not None and before != self._milestone:
            self._published.changed()

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise RuntimeError(self._fault)
