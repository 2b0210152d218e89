"""The output of a process whose threads belong to different tasks: what each thread prints comes in whole lines."""

from __future__ import annotations

import threading

from .driver.terminal import Printed, PrintedStream

MOST_PARTS = 256
"""A line that has been begun goes out when it has been written to so often."""
MOST_CHARS = 8192
"""Text as long as this does not wait for the end of its line."""


class SharedStream(PrintedStream):
    """Holds the line that a thread has begun until it ends or is flushed, so that no other thread's text gets into it.

    Args:
        printed: takes the lines.
        to_stderr: whether it stands for standard error.
    """

    def __init__(self, printed: Printed, to_stderr: bool) -> None:
        super().__init__(printed, to_stderr)
        self._begun: dict[int, list[str]] = {}

    def write(self, text: str) -> int:
        me = threading.get_ident()
        parts = self._begun.setdefault(me, [])
        parts.append(text)
        if "\n" in text:
            whole = self._taken(me)
            end = whole.rfind("\n") + 1
            if end < len(whole):
                self._begun[me] = [whole[end:], *self._begun.pop(me, ())]  # a finalizer may have printed meanwhile
            super().write(whole[:end])
        elif len(parts) >= MOST_PARTS or len(text) >= MOST_CHARS:
            super().write(self._taken(me))
        return len(text)

    def flush(self) -> None:
        """Write the lines begun by this thread, and by threads that have ended."""
        me, alive = threading.get_ident(), {thread.ident for thread in threading.enumerate()}
        for thread in list(self._begun):
            if thread == me or thread not in alive:
                super().write(self._taken(thread))

    def _taken(self, thread: int) -> str:
        return "".join(self._begun.pop(thread, ()))
