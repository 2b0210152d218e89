"""Writes the output of a job's tasks in a thread of its own, so that a paused terminal blocks nothing else."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Sequence

from rayflink.common.text_output.safe_write import write_text

from .terminal import MAX_NEWS_CHARS, Text


class DriverOutput:
    """Writes strings in order to this process's standard streams.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._texts: deque[Text] = deque()
        self._chars = 0
        self._error: BaseException | None = None
        self._finishing = False
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None

    def put(self, chunks: Sequence[Text]) -> None:
        """Queue strings to be written; returns at once. A caller that obeys `wait_for_room` queues a bounded amount."""
        if not chunks:
            return
        with self._changed:
            self._texts.extend(chunks)
            self._chars += sum(len(text) for _, text in chunks)
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name=self._name, daemon=True)
                self._writer.start()
            self._changed.notify_all()

    def wait_for_room(self, timeout_s: float) -> bool:
        """Return whether more may be queued, at the latest after `timeout_s`.

        Raises: what writing has raised.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or self._chars <= MAX_NEWS_CHARS, timeout_s)
            self._raise_error()
            return self._chars <= MAX_NEWS_CHARS

    def finish(self) -> None:
        """Return when everything has been written, however long that takes; nothing is put afterwards.

        Raises: what writing has raised.
        """
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._error is not None or not self._chars)
            self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._texts or self._finishing)
                    if not self._texts:
                        return
                    chunks = list(self._texts)
                    self._texts.clear()
                for to_stderr, text in chunks:
                    write_text(sys.stderr if to_stderr else sys.stdout, text)
                sys.stdout.flush()
                sys.stderr.flush()
                with self._changed:
                    self._chars -= sum(len(text) for _, text in chunks)
                    self._changed.notify_all()
        except BaseException as error:  # raised again where somebody waits
            with self._changed:
                self._error = error
                self._changed.notify_all()
