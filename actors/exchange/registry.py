"""The registry of a task for its consumers: result partitions to request, and listeners for events sent upstream.

Source: apache/flink ResultPartitionManager and TaskEventDispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .frames import PartitionId
from .partition import ResultPartition
from .subpartition import ExchangeError, Subpartition


class PartitionNotFound(ExchangeError):
    """A consumer requested a partition that its producer does not offer (yet)."""

    def __init__(self, partition: PartitionId, subpartition: int) -> None:
        super().__init__(partition, subpartition)
        self.partition, self.subpartition = partition, subpartition

    def __str__(self) -> str:
        return (
            f"PartitionNotFound: partition {self.partition.dataset} of producer {self.partition.producer}, "
            f"subpartition {self.subpartition}; the producer has not registered it or has given it up"
        )


class PartitionRegistry:
    """The result partitions of one execution attempt; a partition is known by data set and producer.

    Args:
        partitions: registered at once.
    Raises: ExchangeError: one of them stands twice.
    """

    def __init__(self, partitions: Iterable[ResultPartition] = ()) -> None:
        self._partitions: dict[PartitionId, ResultPartition] = {}
        self._listeners: dict[PartitionId, list[tuple[type, Callable[[object], None]]]] = {}
        self._shut_down = False
        for partition in partitions:
            self.register(partition)

    def register(self, partition: ResultPartition) -> None:
        """Offer a partition from now on.

        Raises:
            ExchangeError: it is offered already, or the registry was shut down.
        """
        if self._shut_down:
            raise ExchangeError("Result partition manager already shut down.")
        if partition.id in self._partitions:
            raise ExchangeError(f"Result partition already registered. ({partition.id})")
        self._partitions[partition.id] = partition

    def subpartition(self, partition: PartitionId, index: int) -> Subpartition:
        """Return one subpartition, for its consumer.

        Raises:
            PartitionNotFound: it is not registered, any more or yet, or has fewer subpartitions.
        """
        result_partition = self._partitions.get(partition)
        if result_partition is None or not 0 <= index < len(result_partition.subpartitions):
            raise PartitionNotFound(partition, index)
        return result_partition.subpartitions[index]

    def subscribe(self, partition: PartitionId, event: type, listener: Callable[[object], None]) -> None:
        """Call `listener` with every event of type `event` that a consumer sends upstream.

        Raises:
            PartitionNotFound: the partition is not registered.
        """
        if partition not in self._partitions:
            raise PartitionNotFound(partition, 0)
        self._listeners.setdefault(partition, []).append((event, listener))

    def publish(self, partition: PartitionId, event: object) -> bool:
        """Pass a consumer's event to its subscribers; return False when there is none."""
        hearing = [listener for kind, listener in self._listeners.get(partition, ()) if isinstance(event, kind)]
        for listener in hearing:
            listener(event)
        return bool(hearing)

    def shut_down(self) -> list[ResultPartition]:
        """Withdraw all partitions and return them; a second call returns none."""
        given_up = list(self._partitions.values())
        self._partitions.clear()
        self._listeners.clear()
        self._shut_down = True
        return given_up
