"""The detection of a hang in a simulated run."""

from __future__ import annotations

from collections.abc import Callable

HANG_TIMEOUT_MS = 240_000
"""Virtual time without progress after which a run counts as hung; above every timeout that ends a wait by itself."""
_LONG_WAIT_MS = 1_000
_LOOK_EVERY_MS = 10_000


class HangDetector:
    """Waits for progress: for a limited time, or as long as a caller has set.

    Args:
        now_ms: when the run begins.
    """

    def __init__(self, now_ms: int) -> None:
        self._last_progress_ms, self._until, self._done = now_ms, 0, -1
        self._look_at_ms = 0

    def has_said(self, now_ms: int, due_ms: int) -> None:
        """Note that a thread has set a timeout for its wait: such a wait is no hang."""
        if due_ms - now_ms >= _LONG_WAIT_MS:
            self._until = max(self._until, due_ms)

    def is_over(self, now_ms: int, work_done: Callable[[], int]) -> bool:
        """Return whether nothing was done for too long; `work_done` gives another number when something was."""
        if now_ms < self._look_at_ms:
            return False
        self._look_at_ms = now_ms + _LOOK_EVERY_MS
        done = work_done()
        if done != self._done:
            self._done, self._last_progress_ms = done, now_ms
        return now_ms - max(self._last_progress_ms, self._until) > HANG_TIMEOUT_MS


__all__ = ["HANG_TIMEOUT_MS", "HangDetector"]
