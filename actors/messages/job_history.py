"""The numbers of a job under earlier coordinators, so that its counts go on; stored beside its checkpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rayflink.common.text_output.logs import get_logger
from rayflink.state.storage.storage import Storage, StorageError

from .executions import ExceptionEntry
from .messages import TaskFailure

log = get_logger(__name__)

FOLDER = "job"
_NAME = re.compile(rf"{FOLDER}/past-(\d{{9}})")


@dataclass(frozen=True, slots=True)
class JobHistory:
    """The numbers and failures of a job under earlier coordinators.

    Args:
        restarts: so far.
        attempt: number of the next attempts.
        exceptions: the latest, oldest first.
        autoscaling: the decisions of the autoscaler, as JSON has them.
    """

    restarts: int = 0
    attempt: int = 0
    exceptions: tuple[ExceptionEntry, ...] = ()
    autoscaling: Mapping[str, Any] = field(default_factory=dict)


def store_history(storage: Storage, past: JobHistory) -> bool:
    """Store the history in place of the older one; return False, and log it, on failure, which is harmless."""
    document = {
        "restarts": past.restarts,
        "attempt": past.attempt,
        "exceptions": [
            {"timestamp_ms": entry.timestamp_ms, "task": entry.task, "failure": _plain(entry.failure)}
            for entry in past.exceptions
        ],
        "autoscaling": past.autoscaling,
    }
    try:
        positions = _positions(storage)
        storage.put_if_absent(_path((positions or [0])[-1] + 1), json.dumps(document).encode())
        for old in positions:
            storage.delete(_path(old))
    except StorageError as error:
        log.warning("the history of the job could not be stored: %s", error)
        return False
    return True


def read_history(storage: Storage) -> JobHistory:
    """Read the stored history; an empty one where it cannot be read, which is logged."""
    try:
        positions = _positions(storage)
        document = json.loads(storage.read(_path(positions[-1]))) if positions else {}
        exceptions = tuple(
            ExceptionEntry(entry["timestamp_ms"], entry["task"], TaskFailure(**entry["failure"]))
            for entry in document.get("exceptions", ())
        )
        counts = document.get("restarts", 0), document.get("attempt", 0)
        return JobHistory(*counts, exceptions, document.get("autoscaling", {}))
    except (StorageError, ValueError, KeyError, TypeError) as error:
        log.warning("the history of the job cannot be read: %s", error)
        return JobHistory()


def _plain(failure: TaskFailure) -> Mapping[str, object]:
    return {name: value for name, value in asdict(failure).items() if isinstance(value, str)}


def _positions(storage: Storage) -> list[int]:
    matches = (_NAME.fullmatch(path) for path in storage.list(FOLDER))
    return sorted(int(match[1]) for match in matches if match)


def _path(position: int) -> str:
    return f"{FOLDER}/past-{position:09d}"


__all__ = ["JobHistory", "store_history", "read_history"]
