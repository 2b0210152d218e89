"""The pace at which a coordinator looks at the clock: often while its job changes, seldom while it only runs. Pure."""

from __future__ import annotations

from ..messages.states import JobStatus

TICK_S = 0.2
"""Time between two ticks of a job that starts, changes or ends."""
QUIET_TICK_S = 1.0
"""Time between two ticks of a job that runs, where nothing is due before."""
SETTLES_S = 1.0
"""Time without any event but heartbeats after which a job that runs is quiet."""


class TickPace:
    """Says when the next tick of a job is due. Times are in seconds, of one clock.

    >>> pace = TickPace(changed=0.0)
    >>> pace.next_tick(last=1.0, now=1.1, status=JobStatus.RUNNING, due=None)
    1.2
    >>> pace.next_tick(last=2.0, now=2.1, status=JobStatus.RUNNING, due=None)
    3.0
    >>> pace.next_tick(last=2.0, now=2.1, status=JobStatus.RUNNING, due=2.5)
    2.5

    Args:
        changed: when the job has begun.
    """

    def __init__(self, changed: float) -> None:
        self._changed = changed

    def changed(self, now: float) -> None:
        """Note an event that is no heartbeat."""
        self._changed = now

    def next_tick(self, last: float, now: float, status: JobStatus, due: float | None) -> float:
        """Return when the tick after the one at `last` is due.

        Args:
            last: the newest tick.
            now: the present.
            status: of the job.
            due: when there is something to do by the clock; None: nothing is known.
        """
        if status is not JobStatus.RUNNING or last - self._changed <= SETTLES_S or self._changed > last:
            return last + TICK_S
        latest = last + QUIET_TICK_S
        return latest if due is None else min(max(due, last + TICK_S), latest)


__all__ = ["TickPace"]
