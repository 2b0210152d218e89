"""The past of a job under earlier coordinators, so that its counts and its lists go on; as bytes of a bounded size."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ...messages.executions import ExceptionEntry, FailurePlace
from ...messages.messages import TaskFailure
from ..autoscaling.decisions import DecisionHistory
from .rescale_history import RescaleHistory

FORMAT = 2
"""The first format had one line, without a checksum."""
MOST_BYTES = 1 << 20
"""The size of a history at most; beyond it, the oldest entries are left out."""
MOST_TEXT = 16_384
"""Characters of one text of a failure; longer ones lose their middle."""
_TEXTS = ("message", "traceback", "record")


@dataclass(frozen=True, slots=True)
class JobHistory:
    """The numbers, failures and changes of a job under earlier coordinators.

    Args:
        restarts: so far.
        attempt: number of the next attempts.
        exceptions: the latest, oldest first.
        autoscaling: the decisions of the autoscaler, as JSON has them.
        rescales: the changes of parallelism, as JSON has them.
    """

    restarts: int = 0
    attempt: int = 0
    exceptions: tuple[ExceptionEntry, ...] = ()
    autoscaling: Mapping[str, Any] = field(default_factory=dict)
    rescales: Mapping[str, Any] = field(default_factory=dict)


def encode_history(history: JobHistory) -> bytes:
    """Return a history as bytes, at most `MOST_BYTES` of them: a line with their checksum, then JSON."""
    body = _body(history)
    while len(body) > MOST_BYTES and history != (shorter := _shorter(history)):
        history, body = shorter, _body(shorter)
    return json.dumps({"format": FORMAT, "crc32": zlib.crc32(body)}).encode() + b"\n" + body


def decode_history(data: bytes) -> JobHistory:
    """Read what `encode_history` wrote, here or in an earlier version.

    Raises:
        ValueError: it is damaged, or something else.
    """
    head, separator, body = data.partition(b"\n")
    try:
        first = json.loads(head)
        if not separator:
            return _history(first)
        if first["format"] != FORMAT:
            raise ValueError(f"format {first['format']}, wanted {FORMAT}")
        if (checksum := zlib.crc32(body)) != first["crc32"]:
            raise ValueError(f"checksum {checksum:08x}, wanted {first['crc32']:08x}")
        return _history(json.loads(body))
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"no history of a job: {type(error).__name__}: {error}") from error


def _body(history: JobHistory) -> bytes:
    document = {
        "restarts": history.restarts,
        "attempt": history.attempt,
        "exceptions": [_entry_document(entry) for entry in history.exceptions],
        "autoscaling": history.autoscaling,
        "rescales": history.rescales,
    }
    return json.dumps(document).encode()


def _shorter(history: JobHistory) -> JobHistory:
    """Return a history without its oldest entries of one kind; the same one where nothing can be left out."""
    rescales = history.rescales.get("history", ())
    if len(history.exceptions) > 1:
        return replace(history, exceptions=history.exceptions[len(history.exceptions) // 2 :])
    if rescales:
        return replace(history, rescales={**history.rescales, "history": rescales[(len(rescales) + 1) // 2 :]})
    return replace(history, autoscaling={}, exceptions=())


def _entry_document(entry: ExceptionEntry) -> dict[str, Any]:
    failure = {name: _cut(value) if name in _TEXTS else value for name, value in asdict(entry.failure).items()}
    return {
        "timestamp_ms": entry.timestamp_ms,
        "task": entry.task,
        "failure": failure,
        "place": None if entry.place is None else entry.place.describe(),
        "concurrent": entry.is_concurrent,
    }


def _cut(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    half = MOST_TEXT // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters are left out ...\n{text[-half:]}"


def _history(document: Mapping[str, Any]) -> JobHistory:
    autoscaling, rescales = document.get("autoscaling", {}), document.get("rescales", {})
    DecisionHistory(1, 1, autoscaling)  # a coordinator that cannot read them must not find that out later
    RescaleHistory(1, rescales)
    exceptions = tuple(map(_entry, document.get("exceptions", ())))
    counts = int(document.get("restarts", 0)), int(document.get("attempt", 0))
    return JobHistory(*counts, exceptions, autoscaling, rescales)


def _entry(document: Mapping[str, Any]) -> ExceptionEntry:
    known = {each.name for each in fields(TaskFailure)}
    failure = TaskFailure(**{name: value for name, value in document["failure"].items() if name in known})
    place = document.get("place")
    return ExceptionEntry(
        int(document["timestamp_ms"]), str(document["task"]), failure, None if place is None else FailurePlace(**place),
        bool(document.get("concurrent", False)),
    )  # fmt: skip


__all__ = ["MOST_BYTES", "JobHistory", "decode_history", "encode_history"]
