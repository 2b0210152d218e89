"""The history of a job in files beside its checkpoints, each written once; the newest that can be read counts."""

from __future__ import annotations

import re
from typing import NamedTuple

from rayflink.common.text_output.logs import get_logger
from rayflink.state.storage.storage import Storage, StorageError

from .job_history import JobHistory, decode_history, encode_history

log = get_logger(__name__)
FOLDER = "job"
KEPT_FILES = 2
"""The newest files, so that another one is there when the newest is damaged."""
_NAME = re.compile(rf"{FOLDER}/past-(?:(\d{{9}})-)?(\d{{9}})")


class _Place(NamedTuple):
    """The order of the files: by coordinator, then by the order in which it wrote them."""

    epoch: int
    number: int
    path: str


def store_history(storage: Storage, history: JobHistory, epoch: int = 0) -> bool:
    """Store the history as the newest, and delete old ones; return False, and log it, on failure, which is harmless.

    A coordinator whose job has another one by now writes nothing.

    Args:
        storage: with the checkpoints of the job.
        epoch: of the coordinator.
    """
    try:
        places = _places(storage)
        newest = places[-1] if places else _Place(epoch, 0, "")
        if newest.epoch > epoch:
            return False
        number = newest.number + 1 if newest.epoch == epoch else 1
        storage.put_if_absent(f"{FOLDER}/past-{epoch:09d}-{number:09d}", encode_history(history))
        for old in places[: 1 - KEPT_FILES]:
            storage.delete(old.path)
    except StorageError as error:
        log.warning("the history of the job could not be stored: %s", error)
        return False
    return True


def read_history(storage: Storage) -> JobHistory:
    """Read the newest history that can be read, else an empty one; what is left out is logged."""
    try:
        for place in reversed(_places(storage)):
            try:
                return decode_history(storage.read(place.path))
            except ValueError as error:
                text = "a history of the job is damaged and left out, an older one is looked for: %s/%s: %s"
                log.warning(text, storage.url, place.path, error)
    except StorageError as error:
        log.warning("the history of the job cannot be read: %s", error)
    return JobHistory()


def _places(storage: Storage) -> list[_Place]:
    matches = (_NAME.fullmatch(path) for path in storage.list(FOLDER))
    return sorted(_Place(int(match[1] or 0), int(match[2]), match[0]) for match in matches if match)


__all__ = ["read_history", "store_history"]
