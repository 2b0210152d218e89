"""The sizes of a job's state by operator, state and key group, as a stored checkpoint has them."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.state.storage.state_report import describe_state
from rayflink.state.storage.stored_checkpoints import read_manifest

from .cluster_job import Document

__all__ = ["stored_state"]


def stored_state(path: str, options: Mapping[str, str]) -> Document:
    """Return the sizes of the state in a checkpoint, as `describe_state` does.

    Args:
        path: of the checkpoint.
        options: of the storage that it lies in.

    Raises:
        NoCheckpointError: there is none.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    return {"path": path, **describe_state(read_manifest(path, options).manifest)}
