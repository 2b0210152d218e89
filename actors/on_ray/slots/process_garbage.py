"""Collects the cyclic garbage of a process that runs tasks, so that it pauses none of them for long."""

from __future__ import annotations

import gc
import threading
import time

COLLECT_EVERY_S = 10.0
"""Cyclic garbage is looked for this often; reference counts do the rest at once."""
YOUNG_OBJECTS = 100_000
"""The number of objects created since the last collection that starts a collection among these."""


class ProcessGarbage:
    """Collects garbage by time, and freezes what tasks were loaded with; the threads of all tasks call it."""

    def __init__(self) -> None:
        self.collected_at = time.monotonic()
        self._has_frozen_garbage = False
        self._lock = threading.Lock()

    def settle(self) -> None:
        """Freeze present objects after a task has been loaded, and collect garbage by time from now on."""
        with self._lock:
            self._thaw()
            gc.collect()
            gc.freeze()
            gc.disable()

    def collect(self, now: float) -> None:
        """Collect cyclic garbage when it is time, and among new objects when there are many.

        Args:
            now: seconds, monotonic.
        """
        if gc.get_count()[0] > YOUNG_OBJECTS:
            gc.collect(1)
        if now - self.collected_at < COLLECT_EVERY_S:
            return
        with self._lock:
            if now - self.collected_at < COLLECT_EVERY_S:  # another task has collected meanwhile
                return
            self.collected_at = now
            is_thawed = self._thaw()
            gc.collect()
            if is_thawed:
                gc.freeze()

    def has_ended(self) -> None:
        """Unfreeze objects after a task has ended, so that what it leaves is collected."""
        self._has_frozen_garbage = True

    def _thaw(self) -> bool:
        thawing, self._has_frozen_garbage = self._has_frozen_garbage, False
        if thawing:
            gc.unfreeze()
        return thawing


__all__ = ["COLLECT_EVERY_S", "YOUNG_OBJECTS", "ProcessGarbage"]
