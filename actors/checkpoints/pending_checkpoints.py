"""The checkpoints under way: what acknowledges, completes or aborts them. Pure: decisions come out as commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.logs import get_logger

from ..exchange.frames import TaskAddress
from ..messages.checkpoint_settings import CheckpointSettings
from ..messages.commands import AnswerCheckpoint, AnswerSavepoint, CheckpointCommand, PublishCheckpoint, SendToTask
from ..messages.messages import CheckpointAborted, CheckpointAcknowledged, CheckpointComplete, CheckpointDeclined
from .cleanup import CheckpointCleanup
from .completed import CompletedCheckpoint, CompletedCheckpoints
from .failures import AbortCause, FailJob, FailureCounter
from .history import CheckpointHistory
from .pending import Acknowledged, CheckpointPhase, PendingCheckpoint, files_of
from .plan import CheckpointedJob, CheckpointProperties
from .timing import CheckpointTiming

log = get_logger(__name__)
Decision: TypeAlias = CheckpointCommand | FailJob
"""The answer to an event: a command that the shell carries out, or the failure of the job."""
MOST_NAMED = 3
"""The most functions that hold up a checkpoint which its failure names."""
_AFTER_DRAIN = {AbortCause.EXPIRED, AbortCause.NOT_PUBLISHED, AbortCause.NOT_READY, AbortCause.TASK_ENDED}
"""Causes of an abort at which tasks were already at the end of event time: timers that fired there cannot be undone."""


class PendingCheckpoints:
    """The checkpoints that were triggered and are neither complete nor aborted.

    Args:
        job: whose checkpoints they are.
        base: address of the job's own checkpoints; "": they have no files.
        settings: the timeout, and how many may fail.
        completed: the retained checkpoints.
        timing: when the next one begins, which depends on the end of this one.
        history: statistics of all of them.
    """

    def __init__(
        self,
        job: CheckpointedJob,
        base: str,
        settings: CheckpointSettings,
        completed: CompletedCheckpoints,
        timing: CheckpointTiming,
        history: CheckpointHistory,
    ) -> None:
        self._job, self._base, self._timeout_ms = job, base, settings.timeout_ms
        self._completed, self._timing, self._history = completed, timing, history
        self.by_id: dict[int, PendingCheckpoint] = {}
        """Id -> checkpoint, in the order of their triggers."""
        self.cleanup = CheckpointCleanup(base, completed, self.by_id, history)
        self._failures = FailureCounter(settings.tolerable_failures)

    @property
    def publishing(self) -> tuple[int, ...]:
        """Return the ids of the checkpoints whose metadata is being written."""
        return tuple(number for number, pending in self.by_id.items() if pending.phase is CheckpointPhase.PUBLISHING)

    @property
    def timeouts_ms(self) -> list[int]:
        """Return when each of them has taken too long, in epoch milliseconds."""
        return [pending.since_ms + self._timeout_ms for pending in self.by_id.values()]

    # answers of tasks

    def acknowledge(self, part: CheckpointAcknowledged, now_ms: int) -> list[Decision]:
        """Count the acknowledgement of an attempt, whose part is written."""
        pending = self.by_id.get(part.checkpoint_id)
        if pending is None:
            return [*self.cleanup.late_part(part)]
        match pending.acknowledge(part.attempt, part.snapshots, part.data_is_over):
            case Acknowledged.UNKNOWN:
                return [*self.cleanup.unused_part(pending.base, part.snapshots)]
            case Acknowledged.DUPLICATE:
                return []
            case Acknowledged.SUCCESS:
                vertex, subtask = pending.plan.acknowledge[part.attempt]
        if pending.base == self._base and self._completed.is_outdated(files_of(part.snapshots.values())):
            return self.abort(pending, AbortCause.OUTDATED, f"subtask {subtask} of vertex {vertex}", now_ms)
        self._history.under_way(part.checkpoint_id).acknowledged(vertex, subtask, part.metrics, now_ms)
        return []

    def decline(self, answer: CheckpointDeclined, now_ms: int) -> list[Decision]:
        """Abort a checkpoint in which an attempt takes no part."""
        pending = self.by_id.get(answer.checkpoint_id)
        if pending is None or pending.phase is CheckpointPhase.PUBLISHING:
            return []
        if answer.attempt not in pending.plan.acknowledge:
            return []
        vertex, subtask = pending.plan.acknowledge[answer.attempt]
        cause = AbortCause.DECLINED if answer.is_failure else AbortCause.NOT_READY
        if answer.is_unwritten and pending.properties.is_savepoint and pending.properties.stop is None:
            cause = AbortCause.NOT_WRITTEN
        return self.abort(pending, cause, f"{answer.reason} (vertex {vertex}, subtask {subtask})", now_ms)

    def task_ended(self, attempt: TaskAddress, now_ms: int) -> list[Decision]:
        """Abort the checkpoints that wait for an attempt that has ended."""
        commands: list[Decision] = []
        for pending in list(self.by_id.values()):
            if attempt in pending.waits_for:
                vertex, subtask = pending.plan.acknowledge[attempt]
                detail = f"subtask {subtask} of vertex {vertex}"
                commands += self.abort(pending, AbortCause.TASK_ENDED, detail, now_ms)
        return commands

    def expire(self, now_ms: int, stalled: Callable[[TaskAddress], str]) -> list[Decision]:
        """Abort what takes too long; see `CheckpointCoordinator.expire`."""
        commands: list[Decision] = []
        within = f"within {self._timeout_ms} ms"
        for pending in list(self.by_id.values()):
            if now_ms - pending.since_ms < self._timeout_ms:
                continue
            if pending.phase is CheckpointPhase.PUBLISHING:
                silence = f"the storage did not answer {within} when its metadata was written"
                commands += self.not_published(pending.checkpoint_id, silence, now_ms, in_doubt=True)
            else:
                silent, all_of_them = len(pending.waits_for), len(pending.plan.acknowledge)
                detail = f"{silent} of {all_of_them} tasks did not acknowledge {within}"
                stalls = [stall for stall in map(stalled, sorted(pending.waits_for)) if stall]
                detail = "; ".join([detail, *stalls[:MOST_NAMED]])
                commands += self.abort(pending, AbortCause.EXPIRED, detail, now_ms)
        return commands

    # publication

    def publish(self, pending: PendingCheckpoint, now_ms: int) -> list[Decision]:
        """Ask the storage for the commit of a checkpoint that all its tasks have acknowledged.

        One without files has nothing to commit: then nothing is asked, and its phase stays.
        """
        pending.published = manifest = pending.manifest(self._job, now_ms)
        if not pending.base:
            return []
        pending.published_from = now_ms
        counts = not pending.properties.is_savepoint or pending.properties.stop is not None
        path = pending.metadata_path
        return [PublishCheckpoint(pending.checkpoint_id, pending.base, path, manifest, counts)]

    def not_published(
        self, checkpoint_id: int, reason: str, now_ms: int, exists: bool = False, in_doubt: bool = False
    ) -> list[Decision]:
        """Abort a checkpoint whose metadata could not be written; see `CheckpointCoordinator.not_published`."""
        pending = self.by_id.get(checkpoint_id)
        if pending is None or pending.phase is not CheckpointPhase.PUBLISHING:
            return [] if in_doubt else [*self.cleanup.publication_resolved(checkpoint_id, exists)]
        pending.in_doubt = in_doubt
        if exists:
            commands = self.abort(pending, AbortCause.FENCED, reason, now_ms)
            commands += self.cleanup.publication_resolved(checkpoint_id, True)
            return [*commands, FailJob(AbortCause.FENCED.describe(reason), is_final=True)]
        pending.published_from = None
        return self.abort(pending, AbortCause.NOT_PUBLISHED, reason, now_ms)

    # the end of a checkpoint

    def complete(self, pending: PendingCheckpoint, now_ms: int) -> list[Decision]:
        """Complete a checkpoint whose metadata is committed: notify its tasks, and retire older checkpoints."""
        number, what = pending.checkpoint_id, pending.properties
        commits = not what.is_savepoint or what.stop is not None
        assert pending.published is not None
        completed = CompletedCheckpoint(pending.base, pending.published, not what.is_savepoint)
        self._conclude(pending, was_completed=True)
        self._history.completed(number, completed.path, now_ms, completed.manifest)
        self._failures.succeeded(number)
        self._timing.completed(number, commits, now_ms)
        commands: list[Decision] = []
        if commits:
            commands += [SendToTask(task, CheckpointComplete(number)) for task in pending.plan.commit_to]
            commands += self._subsume(number, now_ms)
            commands += self.cleanup.retain(completed)
        if what.is_savepoint and what.stop is None:
            commands.append(AnswerSavepoint(what.request_id, what.location))
        elif what.request_id and not what.is_savepoint:
            commands.append(AnswerCheckpoint(what.request_id, number))
        return commands

    def _subsume(self, completed_id: int, now_ms: int) -> list[Decision]:
        """Abort the older checkpoints under way, which a complete one makes useless."""
        commands: list[Decision] = []
        for older in list(self.by_id.values()):
            if older.checkpoint_id < completed_id and not older.properties.is_savepoint:
                detail = f"checkpoint {completed_id} is complete"
                commands += self.abort(older, AbortCause.SUBSUMED, detail, now_ms)
        return commands

    def abort_all(self, cause: AbortCause, detail: str, now_ms: int) -> list[Decision]:
        """Abort all checkpoints, except those that are being published."""
        commands: list[Decision] = []
        for pending in list(self.by_id.values()):
            if pending.phase is not CheckpointPhase.PUBLISHING:
                commands += self.abort(pending, cause, detail, now_ms)
        return commands

    def abort(self, pending: PendingCheckpoint, cause: AbortCause, detail: str, now_ms: int) -> list[Decision]:
        """Abort a checkpoint, notify its tasks, and delete its files if nothing can refer to them."""
        number = pending.checkpoint_id
        commands: list[Decision] = [SendToTask(task, CheckpointAborted(number)) for task in pending.plan.everybody]
        self._conclude(pending, was_completed=pending.phase is CheckpointPhase.IN_DOUBT)
        commands += self.cleanup.aborted(pending)
        return commands + self.fail(pending, cause, detail, now_ms)

    def fail(self, pending: PendingCheckpoint, cause: AbortCause, detail: str, now_ms: int) -> list[Decision]:
        """Record the failure of a checkpoint, answer its request, and fail the job if too many have failed."""
        number, what, reason = pending.checkpoint_id, pending.properties, cause.describe(detail)
        self._history.failed(number, reason, now_ms)
        log.info("checkpoint failed", extra={"checkpoint_id": number, "reason": reason, "kind": what.kind})
        commands = self.refuse(what, reason, now_ms)
        if what.stop is not None:
            if cause is AbortCause.DECLINED or (what.stop is StopMode.DRAIN and cause in _AFTER_DRAIN):
                commands.append(FailJob(f"stop with savepoint {what.location} failed: {reason}"))
        elif cause.counts and (cause is AbortCause.DECLINED or not what.is_savepoint):
            commands += self._failures.failed(number, reason)
        return commands

    def refuse(self, what: CheckpointProperties, reason: str, now_ms: int) -> list[Decision]:
        """Answer the request of what fails; a job that was to be stopped with a savepoint runs on."""
        if what is self._timing.stopping:
            self._timing.stop_failed(now_ms)
        if what.is_savepoint:
            return [AnswerSavepoint(what.request_id, "", reason)]
        return [AnswerCheckpoint(what.request_id, failure=reason)] if what.request_id else []

    def _conclude(self, pending: PendingCheckpoint, was_completed: bool) -> None:
        del self.by_id[pending.checkpoint_id]
        self.cleanup.conclude(pending, was_completed)


__all__ = ["Decision", "PendingCheckpoints"]
