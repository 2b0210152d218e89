"""The deliveries that were given to the task and are not acknowledged yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from .deliveries import DeliveryTag


@dataclass(frozen=True)
class Acknowledgement:
    """Deliveries of one connection that may be acknowledged.

    Args:
        connection: its number.
        tags: in the order of delivery.
    """

    connection: int
    tags: Sequence[DeliveryTag]


class UnacknowledgedDeliveries:
    """Numbers deliveries, and decides which of them a complete checkpoint acknowledges.

    A broker takes back what a connection has not acknowledged when it ends, so only tags of the newest are of use.

    >>> deliveries = UnacknowledgedDeliveries()
    >>> deliveries.add(1, ["a", "b", "c"]), deliveries.add(1, ["d"]), len(deliveries)
    (0, 3, 4)
    >>> deliveries.confirm(2), deliveries.confirm(4), deliveries.confirm(4)
    (Acknowledgement(connection=1, tags=['a', 'b']), Acknowledgement(connection=1, tags=['c', 'd']), None)
    """

    def __init__(self) -> None:
        self._connection = self._count = self._last = 0
        self._runs: deque[tuple[int, Sequence[DeliveryTag]]] = deque()  # number before the first, tags

    def add(self, connection: int, tags: Sequence[DeliveryTag]) -> int:
        """Number further deliveries; return the number before the first."""
        if connection != self._connection:
            self._runs.clear()
            self._connection, self._count = connection, 0
        before = self._last
        self._runs.append((before, tags))
        self._last += len(tags)
        self._count += len(tags)
        return before

    def confirm(self, number: int) -> Acknowledgement | None:
        """Return what to acknowledge when all deliveries up to a number are safe; None: nothing.

        Args:
            number: of the last one; smaller ones than before change nothing.
        """
        tags: list[DeliveryTag] = []
        while self._runs and self._runs[0][0] < number:
            before, waiting = self._runs.popleft()
            behind = number - before
            tags += waiting[:behind]
            if behind < len(waiting):
                self._runs.appendleft((number, waiting[behind:]))
        self._count -= len(tags)
        return Acknowledgement(self._connection, tags) if tags else None

    def __len__(self) -> int:
        return self._count


__all__ = ["Acknowledgement", "UnacknowledgedDeliveries"]
