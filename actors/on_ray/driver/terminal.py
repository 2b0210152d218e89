"""Carries the output of tasks to the terminal of the driver: complete, in order per task, bounded, never dropped.

A task gathers its text while the call with the text before is under way; the coordinator holds some for the driver and
lets tasks wait while it is full, as a slow terminal does; with no driver there, the text goes to the coordinator's log.
"""

from __future__ import annotations

import codecs
import io
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayflink.common.text_output.safe_write import write_text

Text = tuple[bool, str]
"""True for standard error, and the text."""
MAX_TASK_CHARS = 1 << 20
"""A task that has printed so much while a call is under way waits for it."""
MAX_HELD_CHARS = 4 << 20
"""The bound of the text that the coordinator buffers for the driver."""
MAX_NEWS_CHARS = 1 << 20
"""The bound of the text in one answer to the driver."""
READER_LOST_S = 10.0
"""A driver that has not asked for so long is gone, and its text goes to the log."""


@dataclass(frozen=True, slots=True)
class News:
    """The news for a driver that asks.

    Args:
        chunks: printed since it asked last.
        note: what the job waits for; "" while it runs.
        result: the JobResult, packed, once the job has ended and everything printed has been handed over.
    """

    chunks: tuple[Text, ...] = ()
    note: str = ""
    result: bytes | None = None


class Printed:
    """The output of one task that was printed and not sent yet.

    Args:
        send: starts a call with chunks; gives a function that waits for the call's end, at most the seconds given, and
            says whether it has ended.
    """

    def __init__(self, send: Callable[[list[Text]], Callable[[float], bool]]) -> None:
        self._send = send
        self._texts: deque[Text] = deque()
        self._chars = 0
        self._under_way: Callable[[float], bool] | None = None
        self._lock = threading.RLock()

    @property
    def pending(self) -> bool:
        """Return whether something waits to be sent."""
        return bool(self._texts)

    def put(self, to_stderr: bool, text: str) -> None:
        """Add text; waits while the terminal is too slow for it."""
        with self._lock:
            self._texts.append((to_stderr, text))
            self._chars += len(text)
            if self._chars > MAX_TASK_CHARS:
                self.send(wait=True)

    def send(self, wait: bool = False) -> None:
        """Send the pending text unless a call is under way; with `wait`, return only when all of it has arrived."""
        with self._lock:
            while self._under_way is not None and not self._under_way(READER_LOST_S if wait else 0):
                if not wait:
                    return
            self._under_way = None
            if self._texts:
                chunks = list(self._texts)
                self._texts.clear()
                self._chars = 0
                self._under_way = self._send(chunks)
                if wait:
                    self.send(wait=True)


class PrintedStream(io.TextIOBase):
    """Stands for sys.stdout or sys.stderr of a task's process."""

    def __init__(self, printed: Printed, to_stderr: bool) -> None:
        self._printed, self._to_stderr = printed, to_stderr
        self._bytes = _Bytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return UTF-8: text is not encoded here, but programs ask."""
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """Return how characters that cannot be encoded are handled."""
        return "backslashreplace"

    @property
    def buffer(self) -> io.RawIOBase:
        """Return a stream that takes bytes of UTF-8 text."""
        return self._bytes

    def fileno(self) -> int:
        """Raise io.UnsupportedOperation: there is no file."""
        raise io.UnsupportedOperation("the output of a task goes to the terminal of its driver and has no file number")

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._printed.put(self._to_stderr, text)
        return len(text)


class _Bytes(io.RawIOBase):
    """The byte stream of a `PrintedStream`; a character may come in several writes of one thread."""

    def __init__(self, stream: PrintedStream) -> None:
        self._stream = stream
        self._of_thread = threading.local()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        decoder = getattr(self._of_thread, "decoder", None)
        if decoder is None:
            decoder = self._of_thread.decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._stream.write(decoder.decode(content))
        return len(content)


@dataclass(frozen=True, slots=True)
class TerminalStatistics:
    """The output of tasks that waits for a driver."""

    chunks: int
    """Pieces of output."""
    characters: int
    """Characters of those."""


class Terminal:
    """The output of all tasks of a job, buffered for its driver.

    Args:
        now: seconds, monotonic.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._texts: deque[Text] = deque()
        self._chars = 0
        self._changed = threading.Condition()
        self._reader_seen = now()
        self._closed = False

    def put(self, chunks: list[Text]) -> None:
        """Buffer text; waits while there is too much and a driver reads; with no driver it goes to the log."""
        with self._changed:
            while self._chars > MAX_HELD_CHARS and not self._reader_lost:
                self._changed.wait(1.0)
            self._texts.extend(chunks)
            self._chars += sum(len(text) for _, text in chunks)
            if self._reader_lost:
                self._log()
            self._changed.notify_all()

    def take(self, timeout_s: float) -> tuple[Text, ...]:
        """Return text in order, waiting for the first at most `timeout_s`; () when there is none, at once after
        `close`.
        """
        with self._changed:
            self._reader_seen = self._now()
            self._changed.wait_for(lambda: self._texts or self._closed, timeout_s)
            taken: list[Text] = []
            size = 0
            while self._texts and size < MAX_NEWS_CHARS:
                taken.append(self._texts.popleft())
                size += len(taken[-1][1])
            self._chars -= size
            self._reader_seen = self._now()
            self._changed.notify_all()
            return tuple(taken)

    def attend(self) -> None:
        """Note that a driver is there but can take nothing now: tasks that put text wait for it."""
        with self._changed:
            self._reader_seen = self._now()

    def close(self) -> None:
        """Close the terminal: callers that wait in `take` are answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def statistics(self) -> TerminalStatistics:
        """Return the present counts."""
        with self._changed:
            return TerminalStatistics(len(self._texts), self._chars)

    @property
    def is_empty(self) -> bool:
        """Return whether everything has been taken."""
        return not self._texts

    @property
    def _reader_lost(self) -> bool:
        return self._now() - self._reader_seen > READER_LOST_S

    def _log(self) -> None:
        while self._texts:
            to_stderr, text = self._texts.popleft()
            write_text(sys.stderr if to_stderr else sys.stdout, text)
        self._chars = 0
        sys.stdout.flush()
        sys.stderr.flush()
