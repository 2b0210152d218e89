"""A checkpoint from its trigger to the moment at which it is complete or given up."""

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
    """What an acknowledgement is worth."""

    SUCCESS = auto()
    DUPLICATE = auto()
    """It was counted before."""
    UNKNOWN = auto()
    """This attempt has no part in the checkpoint."""


def files_of(snapshots: Iterable[StoredSnapshot]) -> set[str]:
    """Paths of all files with parts of these."""
    blobs = (blob for snapshot in snapshots for blob in snapshot.blobs)
    return {blob.path for blob in blobs if isinstance(blob, FileSlice)}


@dataclass
class PendingCheckpoint:
    """Who has acknowledged, and with what.

    Args:
        base: address to which the paths of its files are relative; "": there are no files.
        enumerators: operator id -> state of the operator's enumerator.
        hook_data: properties that hold what the master hooks gave.
        published_from: since when its metadata is being written; None: it is not.
        in_doubt: nobody knows whether that was done.
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
    manifest: CheckpointManifest | None = None
    _given: dict[TaskAddress, Mapping[str, StoredSnapshot]] = field(default_factory=dict)
    _over: set[tuple[str, int]] = field(default_factory=set)

    @property
    def publishing(self) -> bool:
        """Whether its metadata is being written."""
        return self.published_from is not None

    @property
    def since_ms(self) -> int:
        """When that began which it waits for: the tasks, or the storage of its metadata."""
        return self.timestamp if self.published_from is None else self.published_from

    def barrier(self, aligned_ms: int | None) -> CheckpointBarrier:
        """What divides its records from later ones; a savepoint's is always aligned.

        Args:
            aligned_ms: how long others stay aligned, 0: not at all; None: to the end.
        """
        what = self.properties
        if what.is_savepoint or aligned_ms is None:
            return CheckpointBarrier(self.checkpoint_id, self.timestamp, True, what.location, what.stop)
        until = self.timestamp + aligned_ms if aligned_ms else None
        return CheckpointBarrier(self.checkpoint_id, self.timestamp, bool(aligned_ms), aligned_until_ms=until)

    def acknowledge(
        self, attempt: TaskAddress, snapshots: Mapping[str, StoredSnapshot], data_is_over: bool = False
    ) -> Acknowledged:
        """An attempt has written its part: operator id -> state."""
        if attempt in self._given:
            return Acknowledged.DUPLICATE
        if attempt not in self.plan.acknowledge:
            return Acknowledged.UNKNOWN
        self._given[attempt] = snapshots
        if data_is_over:
            self._over.add(self.plan.acknowledge[attempt])
        return Acknowledged.SUCCESS

    @property
    def waits_for(self) -> frozenset[TaskAddress]:
        """Who has not acknowledged yet."""
        return frozenset(self.plan.acknowledge.keys() - self._given.keys())

    @property
    def snapshots(self) -> list[StoredSnapshot]:
        """All that was given so far."""
        return [snapshot for given in self._given.values() for snapshot in given.values()]

    @property
    def folder(self) -> str:
        """Its own below the base; "" where that is the base itself."""
        return "" if self.properties.is_savepoint else checkpoint_folder(self.checkpoint_id)

    @property
    def metadata_path(self) -> str:
        """Where its manifest goes, below the base."""
        return f"{self.folder}/{METADATA}" if self.folder else METADATA

    def made(self, job: CheckpointedJob, now_ms: int) -> CheckpointManifest:
        """Its manifest: all state, by operator and subtask."""
        given: dict[str, dict[int, StoredSnapshot]] = {}
        for attempt, (_, subtask) in self.plan.acknowledge.items():
            for operator_id, snapshot in self._given[attempt].items():
                given.setdefault(operator_id, {})[subtask] = snapshot
        return CheckpointManifest(
            kind="savepoint" if self.properties.is_savepoint else "checkpoint",
            checkpoint_id=self.checkpoint_id,
            epoch=job.epoch,
            job_id=job.job_id,
            job_name=job.job_name,
            timestamp_ms=self.timestamp,
            completed_ms=now_ms,
            own_base=not self.folder,
            operators=tuple(self._operator(place, given.get(place.operator_id, {})) for place in self.plan.operators),
            properties=self.hook_data,
        )

    def _operator(self, place: OperatorPlace, given: Mapping[int, StoredSnapshot]) -> OperatorManifest:
        return OperatorManifest(
            operator_id=place.operator_id,
            uid=place.uid,
            name=place.name,
            parallelism=place.parallelism,
            max_parallelism=place.max_parallelism,
            subtasks=tuple(_without_states(given.get(subtask)) for subtask in range(place.parallelism)),
            finished=self.plan.finished.get(place.operator_id, frozenset())
            | {subtask for vertex, subtask in self._over if vertex == place.vertex_id},
            coordinator=self.enumerators.get(place.operator_id),
            states=merge_summaries(state for snapshot in given.values() for state in snapshot.states),
        )


def _without_states(snapshot: StoredSnapshot | None) -> StoredSnapshot | None:
    """What its states are is said once for all subtasks."""
    return replace(snapshot, states=()) if snapshot is not None and snapshot.states else snapshot


__all__ = ["Acknowledged", "PendingCheckpoint", "files_of"]
