"""Deliveries of a broker as columns, and the run in which the reader gives them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rayflink.user_types import UserValue

DeliveryTag: TypeAlias = object
"""Whatever the connector acknowledges a delivery with."""


@dataclass(frozen=True)
class Deliveries:
    """Messages that came together, in order; all columns have the same length.

    >>> Deliveries([b"a", b"b"], tags=[7, 8]).describe(1)
    'delivery 8'

    Args:
        messages: as the schema takes them.
        tags: one a message, to be acknowledged with.
        ids: that producers gave to messages; None: a message has none. None for all: they are not used.
        timestamps: epoch milliseconds; None: the broker has none.
    """

    messages: Sequence[UserValue]
    tags: Sequence[DeliveryTag]
    ids: Sequence[str | None] | None = None
    timestamps: Sequence[int] | None = None

    def describe(self, index: int) -> str:
        """Return a name of a delivery for errors; a connector with better ones overrides it."""
        return f"delivery {self.tags[index]}"


@dataclass(frozen=True)
class QueueSplit:
    """The part of a queue that one reader consumes.

    Args:
        queue: its name.
        delivery_count: deliveries that this reader has given out, counted from its start.
        ids: of messages that may be delivered again, though they are in the checkpoint.
    """

    queue: str
    delivery_count: int = 0
    ids: tuple[str, ...] = ()

    @property
    def split_id(self) -> str:
        """Return the name of the queue."""
        return self.queue

    @property
    def is_finished(self) -> bool:
        """Return False: a queue has no end."""
        return False


class DeliveryRun:
    """Deliveries of one connection on their way to the reader, which leaves out those that were seen.

    Args:
        queue: its name.
        place: of the queue, for errors.
        deliveries: in order.
        connection: number of the connection that they came by, from 1.
        received_until_s: `time.monotonic()`; what the broker had sent by then is in this run or in those before it.
    """

    def __init__(
        self, queue: str, place: str, deliveries: Deliveries, connection: int, received_until_s: float = 0.0
    ) -> None:
        self.split_id, self._place, self.deliveries, self.connection = queue, place, deliveries, connection
        self.received_until_s = received_until_s
        self._before = 0
        self._kept: Sequence[int] = range(len(deliveries.tags))
        self.messages = deliveries.messages

    def number(self, before: int, indices: Sequence[int] | None = None) -> None:
        """Set the numbers of the deliveries, which ascend by one.

        Args:
            before: number of the last delivery before these.
            indices: indices of those that were not seen before; None: all.
        """
        self._before = before
        if indices is not None and len(indices) < len(self._kept):
            self._kept = indices
            self.messages = [self.deliveries.messages[index] for index in indices]

    def timestamps(self, start: int, stop: int) -> list[int] | None:
        """Return the epoch milliseconds of messages [start, stop); None: there are none."""
        stamps = self.deliveries.timestamps
        return None if stamps is None else [stamps[index] for index in self._kept[start:stop]]

    def place_of(self, index: int) -> str:
        """Return the queue and the delivery of a message."""
        return f"{self._place}, {self.deliveries.describe(self._kept[index])}"

    def split_after(self, count: int) -> QueueSplit:
        """Return the position behind the first `count` messages, and behind what was left out after them."""
        indices = self._kept
        behind = indices[count] if count < len(indices) else len(self.deliveries.tags)
        return QueueSplit(self.split_id, self._before + behind)


__all__ = ["Deliveries", "DeliveryRun", "DeliveryTag", "QueueSplit"]
