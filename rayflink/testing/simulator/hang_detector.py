"""The detection of a hang in a simulated run."""

from __future__ import annotations

from collections.abc import Callable

HANG_TIMEOUT_MS = 240_000
"""Virtual time without progress after which a run counts as hung; above every timeout that ends a wait by itself."""
_LONG_WAIT_MS = 1_000
_CHECK_INTERVAL_MS = 10_000


class HangDetector:
    """Waits for progress: for a limited time, or until a time that a task has set itself.

    Args:
        now_ms: when the run begins.
    """

    def __init__(self, now_ms: int) -> None:
        self._last_progress_ms, self._work_done = now_ms, -1
        self._allowed_until_ms = self._next_check_ms = 0

    def allow_wait(self, now_ms: int, until_ms: int) -> None:
        """Note that a task waits for a time: such a wait is no hang."""
        if until_ms - now_ms >= _LONG_WAIT_MS:
            self._allowed_until_ms = max(self._allowed_until_ms, until_ms)

    def is_hung(self, now_ms: int, work_done: Callable[[], int]) -> bool:
        """Return whether nothing was done for too long; `work_done` returns another number when something was."""
        if now_ms < self._next_check_ms:
            return False
        self._next_check_ms = now_ms + _CHECK_INTERVAL_MS
        done = work_done()
        if done != self._work_done:
            self._work_done, self._last_progress_ms = done, now_ms
        return now_ms - max(self._last_progress_ms, self._allowed_until_ms) > HANG_TIMEOUT_MS


__all__ = ["HANG_TIMEOUT_MS", "HangDetector"]
