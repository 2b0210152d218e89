"""The process in which a coordinator lives, as the coordinator sees it: its own actor, a log, and the end."""

from __future__ import annotations

import os
import time
from typing import Protocol

import ray

from rayflink.common.text_output.logs import get_logger

from ..ray_handles import RayActor
from ..slots.slot_hosts import SlotHosts
from ..task_log import TaskLog, log_goes_to
from .slot_starts import SlotStarts

log = get_logger(__name__)

LEAVE_WITHIN_S = 10.0
"""Time for Ray to end a process that has asked for it."""


class CoordinatorHome(Protocol):
    """The process of a coordinator.

    `starts` bounds the processes of slots that its coordinators start at a time, and `hosts` are those that slots of
    its jobs share.
    """

    starts: SlotStarts
    hosts: SlotHosts

    def actor(self) -> RayActor:
        """Return the coordinator as the tasks of its job call it."""

    def log_goes_to(self, task_log: TaskLog) -> None:
        """Route what the coordinator logs to the log of its job."""

    def answer(self) -> None:
        """Answer calls from now on: the coordinator is about to begin."""

    def leave(self) -> None:
        """End the coordinator, for good."""


class OwnProcess:
    """A process of one job alone.

    Args:
        returns: whether Ray makes another process in the place of this one where it only ends.
    """

    def __init__(self, returns: bool) -> None:
        self._returns, self.starts, self.hosts = returns, SlotStarts(), SlotHosts()

    def actor(self) -> RayActor:
        """Return this process."""
        return ray.get_runtime_context().current_actor

    def log_goes_to(self, task_log: TaskLog) -> None:
        """Route all records of this process to the log."""
        log_goes_to(task_log)

    def answer(self) -> None:
        """Do nothing: calls wait for each other."""

    def leave(self) -> None:
        """End this process."""
        if self._returns:
            try:
                ray.kill(ray.get_runtime_context().current_actor)
                time.sleep(LEAVE_WITHIN_S)
            except Exception:  # Ray answers no more, and so makes no other
                log.exception("Ray could not be asked to end this process")
        os._exit(0)


__all__ = ["CoordinatorHome", "OwnProcess"]
