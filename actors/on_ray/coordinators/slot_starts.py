"""The processes of slots that start at a time, over all jobs whose coordinators share a process. Pure decisions."""

from __future__ import annotations

import threading
from collections.abc import Callable

LONGEST_S = 60.0
"""Time after which a job that has not started its processes counts no longer: something else keeps it."""
ASKS_WITHIN_S = 10.0
"""Time after which a job that asks no more, as it waits for something else, has lost its place in the queue."""


class SlotStarts:
    """Bounds how many processes of slots start at a time; jobs take their turns in the order in which they came.

    A process takes seconds of a CPU until its tasks run. Of fifty that start together on two CPUs, none is there before
    the last has nearly started, and all miss the deadlines for their answers. A job that needs more than the bound
    starts when no other does. Methods may be called from any thread.

    >>> starts = SlotStarts(most=lambda: 2)
    >>> starts.begin("a", 2, now=0.0), starts.begin("b", 1, now=0.0)
    (True, False)
    >>> starts.end("a")
    >>> starts.begin("c", 1, now=1.0), starts.begin("b", 1, now=1.0), starts.begin("c", 1, now=1.0)
    (False, True, True)

    Args:
        most: returns the number of processes that start at a time; None: any number.
    """

    def __init__(self, most: Callable[[], int] | None = None) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._under_way: dict[str, tuple[int, float]] = {}
        """Job -> its processes that start, and since when."""
        self._queue: dict[str, float] = {}
        """Job -> when it has asked last, in the order in which they came."""

    def begin(self, job: str, processes: int, now: float) -> bool:
        """Return whether a job may start processes now; if not, it has to ask again, and has its place in the queue.

        Args:
            job: any name of it.
            processes: the number that it starts; those that it has started before are there.
            now: seconds of a clock that goes on.
        """
        with self._lock:
            for other, (_, began) in list(self._under_way.items()):
                if now - began > LONGEST_S:
                    del self._under_way[other]
            for other, asked in list(self._queue.items()):
                if now - asked > ASKS_WITHIN_S:
                    del self._queue[other]
            self._under_way.pop(job, None)
            if processes and self._most is not None and not self._has_room(job, processes, self._most):
                self._queue[job] = now
                return False
            self._queue.pop(job, None)
            if processes:
                self._under_way[job] = (processes, now)
            return True

    def _has_room(self, job: str, processes: int, most: Callable[[], int]) -> bool:
        if next(iter(self._queue), job) != job:
            return False
        others = sum(number for number, _ in self._under_way.values())
        return not others or others + processes <= most()

    def end(self, job: str) -> None:
        """Note that the processes of a job have started, or that it starts none any more."""
        with self._lock:
            self._under_way.pop(job, None)
            self._queue.pop(job, None)


__all__ = ["SlotStarts"]
