"""The events of a simulated run, move by move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rayflink.actors.messages.commands import JobResult
from rayflink.actors.messages.messages import CheckpointAcknowledged, CheckpointDeclined
from rayflink.actors.messages.states import JobStatus

TAIL = 40
"""Moves shown of a run that failed."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of a story.

    Args:
        move: number of the move, from 1.
        now_ms: the virtual time.
        what: what happened, such as "step" or "kill".
        who: to which task, coordinator or storage.
        detail: more about it; may be "".
    """

    move: int
    now_ms: int
    what: str
    who: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.move:6} {self.now_ms:8} ms  {self.what:9} {self.who}  {self.detail}".rstrip()


@dataclass
class Story:
    """A run: its seed, its moves, and how it ended.

    Args:
        acknowledged: checkpoint id -> the parts that tasks acknowledged, by task name.
        declined: the checkpoints that tasks declined, in order.
        peak_buffers: task name -> the most batches that waited in its inputs and outputs at a time.
        completed: numbers of the checkpoints and savepoints that were written whole, in order.
        savepoints: addresses of the savepoints that were requested and taken.
        stopped_with: address of the savepoint that stopped the job; "": none did.
        restarts: number of restarts after a failure.
        rescales: number of changes of parallelism while the job ran.
        coordinators: number of times another coordinator took over.
    """

    seed: int
    happenings: list[Happening] = field(default_factory=list)
    result: JobResult | None = None
    acknowledged: dict[int, dict[str, CheckpointAcknowledged]] = field(default_factory=dict)
    declined: list[CheckpointDeclined] = field(default_factory=list)
    peak_buffers: dict[str, int] = field(default_factory=dict)
    completed: list[int] = field(default_factory=list)
    savepoints: list[str] = field(default_factory=list)
    stopped_with: str = ""
    restarts: int = 0
    rescales: int = 0
    coordinators: int = 0

    @property
    def status(self) -> JobStatus:
        """Return how the job ended."""
        assert self.result is not None, "the run has not ended"
        return self.result.status

    @property
    def failure(self) -> str:
        """Return the message of the job's first failure, or ""."""
        return "" if self.result is None or self.result.failure is None else self.result.failure.message

    def record(self, event: object, task: str) -> None:
        """Record a message of a task, where it is about a checkpoint."""
        if isinstance(event, CheckpointAcknowledged):
            self.acknowledged.setdefault(event.checkpoint_id, {})[task] = event
        elif isinstance(event, CheckpointDeclined):
            self.declined.append(event)

    def tail(self, moves: int = TAIL) -> str:
        """Return the last moves, one a line."""
        return "\n".join(map(str, self.happenings[-moves:]))

    def accumulators(self) -> Mapping[str, Any]:
        """Return the merged accumulators of a job that finished.

        Raises:
            AssertionError: it did not; shows the seed and the tail of the story.
        """
        assert self.result is not None, "the run has not ended"
        if self.result.status is not JobStatus.FINISHED:
            raise AssertionError(self.describe(f"the job is {self.result.status.value}: {self.failure}"))
        return self.result.accumulators

    def collected(self, name: str = "collect") -> list[Any]:
        """Return the records of a collecting sink of a job that finished; [] when none came.

        Raises:
            AssertionError: the job did not finish.
        """
        return list(self.accumulators().get(name) or [])

    def describe(self, problem: str) -> str:
        """Return the message of a failed run: the problem, the seed that repeats it, and the last moves."""
        return f"seed {self.seed}: {problem}\nthe last moves:\n{self.tail()}"
