"""Opens the storage that a task writes snapshots to and restores from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from rayflink.common.configuration import reading
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.state.clock import Clock
from rayflink.state.snapshots import Blob, InlineSnapshots, OperatorSnapshot, SnapshotReader, loaded
from rayflink.state.storage.local_copies import LocalCopies
from rayflink.state.storage.snapshot_files import SnapshotFileReader, SnapshotFileWriter, SnapshotPlace
from rayflink.state.storage.storage_schemes import open_storage

from ..messages.messages import TaskDeployment
from .services import TaskServices
from .snapshot_writing import FinishedWriter, SnapshotWriting, SnapshotWritten
from .task_folders import copies_folder


class InMessages(InlineSnapshots):
    """Keeps all parts in the message to the coordinator, which keeps them in memory: for small state only.

    Args:
        checkpoint_id: number of the checkpoint.
        most_bytes: of all parts together.

    Source: apache/flink MemCheckpointStreamFactory.
    """

    def __init__(self, checkpoint_id: int, most_bytes: int) -> None:
        super().__init__(checkpoint_id, is_savepoint=True)
        self._most_bytes = most_bytes
        self.bytes_written = 0

    def put(self, data: bytes) -> Blob:
        """Keep the bytes.

        Raises:
            ConfigError: they are too many.
        """
        self.bytes_written += len(data)
        if self.bytes_written > self._most_bytes:
            raise ConfigError(
                options.MAX_INLINE_STATE.key,
                f"a snapshot of more than {self._most_bytes} bytes",
                f"{self._most_bytes} at most, since it is kept in the memory of the coordinator",
                f"set {options.CHECKPOINT_DIRECTORY.key} to a directory that every node reaches",
            )
        return data

    def put_file(self, local: Path, shared: bool) -> Blob:
        """Keep the bytes of the file; raises as `put`."""
        return self.put(local.read_bytes())

    def finish(self) -> None:
        """Finish at once: there is nothing to wait for."""

    def abort(self) -> tuple[str, ...]:
        """Abort: nothing was written."""
        return ()


def snapshot_writing(
    deployment: TaskDeployment, services: TaskServices, clock: Clock, mail: Callable[[SnapshotWritten], None]
) -> SnapshotWriting:
    """Return the writer of a task's snapshots to the storage of the job's checkpoints."""
    copies = local_copies(deployment)
    return SnapshotWriting(services, clock, partial(snapshot_writer, deployment, services, copies), mail, copies)


def local_copies(deployment: TaskDeployment) -> LocalCopies | None:
    """Return the local copies of the task's checkpoints on this node; None where none are wanted."""
    if not deployment.checkpoint_base or not reading(deployment.config).get(options.LOCAL_RECOVERY):
        return None
    return LocalCopies(copies_folder(deployment) / f"{deployment.vertex_id}-{deployment.subtask}")


def snapshot_writer(
    deployment: TaskDeployment, services: TaskServices, copies: LocalCopies | None, barrier: CheckpointBarrier
) -> FinishedWriter:
    """Return the writer of the parts of a checkpoint or savepoint."""
    get, number = reading(deployment.config).get, barrier.checkpoint_id
    base = barrier.savepoint or deployment.checkpoint_base
    if not base:
        return InMessages(number, get(options.MAX_INLINE_STATE).bytes)
    inline = get(options.CHECKPOINT_INLINE_THRESHOLD).bytes
    make = SnapshotPlace.of_savepoint if barrier.savepoint else SnapshotPlace.of_checkpoint
    storage = (services.open_storage or open_storage)(base)
    return SnapshotFileWriter(storage, make(number, inline), services.uploads, services.new_name, copies)


def snapshot_reader(deployment: TaskDeployment, services: TaskServices, copies: LocalCopies | None) -> SnapshotReader:
    """Return the reader of the snapshots that an attempt starts from."""
    if not deployment.restore_base:
        return InlineSnapshots()
    storage = (services.open_storage or open_storage)(deployment.restore_base)
    return SnapshotFileReader(storage, copies if _is_ours(deployment) else None)


def restored_snapshots(
    deployment: TaskDeployment, reader: SnapshotReader
) -> Mapping[str, tuple[OperatorSnapshot, ...]]:
    """Return operator id -> restored snapshot.

    Raises:
        StorageError, DamagedFileError: it cannot be read.
    """
    ours = _is_ours(deployment)
    return {name: tuple(loaded(part, reader, ours) for part in parts) for name, parts in deployment.restore.items()}


def _is_ours(deployment: TaskDeployment) -> bool:
    return deployment.restore_base == deployment.checkpoint_base


__all__ = [
    "InMessages", "local_copies", "restored_snapshots", "snapshot_reader", "snapshot_writer",
    "snapshot_writing",
]  # fmt: skip
