"""Pauses in a long firing of timers or windows, in which its task handles its mail and its outputs.

A firing may mean a million calls of a function that emits nothing, or one call of a second: results alone do not say
how long it works. So it also pauses after some calls, and after some time; whether it goes on the task decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from rayflink.common.records.batches import Element, RowBatch

from ..base import ProcessingTime

FIRING_RECORDS = 4096
"""Results after which a firing hands them on."""
FIRING_CALLS = 63
"""Calls after which a firing pauses; results go on gathering."""
FIRING_SECONDS = 0.002
"""Time after which a firing pauses and hands on the results it has."""


class Results(Protocol):
    """A place where the results of calls gather; an `OutputBuffer` is one."""

    count: int

    def take(self) -> list[Element]:
        """Remove and return what has gathered."""


def paced(calls: Iterable[object], out: Results, clock: ProcessingTime) -> Iterator[Element]:
    """Make the calls of a firing one by one; yields what `out` gathers meanwhile, and an empty batch for a mere pause.

    The clock is read after the 1st, 3rd, 7th and 15th call since the last pause, then after every 8th.

    Args:
        calls: makes one call of the user's code each time it is asked for the next.
        out: where the results of the calls go.
        clock: measures the calls.
    """
    monotonic = clock.monotonic
    since, calls_made, look_at = monotonic(), 0, 1
    for _ in calls:
        calls_made += 1
        if out.count >= FIRING_RECORDS:
            yield from out.take()
        elif calls_made < look_at:
            continue
        elif monotonic() - since >= FIRING_SECONDS:
            yield from out.take() or (RowBatch([]),)
        elif calls_made >= FIRING_CALLS:
            yield RowBatch([])
        else:
            look_at = min(2 * look_at + 1, look_at + 8)
            continue
        since, calls_made, look_at = monotonic(), 0, 1
    yield from out.take()


__all__ = ["FIRING_CALLS", "FIRING_RECORDS", "FIRING_SECONDS", "paced"]
