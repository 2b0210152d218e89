"""Measures the phases of a job's last recovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rayflink.common.text_output.logs import get_logger

from ..messages.executions import Execution
from ..messages.states import ExecutionState, JobStatus

log = get_logger(__name__)
_BEGUN = (ExecutionState.INITIALIZING, ExecutionState.RUNNING)
"""One of these a task says when it has a process and its program; of two reports the second may come first."""


def last_recovery(
    timestamps: Mapping[str, int], executions: Iterable[Execution], restored_bytes: int, ended_ms: int | None = None
) -> dict[str, Any] | None:
    """Return the phases of the last restart of tasks, in milliseconds; None without one, or if one is about to begin.

    It begins when the failure is known, or, with a coordinator that took over, when that one does. `cancelled_ms` is
    the time until the old attempts had ended (a coordinator that took over: until it had slots), `delayed_ms` what was
    left of the delay of the restart strategy, `deployed_ms` the time until the last of the new ones had a process and
    its program, waiting for slots included, `restored_ms` that until it had its state and ran. Phases that go on are
    None.

    Args:
        timestamps: job status -> when it was entered last.
        restored_bytes: size of the checkpoint they started from.
        ended_ms: when the old attempts had ended; None where that is not known.
    """
    running = timestamps.get(JobStatus.RUNNING.value)
    began = timestamps.get(JobStatus.RESTARTING.value)
    attempts = list(executions)
    if began is None and any(execution.number for execution in attempts):
        began = timestamps.get(JobStatus.CREATED.value)
    if running is None or began is None or running < began:
        return None
    new = [e.timestamps for e in attempts if e.timestamps.get(ExecutionState.DEPLOYING.value, -1) >= running]
    ended = running if ended_ms is None or not began <= ended_ms <= running else ended_ms
    deployed, ran = _last(new, *_BEGUN), _last(new, ExecutionState.RUNNING)
    return {
        "began": began,
        "cancelled_ms": ended - began,
        "delayed_ms": running - ended,
        "deployed_ms": None if deployed is None else deployed - running,
        "restored_ms": None if deployed is None or ran is None else ran - deployed,
        "total_ms": None if ran is None else ran - began,
        "tasks": len(new),
        "restored_bytes": restored_bytes,
    }


def describe_recovery(recovery: Mapping[str, Any]) -> str:
    """Describe a recovery in one line for people.

    >>> describe_recovery({"cancelled_ms": 210, "delayed_ms": 24_000, "deployed_ms": 900, "restored_ms": None,
    ...     "total_ms": None, "tasks": 2, "restored_bytes": 512})
    '2 tasks: cancelled 0.2 s, restart delay 24.0 s, deployed 0.9 s, restored 512 bytes ..., total ...'
    """
    size = recovery["restored_bytes"]
    amount = f"{size} bytes" if size < 1 << 20 else f"{size / (1 << 20):.1f} MiB"
    parts = [("cancelled", "cancelled_ms"), ("restart delay", "delayed_ms"), ("deployed", "deployed_ms"),
             (f"restored {amount}", "restored_ms"), ("total", "total_ms")]  # fmt: skip
    spoken = [f"{what} {'...' if recovery[name] is None else f'{recovery[name] / 1000:.1f} s'}" for what, name in parts]
    return f"{recovery['tasks']} tasks: {', '.join(spoken)}"


class RecoveryLog:
    """Writes a line to the log when a recovery is over."""

    def __init__(self) -> None:
        self._reported_ms = 0

    def report(self, recovery: Mapping[str, Any] | None) -> None:
        """Log the last recovery, of `last_recovery`, once all restarted tasks run; each one once."""
        if recovery is None or recovery["total_ms"] is None or recovery["began"] == self._reported_ms:
            return
        self._reported_ms = recovery["began"]
        log.info("recovered: %s", describe_recovery(recovery), extra=dict(recovery))


def _last(attempts: Sequence[Mapping[str, int]], *states: ExecutionState) -> int | None:
    """Return when the last of them entered one of these states; None while one has not."""
    moments = ([timestamps[state.value] for state in states if state.value in timestamps] for timestamps in attempts)
    entered = [min(known, default=None) for known in moments]
    known = [moment for moment in entered if moment is not None]
    return max(known) if known and len(known) == len(entered) else None


__all__ = ["RecoveryLog", "describe_recovery", "last_recovery"]
