"""Decides which files of checkpoints are deleted, and when. Pure: what is to be deleted comes out as commands."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.common.options.registry import ExternalizedCheckpointRetention
from rayflink.common.text_output.logs import get_logger
from rayflink.state.snapshots import StoredSnapshot
from rayflink.state.storage.manifest import is_shared

from ..exchange.frames import TaskAddress
from ..messages.commands import CheckpointsLeft, DiscardFiles
from ..messages.messages import CheckpointAcknowledged
from ..messages.states import JobStatus
from .completed import CompletedCheckpoint, CompletedCheckpoints
from .history import CheckpointHistory
from .pending import CheckpointPhase, PendingCheckpoint, files_of

log = get_logger(__name__)
_REMEMBERED = 100
"""Concluded checkpoints whose end is remembered, for what comes late."""
_Retention = ExternalizedCheckpointRetention
_DELETED_AT = {
    _Retention.NO_EXTERNALIZED_CHECKPOINTS: {JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED},
    _Retention.DELETE_ON_CANCELLATION: {JobStatus.FINISHED, JobStatus.CANCELED},
    _Retention.RETAIN_ON_CANCELLATION: {JobStatus.FINISHED},
}
"""Ends of a job that delete its checkpoints (Flink's CheckpointRetentionPolicy)."""


class CheckpointCleanup:
    """Deletes what no checkpoint refers to, or will refer to.

    Args:
        base: address of the job's own checkpoints; "": they have no files.
        completed: the retained checkpoints.
        pending: the checkpoints under way, by id; only read here.
        history: statistics, for what is discarded.
    """

    def __init__(
        self,
        base: str,
        completed: CompletedCheckpoints,
        pending: Mapping[int, PendingCheckpoint],
        history: CheckpointHistory,
    ) -> None:
        self._base, self._completed, self._pending, self._history = base, completed, pending, history
        self._unresolved_publications: dict[int, PendingCheckpoint] = {}
        self._concluded: dict[int, tuple[str, frozenset[TaskAddress]]] = {}

    def conclude(self, pending: PendingCheckpoint, was_completed: bool) -> None:
        """Remember the end of a checkpoint: parts of a completed one that are repeated stay."""
        belonging = frozenset(pending.plan.acknowledge if was_completed else ())
        self._concluded[pending.checkpoint_id] = (pending.base, belonging)
        if len(self._concluded) > _REMEMBERED:
            del self._concluded[next(iter(self._concluded))]

    def late_part(self, part: CheckpointAcknowledged) -> list[DiscardFiles]:
        """Discard a part that comes after the end of its checkpoint, unless it repeats one of a complete one."""
        base, belonging = self._concluded.get(part.checkpoint_id, (self._base, frozenset()))
        return [] if part.attempt in belonging else self.unused_part(base, part.snapshots)

    def unused_part(self, base: str, snapshots: Mapping[str, StoredSnapshot]) -> list[DiscardFiles]:
        """Delete what an attempt has written in vain, except shared files that others may refer to."""
        paths = files_of(snapshots.values())
        if not base or not paths:
            return []
        if base != self._base:
            return [DiscardFiles(base, tuple(sorted(paths)))]
        own = self._completed.unneeded(path for path in paths if not is_shared(path))
        self._completed.dereference(filter(is_shared, paths), self._pending)
        return [*([DiscardFiles(base, own)] if own else []), *self.sweep()]

    def aborted(self, pending: PendingCheckpoint) -> list[DiscardFiles]:
        """Delete the files of an aborted checkpoint if nothing can refer to them."""
        commands: list[DiscardFiles] = []
        if pending.phase is CheckpointPhase.IN_DOUBT:
            log.warning(
                "files of checkpoint %d are left behind in %s: it may count", pending.checkpoint_id, pending.base
            )
            return commands
        if pending.phase is CheckpointPhase.PUBLISHING:
            self._unresolved_publications[pending.checkpoint_id] = pending  # its metadata may still appear
        elif pending.base:
            commands.append(DiscardFiles(pending.base, (), pending.folder))
        if pending.base == self._base:
            self._completed.dereference(filter(is_shared, files_of(pending.snapshots)), self._pending)
        return commands + self.sweep()

    def publication_resolved(self, checkpoint_id: int, is_anothers: bool = False) -> list[DiscardFiles]:
        """Delete what was aborted while it was published; in the folder of another leader only our own files."""
        pending = self._unresolved_publications.pop(checkpoint_id, None)
        if pending is None:
            return []
        if not is_anothers:
            return [DiscardFiles(pending.base, (), pending.folder)]
        own = sorted(path for path in files_of(pending.snapshots) if not is_shared(path))
        return [DiscardFiles(pending.base, tuple(own))] if own else []

    def retain(self, completed: CompletedCheckpoint) -> list[DiscardFiles]:
        """Retain the newest checkpoint, and delete those that are no longer retained."""
        commands = []
        for dropped in self._completed.add(completed, self._pending):
            if dropped.is_owned:
                self._history.discarded(dropped.checkpoint_id)
                if dropped.base:
                    commands.append(DiscardFiles(dropped.base, (), dropped.folder))
        return commands

    def sweep(self) -> list[DiscardFiles]:
        """Delete shared files that no checkpoint refers to, and that no part of a pending checkpoint builds on."""
        return self._completed.sweep({number: files_of(pending.snapshots) for number, pending in self._pending.items()})

    def job_ended(
        self, status: JobStatus, retention: ExternalizedCheckpointRetention
    ) -> tuple[list[DiscardFiles], CheckpointsLeft]:
        """Delete the checkpoints that do not outlive a job with this status; return those that are left as well."""
        commands: list[DiscardFiles] = []
        stay, own = self._completed.by_owner()
        deleted = own
        if status in _DELETED_AT[retention]:
            self._completed.clear()
            for dropped in own:
                self._history.discarded(dropped.checkpoint_id)
            if self._base:
                commands.append(DiscardFiles(self._base, (), ""))
        elif self._base:  # else they are in memory, and end with it
            stay, deleted = self._completed.retained, ()
        newest = next((checkpoint.path for checkpoint in reversed(stay) if checkpoint.path), "")
        return commands, CheckpointsLeft(newest, len(deleted), self._base)


__all__ = ["CheckpointCleanup"]
