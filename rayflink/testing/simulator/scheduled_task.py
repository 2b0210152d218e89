"""A task as the simulator sees it: whether it may step now, and if not, when."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.task.progress import Mail
from rayflink.actors.task.task import StreamTask

from .scheduler import ScheduledEvent

FOR_EVER = 1 << 62
"""A time that never comes."""


@dataclass(slots=True, eq=False)
class ScheduledTask:
    """One attempt, and its times in virtual milliseconds.

    Args:
        task: what runs.
        slot: where it runs.
        mailbox: the task's own; what is in it lets the task step.
        start: the event with which it begins.
        step: the event of a step; the same object each time.
        has_started: before that it does not step.
        is_awake: it has something to do at once, as far as is known.
        due_ms: when it has something to do though nothing comes.
        busy_until_ms: when its last step is over.
        frozen_until_ms: until then it does nothing; 0: it is not frozen.
        dies_at_ms: then it ends, if it was given up by then; None: not by itself.
    """

    task: StreamTask
    slot: Slot
    mailbox: deque[Mail]
    start: ScheduledEvent
    step: ScheduledEvent
    has_started: bool = False
    is_awake: bool = False
    due_ms: int = FOR_EVER
    busy_until_ms: int = 0
    frozen_until_ms: int = 0
    dies_at_ms: int | None = None

    def sleep(self) -> str:
        """Let the task sleep until a message or a time wakes it, and return the reason, for the story."""
        due = self.task.deadline_ms()
        self.is_awake, self.due_ms = False, FOR_EVER if due is None else due
        return self.task.waits_for() + (f"; has something to do at {due}" if due is not None else "")

    def next_ms(self) -> int:
        """Return when the task may step: a time that may have passed, or `FOR_EVER`."""
        if self.frozen_until_ms or not self.has_started:
            return FOR_EVER
        wakes_at = 0 if self.is_awake or self.mailbox else self.due_ms
        return max(wakes_at, self.busy_until_ms)


__all__ = ["FOR_EVER", "ScheduledTask"]
