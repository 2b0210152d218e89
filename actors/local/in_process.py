"""A whole job in one thread: the coordinator's decisions, its tasks, and messages handed over in memory.

A debugger works in user code, which is what the local runner is for. Tests pass a clock of their own.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from rayflink.common.metrics.trace_reporter import trace_reporter
from rayflink.common.options.store_options import storage_options
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import Clock
from rayflink.state.storage.storage_schemes import open_storage

from ..exchange.frames import Envelope, TaskAddress
from ..job.command_performer import perform
from ..job.history.history_writer import HistoryWriter
from ..job.job_master import JobMaster
from ..job.recovery import recover_or_start
from ..messages.commands import (
    Answer,
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
    SendToTask,
    Signal,
    SlotsGranted,
    StopRequested,
    TaskGone,
    Tick,
)
from ..messages.messages import TaskReport, ToCoordinator
from ..messages.request_answers import RequestAnswers
from ..task.allocators import reuse_large_blocks
from ..task.process_inspection import process_place
from ..task.slot_memory import SlotMemory
from ..task.task import StreamTask
from .task_executor import TaskExecutor

REPORT_INTERVAL_MS = 500
"""Interval at which tasks report their counters."""


class InProcessCluster:
    """Runs one job to its end.

    It performs the commands of the job master (`CommandPerformer`) and carries what its tasks send (`TaskCarrier`).

    Args:
        graph: the job.
        clock: the time of the whole run.
        wait: called with milliseconds when no task can do anything before then.
        cached_files: name -> path of the distributed cache.
        new_id: returns 32 hex digits that are unique.
        wake: ends a `wait`, called by other threads; None: there are none, and nothing happens beside the steps.

    Raises:
        StateError: what the job starts from cannot be read: data of an earlier coordinator, or the checkpoint that
            `execution.state-recovery.path` names.
    """

    def __init__(
        self,
        graph: JobGraph,
        clock: Clock,
        wait: Callable[[int], None],
        cached_files: Mapping[str, str] | None = None,
        new_id: Callable[[], str] = lambda: os.urandom(16).hex(),
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.clock = clock
        open_at = lru_cache(partial(open_storage, options=storage_options(graph.configuration)))
        beginning = recover_or_start(graph, new_id, open_at)
        self._files = beginning.files
        self.job = JobMaster(graph, new_id, cached_files or {}, start=beginning.start)
        self._history = HistoryWriter.beside(
            partial(open_at, self._files.base), beginning.start, beginning.recovered, self.job.history_revision
        )
        self._traces = trace_reporter(graph.configuration, self.job.report.metrics.group)
        self._executor = TaskExecutor(graph.configuration, clock, self, open_at, wake)
        self.answers = RequestAnswers()
        self._wait, self._wake = wait, wake
        self._events: deque[ToCoordinator | Signal] = deque()
        self._last_report_ms = 0
        self._ticked_for: int | None = None
        self._started = False

    # the program's side

    def start(self) -> None:
        """Schedule the job."""
        self._perform(self.job.start(self.clock.now_ms()))

    def cancel(self, by: str = "the user") -> None:
        """Ask for the job's cancellation; may be called from a signal handler."""
        self.post(CancelRequested(by))

    def stop(self) -> None:
        """Let the sources end."""
        self.post(StopRequested())

    def request(self, request: Request) -> None:
        """Ask for something, once; `answers` has the outcome under the request's id."""
        if self.answers.ask(request.request_id):
            self.post(request)

    @property
    def tasks(self) -> Mapping[TaskAddress, StreamTask]:
        """Return the tasks that run now."""
        return self._executor.tasks

    @property
    def memory(self) -> SlotMemory:
        """Return the memory that all tasks share, like those of one slot.

        Raises:
            ConfigError: its parts do not fit the whole.
        """
        return self._executor.memory

    def record_history(self) -> None:
        """Store what the next coordinator of the job has to know, where it has changed, in a thread of its own."""
        if self._history is not None:
            self._history.observe(self.job.history_revision, lambda: self.job.report.past)

    @property
    def has_started(self) -> bool:
        """Return whether the job has been scheduled."""
        return self._started

    @property
    def result(self) -> JobResult | None:
        """Return the job's result once it has ended."""
        return self.job.result

    # the loop

    def run(self, on_progress: Callable[[], None] | None = None) -> JobResult:
        """Step until the job has ended; `on_progress` is called now and then."""
        reuse_large_blocks()
        while self.result is None:
            if not self.turn():
                self.pause()
            if on_progress is not None:
                on_progress()
        return self.result

    def turn(self) -> bool:
        """Start the job, or let it go on for a round; return False when there was nothing to do."""
        if not self._started:
            self._started = True
            self.start()
            return True
        return self.round()

    def round(self) -> bool:
        """Step every task once and deliver messages; return False when there was nothing to do."""
        is_active = self._handle_events()
        for attempt in list(self.tasks):
            is_active |= self.step(attempt)
        now = self.clock.now_ms()
        if now - self._last_report_ms >= REPORT_INTERVAL_MS:
            self._last_report_ms = now
            for task in self.tasks.values():
                self.post(task.report())
            self.post(Tick())
        elif self._is_tick_due(now):
            self.post(Tick())
        return is_active

    def step(self, attempt: TaskAddress) -> bool:
        """Run one step of one task, with its consequences; return whether it was active."""
        return self._executor.step(attempt)

    def pause(self) -> None:
        """Wait for the next timer, buffer timeout or source, at most until the next report."""
        now = self.clock.now_ms()
        due = self._last_report_ms + REPORT_INTERVAL_MS
        next_tick = self.job.next_tick_ms
        if next_tick is not None and next_tick != self._ticked_for:
            due = min(due, next_tick)
        for task in self.tasks.values():
            deadline = task.deadline_ms()
            if deadline is not None:
                due = min(due, deadline)
        self._wait(max(due - now, 0))

    def _handle_events(self) -> bool:
        has_events = bool(self._events)
        while self._events:
            self._perform(self.job.handle(self._events.popleft(), self.clock.now_ms()))
        if has_events and self._traces is not None:
            self._traces.report(self.job.traces.take())
            if self.result is not None:
                self._traces.close()
        return has_events

    def _is_tick_due(self, now_ms: int) -> bool:
        """Return whether the job has something to do by the clock, once for each time it names."""
        due = self.job.next_tick_ms
        if due is None or due > now_ms or due == self._ticked_for:
            return False
        self._ticked_for = due
        return True

    # a carrier for the tasks

    def deliver(self, envelope: Envelope) -> None:
        """Hand an envelope over; one for a task that is gone is lost, as on a network."""
        receiver = self.tasks.get(envelope.receiver)
        if receiver is not None:
            receiver.mail(envelope)
        sender = self.tasks.get(envelope.sender)
        if sender is not None:
            sender.returned(envelope.receiver)

    def post(self, event: ToCoordinator | Signal) -> None:
        """Hand the coordinator an event; a report says that the task runs in this process."""
        if isinstance(event, TaskReport):
            event = replace(event, metrics={**event.metrics, **process_place()})
        self._events.append(event)

    # a performer for the job master

    def _perform(self, commands: Sequence[Command]) -> None:
        """Perform the commands of one decision; new tasks start when the messages for them are in their mailboxes."""
        perform(commands, self)
        for command in commands:
            if isinstance(command, DeployTask):
                self._executor.start(command.deployment.attempt)

    def request_slots(self, command: RequestSlots) -> None:
        """Grant the slots: this process has as many as a job wants."""
        self.post(SlotsGranted())

    def deploy_tasks(self, commands: Sequence[DeployTask]) -> None:
        """Create the tasks."""
        for command in commands:
            self._executor.create(command.deployment)

    def send_to_task(self, command: SendToTask) -> None:
        """Hand a message over; one for a task that is gone is lost."""
        receiver = self.tasks.get(command.attempt)
        if receiver is not None:
            receiver.mail(command.message)

    def kill_task(self, command: KillTask) -> None:
        """Kill a task that did not stop in time."""
        self.kill(command.attempt, "it did not stop in time")

    def kill(self, attempt: TaskAddress, reason: str) -> None:
        """Kill a task without notice, and free its spilled data and its managed memory."""
        if attempt in self.tasks:
            self._executor.drop(attempt)
            self.post(TaskGone(attempt, reason))

    def publish_checkpoint(self, command: PublishCheckpoint) -> None:
        """Write the metadata of a checkpoint."""
        self.post(self._files.publish(command))

    def discard_files(self, command: DiscardFiles) -> None:
        """Delete files of a checkpoint."""
        if command.folder == "" and self._history is not None:
            self._history.end()
        self._files.discard(command)

    def call_for_enumerator(self, command: CallForEnumerator) -> None:
        """Run work of an enumerator in a thread, or at once where there are none."""
        wake = self._wake
        if wake is None:
            self.post(command.run())
            return

        def run() -> None:
            self.post(command.run())
            wake()

        threading.Thread(target=run, name="enumerator", daemon=True).start()

    def request_rescale(self, command: RequestRescale) -> None:
        """Hand the job its own request: there are always slots."""
        self.post(command.request)

    def answer(self, answer: Answer) -> None:
        """Keep the answer to a request in `answers`."""
        self.answers.add(answer)

    def end_job(self, command: EndJob) -> None:
        """Drop the tasks that are left: their results are no longer needed, or they were lost."""
        self._executor.close(self.job.graph.id)

    def abandon(self) -> None:
        """Drop the tasks without notice, as the end of the process would: the job is not over, and may go on elsewhere.

        No other call may follow.
        """
        if self._traces is not None:
            self._traces.close()
        if self._history is not None:
            self.record_history()
            self._history.end()
        self._executor.close(self.job.graph.id)


__all__ = ["REPORT_INTERVAL_MS", "InProcessCluster"]
