"""A checkpoint from its trigger to the moment at which it is complete or aborted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from rayflink.common.records.batches import CheckpointBarrier
from rayflink.state.schema.state_summary import merge_summaries
from rayflink.state.snapshots import FileSlice, StoredSnapshot
from rayflink.state.storage.manifest import METADATA, CheckpointManifest, OperatorManifest, checkpoint_folder

from ..exchange.frames import TaskAddress
from .plan import CheckpointedJob, CheckpointPlan, CheckpointProperties, OperatorPlace


class Acknowledged(Enum):
    """The result of an acknowledgement."""

    SUCCESS = auto()
    DUPLICATE = auto()
    """The attempt had acknowledged before."""
    UNKNOWN = auto()
    """The attempt has no part in the checkpoint."""


class CheckpointPhase(Enum):
    """The phases of a pending checkpoint, derived from what is known of it."""

    ACKNOWLEDGING = auto()
    """Tasks take their parts; nothing refers to the files that they write, so an abort deletes them."""
    PUBLISHING = auto()
    """All parts are durable, and the storage is asked to write and commit the metadata. If it is aborted now, its
    files stay until the answer has come."""
    IN_DOUBT = auto()
    """The answer of the storage was lost: the checkpoint may exist or not. It counts as failed, and none of its files
    is deleted."""


def files_of(snapshots: Iterable[StoredSnapshot]) -> set[str]:
    """Return the paths of all files that the snapshots have parts in."""
    blobs = (blob for snapshot in snapshots for blob in snapshot.blobs)
    return {blob.path for blob in blobs if isinstance(blob, FileSlice)}


@dataclass
class PendingCheckpoint:
    """One checkpoint under way: the attempts that have acknowledged it, and their snapshots.

    Args:
        base: address to which the paths of its files are relative; "": there are no files.
        enumerators: operator id -> state of the operator's enumerator.
        hook_data: properties with the data of the master hooks.
        published_from: when the storage was asked to write the metadata, in epoch milliseconds; None: not yet.
        published: the manifest that the storage was asked to write.
        in_doubt: the storage's answer was lost, so that the metadata may count or not.
    """

    checkpoint_id: int
    timestamp: int
    properties: CheckpointProperties
    plan: CheckpointPlan
    base: str
    enumerators: Mapping[str, bytes] = field(default_factory=dict)
    hook_data: Mapping[str, str] = field(default_factory=dict)
    published_from: int | None = None
    in_doubt: bool = False
    published: CheckpointManifest | None = None
    _acknowledged: dict[TaskAddress, Mapping[str, StoredSnapshot]] = field(default_factory=dict)
    _finished: set[tuple[str, int]] = field(default_factory=set)

    @property
    def phase(self) -> CheckpointPhase:
        """Return the phase that follows from the facts."""
        if self.in_doubt:
            return CheckpointPhase.IN_DOUBT
        return CheckpointPhase.ACKNOWLEDGING if self.published_from is None else CheckpointPhase.PUBLISHING

    @property
    def since_ms(self) -> int:
        """Return when the present phase began, in epoch milliseconds: its timeout counts from then."""
        return self.timestamp if self.published_from is None else self.published_from

    def barrier(self, aligned_ms: int | None) -> CheckpointBarrier:
        """Return the barrier that separates its records from later ones; a savepoint's is always aligned.

        Args:
            aligned_ms: how long others stay aligned, 0: not at all; None: to the end.
        """
        kind = self.properties
        if kind.is_savepoint or aligned_ms is None:
            return CheckpointBarrier(self.checkpoint_id, self.timestamp, True, kind.location, kind.stop)
        until = self.timestamp + aligned_ms if aligned_ms else None
        return CheckpointBarrier(self.checkpoint_id, self.timestamp, bool(aligned_ms), aligned_until_ms=until)

    def acknowledge(
        self, attempt: TaskAddress, snapshots: Mapping[str, StoredSnapshot], data_is_over: bool = False
    ) -> Acknowledged:
        """Count the part of an attempt: operator id -> state."""
        if attempt in self._acknowledged:
            return Acknowledged.DUPLICATE
        if attempt not in self.plan.acknowledge:
            return Acknowledged.UNKNOWN
        self._acknowledged[attempt] = snapshots
        if data_is_over:
            self._finished.add(self.plan.acknowledge[attempt])
        return Acknowledged.SUCCESS

    @property
    def waits_for(self) -> frozenset[TaskAddress]:
        """Return the attempts that have not acknowledged yet."""
        return frozenset(self.plan.acknowledge.keys() - self._acknowledged.keys())

    @property
    def snapshots(self) -> list[StoredSnapshot]:
        """Return all snapshots of the acknowledgements so far."""
        return [snapshot for part in self._acknowledged.values() for snapshot in part.values()]

    @property
    def folder(self) -> str:
        """Return its folder below the base; "" if that is the base itself."""
        return "" if self.properties.is_savepoint else checkpoint_folder(self.checkpoint_id)

    @property
    def metadata_path(self) -> str:
        """Return the path of its manifest below the base."""
        return f"{self.folder}/{METADATA}" if self.folder else METADATA

    def manifest(self, job: CheckpointedJob, now_ms: int) -> CheckpointManifest:
        """Return the manifest with all state by operator and subtask; every attempt has to have acknowledged."""
        snapshots: dict[str, dict[int, StoredSnapshot]] = {}
        for attempt, (_, subtask) in self.plan.acknowledge.items():
            for operator_id, snapshot in self._acknowledged[attempt].items():
                snapshots.setdefault(operator_id, {})[subtask] = snapshot
        places = self.plan.operators
        return CheckpointManifest(
            kind="savepoint" if self.properties.is_savepoint else "checkpoint",
            checkpoint_id=self.checkpoint_id,
            epoch=job.epoch,
            job_id=job.job_id,
            job_name=job.job_name,
            timestamp_ms=self.timestamp,
            completed_ms=now_ms,
            own_base=not self.folder,
            operators=tuple(self._operator(place, snapshots.get(place.operator_id, {})) for place in places),
            properties=self.hook_data,
        )

    def _operator(self, place: OperatorPlace, snapshots: Mapping[int, StoredSnapshot]) -> OperatorManifest:
        return OperatorManifest(
            operator_id=place.operator_id,
            uid=place.uid,
            name=place.name,
            parallelism=place.parallelism,
            max_parallelism=place.max_parallelism,
            subtasks=tuple(_without_states(snapshots.get(subtask)) for subtask in range(place.parallelism)),
            finished=self.plan.finished.get(place.operator_id, frozenset())
            | {subtask for vertex, subtask in self._finished if vertex == place.vertex_id},
            coordinator=self.enumerators.get(place.operator_id),
            states=merge_summaries(state for snapshot in snapshots.values() for state in snapshot.states),
        )


def _without_states(snapshot: StoredSnapshot | None) -> StoredSnapshot | None:
    """Return the snapshot without the descriptions of its states, which the manifest has once for all subtasks."""
    return replace(snapshot, states=()) if snapshot is not None and snapshot.states else snapshot


__all__ = ["Acknowledged", "CheckpointPhase", "PendingCheckpoint", "files_of"]
