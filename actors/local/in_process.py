"""A whole job in one thread: the coordinator's decisions, its tasks, and messages handed over in memory.

The local runner takes this as it is, with the machine's clock, so that a debugger works in user code. The simulator
overrides the choices: which task steps next, when a message arrives, and what goes wrong.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any

from rayflink.common.errors import assert_never
from rayflink.common.text_output.logs import spoken_by
from rayflink.graph.job_graph import JobGraph
from rayflink.state.storage.storage import Storage
from rayflink.state.storage.storage_schemes import open_storage

from ..checkpoints.files import OpenStorage
from ..exchange.frames import Envelope, TaskAddress
from ..job.deployment import announce
from ..job.job_master import JobMaster
from ..job.recovery import recover_or_start, storage_options
from ..messages.commands import (
    AnswerRescale,
    AnswerSavepoint,
    CancelRequested,
    Command,
    DeployTask,
    DiscardFiles,
    EndJob,
    JobResult,
    KillTask,
    PublishCheckpoint,
    RequestSlots,
    RescaleRequested,
    SavepointRequested,
    SendToTask,
    Signal,
    SlotsGranted,
    StopRequested,
    TaskGone,
    Tick,
)
from ..messages.messages import ToCoordinator, ToTask
from ..task.file_cache import FileCache
from ..task.progress import Progress
from ..task.services import TaskServices
from ..task.slot_memory import SlotMemory
from ..task.task import StreamTask
from ..task.task_folders import remove_folders, remove_spills

REPORT_INTERVAL_MS = 500
"""Interval at which tasks report their counters."""


class InProcessCluster:
    """Runs one job to its end.

    Args:
        graph: the job.
        clock: `now_ms()` and `monotonic()`.
        wait: called with milliseconds when no task can do anything before then.
        cached_files: name -> path of the distributed cache.
        wake: ends a `wait`, called by other threads; None: there are none, and nothing happens beside the steps.
    """

    open_storage: Callable[[str], Storage]

    def __init__(
        self,
        graph: JobGraph,
        clock: Any,
        wait: Callable[[float], None],
        cached_files: Mapping[str, str] | None = None,
        new_id: Callable[[], str] = lambda: os.urandom(16).hex(),
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.clock = clock
        self._wake = wake
        self.open_storage = self.storage_opener(graph)
        self.job = self.make_job(graph, new_id, cached_files or {})
        self._file_cache = FileCache()
        self.answers: dict[str, AnswerSavepoint | AnswerRescale] = {}
        self._requests: set[str] = set()
        self.tasks: dict[TaskAddress, StreamTask] = {}
        self._wait = wait
        self._events: deque[ToCoordinator | Signal] = deque()
        self._last_report_ms = 0
        self._ticked_for: int | None = None
        self._started = False

    def make_job(self, graph: JobGraph, new_id: Callable[[], str], cached_files: Mapping[str, str]) -> JobMaster:
        """Create the job's coordinator; it starts from existing data of the job, or as `execution.state-recovery.path`
        says.

        Raises:
            StateError: that cannot be read.
        """
        beginning = recover_or_start(graph, new_id, self.open_storage)
        self.files = beginning.files
        return JobMaster(graph, new_id, cached_files, start=beginning.start)

    def storage_opener(self, graph: JobGraph) -> OpenStorage:
        """Return the function that opens the checkpoint storage at an address."""
        return lru_cache(partial(open_storage, options=storage_options(graph.configuration)))

    def start(self) -> None:
        """Schedule the job."""
        self._carry_out(self.job.start(self.clock.now_ms()))

    def cancel(self, by: str = "the user") -> None:
        """Ask for the job's cancellation; may be called from a signal handler."""
        self.post(CancelRequested(by))

    def stop(self) -> None:
        """Let the sources end."""
        self.post(StopRequested())

    def request(self, request: SavepointRequested | RescaleRequested) -> None:
        """Ask for something, once; `answers` holds what became of it, by the request's id."""
        if request.request_id not in self._requests:
            self._requests.add(request.request_id)
            self.post(request)

    @cached_property
    def memory(self) -> SlotMemory:
        """Return the memory that all tasks share, like those of one slot.

        Raises:
            ConfigError: its parts do not fit the whole.
        """
        return SlotMemory(self.job.graph.configuration, "the process")

    @property
    def has_started(self) -> bool:
        """Return whether the job has been scheduled."""
        return self._started

    @property
    def result(self) -> JobResult | None:
        """Return the job's result once it has ended."""
        return self.job.result

    def run(self, on_progress: Callable[[], None] | None = None) -> JobResult:
        """Step until the job has ended; `on_progress` is called now and then."""
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
        active = self._handle_events()
        for attempt, task in list(self.tasks.items()):
            active |= self.step(attempt, task)
        now = self.clock.now_ms()
        if now - self._last_report_ms >= REPORT_INTERVAL_MS:
            self._last_report_ms = now
            for task in self.tasks.values():
                self.post(task.report())
            self.post(Tick())
        elif self.tick_is_due(now):
            self.post(Tick())
        return active

    def tick_is_due(self, now_ms: int) -> bool:
        """Return whether the job has something to do by the clock; asked again only when that has been done."""
        due = self.job.next_tick_ms
        if due is None or due > now_ms or due == self._ticked_for:
            return False
        self._ticked_for = due
        return True

    def step(self, attempt: TaskAddress, task: StreamTask) -> bool:
        """Run one step of one task, with its consequences."""
        started = self.clock.monotonic()
        with spoken_by(task.identity):
            progress = task.step()
        task.metrics.stepped(started, self.clock.monotonic(), progress is Progress.BACK_PRESSURED)
        active = progress is Progress.BUSY
        for envelope in task.outgoing():
            active = True
            self.deliver(envelope)
        for report in task.reports():
            active = True
            self.post(report)
        if progress is Progress.DONE:
            del self.tasks[attempt]
            self.memory.free(attempt)
        return active

    def deliver(self, envelope: Envelope) -> None:
        """Hand an envelope over; one for a task that is gone is lost, as on a network."""
        receiver = self.tasks.get(envelope.receiver)
        if receiver is not None:
            receiver.mail(envelope)
        sender = self.tasks.get(envelope.sender)
        if sender is not None:
            sender.returned(envelope.receiver)

    def tell(self, attempt: TaskAddress, message: ToTask) -> None:
        """Hand a message of the coordinator over; one for a task that is gone is lost."""
        receiver = self.tasks.get(attempt)
        if receiver is not None:
            receiver.mail(message)

    def post(self, event: ToCoordinator | Signal) -> None:
        """Hand the coordinator an event."""
        self._events.append(event)

    def start_task(self, task: StreamTask) -> None:
        """Start a task; all that were deployed with it exist."""
        task.start()

    def kill(self, attempt: TaskAddress, reason: str) -> None:
        """Kill a task without notice, and free its spilled data and its managed memory."""
        if attempt in self.tasks:
            self._drop(attempt)
            self.post(TaskGone(attempt, reason))

    def _drop(self, attempt: TaskAddress) -> None:
        remove_spills(self.tasks.pop(attempt).deployment)
        self.memory.free(attempt)

    def _handle_events(self) -> bool:
        active = bool(self._events)
        while self._events:
            self._carry_out(self.job.handle(self._events.popleft(), self.clock.now_ms()))
        return active

    def _carry_out(self, commands: list[Command]) -> None:
        deployed = []
        for command in commands:
            match command:
                case RequestSlots():
                    self.post(SlotsGranted())
                case DeployTask():
                    announce(command.deployment, "localhost")
                    with spoken_by(command.deployment.identity):
                        task = self.make_task(command)
                    self.memory.report_in(task.metrics.group.group)
                    self.tasks[command.deployment.attempt] = task
                    deployed.append(task)
                case SendToTask():
                    self.tell(command.attempt, command.message)
                case KillTask():
                    self.kill(command.attempt, "it did not stop in time")
                case PublishCheckpoint() | DiscardFiles():
                    self.work_on_files(command)
                case AnswerSavepoint() | AnswerRescale():
                    self.answers[command.request_id] = command
                case EndJob():
                    self.end_job()
                case _:
                    assert_never(command)
        for task in deployed:
            with spoken_by(task.identity):
                self.start_task(task)

    def work_on_files(self, command: PublishCheckpoint | DiscardFiles) -> None:
        """Write or delete files of a checkpoint, in the order of the commands."""
        if isinstance(command, PublishCheckpoint):
            self.post(self.files.publish(command))
        else:
            self.files.discard(command)

    def end_job(self) -> None:
        """Drop the tasks that are left: finished ones whose results are not fetched, and lost ones."""
        for attempt in list(self.tasks):
            self._drop(attempt)
        self._file_cache.stop()
        remove_folders(self.job.graph.id, self.job.graph.configuration, copies=True)

    def make_task(self, command: DeployTask) -> StreamTask:
        """Return the task of a deployment."""
        return StreamTask(command.deployment, self.clock, services=self.services())

    def services(self) -> TaskServices:
        """Return the services that this process provides to its tasks."""
        return TaskServices(
            self.memory.manager, wake=self._wake, open_storage=self.open_storage, cached_files=self._file_cache.files_of
        )

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
