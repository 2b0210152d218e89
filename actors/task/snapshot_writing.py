"""Writes captured snapshots beside the task's work: the second, asynchronous phase of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from rayflink.common.errors import described
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.common.text_output.logs import get_logger
from rayflink.state.clock import Clock
from rayflink.state.errors import RayflinkError
from rayflink.state.snapshots import FileSlice, OperatorSnapshot, SnapshotWriter, StoredSnapshot, stored
from rayflink.state.storage.local_copies import LocalCopies

from ..messages.checkpoint_statistics import CheckpointMetrics
from .services import TaskServices

log = get_logger(__name__)


class SnapshotPhase(Enum):
    """The phases of one snapshot of a task, after it was captured and all that belongs to it has arrived.

    Before, it is an entry of `IncompleteSnapshots`; when its `SnapshotWritten` is answered, the task forgets it.
    """

    WRITING = "writing"
    """Its parts are being written, or are durable and the `SnapshotWritten` is in the task's mailbox."""
    DISCARDED = "discarded"
    """Its checkpoint was aborted while it was written: the writer stops at the next part and deletes its files.

    A snapshot that is complete nevertheless is acknowledged, and the coordinator deletes it.
    """


class FinishedWriter(SnapshotWriter, Protocol):
    """A `SnapshotWriter` with the methods that only its creator calls."""

    @property
    def bytes_written(self) -> int:
        """Return the bytes of all parts that were put."""
        ...

    def finish(self) -> None:
        """Return when everything is durable; raises as `put`."""
        ...

    def abort(self) -> Sequence[str]:
        """Delete the written files, and return those that are left."""
        ...


@dataclass(frozen=True, slots=True)
class SnapshotWritten:
    """A mail of a task to itself: a snapshot is written, or cannot be, for a reason."""

    checkpoint_id: int
    snapshots: Mapping[str, StoredSnapshot]
    metrics: CheckpointMetrics
    failure: str = ""


class SnapshotWriting:
    """Writes snapshots; those of aborted checkpoints are deleted.

    Args:
        services: by the process: who runs it.
        clock: `now_ms()` and `monotonic()`.
        make_writer: where the parts of a checkpoint go.
        mail: takes a `SnapshotWritten`; called by any thread.
        copies: what stays on this node of what is written; None: nothing.
    """

    def __init__(
        self,
        services: TaskServices,
        clock: Clock,
        make_writer: Callable[[CheckpointBarrier], FinishedWriter],
        mail: Callable[[SnapshotWritten], None],
        copies: LocalCopies | None = None,
    ) -> None:
        self.copies = copies
        self.clock = clock
        self._services, self._make_writer, self._mail = services, make_writer, mail
        self._phases: dict[int, SnapshotPhase] = {}
        self._over = False
        self._caught: type[BaseException] | tuple[type[BaseException], ...] = BaseException
        if services.background is None:  # Ctrl-C comes here too
            self._caught = (Exception, SystemExit)

    def begin(
        self, barrier: CheckpointBarrier, captured: Mapping[str, OperatorSnapshot], metrics: CheckpointMetrics
    ) -> None:
        """Write a snapshot; a `SnapshotWritten` follows unless it is given up."""
        self._phases[barrier.checkpoint_id] = SnapshotPhase.WRITING
        handed_over = self.clock.monotonic()

        def write() -> None:
            written = self._write(barrier, captured, metrics, handed_over)
            if written is not None:
                self._mail(written)

        if self._services.background is None:
            write()
        else:
            self._services.background(write)

    def complete(self, checkpoint_id: int) -> None:
        """Note that the checkpoint is durable."""
        if self.copies is not None:
            self.copies.complete(checkpoint_id)

    def give_up(self, checkpoint_id: int) -> None:
        """Discard the snapshot of an aborted checkpoint."""
        if self.copies is not None:
            self.copies.aborted(checkpoint_id)
        if checkpoint_id in self._phases:
            self._phases[checkpoint_id] = SnapshotPhase.DISCARDED

    def take(self, written: SnapshotWritten) -> bool:
        """End the snapshot's life in the task, and return whether its checkpoint still wants it."""
        return self._phases.pop(written.checkpoint_id, None) is not SnapshotPhase.DISCARDED

    def close(self) -> None:
        """Discard all snapshots: the task has ended."""
        self._over = True

    def _is_given_up(self, checkpoint_id: int) -> bool:
        return self._over or self._phases.get(checkpoint_id) is SnapshotPhase.DISCARDED

    def _write(
        self,
        barrier: CheckpointBarrier,
        captured: Mapping[str, OperatorSnapshot],
        metrics: CheckpointMetrics,
        handed_over: float,
    ) -> SnapshotWritten | None:
        number = barrier.checkpoint_id
        snapshots: dict[str, StoredSnapshot] = {}
        failure, size = "", 0
        try:
            writer = self._make_writer(barrier)
            try:
                for operator_id, snapshot in captured.items():
                    if not self._is_given_up(number):
                        snapshots[operator_id] = stored(snapshot, writer)
                if self.copies is not None:
                    self.copies.refers(number, _files(snapshots.values()))
                writer.finish()
                size = writer.bytes_written
                if self._is_given_up(number):
                    _abort(writer)
                    snapshots = {}
            except BaseException:
                _abort(writer)
                raise
        except self._caught as error:  # a full storage, or whatever a user's class raises in its pickling
            failure = str(error) if isinstance(error, RayflinkError) else described(error)
            log.debug("checkpoint %d could not be written", number, exc_info=error)
        finally:
            for snapshot in captured.values():
                if snapshot.capture is not None:
                    snapshot.capture.release()
        if self._over:
            return None
        took = int((self.clock.monotonic() - handed_over) * 1000)
        whole = sum(snapshot.size_bytes for snapshot in snapshots.values())
        measured = replace(metrics, async_ms=took, state_bytes=whole, written_bytes=size)
        return SnapshotWritten(number, {} if failure else snapshots, measured, failure)


def _files(snapshots: Iterable[StoredSnapshot]) -> Iterable[str]:
    databases = (database for snapshot in snapshots for database in snapshot.databases)
    blobs = (blob for database in databases for blob in database.files.values())
    return (blob.path for blob in blobs if isinstance(blob, FileSlice))


def _abort(writer: FinishedWriter) -> None:
    left = writer.abort()
    if left:
        log.warning("files of checkpoint %d are left behind: %s", writer.checkpoint_id, ", ".join(left))


__all__ = ["FinishedWriter", "SnapshotPhase", "SnapshotWriting", "SnapshotWritten"]
