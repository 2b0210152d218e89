"""A job's status in the form that `rayflink status --json` prints, whose keys stay as they are documented."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP
from ..user_code.stalled import STALLED
from . import metric_names as names
from .job_report import late_records, records_in, watermark
from .waits import WAITS
from .watermark_lag import held_back

SCHEMA = 1
"""The version of the form, which changes where a key is removed or changes its meaning, not with new keys."""
_TIMES = {
    "busy_ms_per_second": names.BUSY_TIME,
    "idle_ms_per_second": names.IDLE_TIME,
    "back_pressured_ms_per_second": names.BACK_PRESSURED_TIME,
}
_VARYING = re.compile(r"attempt #\d+|\bpid \d+|\b[0-9a-f]{32}\b|\bsilent for \d+ ms|\b\d+ ms\b")
"""The parts of a failure that differ between two of one kind."""

Status = Mapping[str, Any]


def status_report(status: Status, now_ms: int) -> dict[str, Any]:
    """Return the report on a job.

    Args:
        status: of the job, as `JobClient.status()` gives it.
        now_ms: the time, epoch milliseconds.

    Returns: what docs/cli.md lists; numbers that are not known are None.
    """
    slowest = held_back(status)
    metrics = status.get("metrics", {})
    return {
        "schema": SCHEMA,
        "id": status["jid"],
        "name": status["name"],
        "state": status["state"],
        "since_ms": status["timestamps"].get(status["state"]),
        "at_ms": now_ms,
        "waiting": status.get("waiting") or None,
        "restarts": metrics.get(names.NUM_RESTARTS),
        "checkpoints": _checkpoints(metrics),
        "held_back": None if slowest is None else str(slowest),
        "recovery": status.get("recovery"),
        "autoscaler": status.get("autoscaler"),
        "vertices": [_vertex(vertex, now_ms) for vertex in status["vertices"]],
        "failures": folded_failures(status.get("exceptions", ())),
    }


def folded_failures(exceptions: Iterable[Status]) -> list[dict[str, Any]]:
    """Return the failures of a job, those of one kind in one entry; in order of their last time.

    Two are of one kind where task and text differ in numbers of attempts, processes, jobs and milliseconds alone.

    >>> one = {"task": "Map (1/1)", "exception": "ValueError: no"}
    >>> folded_failures([{**one, "timestamp": 3}, {**one, "timestamp": 9}])
    [{'task': 'Map (1/1)', 'times': 2, 'first_ms': 3, 'last_ms': 9, 'text': 'ValueError: no'}]
    """
    folded: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in exceptions:
        key = entry["task"], _VARYING.sub("", entry["exception"])
        before = folded.pop(key, None)
        times, first_ms = (1, entry["timestamp"]) if before is None else (before["times"] + 1, before["first_ms"])
        folded[key] = {
            "task": entry["task"],
            "times": times,
            "first_ms": first_ms,
            "last_ms": entry["timestamp"],
            "text": entry["exception"],
        }
    return list(folded.values())


def _checkpoints(metrics: Status) -> dict[str, Any]:
    duration, size = metrics.get(names.LAST_CHECKPOINT_DURATION, -1), metrics.get(names.LAST_CHECKPOINT_SIZE, -1)
    return {
        "triggered": metrics.get(names.TOTAL_NUMBER_OF_CHECKPOINTS),
        "in_progress": metrics.get(names.NUMBER_OF_IN_PROGRESS_CHECKPOINTS),
        "completed": metrics.get(names.NUMBER_OF_COMPLETED_CHECKPOINTS),
        "failed": metrics.get(names.NUMBER_OF_FAILED_CHECKPOINTS),
        "last_duration_ms": None if duration < 0 else duration,
        "last_bytes": None if size < 0 else size,
    }


def _vertex(vertex: Status, now_ms: int) -> dict[str, Any]:
    mark = watermark(vertex)
    subtasks = [_subtask(subtask) for subtask in vertex["subtasks"]]
    running = [subtask for subtask in subtasks if subtask["state"] == "RUNNING"]
    report: dict[str, Any] = {
        "id": vertex["id"],
        "name": vertex["name"],
        "parallelism": vertex["parallelism"],
        "states": dict(vertex["states"]),
        "records_in": records_in(vertex),
        "records_out": int(vertex["numRecordsOut"]),
        "late_records": late_records(vertex),
        "records_in_per_second": _sum(subtask["records_in_per_second"] for subtask in running),
        "records_out_per_second": _sum(subtask["records_out_per_second"] for subtask in running),
    }
    for key in _TIMES:
        report[key] = max((subtask[key] for subtask in running if subtask[key] is not None), default=None)
    is_time = mark is not None and MIN_TIMESTAMP < mark < MAX_TIMESTAMP
    report["watermark_ms"] = mark
    report["watermark_lag_ms"] = now_ms - mark if is_time and mark is not None else None
    return {**report, "subtasks": subtasks}


def _subtask(subtask: Status) -> dict[str, Any]:
    metrics = subtask["metrics"]
    stalled = metrics.get(STALLED)
    return {
        "subtask": subtask["subtask"],
        "attempt": subtask["attempt"],
        "state": subtask["state"],
        "host": metrics.get("host"),
        "pid": metrics.get("pid"),
        "reported_ms": metrics.get("reportedMs"),
        "records_in_per_second": _rate_in(metrics),
        "records_out_per_second": _number(metrics.get(names.NUM_RECORDS_OUT_RATE)),
        **{key: _number(metrics.get(name)) for key, name in _TIMES.items()},
        STALLED: dict(stalled) if stalled and subtask["state"] not in ("FINISHED", "CANCELED", "FAILED") else None,
        WAITS: [dict(wait) for wait in metrics.get(WAITS, ())] if subtask["state"] == "RUNNING" else [],
    }


def _rate_in(metrics: Status) -> float | None:
    """Return the records a task receives a second, or reads where it is a source."""
    received = metrics.get(names.NUM_RECORDS_IN_RATE)
    operators = metrics.get("operators")
    if operators and not metrics.get(names.NUM_RECORDS_IN):
        received = operators[0]["metrics"].get(names.NUM_RECORDS_OUT_RATE, received)
    return _number(received)


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def _sum(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 1) if known else None


__all__ = ["SCHEMA", "folded_failures", "status_report"]
