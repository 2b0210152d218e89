"""Everything that can be read of a job, as one JSON object; and the notes of its starts and its end in a registry.

A job with checkpoints has a ledger, which orders its coordinators. One without has the notes of its starts alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rayflink.state.storage.storage import Storage

MOST_DETAILS = 20
"""The number of checkpoints whose details are in the object, the newest; and those from which a job would start."""
DEEPEST = 20
"""Values at this depth of others are text."""
ENDED = "ended"
"""The file of the note."""
_NAME = re.compile(r"(?:.*/)?start-(\d{6})")


def job_document(
    status: Mapping[str, Any],
    description: Mapping[str, Any],
    checkpoints: Callable[[int | None], Mapping[str, Any] | None],
    accumulators: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the object.

    Args:
        status: as `JobReport.describe` gives it.
        description: as `rayflink.graph.job_description` gives it.
        checkpoints: gives statistics of all checkpoints, or the details of one, None where it is forgotten.
        accumulators: name -> value.

    Returns: "status", "description", "checkpoints", "details" (checkpoint id -> its details) and "accumulators".
    """
    statistics = checkpoints(None) or {}
    ids = {int(entry["id"]) for entry in [*statistics.get("history", ())[:MOST_DETAILS], *_newest(statistics)]}
    details = {str(number): checkpoints(number) for number in sorted(ids)}
    return {
        "status": dict(status),
        "description": dict(description),
        "checkpoints": dict(statistics),
        "details": {number: detail for number, detail in details.items() if detail is not None},
        "accumulators": plain(accumulators),
    }


def _newest(statistics: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the newest checkpoint, and savepoint, of which the sizes of the state are known."""
    latest = statistics.get("latest") or {}
    return (latest[kind] for kind in ("completed", "savepoint") if latest.get(kind))


def plain(value: object, depth: int = DEEPEST) -> Any:
    """Return a value of a program as JSON can have it: other keys and objects as text, and no half characters.

    >>> plain({(1, 2): {3}, "a": [1.5, "\\ud800"]})
    {'(1, 2)': '{3}', 'a': [1.5, '\\\\ud800']}
    """
    if value is None or type(value) in (bool, int, float):
        return value
    if depth and isinstance(value, Mapping):
        return {_text(key): plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple)):
        return [plain(item, depth - 1) for item in value]
    return _text(value)


def _text(value: object) -> str:
    try:
        return str(value).encode("utf-8", "backslashreplace").decode()
    except Exception as error:  # a class of the program may raise anything
        return f"a {type(value).__name__}, whose text raises {type(error).__name__}"


def note_end(storage: Storage, document: Mapping[str, Any]) -> None:
    """Note that a job has ended, with all that can be read of it; an end that was noted before stays.

    Args:
        storage: the folder of the job in the registry.
        document: as `job_document` gives it.

    Raises:
        StorageError: it could not be written.
    """
    storage.put_if_absent(ENDED, json.dumps(document, default=str).encode())


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


__all__ = ["ENDED", "job_document", "newest_start", "note_end", "plain", "start_name"]
