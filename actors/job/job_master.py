"""The life of one job, as decisions: events go in, commands come out. No clock, no Ray, no files.

Source: apache/flink ExecutionGraph, DefaultScheduler, JobMaster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import TypeAlias

from rayflink.common.errors import NotSerializable, assert_never
from rayflink.graph.job_graph import JobGraph

from ..exchange.frames import TaskAddress
from ..messages.commands import (
    AnswerRescale,
    CancelRequested,
    CheckpointNotPublished,
    CheckpointPublished,
    CheckpointRequested,
    Command,
    CommandLost,
    DeploymentFailed,
    EnumeratorAnswered,
    JobResult,
    RescaleRefused,
    RescaleRequested,
    SavepointRequested,
    Signal,
    SlotsAvailable,
    SlotsGranted,
    SlotsRefused,
    StopRequested,
    TaskGone,
    Tick,
)
from ..messages.executions import Execution
from ..messages.messages import (
    CheckpointAcknowledged,
    CheckpointDeclined,
    LastCheckpointAwaited,
    OperatorsSatisfied,
    SourceEvent,
    SplitRequest,
    TaskFailure,
    TaskReport,
    TaskStateChanged,
    ToCoordinator,
    WatermarkReported,
)
from ..messages.settings import JobSettings
from ..messages.states import ExecutionState, IllegalTransition, JobStatus
from .job_accumulators import Owner
from .job_checkpoints import JobStart
from .job_scheduler import JobScheduler

AttemptEvent: TypeAlias = ToCoordinator | TaskGone | DeploymentFailed | CommandLost
"""An event of one attempt: its report, or what the shell has learned of it."""


class JobMaster:
    """Decides when tasks are deployed, cancelled and restarted, and when the job ends.

    It takes one event at a time, decides what that says about its attempt, and has `JobScheduler` do what follows for
    the job.

    Args:
        graph: the job.
        new_id: gives 32 fresh hex digits a call.
        cached_files: name -> path of the distributed cache.
        chance: for the jitter of restarts.
        start: from which checkpoints the job begins; None: from nothing.
    """

    def __init__(
        self,
        graph: JobGraph,
        new_id: Callable[[], str],
        cached_files: Mapping[str, str],
        chance: Random | None = None,
        start: JobStart | None = None,
    ) -> None:
        scheduler = JobScheduler(graph, new_id, cached_files, chance or Random(), start or JobStart())
        self._scheduler, self._life, self._settings = scheduler, scheduler.life, JobSettings.of(graph.configuration)
        self.timestamps, self.exceptions = scheduler.life.timestamps, scheduler.life.exceptions
        self.attempts, self.sources, self.checkpoints = scheduler.attempts, scheduler.sources, scheduler.checkpoints
        self.restarts, self.report, self.traces = scheduler.restarts, scheduler.report, scheduler.traces
        self.autoscaler = scheduler.autoscaler

    @property
    def graph(self) -> JobGraph:
        """Return the job, with the parallelisms that it has now."""
        return self._scheduler.graph

    @property
    def result(self) -> JobResult | None:
        """Return the result, once the job has ended."""
        return self._scheduler.result

    @property
    def status(self) -> JobStatus:
        """Return the status of the job."""
        return self._life.status

    @property
    def executions(self) -> dict[TaskAddress, Execution]:
        """Return the present attempts, by their ids."""
        return self.attempts.by_id

    @property
    def history_revision(self) -> tuple[int, ...]:
        """Return a value that changes with the history that outlives the coordinator."""
        life = self._life
        return self.restarts.count, life.noted, life.rescales.revision, self.autoscaler.history.revision

    @property
    def next_tick_ms(self) -> int | None:
        """Return when a `Tick` is due that does more than check heartbeats, in epoch milliseconds; None: none is."""
        if self.status is JobStatus.RESTARTING:
            return self.restarts.due_ms
        if self.status is not JobStatus.RUNNING:
            return None
        times = (self.checkpoints.next_tick_ms, self.sources.next_call_ms)
        return min((due for due in times if due is not None), default=None)

    def begun_at(self, began_ms: int) -> None:
        """Note, before the start, when the job began under an earlier coordinator; 0: it did not."""
        self._life.began_ms = began_ms

    # events

    def start(self, now_ms: int) -> list[Command]:
        """Return the first commands: request slots."""
        return self._scheduler.begin(now_ms)

    def handle(self, event: ToCoordinator | Signal, now_ms: int) -> list[Command]:
        """Return what follows from an event; one of no live attempt, or of a job that has ended, changes nothing."""
        self._life.now_ms = now_ms
        if self.status.is_terminal:
            return []
        commands = self._commands_for(event, now_ms)
        for command in commands:
            if isinstance(command, AnswerRescale):
                self._scheduler.rescale_answered(command)
        self.traces.observe()
        return commands

    def _commands_for(self, event: ToCoordinator | Signal, now_ms: int) -> list[Command]:
        match event:
            case SlotsGranted():
                return self._scheduler.begin_whole("slots granted") if self.status is JobStatus.CREATED else []
            case SlotsRefused():
                return self._scheduler.give_up_slots(event.resources) if self.status is JobStatus.CREATED else []
            case CancelRequested():
                return self._scheduler.cancel(event.by)
            case StopRequested():
                return self.sources.stop_all()
            case Tick():
                return self._tick()
            case EnumeratorAnswered():
                return self._enumerator_answered(event)
            case RescaleRequested():
                return self._scheduler.rescale(event)
            case SlotsAvailable():
                self._scheduler.reactive.slots_seen(event.slots, now_ms)
                return []
            case RescaleRefused():
                self._scheduler.rescale_answered(event.answer)
                return []
            case SavepointRequested() | CheckpointRequested():
                return self._scheduler.apply(self.checkpoints.handle(event, now_ms))
            case CheckpointPublished() | CheckpointNotPublished():
                return (
                    self._scheduler.apply(self.checkpoints.handle(event, now_ms))
                    + self._scheduler.conclude_if_quiescent()
                )
            case _:
                return self._handle_of_attempt(event)

    def _handle_of_attempt(self, event: AttemptEvent) -> list[Command]:
        execution = self.executions.get(event.attempt)
        if execution is None:
            return []
        if execution.state.is_terminal:
            return self._handle_after_end(execution, event)
        match event:
            case CommandLost():
                return self._command_lost(execution, event)
            case DeploymentFailed():
                return self.attempts.kill(execution) + self._end_attempt(execution, event.failure)
            case TaskGone():
                execution.last_seen_ms = self._life.now_ms
                return self._lose_attempt(execution, event.reason)
            case _:
                execution.last_seen_ms = self._life.now_ms
                return self._handle_report(execution, event)

    def _handle_report(self, execution: Execution, event: ToCoordinator) -> list[Command]:
        match event:
            case TaskStateChanged():
                return self._task_changed(execution, event)
            case SplitRequest() | SourceEvent():
                match answer := self.sources.assign(execution, event):
                    case TaskFailure():
                        return self._scheduler.fail(execution, answer, whole=True)  # splits may be lost
                    case _:
                        return answer
            case WatermarkReported():
                return self.sources.align(execution, event)
            case TaskReport():
                execution.metrics, execution.metrics_ms = event.metrics, self._life.now_ms
                return []
            case CheckpointAcknowledged() | CheckpointDeclined() | LastCheckpointAwaited():
                return self._scheduler.apply(self.checkpoints.handle(event, self._life.now_ms))
            case OperatorsSatisfied():
                return self.sources.satisfied(event)
            case _:
                assert_never(event)

    def _enumerator_answered(self, event: EnumeratorAnswered) -> list[Command]:
        if self.status not in (JobStatus.RUNNING, JobStatus.RESTARTING):  # a region may restart around the enumerator
            return []
        match answer := self.sources.answer(event, self._life.now_ms):
            case TaskFailure():
                return self._scheduler.fail(None, answer)
            case _:
                return answer

    # the states of attempts

    def _task_changed(self, execution: Execution, event: TaskStateChanged) -> list[Command]:
        moves = execution.state.moves_after_report(event.state)
        if not moves:
            return []
        try:
            for state in moves:
                execution.become(state, self._life.now_ms, f"{event.state.value} reported")
        except IllegalTransition as error:
            failure = TaskFailure(IllegalTransition.__name__, str(error), "")
            return self.attempts.kill(execution) + self._end_attempt(execution, failure)
        if event.state is ExecutionState.RUNNING:
            return self._scheduler.deploy_ready()
        if event.state is ExecutionState.FAILED:
            assert event.failure is not None
            return self._task_failed(execution, event.failure)
        if execution.state is ExecutionState.FAILED:
            message = f"{execution.name} was cancelled from outside the job"
            return self._scheduler.fail(execution, TaskFailure("TaskCanceled", message, ""))
        if execution.state is ExecutionState.FINISHED:
            return self._task_finished(execution, event)
        return self._scheduler.conclude_if_quiescent()

    def _task_failed(self, execution: Execution, failure: TaskFailure) -> list[Command]:
        if failure.kind == NotSerializable.__name__ and not failure.operator:  # the report was, not a function
            call_site = execution.vertex.operators[-1].call_site
            failure = replace(failure, operator=execution.vertex.name, call_site=call_site)
        if not self.checkpoints.goes_back(failure, execution):
            return self._scheduler.abandon(execution.name, failure, execution.subtask, execution)
        return self._scheduler.fail(execution, failure)

    def _task_finished(self, execution: Execution, event: TaskStateChanged) -> list[Command]:
        vertex = execution.vertex
        owner = Owner(execution.place, execution.name, vertex.name, vertex.head.call_site)
        for failure in self._scheduler.accumulators.add(owner, event.accumulators):
            self._life.fail(execution.name, execution.subtask, failure, execution)
        if self.status is JobStatus.FAILING:
            return self.attempts.cancel(self._life.now_ms) + self._scheduler.conclude_if_quiescent()
        commands = self._scheduler.apply(self.checkpoints.task_ended(execution.attempt, self._life.now_ms))
        return commands + self._scheduler.deploy_ready() + self._scheduler.conclude_if_quiescent()

    def _lose_attempt(self, execution: Execution, reason: str) -> list[Command]:
        message = f"lost task {execution.name} (attempt #{execution.number}): {reason}"
        return self._end_attempt(execution, TaskFailure("TaskLost", message, ""))

    def _end_attempt(self, execution: Execution, failure: TaskFailure) -> list[Command]:
        """End an attempt that could not report its end: as canceled if it was being cancelled, else as failed."""
        if execution.state is ExecutionState.CANCELING:
            execution.become(ExecutionState.CANCELED, self._life.now_ms, failure.kind)
            return self._scheduler.conclude_if_quiescent()
        execution.become(ExecutionState.FAILED, self._life.now_ms, failure.kind)
        return self._scheduler.fail(execution, failure)

    def _command_lost(self, execution: Execution, event: CommandLost) -> list[Command]:
        """Kill an attempt that may wait for ever for a command that was lost."""
        killing = self.attempts.kill(execution)
        if execution.state is ExecutionState.CANCELING:
            return killing
        return killing + self._lose_attempt(
            execution, f"the call that carried {event.what} to it failed: {event.reason}"
        )

    def _handle_after_end(self, execution: Execution, event: AttemptEvent) -> list[Command]:
        """Fail the job if a finished attempt can no longer serve a result that is yet to be read."""
        if execution.state is not ExecutionState.FINISHED:
            return []
        match event:
            case TaskGone(reason=reason) | TaskStateChanged(failure=TaskFailure(message=reason)):
                pass
            case _:
                return []
        if not self.attempts.is_needed(execution):
            return []
        message = f"lost the result of {execution.name} before it was read: {reason}"
        return self._scheduler.fail(execution, TaskFailure("TaskLost", message, ""))

    # time

    def _tick(self) -> list[Command]:
        now_ms, settings, checkpoints = self._life.now_ms, self._settings, self.checkpoints
        commands = self._scheduler.apply(checkpoints.expire(now_ms, self.attempts.stalled))
        if self.status is JobStatus.CREATED and self._scheduler.slots.is_overdue(now_ms):
            return self._scheduler.give_up_slots("not enough free slots")
        timeouts = settings.cancellation_timeout_ms, settings.heartbeat_timeout_ms
        for execution, reason in self.attempts.unresponsive(now_ms, *timeouts):
            commands += self.attempts.kill(execution)
            commands += self._lose_attempt(execution, reason) if reason else []
        if self.status in (JobStatus.CREATED, JobStatus.RUNNING):
            commands += self._scheduler.fit_into_slots()
        if self.status in (JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING):
            return commands + self._scheduler.conclude_if_quiescent()
        if self.status is JobStatus.RUNNING:
            commands += self._scheduler.apply(checkpoints.tick(now_ms))
            commands += self._scheduler.apply(checkpoints.final_if_due(now_ms))
            commands += self._scheduler.trigger_for_rescale()
            commands += self._scheduler.autoscale()
            commands += self.sources.calls_due(now_ms)
            commands += self._scheduler.apply(checkpoints.announcement(now_ms))
        return commands


__all__ = ["AttemptEvent", "JobMaster"]
