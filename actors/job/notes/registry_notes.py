"""The notes that a job leaves in its folder of a registry: of each of its starts, and of its end.

A job with checkpoints has a ledger, which orders its coordinators. One without has the notes of its starts alone.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable

from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import StateError
from rayflink.state.storage.storage import Storage, StorageError

from .job_archive import JobArchive

__all__ = ["ENDED", "await_newer_start", "end_time", "newest_start", "note_end", "note_end_time", "start_name"]

log = get_logger(__name__)
ENDED = "ended"
"""The file of the end."""
_NAME = re.compile(r"(?:.*/)?start-(\d{6})")
_TIME = re.compile(r"(?:.*/)?ended-at-(\d{13})")
_LATEST_MS = 10**13 - 1


def note_end(storage: Storage, archive: JobArchive, folder: str = "") -> bool:
    """Note that a job has ended, with all that can be read of it; False where an end was noted before, which stays.

    A second file has the time in its name, so that a list of files says which jobs ended last. Where it could not be
    written, the end is noted nevertheless.

    Args:
        storage: of the registry.
        archive: of the job.
        folder: of the job in that storage, with a "/" behind it; "": the storage is that folder.

    Raises:
        StorageError: it could not be written.
    """
    if not storage.put_if_absent(folder + ENDED, archive.encode()):
        return False
    note_end_time(storage, archive.ended_ms, folder)
    return True


def note_end_time(storage: Storage, ended_ms: int, folder: str) -> None:
    """Note when a job has ended, in a file without bytes; see `note_end`."""
    try:
        storage.put_if_absent(f"{folder}ended-at-{min(max(ended_ms, 0), _LATEST_MS):013d}", b"")
    except StorageError as error:
        log.info("the time of an end was not noted: %s", error)


def end_time(path: str) -> int | None:
    """Return the time that the name of a file has, epoch milliseconds; None: it has none.

    >>> end_time("jobs/0a/ended-at-0000000001000"), end_time("jobs/0a/ended")
    (1000, None)
    """
    match = _TIME.fullmatch(path)
    return None if match is None else int(match[1])


def start_name(number: int) -> str:
    """Return the name of the file of a start.

    >>> start_name(3)
    'start-000003'
    """
    return f"start-{number:06d}"


def await_newer_start(storage: Callable[[], Storage], number: int, ended: threading.Event, every_s: float) -> int:
    """Wait until a job was started anew elsewhere, and return the number of that start; 0: it has ended before.

    Args:
        storage: opens the folder of the job in the registry.
        number: of its start here.
        ended: is set when it has ended here.
        every_s: seconds between two looks.
    """
    while not ended.wait(every_s):
        try:
            newest = newest_start(storage().list())
        except StateError as error:
            log.warning("whether the job was started anew elsewhere cannot be known now: %s", error)
            continue
        if newest > number:
            return newest
    return 0


def newest_start(paths: Iterable[str]) -> int:
    """Return the number of the last start among files; 0 where there is none.

    >>> newest_start(["jobs/0a/accepted", "jobs/0a/start-000002", "jobs/0a/start-000001"])
    2
    """
    return max((int(match[1]) for match in map(_NAME.fullmatch, paths) if match), default=0)
