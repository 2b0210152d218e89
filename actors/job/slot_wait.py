"""The wait of a job for slots: its limit, and its description in status, log and on the driver's terminal. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..messages.states import ExecutionState, JobStatus

LOOK_EVERY_S = 2.0
"""Seconds between two looks of a waiting job at the cluster's resources."""
LOG_EVERY_S = 30.0
"""Seconds between two lines in its log."""
_NOT_DEPLOYED = {ExecutionState.CREATED.value, ExecutionState.SCHEDULED.value, ExecutionState.DEPLOYING.value}


@dataclass
class SlotRequest:
    """The newest request of a job for slots, and the time that it may take.

    Args:
        timeout_ms: within which all slots have to be there (slot.request.timeout).
        asked_ms: when they were requested, in epoch milliseconds.
    """

    timeout_ms: int
    asked_ms: int = 0

    def is_overdue(self, now_ms: int) -> bool:
        """Return whether the slots should have been there by now."""
        return now_ms - self.asked_ms > self.timeout_ms

    def refusal(self, required: int, resources: str, now_ms: int) -> str:
        """Return the message for a request that is given up.

        >>> print(SlotRequest(500, 1_000).refusal(2, "one CPU", 1_600))
        Could not allocate all required slots within timeout of 600 ms. Slots required: 2, slots allocated: 0; \
found: one CPU; lower the parallelism, add nodes, or raise slot.request.timeout

        Args:
            required: the number of slots.
            resources: those of the cluster.
        """
        return (
            f"Could not allocate all required slots within timeout of {now_ms - self.asked_ms} ms. "
            f"Slots required: {required}, slots allocated: 0; found: {resources}; "
            "lower the parallelism, add nodes, or raise slot.request.timeout"
        )


class SlotWait:
    """The waits of a job for slots, one after the other. Times are in seconds.

    >>> wait = SlotWait()
    >>> wait.begin(0.0, "2 slots of 1 CPU")
    >>> wait.reason
    'waiting for 2 slots of 1 CPU'
    >>> wait.look(2.0, "the cluster has 1 CPUs, 1 of them free")
    ['waiting for 2 slots of 1 CPU; the cluster has 1 CPUs, 1 of them free']
    >>> wait.look(4.0, "the cluster has 1 CPUs, 1 of them free")
    []
    >>> wait.end(20.0), wait.reason
    (['has its slots, after 20 s'], '')
    """

    def __init__(self) -> None:
        self.reason = ""
        """The slots that the job waits for; "" for none."""
        self._wanted = ""
        self._began = self._looked = 0.0
        self._logged: float | None = None

    @property
    def note(self) -> str:
        """Return the reason of a wait that is not over at once; "" before."""
        return self.reason if self._logged is not None else ""

    def begin(self, now: float, wanted: str) -> None:
        """Begin a wait: slots were requested."""
        self._wanted, self._began, self._looked, self._logged = wanted, now, now, None
        self.reason = f"waiting for {wanted}"

    def is_due(self, now: float) -> bool:
        """Return whether the next look at the cluster's resources is due."""
        return bool(self.reason) and now - self._looked >= LOOK_EVERY_S

    def look(self, now: float, room: str) -> list[str]:
        """Note the resources of the cluster, and return the lines for the log."""
        self._looked = now
        self.reason = f"waiting for {self._wanted}; {room}"
        if self._logged is not None and now - self._logged < LOG_EVERY_S:
            return []
        self._logged = now
        return [self.reason]

    def end(self, now: float) -> list[str]:
        """End the wait, as the slots are there or no longer needed; return the lines for the log."""
        was_logged, self.reason, self._logged = self._logged is not None, "", None
        return [f"has its slots, after {now - self._began:.0f} s"] if was_logged else []


def described_waiting(status: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Return a job's status while it waits for slots: `waiting` is the reason; if nothing runs, it is CREATED."""
    states = {state for vertex in status["vertices"] for state in vertex["states"]}
    waits_whole = status["state"] == JobStatus.RUNNING.value and states <= _NOT_DEPLOYED
    return {**status, "waiting": reason, **({"state": JobStatus.CREATED.value} if reason and waits_whole else {})}


__all__ = ["LOG_EVERY_S", "LOOK_EVERY_S", "SlotRequest", "SlotWait", "described_waiting"]
