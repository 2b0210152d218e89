"""The pace of a coordinator: often while its job changes, seldom while it only runs. Pure decisions."""

from __future__ import annotations

from ..messages.states import JobStatus

TICK_S = 0.2
"""Time between two ticks of a job that starts, changes or ends."""
QUIET_TICK_S = 1.0
"""Time between two ticks of a job that runs, where nothing is due before."""
SETTLES_S = 1.0
"""Time without any event but heartbeats after which a job that runs is quiet."""
STATUS_S = 2.0
"""Time after which a job is described anew although nothing has happened: durations in its status go on."""


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


class StatusPace:
    """Says at which ticks a job is described for its readers, which takes time in proportion to its tasks.

    >>> pace = StatusPace()
    >>> pace.is_due(now=5.0)
    True
    >>> pace.described(now=5.0)
    >>> pace.is_due(now=6.0), pace.is_due(now=7.0)
    (False, True)
    >>> pace.changed()
    >>> pace.is_due(now=5.2)
    True
    """

    def __init__(self) -> None:
        self._described_s, self._is_stale = 0.0, True

    def changed(self) -> None:
        """Note that something has happened since the last description, such as a heartbeat."""
        self._is_stale = True

    def described(self, now: float) -> None:
        """Note a description."""
        self._described_s, self._is_stale = now, False

    def is_due(self, now: float) -> bool:
        """Return whether a tick describes the job."""
        return self._is_stale or now - self._described_s >= STATUS_S


__all__ = ["StatusPace", "TickPace"]
