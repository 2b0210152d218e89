"""The notes that a job leaves in its folder of a registry: of each of its starts, and of its end.

A job with checkpoints has a ledger, which orders its coordinators. One without has the notes of its starts alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rayflink.state.storage.storage import Storage

from .job_archive import JobArchive

__all__ = ["ENDED", "newest_start", "note_end", "start_name"]

ENDED = "ended"
"""The file of the end."""
_NAME = re.compile(r"(?:.*/)?start-(\d{6})")


def note_end(storage: Storage, archive: JobArchive) -> None:
    """Note that a job has ended, with all that can be read of it; an end that was noted before stays.

    Args:
        storage: the folder of the job in the registry.
        archive: of the job.

    Raises:
        StorageError: it could not be written.
    """
    storage.put_if_absent(ENDED, archive.encode())


def start_name(number: int) -> str:
    """Return the name of the file of a start.

    >>> start_name(3)
    'start-000003'
    """
    return f"start-{number:06d}"


def newest_start(paths: Iterable[str]) -> int:
    """Return the number of the last start among files; 0 where there is none.

    >>> newest_start(["jobs/0a/accepted", "jobs/0a/start-000002", "jobs/0a/start-000001"])
    2
    """
    return max((int(match[1]) for match in map(_NAME.fullmatch, paths) if match), default=0)
