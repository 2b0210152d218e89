"""Deploys, restarts and ends the attempts of one job: its status goes with them. Pure.

Source: apache/flink DefaultScheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from rayflink.common.errors import assert_never, described
from rayflink.common.metrics.trace_settings import TraceSettings
from rayflink.graph.job_graph import JobGraph

from ..checkpoints.coordinator import Decision
from ..checkpoints.failures import FailJob
from ..messages.commands import (
    AnswerCheckpoint,
    AnswerRescale,
    AnswerSavepoint,
    Command,
    DiscardFiles,
    EndJob,
    JobResult,
    PublishCheckpoint,
    RequestRescale,
    RequestSlots,
    RescaleRequested,
    SendToTask,
)
from ..messages.executions import Execution
from ..messages.messages import CheckpointComplete, TaskFailure
from ..messages.scheduling import required_slots
from ..messages.settings import JobSettings
from ..messages.states import ExecutionState, JobStatus
from .adopted_key_groups import with_key_groups_of
from .attempts import Attempts
from .autoscaling.autoscaler import Autoscaler
from .autoscaling.reactive import ReactiveScaling, is_larger
from .failures.job_restarts import JobRestarts
from .history.rescale_history import RescaleHistory
from .job_accumulators import JobAccumulators
from .job_checkpoints import JobCheckpoints, JobStart
from .job_description import JobReport
from .job_lifecycle import JobLifecycle
from .job_rescale import JobRescale
from .job_sources import JobSources
from .job_traces import JobTraces
from .slot_wait import SlotRequest

_ENDS = {
    JobStatus.RUNNING: JobStatus.FINISHED,
    JobStatus.FAILING: JobStatus.FAILED,
    JobStatus.CANCELLING: JobStatus.CANCELED,
}
"""Status of a job whose attempts have all ended -> its last status."""


class JobScheduler:
    """Takes a job from its request for slots to its end; each method returns the commands that it decides.

    It calls the other parts of the job and is called by `JobMaster`, which sets the time of the event.

    Args:
        graph: the job.
        new_id: gives 32 fresh hex digits a call.
        cached_files: name -> path of the distributed cache.
        chance: for the jitter of restarts.
        start: from which checkpoints the job begins.
    """

    def __init__(
        self,
        graph: JobGraph,
        new_id: Callable[[], str],
        cached_files: Mapping[str, str],
        chance: Random,
        start: JobStart,
    ) -> None:
        self._new_id = new_id
        self.graph = graph = with_key_groups_of(start, graph)
        self.result: JobResult | None = None
        """The result, once the job has ended."""
        rescales = RescaleHistory(JobSettings.of(graph.configuration).rescale_history, start.past.rescales)
        self.life = JobLifecycle(graph.name, start.past.exceptions, rescales, start.began_ms)
        self.slots = SlotRequest(JobSettings.of(graph.configuration).slot_timeout_ms)
        self.attempts = Attempts(graph, new_id, cached_files, start.past.attempt)
        self.sources = JobSources(graph, self.attempts)
        self.checkpoints = JobCheckpoints(graph, start, self.sources.enumerators, self.attempts, new_id)
        self.restarts = JobRestarts(graph, graph.configuration, self.checkpoints.are_periodic, chance)
        self.restarts.count = start.past.restarts
        self.accumulators = JobAccumulators(self.restarts.are_possible)
        self._rescale = JobRescale(self.life.rescales)
        settings = TraceSettings.of(graph.configuration)
        self.traces = JobTraces(self.life, self.attempts, self.checkpoints, self.restarts, settings)
        self.autoscaler = Autoscaler(graph.configuration, new_id, start.past.autoscaling)
        self.autoscaler.resume(graph)
        self.reactive = ReactiveScaling(graph.configuration)
        self.report = JobReport(
            self.life, self.attempts, self.checkpoints, self.restarts, self.accumulators, self.autoscaler
        )

    # decisions of the checkpoints

    def apply(self, decisions: Iterable[Decision]) -> list[Command]:
        """Turn decisions on checkpoints into commands; act on a complete checkpoint, and fail the job if due."""
        commands: list[Command] = []
        completed: int | None = None
        for decision in decisions:
            match decision:
                case FailJob():
                    self.restarts.are_over |= decision.is_final
                    commands += self.fail(None, TaskFailure(decision.kind, decision.reason, ""))
                case SendToTask(message=CheckpointComplete(number)):
                    completed = number
                    self.sources.checkpoint_completed(number)
                    self.restarts.progressed()
                    commands.append(decision)
                case SendToTask() | PublishCheckpoint() | DiscardFiles() | AnswerSavepoint() | AnswerCheckpoint():
                    commands.append(decision)
                case _:
                    assert_never(decision)
        if completed is None or self.checkpoints.is_stopping:
            return commands
        if self._rescale.cancels_tasks(completed, self.life.now_ms):
            self.restarts.restart_whole(self.life.now_ms)
            commands += self._prepare_restart()
        return commands

    # slots and deployment

    def begin(self, now_ms: int) -> list[Command]:
        """Return the first commands of a job, which may have begun under an earlier coordinator."""
        self.life.begin(now_ms)
        self.life.rescales.resume(self.graph, now_ms)
        return self.request_slots("the job starts")

    def request_slots(self, cause: str) -> list[Command]:
        """Request the slots of the job, for a reason in a few words."""
        self.slots.asked_ms = self.life.now_ms
        if self.life.status is not JobStatus.CREATED:
            self.life.enter(JobStatus.CREATED, cause)
        return [RequestSlots(required_slots(self.graph))]

    def give_up_slots(self, resources: str) -> list[Command]:
        """End a job that gets no slots; one that was rescaled goes on as it was."""
        message = self.slots.refusal(len(required_slots(self.graph)), resources, self.life.now_ms)
        if (before := self._rescale.go_back(self.life.now_ms)) is not None:
            request_id, former = before
            self._adopt(former)
            return [AnswerRescale(request_id, failure=message), *self.request_slots("no slots for the rescaled job")]
        return self.abandon("scheduler", TaskFailure("NoResourceAvailable", message, ""))

    def begin_whole(self, cause: str) -> list[Command]:
        """Deploy the whole job into the slots that it has, for a reason in a few words."""
        self.life.enter(JobStatus.RUNNING, cause)
        return self._begin(list(self.attempts), whole=True)

    def _begin(self, attempts: Sequence[Execution], whole: bool) -> list[Command]:
        """Deploy attempts, from the newest checkpoint if there is one; `whole` if they are all of the job."""
        now_ms = self.life.now_ms
        try:
            states, decisions = self.checkpoints.restore(now_ms)
            if whole:
                for failure in self.sources.restore(states):
                    self.life.note(failure.operator, failure)
            else:
                self.sources.take_back(attempts)
        except (Exception, SystemExit) as error:  # it does not fit, or whatever a user's enumerator or hook raises
            message = f"the job cannot start: {described(error)}"
            return self.abandon("coordinator", TaskFailure(type(error).__name__, message, ""))
        self.accumulators.forget({e.place for e in attempts if not self.checkpoints.begins_finished(e)})
        commands = self.apply(decisions)
        commands += self.attempts.deploy_first(attempts, now_ms, self.checkpoints.equipped)
        return commands + self.apply(self.checkpoints.resume(now_ms)) + self.sources.started()

    def deploy_ready(self) -> list[Command]:
        """Deploy what can begin now, and answer a rescale request once all tasks run."""
        deployed: list[Command] = []
        if self.life.status is JobStatus.RUNNING:
            deployed = self.attempts.deploy_ready(self.life.now_ms, self.checkpoints.equipped)
        return deployed + self._rescale.answer_if_running(self.attempts, self.life.now_ms)

    # other parallelisms

    def rescale(self, event: RescaleRequested) -> list[Command]:
        """Begin to change parallelisms, or answer why they do not change."""
        answer = self._rescale.request(event, self.graph, self.life.status, self.checkpoints, self.life.now_ms)
        return self.trigger_for_rescale() if answer is None else [answer]

    def autoscale(self) -> list[Command]:
        """Let the autoscaler look at the job; its request comes back like one of a client, when its slots are there."""
        request = self.autoscaler.tick(
            self.graph, self.attempts, self.life.now_ms, self.sources.enumerators.pending_bytes
        )
        return [] if request is None else [RequestRescale(request)]

    def fit_into_slots(self) -> list[Command]:
        """In reactive mode, let the job grow into slots that have come, and shrink when some are gone."""
        now_ms, running = self.life.now_ms, self.life.status is JobStatus.RUNNING
        fitted = self.reactive.fitting(self.graph, now_ms)
        if fitted is None or self._rescale.is_under_way or self.checkpoints.is_stopping:
            return []
        if not is_larger(self.graph, fitted):
            may_grow = running and self.reactive.may_grow(self.life.timestamps[JobStatus.RUNNING.value], now_ms)
            return self._rescale_to(fitted) if may_grow else []
        if not running:
            self._adopt(fitted)
            return self.request_slots("there are fewer slots")
        self._rescale.replace_at_once(fitted, now_ms)
        self.restarts.restart_whole(now_ms)
        commands = self._prepare_restart()
        for execution in self.attempts.live:  # a process that waits for a lost slot never obeys
            if ExecutionState.RUNNING.value not in execution.timestamps:
                commands += self.attempts.kill(execution)
        return commands

    def _rescale_to(self, graph: JobGraph) -> list[Command]:
        wanted: dict[str, int] = {vertex.id: vertex.parallelism for vertex in graph.vertices}
        self.reactive.request_id = self._new_id()
        return [RequestRescale(RescaleRequested(self.reactive.request_id, wanted))]

    def rescale_answered(self, answer: AnswerRescale) -> None:
        """Note the answer to a request for other parallelisms, which may be the job's own."""
        self.autoscaler.answered(answer)
        self.reactive.answered(answer.request_id)

    def trigger_for_rescale(self) -> list[Command]:
        """Trigger the checkpoint from which the rescaled job will start; again, where a failure has prevented it."""
        if not self._rescale.awaits_checkpoint or self.checkpoints.are_pending:
            return []
        return self.apply(self.checkpoints.trigger_now(self.life.now_ms))

    def _take_over(self, rescaled: JobGraph) -> list[Command]:
        """Start the rescaled job after the old tasks have ended; request slots if it needs others."""
        before = required_slots(self.graph)
        self.traces.rescaled(self.graph, rescaled)
        self._adopt(rescaled)
        if required_slots(rescaled) == before:
            return self.begin_whole("rescaled")
        return self.request_slots("rescaled")

    def _adopt(self, graph: JobGraph) -> None:
        """Make another graph of the same job the present one."""
        self.graph = graph
        self.attempts.adopt(graph)
        self.checkpoints.adopt(graph)
        self.restarts.adopt(graph)

    # failures, restarts and the end

    def fail(self, failed: Execution | None, failure: TaskFailure, whole: bool = False) -> list[Command]:
        """Restart the region of a failed attempt, or the whole job, or end the job.

        Args:
            failed: the attempt; None: the coordinator.
            whole: everything restarts.
        """
        task, subtask = ("coordinator", 0) if failed is None else (failed.name, failed.subtask)
        if self.life.status in (JobStatus.RUNNING, JobStatus.RESTARTING):
            if failed is not None and failed.state is ExecutionState.CANCELED:  # it ends because of another failure
                self.life.note(task, failure, failed)
                return self.conclude_if_quiescent()
            whole = whole or self.checkpoints.is_stopping  # others may have ended in mid-data
            if self.restarts.failed(None if whole else failed, failure, self.life.now_ms):
                self.life.note(task, failure, failed)
                self.traces.failed(task, failure, can_restart=True, is_global=self.restarts.is_whole)
                return self._prepare_restart()
            if self.restarts.refusal:
                failure = replace(failure, message=f"{failure.message} ({self.restarts.refusal})")
        return self.abandon(task, failure, subtask, failed)

    def abandon(
        self, task: str, failure: TaskFailure, subtask: int = 0, failed: Execution | None = None
    ) -> list[Command]:
        """End the job by a failure, without a restart; the subtask is that of the failed task."""
        if self.life.may_fail:  # what fails after that is a consequence
            self.traces.failed(task, failure, can_restart=False, is_global=True)
        self.life.fail(task, subtask, failure, failed)
        cancels = self.attempts.cancel(self.life.now_ms) if self.life.status is JobStatus.FAILING else []
        return cancels + self.conclude_if_quiescent()

    def _prepare_restart(self) -> list[Command]:
        """Cancel the attempts that have to restart; the others run on."""
        now_ms = self.life.now_ms
        if self.life.status is JobStatus.RUNNING:
            self.life.enter(JobStatus.RESTARTING, "a task failed, or the job is rescaled")
        commands = self.apply(self.checkpoints.suspend(now_ms, "a task failed"))
        return commands + self.attempts.cancel(now_ms, set(self.restarts.places)) + self.conclude_if_quiescent()

    def _restart(self) -> list[Command]:
        """Deploy new attempts in the place of those that have ended."""
        places, whole = self.restarts.places, self.restarts.is_whole
        self.restarts.begun()
        if whole and (rescaled := self._rescale.take_over(self.graph)) is not None:
            return self._take_over(rescaled)
        fresh = self.attempts.renew(places)
        self.life.enter(JobStatus.RUNNING, "restarted")
        return self._begin(fresh, whole)

    def cancel(self, by: str) -> list[Command]:
        """End the job on request of a client."""
        if self.life.status is JobStatus.FAILING:  # every task has been asked already
            self.life.cancel(by)
            return []
        if not self.life.may_fail:
            return []
        self.life.cancel(by)
        return self.attempts.cancel(self.life.now_ms) + self.conclude_if_quiescent()

    def conclude_if_quiescent(self) -> list[Command]:
        """End the job if every attempt has ended, after accumulators and enumerators have given their last values.

        A job that restarts goes on if all attempts to restart have ended, and the delay is over.
        """
        now_ms = self.life.now_ms
        if self.life.status.is_terminal or self.checkpoints.are_undecided:  # it decides what is restored and deleted
            return []
        if self.life.status is JobStatus.RESTARTING:
            return self._restart() if self.restarts.is_due(self.attempts, now_ms) else []
        if not self.attempts.have_ended:
            return []
        totals, failures = self.accumulators.values()
        for failure in [*failures, *self.sources.close()]:
            self.life.fail(failure.operator, 0, failure)
        self.life.enter(_ENDS[self.life.status], "all attempts have ended")
        commands = self.apply(self.checkpoints.job_ended(self.life.status, now_ms)) + self._rescale.job_ended(
            self.life.status, now_ms
        )
        self.result = self.report.result(totals)
        return [*commands, EndJob(self.result)]


__all__ = ["JobScheduler"]
