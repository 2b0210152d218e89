"""The heartbeats of the tasks of a slot, which go to the coordinator in one call."""

from __future__ import annotations

import threading

from ...exchange.frames import TaskAddress
from ...messages.messages import TaskReport


class SlotHeartbeats:
    """Collects a heartbeat of each task of a process; any thread may add one.

    >>> slot, one, two = SlotHeartbeats(), TaskReport("map#0", {}), TaskReport("sink#0", {})
    >>> slot.add(one, 2)
    []
    >>> [report.attempt for report in slot.add(two, 2)]
    ['map#0', 'sink#0']
    """

    def __init__(self) -> None:
        self._waiting: dict[TaskAddress, TaskReport] = {}
        self._lock = threading.Lock()

    def add(self, report: TaskReport, tasks: int) -> list[TaskReport]:
        """Return the heartbeats to send now: all that wait, once each task has one, or one task has its second.

        Args:
            report: of a task that runs.
            tasks: number of tasks in the process; one that does not return from a function adds none.
        """
        with self._lock:
            is_due = report.attempt in self._waiting or len(self._waiting) + 1 >= tasks
            self._waiting[report.attempt] = report
            if not is_due:
                return []
            due, self._waiting = list(self._waiting.values()), {}
            return due

    def take(self, attempt: TaskAddress) -> list[TaskReport]:
        """Return the heartbeat of a task that waits, to be sent before what the task reports now; [] for none."""
        with self._lock:
            waiting = self._waiting.pop(attempt, None)
            return [] if waiting is None else [waiting]


__all__ = ["SlotHeartbeats"]
