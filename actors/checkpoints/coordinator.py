"""Decides the checkpoints of one job: events and the time go in, commands come out. No clock, no Ray, no files.

Intervals while a source works off a backlog (`execution.checkpointing.interval-during-backlog`) are not heeded.

Source: apache/flink CheckpointCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from rayflink.common.errors import described
from rayflink.common.options.registry import ExternalizedCheckpointRetention
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.logs import get_logger
from rayflink.state.snapshots import StoredSnapshot, size_of
from rayflink.state.storage.manifest import is_shared

from ..exchange.frames import TaskAddress
from ..messages.checkpoint_settings import CheckpointSettings
from ..messages.commands import (
    AnswerSavepoint,
    CheckpointCommand,
    CheckpointsLeft,
    DiscardFiles,
    PublishCheckpoint,
    SavepointRequested,
    SendToTask,
)
from ..messages.messages import (
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointComplete,
    CheckpointDeclined,
    TriggerCheckpoint,
)
from ..messages.states import JobStatus
from .completed import CompletedCheckpoint, CompletedCheckpoints
from .failures import AbortCause, FailJob, FailureCounter
from .history import CheckpointHistory, CheckpointRecord, RestoredRecord
from .master_hooks import MasterHooks
from .pending import Acknowledged, CheckpointPhase, PendingCheckpoint, files_of
from .plan import PERIODIC, CheckpointedJob, CheckpointPlan, CheckpointProperties
from .timing import CheckpointTiming

log = get_logger(__name__)
Decision: TypeAlias = CheckpointCommand | FailJob
"""The answer to an event: a command that the shell carries out, or the failure of the job."""
_NOT_STOPPED = "the job did not stop with it: a task failed, and the job starts again"
_REMEMBERED = 100
"""Checkpoints that are decided whose end is remembered, for what comes late."""
_Retention = ExternalizedCheckpointRetention
_DELETED_AT = {
    _Retention.NO_EXTERNALIZED_CHECKPOINTS: {JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED},
    _Retention.DELETE_ON_CANCELLATION: {JobStatus.FINISHED, JobStatus.CANCELED},
    _Retention.RETAIN_ON_CANCELLATION: {JobStatus.FINISHED},
}
"""Ends of a job that delete its checkpoints (Flink's CheckpointRetentionPolicy)."""

MOST_NAMED = 3
"""Functions that hold up a checkpoint, of which it is said."""
_AFTER_DRAIN = {AbortCause.EXPIRED, AbortCause.NOT_PUBLISHED, AbortCause.NOT_READY, AbortCause.TASK_ENDED}
"""Causes of an abort at which tasks were already at the end of event time: timers that fired there cannot be undone."""


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
        self.refused = ""
        """Reason why the last checkpoint that was due could not be triggered; "" when it could."""
        self.left = CheckpointsLeft()
        """The checkpoints that are left once the job has ended."""
        self._timing = CheckpointTiming(settings)
        self._failures = FailureCounter(settings.tolerable_failures)
        self._completed = CompletedCheckpoints(self.base, settings.retained)
        self._pending: dict[int, PendingCheckpoint] = {}
        self._unresolved_publications: dict[int, PendingCheckpoint] = {}
        self._concluded: dict[int, tuple[str, frozenset[TaskAddress]]] = {}
        self._next_id = 1
        self._suspended = True
        self._stopping: CheckpointProperties | None = None

    # what there is

    @property
    def latest(self) -> CompletedCheckpoint | None:
        """Return the checkpoint from which the job would restart now; savepoints count only if they stop the job."""
        return self._completed.latest

    @property
    def completed(self) -> tuple[CompletedCheckpoint, ...]:
        """Return all retained checkpoints, from the oldest to the newest."""
        return self._completed.kept

    @property
    def pending(self) -> tuple[int, ...]:
        """Return the ids of the checkpoints under way."""
        return tuple(self._pending)

    @property
    def undecided(self) -> tuple[int, ...]:
        """Return the ids of checkpoints being published: until they are resolved nothing is restored or deleted."""
        return tuple(number for number, pending in self._pending.items() if pending.phase is CheckpointPhase.PUBLISHING)

    @property
    def is_stopping(self) -> bool:
        """Return whether a savepoint that stops the job is under way or complete: some tasks may have ended for it."""
        return self._stopping is not None

    @property
    def next_id(self) -> int:
        """Return the id of the next checkpoint."""
        return self._next_id

    @property
    def due_ms(self) -> int | None:
        """Return when the next periodic checkpoint is due, in epoch milliseconds; None: none is."""
        return None if self._suspended or self._stopping is not None else self._timing.due_ms

    @property
    def next_tick_ms(self) -> int | None:
        """Return when `tick` is due, in epoch milliseconds; None while there is nothing to wait for."""
        ends = [pending.since_ms + self.settings.timeout_ms for pending in self._pending.values()]
        due = self._timing.due_ms
        return min([*ends, *([] if due is None else [due])], default=None)

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
        for pending in list(self._pending.values()):
            commands += self._abort(pending, AbortCause.SUSPENDED, "the job starts again without it", now_ms)
        found = self.latest
        if found is None:
            self._hooks.reset()
        else:
            manifest = found.manifest
            self._hooks.restore(manifest.checkpoint_id, manifest.properties, self.settings.ignore_unclaimed)
            is_savepoint, size = manifest.kind == "savepoint", sum(map(size_of, manifest.blobs))
            record = RestoredRecord(manifest.checkpoint_id, now_ms, is_savepoint, found.path, size)
            self.history.restored(record)
        return found, commands

    def unreadable(self, checkpoint_id: int) -> bool:
        """Drop a checkpoint that a task could not read, and return whether there is another one to start from."""
        if any(kept.checkpoint_id == checkpoint_id for kept in self._completed.kept):
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
        self._suspended = False
        self._timing.start(now_ms)
        return []

    def suspend(self, now_ms: int, reason: str = "") -> list[Decision]:
        """Suspend triggering while tasks are restarted, and abort all checkpoints that are not being published."""
        self._suspended = True
        self._timing.stop()
        commands = self._abort_all(AbortCause.SUSPENDED, reason, now_ms)
        if any(pending.properties is self._stopping for pending in self._pending.values()):
            return commands  # it is answered when it is decided
        return commands + self._answer_stop(_NOT_STOPPED)

    def job_ended(self, status: JobStatus, now_ms: int) -> list[Decision]:
        """Answer open requests at the end of the job, and delete the checkpoints that are not retained.

        What is `undecided` should be awaited before: a shell that publishes it later would leave it behind.
        """
        self._suspended = True
        self._timing.stop()
        commands: list[Decision] = []
        for pending in list(self._pending.values()):
            commands += self._abort(pending, AbortCause.JOB_ENDED, f"it is {status.value}", now_ms)
        failure = "" if status is JobStatus.FINISHED else f"the job did not finish, it is {status.value}"
        commands += self._answer_stop(failure)
        self._hooks.close()
        stay, own = self._completed.by_owner()
        deleted = own
        if status in _DELETED_AT[self.settings.retention]:
            self._completed.clear()
            for gone in own:
                self.history.discarded(gone.checkpoint_id)
            if self.base:
                commands.append(DiscardFiles(self.base, (), ""))
        elif self.base:  # else they are in memory, and end with it
            stay, deleted = self._completed.kept, ()
        newest = next((one.path for one in reversed(stay) if one.path), "")
        self.left = CheckpointsLeft(newest, len(deleted), self.base)
        return commands

    def _answer_stop(self, failure: str) -> list[Decision]:
        """Answer the request that stops the job, at its end; `failure` is "" if it ended as it should."""
        if self._stopping is None:
            return []
        asked, self._stopping = self._stopping, None
        if failure:
            failure = f"a savepoint has been created at {asked.location}, but {failure}"
        return [AnswerSavepoint(asked.request_id, asked.location, failure)]

    # triggers

    def tick(self, now_ms: int) -> list[Decision]:
        """Abort what takes too long, and trigger what is due."""
        return self.expire(now_ms) + self._begin_due(now_ms)

    def expire(self, now_ms: int, stalled: Callable[[TaskAddress], str] = lambda task: "") -> list[Decision]:
        """Give up what takes too long, also while the job does not run: of tasks that are silent, or of the storage.

        Args:
            stalled: which function of a task has not returned for long, for people; "" for none.
        """
        commands: list[Decision] = []
        within = f"within {self.settings.timeout_ms} ms"
        for pending in list(self._pending.values()):
            if now_ms - pending.since_ms < self.settings.timeout_ms:
                continue
            if pending.phase is CheckpointPhase.PUBLISHING:
                silence = f"the storage did not answer {within} when its metadata was written"
                commands += self.not_published(pending.checkpoint_id, silence, now_ms, in_doubt=True)
            else:
                silent, all_of_them = len(pending.waits_for), len(pending.plan.acknowledge)
                detail = f"{silent} of {all_of_them} tasks did not acknowledge {within}"
                held_up = [text for text in map(stalled, sorted(pending.waits_for)) if text]
                detail = "; ".join([detail, *held_up[:MOST_NAMED]])
                commands += self._abort(pending, AbortCause.EXPIRED, detail, now_ms)
        return commands

    def trigger_now(self, now_ms: int) -> list[Decision]:
        """Trigger a checkpoint as soon as possible after this call, whatever the interval and the pause."""
        if self._suspended or self._stopping is not None:
            return []
        self._timing.want(self._next_id)
        return self._begin_due(now_ms)

    def _begin_due(self, now_ms: int) -> list[Decision]:
        if self._suspended or self._stopping is not None or not self._timing.is_due(self._pending, now_ms):
            return []
        return self.trigger(PERIODIC, now_ms)

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
        commands = self._abort_all(AbortCause.STOPPING, "", now_ms)
        self._timing.stop()
        self._stopping = properties
        return commands + self.trigger(properties, now_ms)

    def _no_savepoint(self, directory: str) -> str:
        if not directory:
            return (
                "no savepoint directory: none was given and execution.checkpointing.savepoint-dir is not set; give one "
                "with the request, or set that option"
            )
        if self._suspended:
            return "the job does not run at the moment: ask again when it does"
        if self._stopping is not None:
            return f"the job is being stopped with the savepoint {self._stopping.location} already"
        return ""

    def trigger(self, properties: CheckpointProperties, now_ms: int) -> list[Decision]:
        """Trigger a checkpoint now, whatever is under way; if it cannot begin, `refused` says why."""
        plan = self._plan()
        if isinstance(plan, str):
            self.refused = plan
            log.info("no checkpoint was triggered: %s", plan, extra={"reason": plan, "kind": properties.kind})
            return self._answer_refusal(properties, f"no savepoint was triggered: {plan}", now_ms)
        self.refused = ""
        number, self._next_id = self._next_id, self._next_id + 1
        pending = PendingCheckpoint(number, now_ms, properties, plan, properties.location or self.base)
        may_overtake = self.settings.unaligned and not self._pending  # not the barrier of a savepoint
        barrier = pending.barrier(self.settings.aligned_timeout_ms if may_overtake else None)
        record = CheckpointRecord(number, now_ms, properties.kind, not barrier.aligned, plan.widths)
        self.history.triggered(record)
        try:
            pending.enumerators = self._enumerators(number)
            pending.hook_data = self._hooks.trigger(number, now_ms)
        except (Exception, SystemExit) as error:  # whatever a user's enumerator or hook raises
            return self._failed(pending, AbortCause.NOT_TRIGGERED, described(error), now_ms)
        self._pending[number] = pending
        commands: list[Decision] = [SendToTask(attempt, TriggerCheckpoint(barrier)) for attempt in plan.trigger]
        return commands if pending.waits_for else commands + self._publish(pending, now_ms)

    # what tasks and the shell say

    def acknowledge(self, part: CheckpointAcknowledged, now_ms: int) -> list[Decision]:
        """Count the acknowledgement of an attempt, whose part is written; publish the checkpoint after the last one."""
        number = part.checkpoint_id
        pending = self._pending.get(number)
        if pending is None:
            return self._late(part.attempt, number, part.snapshots)
        result = pending.acknowledge(part.attempt, part.snapshots, part.data_is_over)
        if result is Acknowledged.UNKNOWN:
            return self._discard_given(pending.base, part.snapshots)
        if result is Acknowledged.DUPLICATE:
            return []
        if pending.base == self.base and self._completed.is_outdated(files_of(part.snapshots.values())):
            vertex, subtask = pending.plan.acknowledge[part.attempt]
            return self._abort(pending, AbortCause.OUTDATED, f"subtask {subtask} of vertex {vertex}", now_ms)
        self.history.under_way(number).acknowledged(*pending.plan.acknowledge[part.attempt], part.metrics, now_ms)
        return [] if pending.waits_for else self._publish(pending, now_ms)

    def _late(
        self, attempt: TaskAddress, checkpoint_id: int, snapshots: Mapping[str, StoredSnapshot]
    ) -> list[Decision]:
        """Discard a part that comes after the end of its checkpoint, unless it repeats one of a complete one."""
        base, belonging = self._concluded.get(checkpoint_id, (self.base, frozenset()))
        return [] if attempt in belonging else self._discard_given(base, snapshots)

    def _discard_given(self, base: str, snapshots: Mapping[str, StoredSnapshot]) -> list[Decision]:
        """Delete what an attempt has written in vain, except shared files that others may refer to."""
        paths = files_of(snapshots.values())
        if not base or not paths:
            return []
        if base != self.base:
            return [DiscardFiles(base, tuple(sorted(paths)))]
        own = self._completed.unneeded(path for path in paths if not is_shared(path))
        self._completed.dereference(filter(is_shared, paths), self._pending)
        return [*([DiscardFiles(base, own)] if own else []), *self._sweep()]

    def decline(self, answer: CheckpointDeclined, now_ms: int) -> list[Decision]:
        """Abort a checkpoint in which an attempt takes no part."""
        pending = self._pending.get(answer.checkpoint_id)
        if pending is None or pending.phase is CheckpointPhase.PUBLISHING:
            return []
        if answer.attempt not in pending.plan.acknowledge:
            return []
        vertex, subtask = pending.plan.acknowledge[answer.attempt]
        cause = AbortCause.DECLINED if answer.is_failure else AbortCause.NOT_READY
        if answer.is_unwritten and pending.properties.is_savepoint and pending.properties.stop is None:
            cause = AbortCause.NOT_WRITTEN
        return self._abort(pending, cause, f"{answer.reason} (vertex {vertex}, subtask {subtask})", now_ms)

    def task_ended(self, attempt: TaskAddress, now_ms: int) -> list[Decision]:
        """Abort the checkpoints that wait for an attempt that has ended."""
        commands: list[Decision] = []
        for pending in list(self._pending.values()):
            if attempt in pending.waits_for:
                vertex, subtask = pending.plan.acknowledge[attempt]
                detail = f"subtask {subtask} of vertex {vertex}"
                commands += self._abort(pending, AbortCause.TASK_ENDED, detail, now_ms)
        return commands

    def published(self, checkpoint_id: int, now_ms: int) -> list[Decision]:
        """Complete a checkpoint whose metadata is committed: from here on tasks are notified of it."""
        pending = self._pending.get(checkpoint_id)
        if pending is None or pending.phase is not CheckpointPhase.PUBLISHING:
            return self._discard_unresolved(checkpoint_id)
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
        pending = self._pending.get(checkpoint_id)
        if pending is None or pending.phase is not CheckpointPhase.PUBLISHING:
            return [] if in_doubt else self._discard_unresolved(checkpoint_id, exists)
        pending.in_doubt = in_doubt
        if exists:
            commands = self._abort(pending, AbortCause.FENCED, reason, now_ms)
            commands += self._discard_unresolved(checkpoint_id, True)
            return [*commands, FailJob(AbortCause.FENCED.describe(reason), is_final=True)]
        pending.published_from = None
        return self._abort(pending, AbortCause.NOT_PUBLISHED, reason, now_ms)

    def _discard_unresolved(self, checkpoint_id: int, is_anothers: bool = False) -> list[Decision]:
        """Delete what was aborted while it was published; in the folder of another leader only our own files."""
        pending = self._unresolved_publications.pop(checkpoint_id, None)
        if pending is None:
            return []
        if not is_anothers:
            return [DiscardFiles(pending.base, (), pending.folder)]
        own = sorted(path for path in files_of(pending.snapshots) if not is_shared(path))
        return [DiscardFiles(pending.base, tuple(own))] if own else []

    # the end of a checkpoint

    def _publish(self, pending: PendingCheckpoint, now_ms: int) -> list[Decision]:
        pending.published = manifest = pending.manifest(self._job, now_ms)
        if not pending.base:
            return self._complete(pending, now_ms)
        pending.published_from = now_ms
        counts = not pending.properties.is_savepoint or pending.properties.stop is not None
        path = pending.metadata_path
        return [PublishCheckpoint(pending.checkpoint_id, pending.base, path, manifest, counts)]

    def _complete(self, pending: PendingCheckpoint, now_ms: int) -> list[Decision]:
        number, what = pending.checkpoint_id, pending.properties
        commits = not what.is_savepoint or what.stop is not None
        assert pending.published is not None
        completed = CompletedCheckpoint(pending.base, pending.published, not what.is_savepoint)
        self._conclude(pending, was_completed=True)
        self.history.completed(number, completed.path, now_ms)
        self._failures.succeeded(number)
        self._timing.completed(number, commits, now_ms)
        commands: list[Decision] = []
        if commits:
            commands += [SendToTask(task, CheckpointComplete(number)) for task in pending.plan.commit_to]
            commands += self._keep(completed, now_ms)
        if what.is_savepoint and what.stop is None:
            commands.append(AnswerSavepoint(what.request_id, what.location))
        if what is self._stopping and self._suspended:
            commands += self._answer_stop(_NOT_STOPPED)
        return commands + self._sweep() + self._begin_due(now_ms)

    def _keep(self, completed: CompletedCheckpoint, now_ms: int) -> list[Decision]:
        """Retain the newest checkpoint, and drop older ones, whether under way or complete."""
        commands: list[Decision] = []
        for older in list(self._pending.values()):
            if older.checkpoint_id < completed.checkpoint_id and not older.properties.is_savepoint:
                detail = f"checkpoint {completed.checkpoint_id} is complete"
                commands += self._abort(older, AbortCause.SUBSUMED, detail, now_ms)
        for gone in self._completed.add(completed, self._pending):
            if gone.is_owned:
                self.history.discarded(gone.checkpoint_id)
                if gone.base:
                    commands.append(DiscardFiles(gone.base, (), gone.folder))
        return commands

    def _sweep(self) -> list[Decision]:
        """Delete shared files that no checkpoint refers to, and that no part of a pending checkpoint builds on."""
        given = {number: files_of(pending.snapshots) for number, pending in self._pending.items()}
        return list(self._completed.sweep(given))

    def _abort_all(self, cause: AbortCause, detail: str, now_ms: int) -> list[Decision]:
        commands: list[Decision] = []
        for pending in list(self._pending.values()):
            if pending.phase is not CheckpointPhase.PUBLISHING:
                commands += self._abort(pending, cause, detail, now_ms)
        return commands

    def _abort(self, pending: PendingCheckpoint, cause: AbortCause, detail: str, now_ms: int) -> list[Decision]:
        """Abort a checkpoint, notify its tasks, and delete its files if nothing can refer to them."""
        number = pending.checkpoint_id
        commands: list[Decision] = [SendToTask(task, CheckpointAborted(number)) for task in pending.plan.everybody]
        phase = pending.phase
        self._conclude(pending, was_completed=phase is CheckpointPhase.IN_DOUBT)
        if phase is CheckpointPhase.IN_DOUBT:
            log.warning("files of checkpoint %d are left behind in %s: it may count", number, pending.base)
            return commands + self._failed(pending, cause, detail, now_ms)
        if phase is CheckpointPhase.PUBLISHING:
            self._unresolved_publications[number] = pending  # its metadata may still appear
        elif pending.base:
            commands.append(DiscardFiles(pending.base, (), pending.folder))
        if pending.base == self.base:
            self._completed.dereference(filter(is_shared, files_of(pending.snapshots)), self._pending)
        return commands + self._sweep() + self._failed(pending, cause, detail, now_ms)

    def _failed(self, pending: PendingCheckpoint, cause: AbortCause, detail: str, now_ms: int) -> list[Decision]:
        """Record the failure of a checkpoint, answer its request, and fail the job if too many have failed."""
        number, what, reason = pending.checkpoint_id, pending.properties, cause.describe(detail)
        self.history.failed(number, reason, now_ms)
        log.info("checkpoint failed", extra={"checkpoint_id": number, "reason": reason, "kind": what.kind})
        commands = self._answer_refusal(what, reason, now_ms)
        if what.stop is not None:
            if cause is AbortCause.DECLINED or (what.stop is StopMode.DRAIN and cause in _AFTER_DRAIN):
                commands.append(FailJob(f"stop with savepoint {what.location} failed: {reason}"))
        elif cause.counts and (cause is AbortCause.DECLINED or not what.is_savepoint):
            commands += self._failures.failed(number, reason)
        return commands

    def _answer_refusal(self, what: CheckpointProperties, reason: str, now_ms: int) -> list[Decision]:
        """Answer the request of a savepoint that fails; a job that was to be stopped with it runs on."""
        if what is self._stopping:
            self._stopping = None
            if not self._suspended:
                self._timing.start(now_ms)
        return [AnswerSavepoint(what.request_id, "", reason)] if what.is_savepoint else []

    def _conclude(self, pending: PendingCheckpoint, was_completed: bool) -> None:
        del self._pending[pending.checkpoint_id]
        belonging = frozenset(pending.plan.acknowledge if was_completed else ())
        self._concluded[pending.checkpoint_id] = (pending.base, belonging)
        if len(self._concluded) > _REMEMBERED:
            del self._concluded[next(iter(self._concluded))]


__all__ = ["CheckpointCoordinator", "Decision"]
