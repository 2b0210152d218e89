"""Attempts and failures of a job, as its coordinator knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rayflink.common.user_code.stalled import STALLED, stalled_text
from rayflink.graph.job_graph import JobVertex

from ..exchange.frames import TaskAddress
from .messages import TaskFailure
from .states import ExecutionState, IllegalTransition


@dataclass
class Execution:
    """One attempt of one subtask, as the coordinator knows it."""

    attempt: TaskAddress
    vertex: JobVertex
    subtask: int
    number: int
    state: ExecutionState = ExecutionState.CREATED
    timestamps: dict[str, int] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    last_seen_ms: int = 0

    @property
    def name(self) -> str:
        """Return the name as Flink prints it: "Map (1/3)"."""
        return f"{self.vertex.name} ({self.subtask + 1}/{self.vertex.parallelism})"

    @property
    def title(self) -> str:
        """Return the name and the attempt, for errors."""
        return f"execution {self.name} (attempt #{self.number})"

    @property
    def stalled(self) -> str:
        """Return, for people, which function of it has not returned for long; "" where none is known of."""
        found = self.metrics.get(STALLED)
        return stalled_text(self.name, found) if found else ""

    def become(self, state: ExecutionState, now_ms: int) -> None:
        """Change the state if the transition is legal."""
        if not self.state.may_become(state):
            raise IllegalTransition(self.title, self.state.value, state.value)
        self.state = state
        self.timestamps[state.value] = now_ms


@dataclass(frozen=True, slots=True)
class ExceptionEntry:
    """One failure in the job's history."""

    timestamp_ms: int
    task: str
    failure: TaskFailure

    def describe(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        return {"timestamp": self.timestamp_ms, "task": self.task, "exception": self.failure.message}


__all__ = ["ExceptionEntry", "Execution"]
