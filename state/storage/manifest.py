"""Manifests: the contents of a checkpoint or savepoint, as the value in its `_metadata` file.

A checkpoint exists when that file does. All file names in it are relative to a base, which is the folder of the file
(savepoints: they can be moved) or the folder above (checkpoints: several share files).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..schema.state_summary import StateSummary
from ..snapshots import Blob, FileSlice, StoredSnapshot

METADATA = "_metadata"
SHARED_FOLDER = "shared"
"""The folder of a job's checkpoints for files that several of them refer to."""

ManifestKind = Literal["checkpoint", "savepoint"]


@dataclass(frozen=True, slots=True)
class OperatorManifest:
    """The state of one operator in a checkpoint.

    Args:
        operator_id: 32 hex digits.
        uid: that the program gave, or "".
        name: of the operator.
        parallelism: it had then.
        max_parallelism: its number of key groups.
        subtasks: by index; None where there is no state.
        finished: indexes of the subtasks that had finished.
        coordinator: what the coordinator keeps for it, such as the splits of a source; None where there is nothing.
        states: that it declared, as far as known.
    """

    operator_id: str
    uid: str
    name: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[StoredSnapshot | None, ...]
    finished: frozenset[int] = frozenset()
    coordinator: Blob | None = None
    states: tuple[StateSummary, ...] = ()

    @property
    def blobs(self) -> Iterator[Blob]:
        """Yield all parts of its state."""
        for snapshot in self.subtasks:
            if snapshot is not None:
                yield from snapshot.blobs
        if self.coordinator is not None:
            yield self.coordinator


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """A complete checkpoint or savepoint.

    Args:
        kind: which of the two it is.
        checkpoint_id: its number in the job.
        epoch: of the coordinator that wrote it.
        job_id: 32 hex digits.
        job_name: for people.
        timestamp_ms: when it was triggered, since 1970.
        completed_ms: when all of it was written, since 1970.
        own_base: whether the names of its files begin in its own folder, not in the one above.
        operators: each once.
        properties: anything else, such as the version that wrote it.
    """

    kind: ManifestKind
    checkpoint_id: int
    epoch: int
    job_id: str
    job_name: str
    timestamp_ms: int
    completed_ms: int
    own_base: bool
    operators: tuple[OperatorManifest, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> frozenset[str]:
        """Return the names of all files with state."""
        return frozenset(blob.path for blob in self.blobs if isinstance(blob, FileSlice))

    def shared_files(self) -> frozenset[str]:
        """Return the names of those files that other checkpoints may refer to as well."""
        return frozenset(filter(is_shared, self.files()))

    @property
    def blobs(self) -> Iterator[Blob]:
        """Yield all parts of all state."""
        for operator in self.operators:
            yield from operator.blobs


def checkpoint_folder(checkpoint_id: int) -> str:
    """Return the folder, below the base, of files that belong to one checkpoint alone.

    >>> checkpoint_folder(7), metadata_path(7)
    ('chk-7', 'chk-7/_metadata')
    """
    return f"chk-{checkpoint_id}"


def savepoint_folder(job_id: str, random: str) -> str:
    """Return the folder of a savepoint, which is its base, below the folder for savepoints.

    Args:
        random: hex digits that no other process chooses; 12 of them are taken.

    >>> savepoint_folder("11bbc58e4f83b1e53bd0a8a3ff0a7ba4", "bd967f90709b5f7a")
    'savepoint-11bbc5-bd967f90709b'
    """
    return f"savepoint-{job_id[:6]}-{random[:12]}"


def metadata_path(checkpoint_id: int) -> str:
    """Return the path, below the base, of the file that makes a checkpoint exist."""
    return f"{checkpoint_folder(checkpoint_id)}/{METADATA}"


def is_shared(path: str) -> bool:
    """Return whether several checkpoints may refer to a file.

    >>> is_shared("shared/4f1c"), is_shared("chk-7/4f1c")
    (True, False)
    """
    return path.startswith(f"{SHARED_FOLDER}/")


__all__ = [
    "METADATA", "SHARED_FOLDER", "CheckpointManifest", "ManifestKind", "OperatorManifest", "StateSummary",
    "checkpoint_folder", "is_shared", "metadata_path", "savepoint_folder",
]  # fmt: skip
