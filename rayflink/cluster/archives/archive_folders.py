"""The archives that the options name."""

from __future__ import annotations

from dataclasses import replace

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.store_options import storage_options
from rayflink.state.clock import SystemClock
from rayflink.state.storage.storage_schemes import open_storage

from .archive_store import ArchiveStore
from .archived_jobs import ArchivedJobs, ArchiveRetention

__all__ = ["archive_folders", "configured_archives"]


def archive_folders(configuration: Configuration) -> list[str]:
    """Return the addresses of the folders, each once; [] where the options name none.

    >>> archive_folders(Configuration().set(options.HISTORY_FOLDERS, "/ended, s3://bucket/ended,/ended"))
    ['/ended', 's3://bucket/ended']
    """
    names = configuration.get(options.HISTORY_FOLDERS) or configuration.get(options.ARCHIVE_FOLDER) or ""
    return list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def configured_archives(configuration: Configuration, deletes: bool) -> ArchivedJobs | None:
    """Return the jobs of these folders, not looked for yet; None where the options name none.

    Args:
        deletes: whether archives that expire by the options of the history server are deleted, or only not shown.

    Raises:
        StorageError: an address is refused.
    """
    get = configuration.get
    how = storage_options(configuration.to_dict())
    stores = [ArchiveStore(open_storage(folder, how)) for folder in archive_folders(configuration)]
    if not stores:
        return None
    most, longest = get(options.HISTORY_JOBS), get(options.HISTORY_TIME)
    retention = ArchiveRetention(deletes=deletes)
    if most > 0:
        retention = replace(retention, newest=most)
    if longest is not None:
        retention = replace(retention, age_ms=longest.to_millis())
    return ArchivedJobs(stores, SystemClock(), retention, get(options.JOB_STORE_CACHE).bytes)
