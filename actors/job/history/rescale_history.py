"""The changes of a job's parallelism so far, for its status. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rayflink.graph.job_graph import JobGraph

from ...messages.states import JobStatus

COMPLETED, FAILED, IGNORED, IN_PROGRESS = "COMPLETED", "FAILED", "IGNORED", "IN_PROGRESS"
SUCCEEDED, NO_SLOTS, NO_CHANGE = "SUCCEEDED", "EXCEPTION_OCCURRED", "NO_RESOURCES_OR_PARALLELISMS_CHANGE"
COORDINATOR_LOST = "JOB_FAILOVER_RESTARTING"
"""Flink's words for the end of a rescale."""


@dataclass
class RescaleRecord:
    """A change of parallelism; times in epoch milliseconds.

    Args:
        request_id: 32 hex digits.
        before: vertex id -> subtasks before it.
        after: vertex id -> subtasks that were asked for.
        cancelled_ms: when the old tasks were cancelled; None: they were not.
        ended_ms: when all tasks ran, or it was given up; None: it goes on.
    """

    request_id: str
    began_ms: int
    before: dict[str, int]
    after: dict[str, int]
    cancelled_ms: int | None = None
    ended_ms: int | None = None
    state: str = IN_PROGRESS
    reason: str = ""

    def describe(self) -> dict[str, Any]:
        """Return the change as plain data."""
        return {
            "id": self.request_id,
            "began": self.began_ms,
            "cancelled": self.cancelled_ms,
            "ended": self.ended_ms,
            "state": self.state,
            "reason": self.reason,
            "before": self.before,
            "after": self.after,
        }


class RescaleHistory:
    """Counts all changes of parallelism, and remembers the newest.

    Args:
        length: how many it remembers; at least 0.
        past: what `as_json` returned under an earlier coordinator.
    """

    def __init__(self, length: int, past: Mapping[str, Any] | None = None) -> None:
        past = past or {}
        records = [RescaleRecord(**each) for each in past.get("history", ())]
        self._records: deque[RescaleRecord] = deque(records, maxlen=length)
        self._current = records[-1] if records and records[-1].state == IN_PROGRESS else None
        self._counts: Counter[str] = Counter({str(key): int(number) for key, number in past.get("counts", {}).items()})
        self.revision = 0
        """A number that changes with what has to outlive the coordinator."""

    def resume(self, graph: JobGraph, now_ms: int) -> None:
        """Note what came of a change whose coordinator was lost.

        Args:
            graph: the job as it goes on.
        """
        if self._current is not None and self._current.after == _subtasks(graph):
            self.end(COMPLETED, SUCCEEDED, now_ms)
        else:
            self.end(FAILED, COORDINATOR_LOST, now_ms)

    def begin(self, request_id: str, before: JobGraph, after: JobGraph, now_ms: int) -> None:
        """Record that a change has begun."""
        self._current = RescaleRecord(request_id, now_ms, _subtasks(before), _subtasks(after))
        self._records.append(self._current)
        self.revision += 1

    def cancel(self, now_ms: int) -> None:
        """Record that the old tasks were cancelled."""
        if self._current is not None:
            self._current.cancelled_ms = now_ms
            self.revision += 1

    def end(self, state: str, reason: str, now_ms: int) -> None:
        """Record that the change has ended."""
        record, self._current = self._current, None
        if record is not None:
            record.state, record.reason, record.ended_ms = state, reason, now_ms
            self._counts[state] += 1
            self.revision += 1

    def ignore(self, request_id: str, graph: JobGraph, now_ms: int) -> None:
        """Record a request for the parallelisms that the job has already."""
        self.begin(request_id, graph, graph, now_ms)
        self.end(IGNORED, NO_CHANGE, now_ms)

    def job_ended(self, status: JobStatus, now_ms: int) -> None:
        """Record that the job ended before the change had."""
        self.end(IGNORED, f"JOB_{status.value}", now_ms)

    def describe(self) -> dict[str, Any]:
        """Return the numbers of changes, and those that are remembered, the newest first."""
        counts = {state: self._counts[state] for state in (COMPLETED, FAILED, IGNORED)}
        counts[IN_PROGRESS] = int(self._current is not None)
        return {"counts": counts, "history": [record.describe() for record in reversed(self._records)]}

    def as_json(self) -> dict[str, Any]:
        """Return what the next coordinator has to know, as plain data; the oldest change first."""
        return {"counts": dict(self._counts), "history": [asdict(record) for record in self._records]}


def _subtasks(graph: JobGraph) -> dict[str, int]:
    return {str(vertex.id): vertex.parallelism for vertex in graph.vertices}


__all__ = ["COMPLETED", "FAILED", "IGNORED", "IN_PROGRESS", "NO_SLOTS", "SUCCEEDED", "RescaleHistory", "RescaleRecord"]
