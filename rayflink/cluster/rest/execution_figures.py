"""The figures of executions that several answers have: when they began and ended, their states, what they moved."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.common.metrics import metric_names as names

from ..jobs.cluster_job import Document
from ..jobs.cluster_process import process_of

__all__ = [
    "ENDED_JOB_STATES", "EXECUTION_STATES", "JOB_STATES", "UNASSIGNED", "Aggregate", "IoMetrics", "Times",
    "aggregate_state", "aggregates", "all_timestamps", "endpoint_of", "io_metrics", "job_times", "process_id_of",
    "slot_sharing_group", "state_counts", "status_durations", "subtask_times", "together",
]  # fmt: skip

UNASSIGNED = "(unassigned)"
"""What stands for the process of a subtask that has none yet."""
EXECUTION_STATES = tuple(state.value for state in ExecutionState)
JOB_STATES = tuple(state.value for state in JobStatus)
ENDED_JOB_STATES = frozenset(state.value for state in JobStatus if state.is_terminal)
_ENDED = frozenset(state.value for state in ExecutionState if state.is_terminal)
_ON_THE_WAY = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
_BY_PRECEDENCE = ("FAILED", "CANCELING", "CANCELED", "INITIALIZING", "RUNNING")

Times = TypedDict("Times", {"start-time": int, "end-time": int, "duration": int})
IoMetrics = TypedDict(
    "IoMetrics",
    {
        "read-bytes": int, "read-bytes-complete": bool, "write-bytes": int, "write-bytes-complete": bool,
        "read-records": int, "read-records-complete": bool, "write-records": int, "write-records-complete": bool,
        "accumulated-backpressured-time": int, "accumulated-idle-time": int, "accumulated-busy-time": float,
    },
)  # fmt: skip
"""What tasks have moved, and how they spent their time, in milliseconds."""


class Aggregate(TypedDict):
    """The spread of a figure over subtasks."""

    min: int
    max: int
    avg: int
    sum: int
    median: int
    p25: int
    p75: int
    p95: int


# times


def job_times(status: Document, now_ms: int) -> Times:
    """Return when a job began, when it ended (-1: it has not), and for how many milliseconds it has been there."""
    stamps: Mapping[str, int] = status["timestamps"]
    began = min(stamps.values(), default=now_ms)
    ended = stamps.get(status["state"], now_ms) if status["state"] in ENDED_JOB_STATES else -1
    return _times(began, ended, now_ms)


def subtask_times(subtask: Document, now_ms: int) -> Times:
    """Return when a subtask was deployed and ended; -1 for what has not happened."""
    stamps: Mapping[str, int] = subtask["timestamps"]
    ended = stamps.get(subtask["state"], -1) if subtask["state"] in _ENDED else -1
    return _times(stamps.get("DEPLOYING", -1), ended, now_ms)


def together(times: Sequence[Times], now_ms: int) -> Times:
    """Return when the first of several began and the last ended; -1 while one has not ended."""
    began = min((each["start-time"] for each in times if each["start-time"] >= 0), default=-1)
    ends = [each["end-time"] for each in times]
    return _times(began, max(ends, default=-1) if -1 not in ends else -1, now_ms)


def _times(began: int, ended: int, now_ms: int) -> Times:
    duration = max((now_ms if ended < 0 else ended) - began, 0) if began >= 0 else -1
    return {"start-time": began, "end-time": ended, "duration": duration}


def all_timestamps(known: Mapping[str, int], states: Iterable[str]) -> dict[str, int]:
    """Return when each state was entered; 0 for never.

    >>> all_timestamps({"RUNNING": 7}, ("CREATED", "RUNNING"))
    {'CREATED': 0, 'RUNNING': 7}
    """
    return {state: known.get(state, 0) for state in states}


def status_durations(subtask: Document, created_ms: int, now_ms: int) -> dict[str, int]:
    """Return the milliseconds that a subtask spent in each state up to RUNNING; -1 for one that it has not entered.

    Args:
        created_ms: when it was created, epoch milliseconds.
    """
    stamps = {"CREATED": created_ms, **subtask["timestamps"]}
    durations = dict.fromkeys(_ON_THE_WAY, -1)
    for position, state in enumerate(_ON_THE_WAY):
        entered = stamps.get(state)
        if entered is not None:
            earlier = _ON_THE_WAY[: position + 1]
            left = min((stamp for other, stamp in stamps.items() if other not in earlier), default=entered)
            durations[state] = max((now_ms if subtask["state"] == state else left) - entered, 0)
    return durations


# states


def aggregate_state(states: Sequence[str]) -> str:
    """Return the state of a vertex whose subtasks are in these states.

    >>> aggregate_state(["RUNNING", "CANCELED"]), aggregate_state(["FINISHED", "SCHEDULED"]), aggregate_state([])
    ('CANCELED', 'RUNNING', 'CREATED')

    Source: apache/flink ExecutionJobVertex.getAggregateJobVertexState.
    """
    for state in _BY_PRECEDENCE:
        if state in states:
            return state
    if "FINISHED" in states:
        return "FINISHED" if set(states) == {"FINISHED"} else "RUNNING"
    return "CREATED"


def state_counts(states: Iterable[str]) -> dict[str, int]:
    """Return the number of executions in each state."""
    counts = dict.fromkeys(EXECUTION_STATES, 0)
    for state in states:
        counts[state] += 1
    return counts


# processes


def process_id_of(subtask: Document) -> str:
    """Return the id of the process that runs a subtask: what Flink calls a task manager."""
    return process_of(subtask["metrics"]) or UNASSIGNED


def endpoint_of(subtask: Document) -> str:
    """Return the host and the number of the process that runs a subtask."""
    metrics = subtask["metrics"]
    return f"{metrics['host']}:{metrics['pid']}" if metrics.get("pid") else UNASSIGNED


def slot_sharing_group(job_id: str, name: str) -> str:
    """Return an id for a slot sharing group of a job, which here only has a name: 32 hex digits."""
    return hashlib.md5(f"{job_id} {name}".encode(), usedforsecurity=False).hexdigest()


# data and time


def io_metrics(subtasks: Sequence[Document]) -> IoMetrics:
    """Return what subtasks have moved together; it is complete once each has reported."""
    reports: list[Mapping[str, float]] = [subtask["metrics"] for subtask in subtasks]

    def total(name: str) -> int:
        return sum(int(report.get(name, 0)) for report in reports)

    def is_known(name: str) -> bool:
        return all(name in report for report in reports)

    return {
        "read-bytes": total(names.NUM_BYTES_IN),
        "read-bytes-complete": is_known(names.NUM_BYTES_IN),
        "write-bytes": total(names.NUM_BYTES_OUT),
        "write-bytes-complete": is_known(names.NUM_BYTES_OUT),
        "read-records": total(names.NUM_RECORDS_IN),
        "read-records-complete": is_known(names.NUM_RECORDS_IN),
        "write-records": total(names.NUM_RECORDS_OUT),
        "write-records-complete": is_known(names.NUM_RECORDS_OUT),
        "accumulated-backpressured-time": total(names.BACK_PRESSURED_TIME_TOTAL),
        "accumulated-idle-time": total(names.IDLE_TIME_TOTAL),
        "accumulated-busy-time": float(total(names.BUSY_TIME_TOTAL)),
    }


def aggregates(figures: Sequence[Mapping[str, object]]) -> dict[str, Aggregate]:
    """Return the spread of each figure that is a number over those of several subtasks."""
    numbers: dict[str, list[float]] = {}
    for each in figures:
        for name, value in each.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers.setdefault(name, []).append(value)
    return {name: _aggregate(sorted(values)) for name, values in numbers.items()}


def _aggregate(ascending: list[float]) -> Aggregate:
    total = sum(ascending)
    return {
        "min": int(ascending[0]),
        "max": int(ascending[-1]),
        "avg": int(total / len(ascending)),
        "sum": int(total),
        "median": _quantile(ascending, 0.5),
        "p25": _quantile(ascending, 0.25),
        "p75": _quantile(ascending, 0.75),
        "p95": _quantile(ascending, 0.95),
    }


def _quantile(ascending: list[float], fraction: float) -> int:
    """Return a quantile as Flink estimates it: Commons Math's LEGACY, at fraction * (n + 1)."""
    position = fraction * (len(ascending) + 1)
    below = math.floor(position)
    if below < 1:
        return int(ascending[0])
    if below >= len(ascending):
        return int(ascending[-1])
    lower, upper = ascending[below - 1], ascending[below]
    return int(lower + (position - below) * (upper - lower))
