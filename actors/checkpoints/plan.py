"""The kind of a checkpoint, and the tasks that take part in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rayflink.common.options.stop_mode import StopMode

from ..exchange.frames import TaskAddress


@dataclass(frozen=True, slots=True)
class CheckpointedJob:
    """The job whose checkpoints are coordinated.

    Args:
        job_id: 32 hex digits.
        epoch: of its coordinator, one more with each that takes over.
    """

    job_id: str
    job_name: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class OperatorPlace:
    """An operator of the job, under the names by which its state is found again."""

    operator_id: str
    uid: str
    name: str
    parallelism: int
    max_parallelism: int
    vertex_id: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """The participants of a checkpoint that is triggered now; attempts without a slot are not among them.

    Args:
        trigger: who puts the barrier into its streams: sources, and tasks all of whose producers have finished.
        acknowledge: who has state to give -> (vertex id, subtask).
        commit_to: the tasks that are notified that it is complete.
        finished: operator id -> its subtasks that have ended, and have no state any more.
        operators: all of the job.
    """

    trigger: tuple[TaskAddress, ...]
    acknowledge: Mapping[TaskAddress, tuple[str, int]]
    commit_to: tuple[TaskAddress, ...]
    finished: Mapping[str, frozenset[int]] = field(default_factory=dict)
    operators: tuple[OperatorPlace, ...] = ()

    @property
    def everybody(self) -> tuple[TaskAddress, ...]:
        """Return all participants, each once."""
        return tuple(dict.fromkeys((*self.acknowledge, *self.commit_to)))

    @property
    def subtasks(self) -> dict[str, list[int]]:
        """Return for each vertex id the indexes of its subtasks that acknowledge."""
        subtasks: dict[str, list[int]] = {}
        for vertex, subtask in self.acknowledge.values():
            subtasks.setdefault(vertex, []).append(subtask)
        return subtasks


@dataclass(frozen=True, slots=True)
class CheckpointProperties:
    """The kind of checkpoint that is wanted.

    Args:
        is_savepoint: somebody asked for it and owns it.
        location: address of a savepoint's own folder; "" for a checkpoint.
        stop: the job ends with it; None: the job goes on.
        request_id: of who asked; "" for a checkpoint by the clock.

    Raises:
        ValueError: a checkpoint should stop the job.
    """

    is_savepoint: bool = False
    location: str = ""
    stop: StopMode | None = None
    request_id: str = ""

    def __post_init__(self) -> None:
        if self.stop is StopMode.DRAIN and not self.is_savepoint:
            raise ValueError("Only synchronous savepoints are allowed to advance the watermark to MAX.")
        if self.stop is not None and not self.is_savepoint:
            raise ValueError(
                f"only a savepoint can stop a job, found a checkpoint with {self.stop}; ask for a savepoint"
            )

    @property
    def kind(self) -> str:
        """Return the kind under its name in the statistics."""
        if not self.is_savepoint:
            return "CHECKPOINT"
        return "SAVEPOINT" if self.stop is None else "SYNC_SAVEPOINT"


PERIODIC = CheckpointProperties()
"""A checkpoint as the coordinator takes them by itself."""

__all__ = ["PERIODIC", "CheckpointPlan", "CheckpointProperties", "CheckpointedJob", "OperatorPlace"]
