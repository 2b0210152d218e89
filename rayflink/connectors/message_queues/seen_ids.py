"""The ids of messages that were seen, so that a message which is delivered again is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, takewhile

RETENTION_MS = 60_000
"""Milliseconds for which the id of an acknowledged message is kept: the acknowledgement may not have arrived."""
MOST_ACKNOWLEDGED = 100_000
"""Ids of acknowledged messages that are kept, at most."""


class SeenIds:
    """Decides which messages were seen before.

    An id is kept until its message is acknowledged, and for a while after, in which the connection must have stood: an
    acknowledgement that was lost with its connection has the message delivered again soon after the next one is open.

    >>> seen = SeenIds()
    >>> seen.take(["a", "b", "a"], before=0), seen.take(["b", "c"], before=3)
    ([0, 1], [1])
    >>> seen.given_out(1), seen.given_out(5)
    (('a',), ('a', 'b', 'c'))

    Args:
        retention_ms: for which the id of an acknowledged message is kept.
        most_acknowledged: of them that are kept.
    """

    def __init__(self, retention_ms: int = RETENTION_MS, most_acknowledged: int = MOST_ACKNOWLEDGED) -> None:
        self._retention_ms, self._most_acknowledged = retention_ms, most_acknowledged
        self._waiting: dict[str, int] = {}  # number of the delivery, ascending
        self._repeated: dict[str, int] = {}  # number of the newest delivery that was dropped
        self._acknowledged: dict[str, int] = {}  # time of the acknowledgement, ascending

    def restore(self, ids: Iterable[str], now_ms: int) -> None:
        """Add the ids of a checkpoint."""
        self._acknowledged.update(dict.fromkeys(ids, now_ms))

    def take(self, ids: Sequence[str], before: int) -> list[int]:
        """Return the indices of the messages that were not seen before.

        Args:
            before: number of the last delivery before them.
        """
        waiting, acknowledged = self._waiting, self._acknowledged
        positions: list[int] = []
        for index, message_id in enumerate(ids):
            if message_id in waiting or message_id in acknowledged:
                self._repeated[message_id] = before + index + 1
            else:
                waiting[message_id] = before + index + 1
                positions.append(index)
        return positions

    def given_out(self, number: int) -> tuple[str, ...]:
        """Return the ids for a checkpoint that contains the deliveries up to a number."""
        waiting = self._waiting
        return (*self._acknowledged, *takewhile(lambda message_id: waiting[message_id] <= number, waiting))

    def acknowledge(self, number: int, now_ms: int) -> None:
        """Note that the deliveries up to a number are acknowledged."""
        waiting, acknowledged = self._waiting, self._acknowledged
        done = list(takewhile(lambda message_id: waiting[message_id] <= number, waiting))
        for message_id in done:
            del waiting[message_id]
        again = [message_id for message_id, newest in self._repeated.items() if newest <= number]
        for message_id in again:
            del self._repeated[message_id]
            acknowledged.pop(message_id, None)
        acknowledged.update(dict.fromkeys(done, now_ms))
        acknowledged.update(dict.fromkeys(again, now_ms))

    def forget(self, taken_until_ms: int, connected_since_ms: int | None) -> None:
        """Forget the ids whose messages cannot be delivered again.

        Args:
            taken_until_ms: what the broker had sent by then was taken.
            connected_since_ms: None: there is no connection.
        """
        until_ms = taken_until_ms - self._retention_ms
        if connected_since_ms is not None and connected_since_ms <= until_ms:
            acknowledged, repeated = self._acknowledged, self._repeated
            old = takewhile(lambda message_id: acknowledged[message_id] <= until_ms, acknowledged)
            self._remove([message_id for message_id in old if message_id not in repeated])
        self._remove(list(islice(self._acknowledged, max(0, len(self._acknowledged) - self._most_acknowledged))))

    def _remove(self, ids: Iterable[str]) -> None:
        for message_id in ids:
            del self._acknowledged[message_id]

    def __len__(self) -> int:
        return len(self._waiting) + len(self._acknowledged)


__all__ = ["MOST_ACKNOWLEDGED", "RETENTION_MS", "SeenIds"]
