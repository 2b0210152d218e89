"""What a shell does with the files of checkpoints when the job's decisions ask for it."""

from __future__ import annotations

from collections.abc import Callable

from rayflink.common.errors import described
from rayflink.common.logs import get_logger
from rayflink.state.errors import RayflinkError
from rayflink.state.manifest import METADATA
from rayflink.state.manifest_format import encode_manifest
from rayflink.state.storage import Storage, StorageError, put_own

from .commands import CheckpointNotPublished, CheckpointPublished, DiscardFiles, PublishCheckpoint

log = get_logger(__name__)
OpenStorage = Callable[[str], Storage]


def publish(command: PublishCheckpoint, open_storage: OpenStorage) -> CheckpointPublished | CheckpointNotPublished:
    """Write the metadata of a checkpoint, which exists from then on; how it went."""
    number = command.checkpoint_id
    try:
        if put_own(open_storage(command.base), command.path, encode_manifest(command.manifest)):
            return CheckpointPublished(number)
        where = f"{command.base}/{command.path}"
        return CheckpointNotPublished(number, f"{where} is there already: another coordinator wrote it", exists=True)
    except Exception as error:  # whatever a storage refuses
        reason = str(error) if isinstance(error, RayflinkError) else described(error)
    return CheckpointNotPublished(number, reason)


def discard(command: DiscardFiles, open_storage: OpenStorage) -> int:
    """Delete files nobody refers to any more; how many could not be deleted, which is logged and no failure.

    Metadata goes first: without it a checkpoint is none, whatever of it is left.
    """
    failed = 0
    try:
        storage = open_storage(command.base)
        paths = list(command.paths)
        if command.folder is not None:
            paths += sorted(storage.list(command.folder), key=_is_no_metadata)
    except StorageError as error:
        log.warning("files of a checkpoint are left behind: %s", error)
        return 1
    for path in paths:
        try:
            storage.delete(path)
        except StorageError as error:
            failed += 1
            log.warning("a file of a checkpoint is left behind: %s", error)
    return failed


def _is_no_metadata(path: str) -> bool:
    return path.rpartition("/")[2] != METADATA


__all__ = ["OpenStorage", "discard", "publish"]
