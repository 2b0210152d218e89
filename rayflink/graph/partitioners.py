"""Partitioners, which distribute records to the subtasks of the next operator, as values; the runtime implements them.

`str(partitioner)` is Flink's printed name, which the execution plan shows as "ship strategy".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from rayflink.user_types import UserCode


class DistributionPattern(Enum):
    """The producers that a consumer of a result is connected to."""

    POINTWISE = "POINTWISE"
    """Each consumer reads some producers: one to one, or a balanced share."""
    ALL_TO_ALL = "ALL_TO_ALL"
    """Each consumer reads every producer."""


@dataclass(frozen=True)
class Partitioner:
    """A strategy of distribution; compare strategies with `==`, distinguish kinds with `isinstance`."""

    printed: ClassVar[str]
    """Flink's name of the strategy."""
    is_pointwise: ClassVar[bool] = False
    """True when the edge joins producers and consumers POINTWISE."""
    supports_unaligned: ClassVar[bool] = True
    """True when barriers may overtake the data of the edge."""

    @property
    def pattern(self) -> DistributionPattern:
        """Return how the subtasks at both ends are connected."""
        return DistributionPattern.POINTWISE if self.is_pointwise else DistributionPattern.ALL_TO_ALL

    def __str__(self) -> str:
        return self.printed


@dataclass(frozen=True)
class Forward(Partitioner):
    """Sends records to the one consumer with the producer's own index; both ends have one parallelism."""

    printed = "FORWARD"
    is_pointwise = True
    supports_unaligned = False


@dataclass(frozen=True)
class Rebalance(Partitioner):
    """Sends records to all consumers in turn."""

    printed = "REBALANCE"


@dataclass(frozen=True)
class Rescale(Partitioner):
    """Sends records in turn to the few consumers that a producer is connected with POINTWISE."""

    printed = "RESCALE"
    is_pointwise = True
    supports_unaligned = False


@dataclass(frozen=True)
class Broadcast(Partitioner):
    """Every record to every consumer."""

    printed = "BROADCAST"
    supports_unaligned = False


@dataclass(frozen=True)
class Shuffle(Partitioner):
    """Sends each record to a consumer drawn evenly at random."""

    printed = "SHUFFLE"


@dataclass(frozen=True)
class Global(Partitioner):
    """Everything to the first consumer."""

    printed = "GLOBAL"


@dataclass(frozen=True)
class GlobalInOrder(Global):
    """Everything to the first consumer; no barrier overtakes it."""

    supports_unaligned = False


@dataclass(frozen=True)
class KeyGroup(Partitioner):
    """Sends each record to the consumer that owns the key group of the record's key.

    Args:
        key_selector: record -> key; does not take part in comparison.
        max_parallelism: key groups of the consumer; None until the job graph is made, which fills it in.
    """

    key_selector: Callable[[Any], Any] = field(compare=False, repr=False)
    max_parallelism: int | None = None
    printed = "HASH"


@dataclass(frozen=True)
class Custom(Partitioner):
    """Sends each record to the consumer that a user's function chooses.

    Args:
        partitioner: a Partitioner, or (key, number of consumers) -> index; does not take part in comparison.
        key_selector: record -> key; does not take part in comparison.
    """

    partitioner: UserCode = field(compare=False, repr=False)
    key_selector: Callable[[Any], Any] = field(compare=False, repr=False)
    printed = "CUSTOM"
