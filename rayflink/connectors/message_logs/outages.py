"""The time for which a connector waits until an outside system is back."""

from __future__ import annotations

import time
from collections.abc import Callable

from rayflink.common.text_output.logs import get_logger

log = get_logger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0


class OutageWatch:
    """Decides how long to wait before the next try, and when an outage has lasted too long.

    Args:
        place: of the outside system, for the log.
        timeout_ms: time after which an outage is an error.
        began: called at the beginning of each outage; None: nothing counts them.
    """

    def __init__(self, place: str, timeout_ms: int, began: Callable[[], None] | None = None) -> None:
        self._place, self._timeout_ms, self._began = place, timeout_ms, began
        self._since_s: float | None = None
        self._tries = 0

    def pause_s(self, error: Exception) -> float:
        """Return the seconds to wait after a failed try: twice as many each time, at most 2.

        Raises: the error, where the outage has lasted too long.
        """
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
            if self._began is not None:
                self._began()
            log.warning("%s; it is tried again for %g s", error, self._timeout_ms / 1000)
        left_s = self._timeout_ms / 1000 - (now_s - self._since_s)
        if left_s <= 0:
            raise error
        pause_s: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self._tries, 10), left_s)
        self._tries += 1
        return pause_s

    def end(self) -> None:
        """Note that the outside system has answered."""
        if self._since_s is not None:
            log.info("%s answers again", self._place)
        self._since_s, self._tries = None, 0


__all__ = ["OutageWatch"]
