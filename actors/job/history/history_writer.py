"""Writes the history of a job in a thread of its own: neither a decision nor a checkpoint waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rayflink.common.text_output.logs import get_logger
from rayflink.state.storage.storage import Storage

from ..job_checkpoints import JobStart
from .history_files import store_history
from .job_history import JobHistory

log = get_logger(__name__)
ENDS_WITHIN_S = 5.0


class HistoryWriter:
    """Stores the newest history; one that has not been written when the next comes is skipped.

    >>> stored = []
    >>> writer = HistoryWriter(stored.append, revision=0)
    >>> writer.observe(0, lambda: JobHistory(restarts=1))
    >>> writer.observe(1, lambda: JobHistory(restarts=2))
    >>> writer.end(within_s=5.0), [history.restarts for history in stored]
    (True, [2])

    Args:
        store: writes one, and may take long.
        revision: of what is stored already; None: nothing is.
    """

    def __init__(self, store: Callable[[JobHistory], object], revision: object = None) -> None:
        self._store, self._revision = store, revision
        self._changed = threading.Condition()
        self._waiting: JobHistory | None = None
        self._is_writing = self._has_ended = False
        self._thread: threading.Thread | None = None

    @classmethod
    def beside(
        cls, storage: Callable[[], Storage], start: JobStart, recovered: bool, revision: object
    ) -> HistoryWriter | None:
        """Return the writer of a job that starts; None where its checkpoints have no files.

        Args:
            storage: opens that of its checkpoints.
            recovered: it goes on with what another coordinator has begun, so that its history has changed already.
            revision: of its history.
        """
        if not start.epoch:
            return None
        return cls(lambda past: store_history(storage(), past, start.epoch), None if recovered else revision)

    def observe(self, revision: object, history: Callable[[], JobHistory]) -> None:
        """Let the history be written soon if it has another revision now, and return at once.

        After the end, nothing is written.
        """
        if revision == self._revision:
            return
        self._revision = revision
        with self._changed:
            if self._has_ended:
                return
            self._waiting = history()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="job-history", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def end(self, within_s: float = ENDS_WITHIN_S) -> bool:
        """Write what waits, and nothing any more; return whether that is done within a time.

        The files of the job can be deleted then.
        """
        until = time.monotonic() + within_s
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
            while self._waiting is not None or self._is_writing:
                if not self._changed.wait(max(until - time.monotonic(), 0.0)) and time.monotonic() >= until:
                    self._waiting = None
                    return False
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting is not None or self._has_ended)
                history, self._waiting = self._waiting, None
                if history is None:
                    return
                self._is_writing = True
            try:
                self._store(history)
            except Exception:  # the job goes on without
                log.exception("the history of the job could not be stored")
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()


__all__ = ["HistoryWriter"]
