"""Decides the checkpoints of one job: events and the time go in, commands come out. No clock, no Ray, no files.

Intervals while a source works off a backlog (`execution.checkpointing.interval-during-backlog`) are not heeded.

Source: apache/flink CheckpointCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rayflink.common.errors import described
from rayflink.common.text_output.logs import get_logger
from rayflink.state.snapshots import size_of

from ..exchange.frames import TaskAddress
from ..messages.checkpoint_settings import CheckpointSettings
from ..messages.commands import (
    AnswerCheckpoint,
    AnswerSavepoint,
    CheckpointRequested,
    CheckpointsLeft,
    SavepointRequested,
    SendToTask,
)
from ..messages.messages import CheckpointAcknowledged, CheckpointDeclined, TriggerCheckpoint
from ..messages.states import JobStatus
from .completed import CompletedCheckpoint, CompletedCheckpoints
from .failures import AbortCause
from .history import CheckpointHistory, CheckpointRecord, RestoredRecord
from .master_hooks import MasterHooks
from .pending import CheckpointPhase, PendingCheckpoint
from .pending_checkpoints import Decision, PendingCheckpoints
from .plan import PERIODIC, CheckpointedJob, CheckpointPlan, CheckpointProperties
from .timing import CheckpointTiming

log = get_logger(__name__)
_NOT_STOPPED = "the job did not stop with it: a task failed, and the job starts again"


class CheckpointCoordinator:
    """Decides when a checkpoint is triggered, complete or aborted, and which completed ones are retained.

    It begins suspended: `resume` is called when the tasks run, and `suspend` when they are started anew.

    Args:
        plan: who takes part in a checkpoint now, or why there can be none.
        enumerators: number of a checkpoint -> state of the enumerators by operator id; it may raise what it likes.
        new_id: gives 32 fresh hex digits a call.
        hooks: of the program.
    """

    def __init__(
        self,
        job: CheckpointedJob,
        settings: CheckpointSettings,
        plan: Callable[[], CheckpointPlan | str],
        enumerators: Callable[[int], Mapping[str, bytes]],
        new_id: Callable[[], str],
        hooks: MasterHooks,
    ) -> None:
        self.settings, self._job = settings, job
        self._plan, self._enumerators, self._new_id, self._hooks = plan, enumerators, new_id, hooks
        self.base = settings.base(job.job_id)
        """Address to which the paths of its checkpoints' files are relative; "" where they are in memory."""
        self.history = CheckpointHistory(settings.history)
        self.left = CheckpointsLeft()
        """The checkpoints that are left once the job has ended."""
        self._timing = CheckpointTiming(settings)
        self._completed = CompletedCheckpoints(self.base, settings.retained)
        self._under_way = PendingCheckpoints(job, self.base, settings, self._completed, self._timing, self.history)
        self._next_id = 1

    # facts

    @property
    def latest(self) -> CompletedCheckpoint | None:
        """Return the checkpoint from which the job would restart now; savepoints count only if they stop the job."""
        return self._completed.latest

    @property
    def completed(self) -> tuple[CompletedCheckpoint, ...]:
        """Return all retained checkpoints, from the oldest to the newest."""
        return self._completed.retained

    @property
    def pending(self) -> tuple[int, ...]:
        """Return the ids of the checkpoints under way."""
        return tuple(self._under_way.by_id)

    @property
    def undecided(self) -> tuple[int, ...]:
        """Return the ids of checkpoints being published: until they are resolved nothing is restored or deleted."""
        return self._under_way.publishing

    @property
    def is_stopping(self) -> bool:
        """Return whether a savepoint that stops the job is under way or complete: some tasks may have ended for it."""
        return self._timing.stopping is not None

    @property
    def next_id(self) -> int:
        """Return the id of the next checkpoint."""
        return self._next_id

    @property
    def due_ms(self) -> int | None:
        """Return when the next periodic checkpoint is due, in epoch milliseconds; None: none is."""
        return self._timing.due_ms if self._timing.is_open else None

    @property
    def next_tick_ms(self) -> int | None:
        """Return when `tick` is due, in epoch milliseconds; None while there is nothing to wait for."""
        due = self._timing.due_ms
        return min([*self._under_way.timeouts_ms, *([] if due is None else [due])], default=None)

    # the job

    def restored(self, completed: Sequence[CompletedCheckpoint], next_id: int = 1) -> None:
        """Start with what an earlier coordinator left, or with the one checkpoint of another job: before `restore`.

        Args:
            next_id: no smaller number is used, because an earlier coordinator may have begun such checkpoints.
        """
        self._completed.start(completed)
        self._next_id = max(next_id, *(known.checkpoint_id + 1 for known in completed), self._next_id)

    def restore(self, now_ms: int) -> tuple[CompletedCheckpoint | None, list[Decision]]:
        """Start the job from `latest`, and abort what is under way.

        Raises:
            HookError: a hook of the program fails, or is missing; then the job must fail.
        """
        commands: list[Decision] = []
        for pending in list(self._under_way.by_id.values()):
            commands += self._under_way.abort(pending, AbortCause.SUSPENDED, "the job starts again without it", now_ms)
        latest = self.latest
        if latest is None:
            self._hooks.reset()
        else:
            manifest = latest.manifest
            self._hooks.restore(manifest.checkpoint_id, manifest.properties, self.settings.ignore_unclaimed)
            is_savepoint, size = manifest.kind == "savepoint", sum(map(size_of, manifest.blobs))
            record = RestoredRecord(manifest.checkpoint_id, now_ms, is_savepoint, latest.path, size)
            self.history.restored(record)
        return latest, commands

    def unreadable(self, checkpoint_id: int) -> bool:
        """Drop a checkpoint that a task could not read, and return whether there is another one to start from."""
        if any(completed.checkpoint_id == checkpoint_id for completed in self._completed.retained):
            self._completed.drop(checkpoint_id)
            older = self.latest
            log.error(
                "checkpoint %d cannot be read: %s",
                checkpoint_id,
                "there is no older one"
                if older is None
                else f"the job goes back to checkpoint {older.checkpoint_id}; "
                "what sinks committed since then is written again",
            )
        return self.latest is not None

    def resume(self, now_ms: int) -> list[Decision]:
        """Start taking checkpoints, now that all tasks run."""
        self._timing.resume(now_ms)
        return []

    def suspend(self, now_ms: int, reason: str = "") -> list[Decision]:
        """Suspend triggering while tasks are restarted, and abort all checkpoints that are not being published."""
        self._timing.suspend()
        commands = self._under_way.abort_all(AbortCause.SUSPENDED, reason, now_ms)
        if any(pending.properties is self._timing.stopping for pending in self._under_way.by_id.values()):
            return commands  # it is answered when it is decided
        return commands + self._answer_stop(_NOT_STOPPED)

    def job_ended(self, status: JobStatus, now_ms: int) -> list[Decision]:
        """Answer open requests at the end of the job, and delete the checkpoints that are not retained.

        What is `undecided` should be awaited before: a shell that publishes it later would leave it behind.
        """
        self._timing.suspend()
        commands: list[Decision] = []
        for pending in list(self._under_way.by_id.values()):
            commands += self._under_way.abort(pending, AbortCause.JOB_ENDED, f"it is {status.value}", now_ms)
        failure = "" if status is JobStatus.FINISHED else f"the job did not finish, it is {status.value}"
        commands += self._answer_stop(failure)
        self._hooks.close()
        discards, self.left = self._under_way.cleanup.job_ended(status, self.settings.retention)
        return [*commands, *discards]

    def _answer_stop(self, failure: str) -> list[Decision]:
        """Answer the request that stops the job, at its end; `failure` is "" if it ended as it should."""
        stopping, self._timing.stopping = self._timing.stopping, None
        if stopping is None:
            return []
        if failure:
            failure = f"a savepoint has been created at {stopping.location}, but {failure}"
        return [AnswerSavepoint(stopping.request_id, stopping.location, failure)]

    # triggers

    def tick(self, now_ms: int) -> list[Decision]:
        """Abort what takes too long, and trigger what is due."""
        return self.expire(now_ms) + self._begin_due(now_ms)

    def expire(self, now_ms: int, stalled: Callable[[TaskAddress], str] = lambda task: "") -> list[Decision]:
        """Give up what takes too long, also while the job does not run: of tasks that are silent, or of the storage.

        Args:
            stalled: which function of a task has not returned for long, for people; "" for none.
        """
        return self._under_way.expire(now_ms, stalled)

    def trigger_now(self, now_ms: int) -> list[Decision]:
        """Trigger a checkpoint as soon as possible after this call, whatever the interval and the pause."""
        if not self._timing.is_open:
            return []
        self._timing.want(self._next_id)
        return self._begin_due(now_ms)

    def _begin_due(self, now_ms: int) -> list[Decision]:
        return self.trigger(PERIODIC, now_ms) if self._timing.is_due(self._under_way.by_id, now_ms) else []

    def savepoint(self, request: SavepointRequested, now_ms: int) -> list[Decision]:
        """Trigger a savepoint at once, beside whatever is under way, or refuse it."""
        directory = (request.directory or self.settings.savepoint_directory).rstrip("/")
        problem = self._no_savepoint(directory)
        if problem:
            return [AnswerSavepoint(request.request_id, "", problem)]
        location = f"{directory}/savepoint-{self._job.job_id[:6]}-{self._new_id()[:12]}"
        properties = CheckpointProperties(True, location, request.stop, request.request_id)
        if request.stop is None:
            return self.trigger(properties, now_ms)
        commands = self._under_way.abort_all(AbortCause.STOPPING, "", now_ms)
        self._timing.stop_with(properties)
        return commands + self.trigger(properties, now_ms)

    def checkpoint(self, request: CheckpointRequested, now_ms: int) -> list[Decision]:
        """Trigger a checkpoint at once, beside whatever is under way, or refuse it."""
        if not self._timing.is_open:
            problem = "the job does not run at the moment, or is being stopped: ask again when it does"
            return [AnswerCheckpoint(request.request_id, failure=problem)]
        return self.trigger(CheckpointProperties(request_id=request.request_id), now_ms)

    def _no_savepoint(self, directory: str) -> str:
        if not directory:
            return (
                "no savepoint directory: none was given and execution.checkpointing.savepoint-dir is not set; give one "
                "with the request, or set that option"
            )
        if self._timing.is_suspended:
            return "the job does not run at the moment: ask again when it does"
        if self._timing.stopping is not None:
            return f"the job is being stopped with the savepoint {self._timing.stopping.location} already"
        return ""

    def trigger(self, properties: CheckpointProperties, now_ms: int) -> list[Decision]:
        """Trigger a checkpoint now, whatever is under way; if it cannot begin, `history.not_triggered` says why."""
        plan = self._plan()
        if isinstance(plan, str):
            self.history.not_triggered = plan
            log.info("no checkpoint was triggered: %s", plan, extra={"reason": plan, "kind": properties.kind})
            what = "savepoint" if properties.is_savepoint else "checkpoint"
            return self._under_way.refuse(properties, f"no {what} was triggered: {plan}", now_ms)
        self.history.not_triggered = ""
        number, self._next_id = self._next_id, self._next_id + 1
        pending = PendingCheckpoint(number, now_ms, properties, plan, properties.location or self.base)
        may_overtake = self.settings.unaligned and not self._under_way.by_id  # not the barrier of a savepoint
        barrier = pending.barrier(self.settings.aligned_timeout_ms if may_overtake else None)
        record = CheckpointRecord(number, now_ms, properties.kind, not barrier.aligned, plan.subtasks)
        self.history.triggered(record)
        try:
            pending.enumerators = self._enumerators(number)
            pending.hook_data = self._hooks.trigger(number, now_ms)
        except (Exception, SystemExit) as error:  # whatever a user's enumerator or hook raises
            return self._under_way.fail(pending, AbortCause.NOT_TRIGGERED, described(error), now_ms)
        self._under_way.by_id[number] = pending
        commands: list[Decision] = [SendToTask(attempt, TriggerCheckpoint(barrier)) for attempt in plan.trigger]
        return commands + self._publish_if_whole(number, now_ms)

    # answers of tasks and of the storage

    def acknowledge(self, part: CheckpointAcknowledged, now_ms: int) -> list[Decision]:
        """Count the acknowledgement of an attempt, whose part is written; publish the checkpoint after the last one."""
        commands = self._under_way.acknowledge(part, now_ms)
        return commands + self._publish_if_whole(part.checkpoint_id, now_ms)

    def decline(self, answer: CheckpointDeclined, now_ms: int) -> list[Decision]:
        """Abort a checkpoint in which an attempt takes no part."""
        return self._under_way.decline(answer, now_ms)

    def task_ended(self, attempt: TaskAddress, now_ms: int) -> list[Decision]:
        """Abort the checkpoints that wait for an attempt that has ended."""
        return self._under_way.task_ended(attempt, now_ms)

    def published(self, checkpoint_id: int, now_ms: int) -> list[Decision]:
        """Complete a checkpoint whose metadata is committed: from here on tasks are notified of it."""
        pending = self._under_way.by_id.get(checkpoint_id)
        if pending is None or pending.phase is not CheckpointPhase.PUBLISHING:
            return [*self._under_way.cleanup.publication_resolved(checkpoint_id)]
        return self._complete(pending, now_ms)

    def not_published(
        self, checkpoint_id: int, reason: str, now_ms: int, exists: bool = False, in_doubt: bool = False
    ) -> list[Decision]:
        """Abort a checkpoint whose metadata could not be written.

        Args:
            exists: another coordinator has written it, and leads the job: its checkpoint is not touched, and this job
                ends here.
            in_doubt: the answer was lost: the checkpoint has failed, but none of its files is deleted.
        """
        return self._under_way.not_published(checkpoint_id, reason, now_ms, exists, in_doubt)

    def _publish_if_whole(self, checkpoint_id: int, now_ms: int) -> list[Decision]:
        """Publish a checkpoint that all its tasks have acknowledged; one without files is complete at once."""
        pending = self._under_way.by_id.get(checkpoint_id)
        if pending is None or pending.waits_for or pending.phase is not CheckpointPhase.ACKNOWLEDGING:
            return []
        commands = self._under_way.publish(pending, now_ms)
        return commands if pending.base else self._complete(pending, now_ms)

    def _complete(self, pending: PendingCheckpoint, now_ms: int) -> list[Decision]:
        commands = self._under_way.complete(pending, now_ms)
        if self._timing.is_suspended and pending.properties is self._timing.stopping:
            commands += self._answer_stop(_NOT_STOPPED)
        return [*commands, *self._under_way.cleanup.sweep(), *self._begin_due(now_ms)]


__all__ = ["CheckpointCoordinator", "Decision"]
