"""Small values that operators carry through all graphs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .errors import PlanError

DEFAULT_SLOT_SHARING_GROUP = "default"
"""The group of an operator that names none and whose inputs name none."""


class ChainingStrategy(Enum):
    """The neighbours with which an operator may share a task."""

    ALWAYS = "ALWAYS"
    """The producer and the consumers."""
    HEAD = "HEAD"
    """The consumers only: the operator starts a chain."""
    NEVER = "NEVER"
    """None of the neighbours."""
    HEAD_WITH_SOURCES = "HEAD_WITH_SOURCES"
    """The consumers, and a producer that is a source."""


class NodeKind(Enum):
    """The role of an operator for the task that runs it."""

    SOURCE = "SOURCE"
    ONE_INPUT = "ONE_INPUT"
    TWO_INPUT = "TWO_INPUT"
    MULTIPLE_INPUT = "MULTIPLE_INPUT"
    """Takes the records of several inputs, each of which has a number."""
    SINK = "SINK"
    ITERATION_HEAD = "ITERATION_HEAD"
    """Takes what the tail of its iteration feeds back."""
    ITERATION_TAIL = "ITERATION_TAIL"
    """Feeds what it gets back to the head of its iteration."""

    @property
    def is_source(self) -> bool:
        """Return whether the operator has no input in the graph."""
        return self in (NodeKind.SOURCE, NodeKind.ITERATION_HEAD)

    @property
    def is_sink(self) -> bool:
        """Return whether the operator has no output in the graph."""
        return self in (NodeKind.SINK, NodeKind.ITERATION_TAIL)


class ExchangeMode(Enum):
    """The time from which the consumer of an edge may read, as far as the program sets it."""

    UNDEFINED = "UNDEFINED"
    """The job's mode decides."""
    PIPELINED = "PIPELINED"
    """While the producer runs."""
    BATCH = "BATCH"
    """After the producer has finished."""


class ResultPartitionType(Enum):
    """The storage of a vertex's result for its consumer."""

    BLOCKING = "BLOCKING"
    PIPELINED = "PIPELINED"
    PIPELINED_BOUNDED = "PIPELINED_BOUNDED"

    @property
    def is_pipelined(self) -> bool:
        """Return whether the consumer may start after the first buffer; else it starts after the producer finished."""
        return self is not ResultPartitionType.BLOCKING

    @property
    def has_back_pressure(self) -> bool:
        """Return whether a slow consumer slows its producer."""
        return self.is_pipelined

    @property
    def is_bounded(self) -> bool:
        """Return whether the number of buffers in flight is bounded."""
        return self is ResultPartitionType.PIPELINED_BOUNDED


@dataclass(frozen=True)
class ResourceSpec:
    """The resources that a subtask of an operator requests of its slot; absent (None) wherever nothing is known.

    Args:
        cpu_cores: fractions allowed, >= 0.
        memory_mb: mebibytes, >= 0.
        extended: other Ray resources, (name, amount), sorted by name.
    """

    cpu_cores: float = 0.0
    memory_mb: int = 0
    extended: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if self.cpu_cores < 0 or self.memory_mb < 0 or any(amount < 0 for _, amount in self.extended):
            raise PlanError(f"resources must be >= 0, found {self}", "leave out what is not needed")
        object.__setattr__(self, "extended", tuple(sorted(self.extended)))

    def merge(self, other: ResourceSpec) -> ResourceSpec:
        """Return the sum of both: what two chained operators need together."""
        extended = dict(self.extended)
        for name, amount in other.extended:
            extended[name] = extended.get(name, 0.0) + amount
        return ResourceSpec(self.cpu_cores + other.cpu_cores, self.memory_mb + other.memory_mb, tuple(extended.items()))

    def fits_in(self, other: ResourceSpec) -> bool:
        """Return whether no part of this exceeds the same part of `other`."""
        theirs = dict(other.extended)
        return (
            self.cpu_cores <= other.cpu_cores
            and self.memory_mb <= other.memory_mb
            and all(amount <= theirs.get(name, 0.0) for name, amount in self.extended)
        )


def merge_resources(specs: list[ResourceSpec | None]) -> ResourceSpec | None:
    """Return the sum of all; None as soon as one is None, since the whole is then not known."""
    total = ResourceSpec()
    for spec in specs:
        if spec is None:
            return None
        total = total.merge(spec)
    return total
