"""The coordinator of a job of this program that has finished, which waits with its processes for the next job."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass

import ray
from ray.exceptions import RayError

from ..ray_handles import RayActor

ANSWER_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a job.

    Args:
        coordinator: which has those of the slots.
        since: seconds since 1970 when they were started, before they imported anything.
    """

    coordinator: RayActor
    since: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    processes: Processes
    cluster: str
    likeness: Hashable
    until: float


class IdleCoordinator:
    """The one coordinator that waits, with its processes; another one that comes to wait takes its place."""

    def __init__(self) -> None:
        self._waiting: _Waiting | None = None
        self._lock = threading.Lock()

    def put(self, processes: Processes, likeness: Hashable, timeout_s: float) -> None:
        """Let a coordinator wait.

        Args:
            likeness: what a job must have in common with its own to take it.
            timeout_s: how long it waits.
        """
        waiting = _Waiting(processes, _cluster(), likeness, time.monotonic() + timeout_s)
        with self._lock:
            before, self._waiting = self._waiting, waiting
        if before is not None and before.cluster == _cluster():
            ray.kill(before.processes.coordinator)

    def take(self, likeness: Hashable, changed: float) -> Processes | None:
        """Return the coordinator that waits, if the job is like its own and it is alive; else it ends.

        Args:
            changed: seconds since 1970 when the newest module of the job was changed; processes that have started
                before may have imported it as it was.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is None or waiting.cluster != _cluster():
            return None
        processes, is_in_time = waiting.processes, time.monotonic() < waiting.until
        is_current = waiting.likeness == likeness and changed < processes.since
        if is_in_time and is_current and _answers(processes.coordinator):
            return processes
        ray.kill(processes.coordinator)
        return None


def _cluster() -> str:
    """Return the address of the cluster that this process has joined; "" for none."""
    return str(ray.get_runtime_context().gcs_address) if ray.is_initialized() else ""


def _answers(coordinator: RayActor) -> bool:
    try:
        ray.get(coordinator.status.remote(), timeout=ANSWER_WITHIN_S)
    except RayError:
        return False
    return True


IDLE = IdleCoordinator()
"""That of this process."""

__all__ = ["IDLE", "IdleCoordinator", "Processes"]
