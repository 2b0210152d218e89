"""Buffers rows of a job for its driver: bounded, so that a slow driver holds the job back."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

MAX_HELD_BYTES = 4 << 20
"""The bound of the buffer: a task that adds more waits until some has been fetched."""
LOOK_EVERY_S = 0.2
"""Seconds between two checks of a waiting task whether the job still runs."""


@dataclass(frozen=True, slots=True)
class ResultBufferStatistics:
    """The rows that wait for a driver."""

    blocks: int
    """Blocks of rows."""
    bytes: int
    """Bytes of those."""


class ResultBuffer:
    """Blocks of rows between the task that collects them and the driver.

    Args:
        is_wanted: whether the job still runs; what is put afterwards is dropped.
    """

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        self._is_wanted = is_wanted
        self._blocks: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._discarded = self._closed = False

    @property
    def is_empty(self) -> bool:
        """Return whether everything has been fetched."""
        return not self._blocks

    def put(self, block: bytes) -> None:
        """Add a block; waits while the buffer is full and the job runs."""
        with self._changed:
            while self._bytes > MAX_HELD_BYTES and not self._discarded and self._is_wanted():
                self._changed.wait(LOOK_EVERY_S)
            if self._discarded or not self._is_wanted():
                return
            self._blocks.append(block)
            self._bytes += len(block)
            self._changed.notify_all()

    def take(self, timeout_s: float) -> tuple[bytes, ...] | None:
        """Take all blocks, in order, waiting for the first at most `timeout_s`; None when no more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._blocks or self._closed, timeout_s)
            if not self._blocks and self._closed:
                return None
            taken = tuple(self._blocks)
            self._blocks.clear()
            self._bytes = 0
            self._changed.notify_all()
            return taken

    def wait_until_empty(self, timeout_s: float) -> bool:
        """Wait until everything has been fetched; return whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._blocks, timeout_s)

    def statistics(self) -> ResultBufferStatistics:
        """Return the present counts."""
        with self._changed:
            return ResultBufferStatistics(len(self._blocks), self._bytes)

    def discard(self) -> None:
        """Discard all rows, present and future: no client wants them any more."""
        with self._changed:
            self._discarded = True
            self._blocks.clear()
            self._bytes = 0
            self._changed.notify_all()

    def close(self) -> None:
        """Close the buffer: callers that wait in `take` are answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


__all__ = ["ResultBuffer"]
