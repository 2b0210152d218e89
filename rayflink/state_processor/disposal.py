"""Disposal of a savepoint: its files are deleted."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.state.errors import StateError
from rayflink.state.storage.manifest import METADATA
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state.storage.stored_checkpoints import read_manifest


class DisposalError(StateError):
    """Raised when what is to be disposed of is no savepoint.

    Args:
        path: where it is.
        actual: what is there.
        remedy: what to do instead.
    """

    def __init__(self, path: str, actual: str, remedy: str) -> None:
        super().__init__(path, actual, remedy)
        self.path, self.actual, self.remedy = path, actual, remedy

    def __str__(self) -> str:
        return f"{self.path} is {self.actual}, not a savepoint; {self.remedy}"


def dispose_savepoint(path: str, options: Mapping[str, str] | None = None) -> int:
    """Delete a savepoint, which no job does by itself; return the number of deleted files.

    Args:
        path: its folder, or its `_metadata` file.
        options: Flink's `s3.` options by name, as strings.

    Raises:
        NoCheckpointError: there is none.
        DisposalError: it is a checkpoint, whose files others may share.
        StorageError: a file cannot be deleted.
    """
    stored_manifest = read_manifest(path, options)
    manifest = stored_manifest.manifest
    if manifest.kind != "savepoint" or not manifest.own_base:
        what = f"{manifest.kind} {manifest.checkpoint_id} of job {manifest.job_name!r}"
        remedy = "the job deletes its checkpoints, and others may share its files; delete the folder of an ended job"
        raise DisposalError(path, what, remedy)
    storage = open_storage(stored_manifest.base, options)
    storage.delete(METADATA)  # first: without it a savepoint is none, whatever of it is left
    files = sorted(manifest.files())
    for file in files:
        storage.delete(file)
    return len(files) + 1


__all__ = ["DisposalError", "dispose_savepoint"]
