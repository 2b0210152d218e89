"""The mark of a snapshot of PostgreSQL: the transactions that it shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rayflink.connectors.cdc.chunks import SnapshotMark

_HALF = 2**31


@dataclass(frozen=True)
class PostgresMark(SnapshotMark):
    """The transactions that a snapshot shows, as `pg_current_snapshot()` writes them.

    A position of the log would not do: a transaction is in the log before others see it, and longer so where its commit
    waits for a synchronous standby.

    >>> mark = PostgresMark("100:105:102,103", 4711)
    >>> [xid for xid in range(98, 108) if mark.contains(xid)]
    [98, 99, 100, 101, 104]

    Args:
        snapshot: `xmin:xmax:xip,...`, numbers of 64 bits.
        position: of the log, when the snapshot had been taken.
    """

    snapshot: str
    position: int

    @cached_property
    def _parts(self) -> tuple[int, int, frozenset[int]]:
        xmin, xmax, running = self.snapshot.split(":")
        return int(xmin), int(xmax), frozenset(map(int, running.split(","))) if running else frozenset()

    @property
    def high(self) -> int:
        return self.position

    def contains(self, transaction: int) -> bool:
        """Return whether the snapshot shows a transaction, by the lower 32 bits of its number."""
        xmin, xmax, running = self._parts
        xid = xmax + (transaction - xmax + _HALF) % 2**32 - _HALF
        return xid < xmin or (xid < xmax and xid not in running)


__all__ = ["PostgresMark"]
