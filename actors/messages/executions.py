"""Attempts and failures of a job, as its coordinator knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rayflink.common.user_code.stalled import STALLED, stalled_text
from rayflink.graph.job_graph import JobVertex

from ..exchange.frames import TaskAddress
from .messages import TaskFailure
from .states import ExecutionState, MoveHistory

REMEMBERED = 4
"""The number of ended attempts of a subtask that are remembered beside the present one."""


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
    metrics_ms: int = 0
    last_seen_ms: int = 0
    earlier: tuple[Execution, ...] = field(default=(), compare=False, repr=False)
    """The attempts of the subtask before this one, the oldest first."""
    history: MoveHistory = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.history = MoveHistory(self.title)

    def follow(self, ended: Execution) -> None:
        """Remember an attempt in whose place this one is, and the newest of those before it."""
        self.earlier, ended.earlier = (*ended.earlier, ended)[-REMEMBERED:], ()

    @property
    def place(self) -> tuple[str, int]:
        """Return the vertex id and the subtask, which are those of every attempt of the subtask."""
        return self.vertex.id, self.subtask

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
        stall = self.metrics.get(STALLED)
        return stalled_text(self.name, stall) if stall else ""

    def become(self, state: ExecutionState, now_ms: int, cause: str = "") -> None:
        """Change the state.

        Args:
            cause: why, in a few words, for the error of a later move that is not legal.

        Raises:
            IllegalTransition: there is no such move.
        """
        if not self.state.may_become(state):
            raise self.history.refusal(self.state.value, state.value, cause)
        self.history.add(self.state.value, state.value, now_ms, cause)
        self.state = state
        self.timestamps[state.value] = now_ms


@dataclass(frozen=True, slots=True)
class FailurePlace:
    """The attempt that failed.

    Args:
        vertex: its id.
        attempt: its number.
        host: of its process; "": not known.
        pid: of its process; 0: not known.
        begin: of its process, as its metrics have it.
    """

    vertex: str
    subtask: int
    attempt: int
    host: str = ""
    pid: int = 0
    begin: str = ""

    @classmethod
    def of(cls, failed: Execution | None) -> FailurePlace | None:
        """Return the place of an attempt; None for the coordinator."""
        if failed is None:
            return None
        read = failed.metrics.get
        host, pid, begin = str(read("host", "")), int(read("pid", 0)), str(read("begin", ""))
        return cls(str(failed.vertex.id), failed.subtask, failed.number, host, pid, begin)

    def describe(self) -> dict[str, Any]:
        """Return the place as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ExceptionEntry:
    """One failure in the job's history.

    Args:
        place: the attempt; None: the coordinator.
        is_concurrent: it came after another one, before the restart that this had caused.
    """

    timestamp_ms: int
    task: str
    failure: TaskFailure
    place: FailurePlace | None = None
    is_concurrent: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        failure, place = self.failure, self.place
        return {
            "timestamp": self.timestamp_ms,
            "task": self.task,
            "exception": failure.message,
            "kind": failure.kind,
            "traceback": failure.traceback,
            "operator": failure.operator,
            "line": failure.call_site,
            "record": failure.record,
            "place": None if place is None else place.describe(),
            "concurrent": self.is_concurrent,
        }


__all__ = ["ExceptionEntry", "Execution", "FailurePlace"]
