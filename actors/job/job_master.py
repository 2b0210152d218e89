"""The life of one job, as decisions: events go in, commands come out. No clock, no Ray, no files.

Source: apache/flink ExecutionGraph, DefaultScheduler, JobMaster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

from rayflink.common.errors import NotSerializable, PlanError, assert_never, described
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.graph.job_graph import JobEdge, JobGraph

from ..checkpoints.coordinator import Decision
from ..checkpoints.failures import FailJob
from ..exchange.frames import TaskAddress
from ..messages.commands import (
    AnswerRescale,
    CancelRequested,
    CheckpointNotPublished,
    CheckpointPublished,
    Command,
    CommandLost,
    DeploymentFailed,
    EndJob,
    JobResult,
    KillTask,
    RequestSlots,
    RescaleRequested,
    SavepointRequested,
    SendToTask,
    Signal,
    SlotsGranted,
    SlotsRefused,
    StopRequested,
    TaskGone,
    Tick,
)
from ..messages.executions import ExceptionEntry, Execution
from ..messages.job_history import JobHistory
from ..messages.messages import (
    CheckpointAcknowledged,
    CheckpointComplete,
    CheckpointDeclined,
    LastCheckpointAwaited,
    OperatorsSatisfied,
    SplitRequest,
    TaskFailure,
    TaskReport,
    TaskStateChanged,
    ToCoordinator,
    WatermarkAnnounced,
    WatermarkReported,
)
from ..messages.scheduling import required_slots
from ..messages.settings import JobSettings
from ..messages.states import ExecutionState, IllegalTransition, JobStatus
from .adopted_key_groups import with_key_groups_of
from .attempts import Attempts
from .enumeration import Enumerators, enumerator_failed
from .job_accumulators import JobAccumulators, Owner
from .job_checkpoints import JobCheckpoints, JobStart
from .job_description import job_summary, vertex_summaries
from .job_metrics import JobMetrics
from .job_rescale import Rescale, refused
from .job_restarts import JobRestarts
from .recovery_times import last_recovery
from .rescaled_graph import rescaled_graph
from .source_stops import SourceStops
from .watermark_groups import WatermarkGroups

AttemptEvent: TypeAlias = ToCoordinator | TaskGone | DeploymentFailed | CommandLost
"""An event of one attempt: its report, or what the shell has learned of it."""
HISTORY_LENGTH = 16
"""The number of failures in the history (web.exception-history-size)."""


class JobMaster:
    """Decides when tasks are deployed, cancelled and restarted, and when the job ends.

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
        self.graph = graph = with_key_groups_of(start, graph)
        self.status = JobStatus.INITIALIZING
        self.timestamps: dict[str, int] = {}
        start = start or JobStart()
        self.exceptions: deque[ExceptionEntry] = deque(start.past.exceptions, HISTORY_LENGTH)
        self.result: JobResult | None = None
        self._settings = JobSettings.of(graph.configuration)
        self._enumerators = Enumerators(graph)
        number = start.past.attempt
        self.attempts = Attempts(graph, new_id, cached_files, lambda d, e: self.checkpoints.equipped(d, e), number)
        self._failure: TaskFailure | None = None
        self._failed_subtask = self._slots_asked_ms = 0
        self._cancelled_by = ""
        self._killed: set[TaskAddress] = set()
        self._watermark_groups = WatermarkGroups()
        self.checkpoints = JobCheckpoints(graph, start, self._enumerators, self.attempts, new_id)
        self.restarts = JobRestarts(graph, graph.configuration, self.checkpoints.are_periodic, chance or Random())
        self.restarts.count = start.past.restarts
        self._source_stops = SourceStops(self.attempts)
        self._accumulators = JobAccumulators(self.restarts.are_possible)
        self._rescale: Rescale | None = None
        self.metrics = JobMetrics(graph.id, graph.name, graph.configuration)
        self.checkpoints.history.measure(self.metrics.group)
        self._now_ms = 0

    @property
    def executions(self) -> dict[TaskAddress, Execution]:
        """Return the present attempts, by their ids."""
        return self.attempts.by_id

    # in

    def start(self, now_ms: int) -> list[Command]:
        """Return the first commands: request slots."""
        return self._ask_for_slots(now_ms)

    def handle(self, event: ToCoordinator | Signal, now_ms: int) -> list[Command]:
        """Return what follows from an event; one of no live attempt, or of a job that has ended, changes nothing."""
        self._now_ms = now_ms
        if self.status.is_terminal:
            return []
        match event:
            case SlotsGranted():
                return self._deploy_first(now_ms)
            case SlotsRefused():
                return self._no_slots(event.found, now_ms)
            case CancelRequested():
                return self._cancel(event.by, now_ms)
            case StopRequested():
                return self._source_stops.stop_all()
            case Tick():
                return self._tick(now_ms)
            case RescaleRequested():
                return self._request_rescale(event, now_ms)
            case SavepointRequested():
                return self._apply(self.checkpoints.handle(event, now_ms), now_ms)
            case CheckpointPublished() | CheckpointNotPublished():
                commands = self._apply(self.checkpoints.handle(event, now_ms), now_ms)
                return commands + self._conclude_if_quiescent(now_ms)
            case _:
                return self._handle_of_attempt(event, now_ms)

    def _handle_of_attempt(self, event: AttemptEvent, now_ms: int) -> list[Command]:
        execution = self.executions.get(event.attempt)
        if execution is None or execution.state.is_terminal:
            return [] if execution is None else self._on_event_after_end(execution, event, now_ms)
        if not isinstance(event, CommandLost | DeploymentFailed):
            execution.last_seen_ms = now_ms
        match event:
            case CommandLost():
                return self._command_lost(execution, event, now_ms)
            case DeploymentFailed():
                return self._kill(execution) + self._ended_by(execution, event.failure, now_ms)
            case TaskStateChanged():
                return self._task_changed(execution, event, now_ms)
            case TaskGone():
                return self._task_gone(execution, event.reason, now_ms)
            case SplitRequest():
                return self._splits(execution, event, now_ms)
            case WatermarkReported():
                return self._aligned(execution, event)
            case TaskReport():
                execution.metrics = event.metrics
                return []
            case CheckpointAcknowledged() | CheckpointDeclined() | LastCheckpointAwaited():
                return self._apply(self.checkpoints.handle(event, now_ms), now_ms)
            case OperatorsSatisfied():
                return self._source_stops.report(event)
            case _:
                assert_never(event)

    # checkpoints

    def _apply(self, decisions: Iterable[Decision], now_ms: int) -> list[Command]:
        """Turn decisions on checkpoints into commands; notify enumerators of complete ones, and fail the job if due."""
        commands: list[Command] = []
        completed: int | None = None
        for decision in decisions:
            if isinstance(decision, FailJob):
                self.restarts.are_over |= decision.is_final
                commands += self._fail(None, TaskFailure(decision.kind, decision.reason, ""), now_ms)
                continue
            if isinstance(decision, SendToTask) and isinstance(decision.message, CheckpointComplete):
                completed = decision.message.checkpoint_id
                self._enumerators.complete(completed)
                self.restarts.progressed()
            commands.append(decision)
        stops = self.checkpoints.is_stopping
        if completed is not None and not stops and self._rescale is not None and self._rescale.is_ready(completed):
            self._rescale.cancelled_ms = now_ms
            self.restarts.restart_whole(now_ms)
            commands += self._prepare_restart(now_ms)
        return commands

    # other parallelisms

    def _request_rescale(self, event: RescaleRequested, now_ms: int) -> list[Command]:
        try:
            graph = rescaled_graph(self.graph, event.parallelism)
        except PlanError as error:
            return [AnswerRescale(event.request_id, failure=str(error))]
        refusal = refused(self.status, self.checkpoints)
        if self._rescale is not None:
            refusal = "its parallelism is being changed already"
        if refusal or graph == self.graph:  # what it has already, it has without a pause
            return [AnswerRescale(event.request_id, failure=refusal)]
        self._rescale = Rescale(event.request_id, graph, now_ms, self.checkpoints.next_id)
        return self._apply(self.checkpoints.trigger_now(now_ms), now_ms)

    def _rescale_if_due(self, now_ms: int) -> list[Command]:
        """Trigger the checkpoint before a rescale again, if a failure has prevented it."""
        if self._rescale is None or self._rescale.cancelled_ms is not None or self.checkpoints.are_pending:
            return []
        return self._apply(self.checkpoints.trigger_now(now_ms), now_ms)

    def _adopt(self, rescale: Rescale, now_ms: int) -> list[Command]:
        """Start the rescaled job after the old tasks have ended; request slots if it needs others."""
        before, rescale.former = required_slots(self.graph), self.graph
        self._adopt_graph(rescale.graph)
        if required_slots(self.graph) == before:
            return self._begin_anew(now_ms)
        return self._ask_for_slots(now_ms)

    def _adopt_graph(self, graph: JobGraph) -> None:
        self.graph = graph
        self.attempts.adopt(graph)
        self.checkpoints.adopt(graph)
        self.restarts.adopt(graph)

    def _ask_for_slots(self, now_ms: int) -> list[Command]:
        self._slots_asked_ms = now_ms
        if self.status is not JobStatus.CREATED:
            self._become(JobStatus.CREATED, now_ms)
        return [RequestSlots(required_slots(self.graph))]

    def _begin_anew(self, now_ms: int) -> list[Command]:
        self._become(JobStatus.RUNNING, now_ms)
        return self._begin(list(self.attempts), True, now_ms)

    def _rescaled_if_running(self, now_ms: int) -> list[Command]:
        """Answer a rescale request with the length of the pause, once all new tasks run."""
        rescale = self._rescale
        if rescale is None or rescale.former is None:
            return []
        if any(e.state not in (ExecutionState.RUNNING, ExecutionState.FINISHED) for e in self.attempts):
            return []
        self._rescale = None
        assert rescale.cancelled_ms is not None
        return [AnswerRescale(rescale.request_id, now_ms - rescale.cancelled_ms)]

    # slots and deployment

    def _deploy_first(self, now_ms: int) -> list[Command]:
        if self.status is not JobStatus.CREATED:
            return []
        return self._begin_anew(now_ms)

    def _begin(self, attempts: Sequence[Execution], whole: bool, now_ms: int) -> list[Command]:
        """Deploy attempts, from the newest checkpoint if there is one; `whole` if they are all of the job."""
        try:
            states, decisions = self.checkpoints.restore(now_ms)
            if whole:
                for failure in self._enumerators.restore(states):
                    self._append_exception(failure.operator, failure, now_ms)
            else:
                self._take_back(attempts)
        except (Exception, SystemExit) as error:  # it does not fit, or whatever a user's enumerator or hook raises
            failure = TaskFailure(type(error).__name__, f"the job cannot start: {described(error)}", "")
            self._record_failure("coordinator", 0, failure, now_ms)
            return self.attempts.cancel(now_ms) + self._conclude_if_quiescent(now_ms)
        again = {(e.vertex.id, e.subtask) for e in attempts if not self.checkpoints.begins_finished(e)}
        self._accumulators.forget(again)
        commands = self._apply(decisions, now_ms) + self.attempts.deploy_first(attempts, now_ms)
        commands += self._apply(self.checkpoints.resume(now_ms), now_ms)
        return commands + self._source_stops.due()

    def _take_back(self, attempts: Iterable[Execution]) -> None:
        """Return the splits that readers got since the newest checkpoint to the enumerators."""
        for execution in attempts:
            if execution.vertex.is_input:
                self._enumerators.take_back(execution.vertex.head.operator_id, execution.subtask)

    def _deploy_ready(self, now_ms: int) -> list[Command]:
        return self.attempts.deploy_ready(now_ms) if self.status is JobStatus.RUNNING else []

    def _no_slots(self, found: str, now_ms: int) -> list[Command]:
        if self.status is not JobStatus.CREATED:
            return []
        wanted = len(required_slots(self.graph))
        waited = now_ms - self._slots_asked_ms
        message = (
            f"Could not allocate all required slots within timeout of {waited} ms. Slots required: {wanted}, "
            f"slots allocated: 0; found: {found}; lower the parallelism, add nodes, or raise slot.request.timeout"
        )
        if self._rescale is not None and self._rescale.former is not None:  # the job goes on as it was
            rescale, self._rescale = self._rescale, None
            assert rescale.former is not None
            self._adopt_graph(rescale.former)
            return [AnswerRescale(rescale.request_id, failure=message), *self._ask_for_slots(now_ms)]
        self._record_failure("scheduler", 0, TaskFailure("NoResourceAvailable", message, ""), now_ms)
        return self.attempts.cancel(now_ms) + self._conclude_if_quiescent(now_ms)

    # what tasks say

    def _task_changed(self, execution: Execution, event: TaskStateChanged, now_ms: int) -> list[Command]:
        is_overtaken = event.state is ExecutionState.INITIALIZING and execution.state is not ExecutionState.DEPLOYING
        if is_overtaken or event.state in (ExecutionState.DEPLOYING, execution.state):
            return []
        if execution.state is ExecutionState.CANCELING and not event.state.is_terminal:
            return []
        if execution.state is ExecutionState.CANCELING:  # whatever it says of its end, it was cancelled
            execution.become(ExecutionState.CANCELED, now_ms)
        elif event.state is ExecutionState.FINISHED and execution.state is not ExecutionState.RUNNING:
            execution.become(ExecutionState.RUNNING, now_ms)  # it was so fast that the one report overtook the other
            execution.become(ExecutionState.FINISHED, now_ms)
        elif event.state is ExecutionState.CANCELED:
            execution.become(ExecutionState.FAILED, now_ms)
            failure = TaskFailure("TaskCanceled", f"{execution.name} was cancelled from outside the job", "")
            return self._fail(execution, failure, now_ms)
        elif not execution.state.may_become(event.state):
            refused = IllegalTransition(execution.title, execution.state.value, event.state.value)
            failure = TaskFailure(IllegalTransition.__name__, str(refused), "")
            return self._kill(execution) + self._ended_by(execution, failure, now_ms)
        else:
            execution.become(event.state, now_ms)
        if event.state is ExecutionState.RUNNING:
            return self._deploy_ready(now_ms) + self._rescaled_if_running(now_ms)
        if event.state is ExecutionState.FAILED:
            assert event.failure is not None
            failure = event.failure
            if failure.kind == NotSerializable.__name__ and not failure.operator:  # the report was, not a function
                at = execution.vertex.operators[-1].call_site
                failure = replace(failure, operator=execution.vertex.name, call_site=at)
            if not self.checkpoints.goes_back(failure, execution):
                return self._end_as_failed(execution.name, execution.subtask, failure, now_ms)
            return self._fail(execution, failure, now_ms)
        if execution.state is ExecutionState.FINISHED:
            vertex = execution.vertex
            owner = Owner((vertex.id, execution.subtask), execution.name, vertex.name, vertex.head.call_site)
            for failure in self._accumulators.add(owner, event.accumulators):
                self._record_failure(execution.name, execution.subtask, failure, now_ms)
            if self.status is JobStatus.FAILING:
                return self.attempts.cancel(now_ms) + self._conclude_if_quiescent(now_ms)
            given_up = self._apply(self.checkpoints.task_ended(execution.attempt, now_ms), now_ms)
            commands = given_up + self._rescaled_if_running(now_ms) + self._deploy_ready(now_ms)
            return commands + self._conclude_if_quiescent(now_ms)
        return self._conclude_if_quiescent(now_ms)

    def _task_gone(self, execution: Execution, reason: str, now_ms: int) -> list[Command]:
        message = f"lost task {execution.name} (attempt #{execution.number}): {reason}"
        return self._ended_by(execution, TaskFailure("TaskLost", message, ""), now_ms)

    def _ended_by(self, execution: Execution, failure: TaskFailure, now_ms: int) -> list[Command]:
        """End an attempt that could not report its end: as canceled if it was being cancelled, else as failed."""
        if execution.state is ExecutionState.CANCELING:
            execution.become(ExecutionState.CANCELED, now_ms)
            return self._conclude_if_quiescent(now_ms)
        execution.become(ExecutionState.FAILED, now_ms)
        return self._fail(execution, failure, now_ms)

    def _command_lost(self, execution: Execution, event: CommandLost, now_ms: int) -> list[Command]:
        """Kill an attempt that may wait for ever for a command that was lost."""
        if execution.state is ExecutionState.CANCELING:
            return self._kill(execution)
        reason = f"the call that carried {event.what} to it failed: {event.reason}"
        return self._kill(execution) + self._task_gone(execution, reason, now_ms)

    def _kill(self, execution: Execution) -> list[Command]:
        if execution.attempt in self._killed:
            return []
        self._killed = {*self._killed & self.executions.keys(), execution.attempt}
        return [KillTask(execution.attempt)]

    def _on_event_after_end(self, execution: Execution, event: AttemptEvent, now_ms: int) -> list[Command]:
        """Fail the job if a finished attempt can no longer serve a result that is yet to be read."""
        if execution.state is not ExecutionState.FINISHED:
            return []
        if isinstance(event, TaskGone):
            reason = event.reason
        elif isinstance(event, TaskStateChanged) and event.failure is not None:
            reason = event.failure.message
        else:
            return []
        readers = {edge.target for edge in self.graph.edges if self._holds(edge, execution)}
        reading = [e.state for e in self.executions.values() if e.vertex.id in readers and not e.state.is_terminal]
        if all(state is ExecutionState.CANCELING for state in reading):
            return []
        message = f"lost the result of {execution.name} before it was read: {reason}"
        return self._fail(execution, TaskFailure("TaskLost", message, ""), now_ms)

    @staticmethod
    def _holds(edge: JobEdge, execution: Execution) -> bool:
        return edge.source == execution.vertex.id and not edge.partition_type.is_pipelined

    def _splits(self, execution: Execution, event: SplitRequest, now_ms: int) -> list[Command]:
        try:
            assigned = self._enumerators.request(execution.vertex, event.operator_id, execution.subtask)
        except (Exception, SystemExit) as error:
            failure = enumerator_failed(execution.vertex.head, error)
            return self._fail(execution, failure, now_ms, whole=True)  # it may have lost splits
        by_subtask = {e.subtask: e for e in self.executions.values() if e.vertex is execution.vertex}
        return [SendToTask(by_subtask[subtask].attempt, message) for subtask, message in assigned]

    def _aligned(self, execution: Execution, event: WatermarkReported) -> list[Command]:
        self._watermark_groups.keep({e.attempt for e in self.attempts.live})
        given = (event.attempt, event.operator_id, event.alignment, event.watermark)
        allowed = self._watermark_groups.reported(*given)
        if execution.state is ExecutionState.CANCELING or event.watermark == MAX_TIMESTAMP:
            return []
        return [SendToTask(event.attempt, WatermarkAnnounced(event.operator_id, allowed))]

    # the end

    def _fail(self, failed: Execution | None, failure: TaskFailure, now_ms: int, whole: bool = False) -> list[Command]:
        """Restart the region of a failed attempt, or the whole job, or end the job."""
        task, subtask = ("coordinator", 0) if failed is None else (failed.name, failed.subtask)
        if self.status in (JobStatus.RUNNING, JobStatus.RESTARTING):
            if failed is not None and failed.state is ExecutionState.CANCELED:  # it ends because of another failure
                self._append_exception(task, failure, now_ms)
                return self._conclude_if_quiescent(now_ms)
            whole = whole or self.checkpoints.is_stopping  # others may have ended in mid-data
            if self.restarts.failed(None if whole else failed, failure, now_ms):
                self._append_exception(task, failure, now_ms)
                return self._prepare_restart(now_ms)
            if self.restarts.refusal:
                failure = replace(failure, message=f"{failure.message} ({self.restarts.refusal})")
        return self._end_as_failed(task, subtask, failure, now_ms)

    def _end_as_failed(self, task: str, subtask: int, failure: TaskFailure, now_ms: int) -> list[Command]:
        self._record_failure(task, subtask, failure, now_ms)
        if self.status is JobStatus.FAILING:
            return self.attempts.cancel(now_ms) + self._conclude_if_quiescent(now_ms)
        return self._conclude_if_quiescent(now_ms)

    def _prepare_restart(self, now_ms: int) -> list[Command]:
        """Cancel the attempts that have to restart; the others run on."""
        if self.status is JobStatus.RUNNING:
            self._become(JobStatus.RESTARTING, now_ms)
        commands = self._apply(self.checkpoints.suspend(now_ms, "a task failed"), now_ms)
        return commands + self.attempts.cancel(now_ms, set(self.restarts.places)) + self._conclude_if_quiescent(now_ms)

    def _restart(self, now_ms: int) -> list[Command]:
        """Deploy new attempts in the place of those that have ended."""
        places, whole = self.restarts.places, self.restarts.is_whole
        self.restarts.begun()
        if whole and self._rescale is not None and self._rescale.takes_over:
            return self._adopt(self._rescale, now_ms)
        fresh = self.attempts.renew(places)
        self._become(JobStatus.RUNNING, now_ms)
        return self._begin(fresh, whole, now_ms)

    def _record_failure(self, task: str, subtask: int, failure: TaskFailure, now_ms: int) -> None:
        """Record a failure in the history; a job that runs begins to fail."""
        self._append_exception(task, failure, now_ms)
        if self._failure is None:
            self._failure, self._failed_subtask = failure, subtask
        if self.status in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING):
            self._become(JobStatus.FAILING, now_ms)

    def _append_exception(self, task: str, failure: TaskFailure, now_ms: int) -> None:
        self.exceptions.append(ExceptionEntry(now_ms, task, failure))

    def _cancel(self, by: str, now_ms: int) -> list[Command]:
        if self.status is JobStatus.FAILING:  # every task has been asked already
            self._cancelled_by = by
            self._become(JobStatus.CANCELLING, now_ms)
            return []
        if self.status not in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING):
            return []
        self._cancelled_by = by
        self._become(JobStatus.CANCELLING, now_ms)
        return self.attempts.cancel(now_ms) + self._conclude_if_quiescent(now_ms)

    def _conclude_if_quiescent(self, now_ms: int) -> list[Command]:
        """End the job if every attempt has ended, after accumulators and enumerators have given their last values.

        A job that restarts goes on if all attempts to restart have ended, and the delay is over.
        """
        if self.status.is_terminal or self.checkpoints.are_undecided:  # it decides what is restored and deleted
            return []
        if self.status is JobStatus.RESTARTING:
            return self._restart(now_ms) if self.restarts.is_due(self.executions.values(), now_ms) else []
        if not self.attempts.have_ended:
            return []
        totals, failures = self._accumulators.values()
        for failure in [*failures, *self._enumerators.close()]:
            self._record_failure(failure.operator, 0, failure, now_ms)
        ends = {
            JobStatus.RUNNING: JobStatus.FINISHED,
            JobStatus.FAILING: JobStatus.FAILED,
            JobStatus.CANCELLING: JobStatus.CANCELED,
        }
        self._become(ends[self.status], now_ms)
        commands = self._apply(self.checkpoints.job_ended(self.status, now_ms), now_ms)
        if self._rescale is not None:
            commands.append(AnswerRescale(self._rescale.request_id, failure=f"the job is {self.status.value}"))
        self.result = self._result(totals, now_ms)
        return [*commands, EndJob(self.result)]

    @property
    def next_tick_ms(self) -> int | None:
        """Return when a `Tick` is due that does more than check heartbeats, in epoch milliseconds; None: none is."""
        if self.status is JobStatus.RESTARTING:
            return self.restarts.due_ms
        if self.status is not JobStatus.RUNNING:
            return None
        return self.checkpoints.next_tick_ms

    def _tick(self, now_ms: int) -> list[Command]:
        commands = self._apply(self.checkpoints.expire(now_ms, self.attempts.stalled), now_ms)
        if self.status is JobStatus.CREATED and now_ms - self._slots_asked_ms > self._settings.slot_timeout_ms:
            return self._no_slots("not enough free slots", now_ms)
        for execution in self.attempts.live:
            if execution.state is ExecutionState.CANCELING:
                since = execution.timestamps[ExecutionState.CANCELING.value]
                if now_ms - since > self._settings.cancellation_timeout_ms:
                    commands += self._kill(execution)
            elif now_ms - execution.last_seen_ms > self._settings.heartbeat_timeout_ms:
                silent = now_ms - execution.last_seen_ms
                commands += self._kill(execution)
                commands += self._task_gone(execution, f"no heartbeat for {silent} ms (heartbeat.timeout)", now_ms)
        if self.status in (JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING):
            return commands + self._conclude_if_quiescent(now_ms)
        if self.status is JobStatus.RUNNING:
            commands += self._apply(self.checkpoints.tick(now_ms), now_ms)
            commands += self._apply(self.checkpoints.final_if_due(now_ms), now_ms)
            commands += self._rescale_if_due(now_ms)
            commands += self._apply(self.checkpoints.announcement(now_ms), now_ms)
        return commands

    def _result(self, totals: Mapping[str, Any], now_ms: int) -> JobResult:
        started = self.timestamps.get(JobStatus.RUNNING.value, now_ms)
        return JobResult(
            *(self.graph.id, self.graph.name, self.status),
            now_ms - started,
            totals,
            tuple(vertex_summaries(self.graph.vertices, self.executions.values())),
            self._failure if self.status is JobStatus.FAILED else None,
            self._failed_subtask,
            self._cancelled_by if self.status is JobStatus.CANCELED else "",
            self.checkpoints.left,
        )

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators by name, merged over the subtasks that have finished.

        Raises:
            JobExecutionError: one does not give its value.
        """
        return self._accumulators.asked(self.graph.id)

    def describe(self) -> dict[str, Any]:
        """Return the job's status, timestamps, vertices and exceptions as plain data."""
        known = (self.graph, self.status, self.timestamps, self.attempts, self.exceptions)
        return {**job_summary(*known, self.recovery()), **self.job_metrics()}

    def recovery(self) -> dict[str, Any] | None:
        """Return how long the last restart took; see `last_recovery`."""
        return last_recovery(self.timestamps, self.attempts, self.checkpoints.restored_bytes, self.restarts.ended_ms)

    def job_metrics(self) -> dict[str, Any]:
        """Return the scope and the metrics of the job as of the last event."""
        self.metrics.update(self.status, self.timestamps, self.restarts.count, self._now_ms)
        return {"scope": self.metrics.scope, "metrics": self.metrics.group.snapshot()}

    @property
    def past(self) -> JobHistory:
        """Return the history that the next coordinator of the job starts from."""
        return JobHistory(self.restarts.count, self.attempts.highest, tuple(self.exceptions))

    def _become(self, status: JobStatus, now_ms: int) -> None:
        if not self.status.may_become(status):
            raise IllegalTransition(f"job {self.graph.name!r}", self.status.value, status.value)
        self.status = status
        self.timestamps[status.value] = now_ms
