"""From the options of a job: the checkpoint it begins with, and how its storages are opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayflink.common import options
from rayflink.common.configuration import Configuration
from rayflink.state.stored_checkpoints import read_manifest

from .completed_checkpoints import CompletedCheckpoint
from .job_checkpoints import JobStart

_OF_STORES = (
    options.S3_ENDPOINT,
    options.S3_ACCESS_KEY,
    options.S3_SECRET_KEY,
    options.S3_PATH_STYLE,
    options.S3_REGION,
)


def storage_options(config: Mapping[str, Any]) -> dict[str, str]:
    """Those options of a job that say how an object store is reached, as texts."""
    return {option.key: str(config[option.key]) for option in _OF_STORES if option.key in config}


def start_of(config: Mapping[str, Any]) -> JobStart:
    """From what a job begins: the checkpoint or savepoint that `execution.state-recovery.path` names, or nothing.

    Raises:
        NoCheckpointError: there is none at that path.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    path = Configuration.from_dict(config).get(options.RESTORE_PATH)
    if not path:
        return JobStart()
    found = read_manifest(path, storage_options(config))
    return JobStart(completed=(CompletedCheckpoint(found.base, found.manifest, is_owned=False),))


__all__ = ["start_of", "storage_options"]
