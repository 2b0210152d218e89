"""Chooses the start of a job: the work of an earlier coordinator, the checkpoint its options name, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import get_logger
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock
from rayflink.state.errors import DamagedFileError, StateError
from rayflink.state.storage.ledger import Counted, Ledger, newest_entry
from rayflink.state.storage.manifest import METADATA, checkpoint_folder
from rayflink.state.storage.manifest_format import decode_manifest
from rayflink.state.storage.retention import abandoned_files
from rayflink.state.storage.storage import MissingFileError, Storage
from rayflink.state.storage.stored_checkpoints import NoCheckpointError, read_manifest

from ..checkpoints.completed import CompletedCheckpoint
from ..checkpoints.files import CheckpointFiles, OpenStorage
from ..messages.checkpoint_settings import CheckpointSettings
from ..messages.commands import DiscardFiles
from ..messages.executions import ExceptionEntry
from ..messages.messages import TaskFailure
from .history.history_files import read_history
from .job_checkpoints import JobStart, takes_checkpoints
from .rescaled_graph import as_it_ran

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The starting point of a coordinator.

    Args:
        start: for its `JobMaster`.
        files: of its checkpoints.
        recovered: it goes on with what another coordinator of the job has begun.
        damaged: checkpoints that counted and cannot be read, newest first.
    """

    start: JobStart
    files: CheckpointFiles
    recovered: bool = False
    damaged: tuple[str, ...] = ()

    def laid_out(self, graph: JobGraph) -> JobGraph:
        """Return the job with its latest parallelisms when it is recovered: it may have been rescaled."""
        newest = max(self.start.completed, key=lambda checkpoint: checkpoint.checkpoint_id, default=None)
        return as_it_ran(graph, newest.manifest) if self.recovered and newest is not None else graph


def recover_or_start(
    graph: JobGraph,
    new_id: Callable[[], str],
    open_storage: OpenStorage,
    keep: Callable[[Sequence[CompletedCheckpoint] | None], None] = lambda named: None,
) -> Beginning:
    """Become the only coordinator of a job whose checkpoints have files, and choose what it starts from.

    A new job that cannot begin leaves nothing behind: what its options name is read first.

    Args:
        new_id: gives 32 hex digits that are unique.
        keep: called before the first trace of a new job is written, and before anybody leads it, with the checkpoint
            that the job names, or () for none; None where an earlier coordinator has begun the job.

    Raises:
        NoCheckpointError: there is none where `execution.state-recovery.path` says, or all that counted are damaged.
        LedgerEnded, Fenced: the job has ended, or another coordinator has come.
        StorageError, DamagedFileError, VersionMismatch: what is there cannot be read.
    """
    settings = CheckpointSettings.of(graph.configuration)
    base = settings.base(graph.id)
    if not base or not takes_checkpoints(graph):
        start = JobStart(completed=_named(graph.configuration, open_storage))
        keep(start.completed)
        return Beginning(start, CheckpointFiles(open_storage, base))
    storage = open_storage(base)
    named = _named(graph.configuration, open_storage) if newest_entry(storage) is None else None
    keep(named)
    ledger = Ledger.claim(storage, new_id(), settings.retained)
    files = CheckpointFiles(open_storage, base, ledger)
    recovered = ledger.epoch > 1
    start = JobStart(ledger.epoch, (), ledger.next_number)
    if recovered:
        past = read_history(storage)
        past = replace(past, restarts=past.restarts + 1, attempt=past.attempt + 1)
        start = replace(start, past=past)
    if not ledger.checkpoints:
        named = _named(graph.configuration, open_storage) if named is None else named
        for checkpoint in named:  # the job counts on from its number, which may lie behind all that the claim reserved
            if checkpoint.checkpoint_id >= ledger.next_number:
                ledger.reserve(checkpoint.checkpoint_id + 1)
        start = replace(start, completed=named, next_number=ledger.next_number)
        return Beginning(_taken_over(start, "its beginning"), files, recovered)
    read, damaged = _counted(ledger, base, open_storage)
    if not read:
        problems = "; ".join(damaged)
        remedy = "start a new job from a savepoint, or from a copy of a checkpoint, with -s"
        raise NoCheckpointError(base, f"none that can be read of those that count: {problems}", remedy)
    _sweep(storage, ledger, read, files, base)
    newest = tuple(read[: settings.retained])
    start = _taken_over(replace(start, completed=newest), f"checkpoint {newest[0].checkpoint_id}")
    return Beginning(start, files, recovered, damaged)


def _taken_over(start: JobStart, begins_from: str) -> JobStart:
    if start.epoch == 1:
        return start
    lost = f"the job's coordinator was lost (epoch {start.epoch - 1}); another goes on from {begins_from}"
    log.warning("%s", lost)
    entry = ExceptionEntry(SystemClock().now_ms(), "coordinator", TaskFailure("CoordinatorLost", lost, ""))
    return replace(start, past=replace(start.past, exceptions=(*start.past.exceptions, entry)))


def _named(config: Mapping[str, Any], open_storage: OpenStorage) -> tuple[CompletedCheckpoint, ...]:
    """Return the checkpoint or savepoint that `execution.state-recovery.path` names, if any."""
    path = Configuration.from_dict(config).get(options.RESTORE_PATH)
    if not path:
        return ()
    checkpoint = read_manifest(path, open_at=open_storage)
    return (CompletedCheckpoint(checkpoint.base, checkpoint.manifest, is_owned=False),)


def _counted(ledger: Ledger, base: str, open_storage: OpenStorage) -> tuple[list[CompletedCheckpoint], tuple[str, ...]]:
    """Return the checkpoints in the ledger that can be read, and the errors of the others; newest first."""
    read, damaged = [], []
    for counted in reversed(ledger.checkpoints):
        try:
            read.append(_read(counted, base, open_storage))
        except (DamagedFileError, MissingFileError) as error:
            if not read:  # older ones are missing when they were subsumed
                damaged.append(str(error))
                log.error("checkpoint %d is left out, an older one is looked for: %s", counted.checkpoint_id, error)
    return read, tuple(damaged)


def _read(counted: Counted, base: str, open_storage: OpenStorage) -> CompletedCheckpoint:
    is_own = counted.path == checkpoint_folder(counted.checkpoint_id)
    where, path = (base, f"{counted.path}/{METADATA}") if is_own else (counted.path, METADATA)
    manifest = decode_manifest(open_storage(where).read(path), f"{where}/{path}")
    return CompletedCheckpoint(where, manifest, is_owned=is_own)


def _sweep(
    storage: Storage, ledger: Ledger, read: list[CompletedCheckpoint], files: CheckpointFiles, base: str
) -> None:
    """Delete the files that the previous coordinator was writing when it was lost.

    Files listed while this leader is the newest cannot belong to a later one.
    """
    try:
        paths = storage.list()
        ledger.check()
    except StateError as error:
        log.warning("files of an earlier coordinator may be left behind: %s", error)
        return
    abandoned = abandoned_files(paths, [checkpoint.manifest for checkpoint in read if checkpoint.is_owned])
    if abandoned:
        files.discard(DiscardFiles(base, abandoned))


__all__ = ["Beginning", "recover_or_start"]
