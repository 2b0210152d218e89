"""Writes archives in a thread: nothing waits for a slow storage, and a storage that is away is tried again."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from rayflink.common.errors import RayflinkError
from rayflink.state.clock import Clock, SystemClock
from rayflink.state.storage.storage import StorageError

from ..jobs.cluster_job import JobView
from .archive_store import ArchiveStore

__all__ = ["ArchiveWriter"]

log = logging.getLogger(__name__)
MOST_PENDING = 100_000
"""Jobs that wait for their archive; of more, the oldest get none."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
CLOSE_S = 5.0
"""Seconds that archives which wait have at the end."""


class ArchiveWriter:
    """Takes jobs that have ended, and writes their archives one by one; each is read when it is its turn.

    Args:
        store: of the archives.
        clock: for the pauses after failures.
        most_pending: jobs that wait for their archive; of more, the oldest get none.
    """

    def __init__(self, store: ArchiveStore, clock: Clock | None = None, most_pending: int = MOST_PENDING) -> None:
        self._store, self._clock, self._most_pending = store, clock or SystemClock(), most_pending
        self._pending: OrderedDict[str, Callable[[], JobView | None]] = OrderedDict()
        self._changed = threading.Condition()
        self._pause_s, self._not_before = 0.0, 0.0
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self.written, self.failures, self.lost = 0, 0, 0
        """Archives that were written, attempts that failed, and jobs that get no archive."""

    def start(self) -> None:
        """Write from now on, in a thread."""
        self._thread = threading.Thread(target=self._run, name="archives", daemon=True)
        self._thread.start()

    def add(self, job_id: str, read: Callable[[], JobView | None]) -> None:
        """Have the archive of a job written, and return at once.

        Args:
            job_id: 32 hex digits.
            read: gives the job when it is its turn; None: it is gone.
        """
        with self._changed:
            self._pending[job_id] = read
            if len(self._pending) > self._most_pending:
                oldest, _ = self._pending.popitem(last=False)
                self._lose(oldest, "too many jobs wait for theirs")
            self._changed.notify()

    def is_pending(self, job_id: str) -> bool:
        """Return whether a job waits for its archive."""
        return job_id in self._pending

    def present(self) -> set[str]:
        """Return the jobs that have an archive.

        Raises:
            StorageError: the folder cannot be listed.
        """
        return {file.job_id for file in self._store.files()}

    def work(self) -> float | None:
        """Write the next archive, if it is time.

        Returns: the seconds until there is more to do; None: nothing waits.
        """
        with self._changed:
            wait_s = self._not_before - self._clock.monotonic()
            if not self._pending:
                return None
            if wait_s > 0:
                return wait_s
            job_id, read = next(iter(self._pending.items()))
        try:
            view = read()
            if view is None:
                self._lose(job_id, "it was deleted from the registry")
            else:
                self._store.store(view)
                self.written += 1
        except StorageError as error:
            self.failures += 1
            with self._changed:
                if job_id in self._pending:
                    self._pending.move_to_end(job_id)  # what is wrong with one job holds up no other
            self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self._not_before = self._clock.monotonic() + self._pause_s
            log.warning("archive not written; it is tried again in %.0f s", self._pause_s, exc_info=error)
            return self._pause_s
        except RayflinkError as error:  # the job cannot be read any more
            self._lose(job_id, str(error))
        self._pause_s = 0.0
        with self._changed:
            if self._pending.get(job_id) is read:
                del self._pending[job_id]
            return 0.0 if self._pending else None

    def close(self) -> None:
        """Write what waits, for some seconds, and end. What is missing is written by the next dispatcher."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while True:
            wait_s = self.work()
            with self._changed:
                if self._is_closed and wait_s != 0.0:
                    return
                if wait_s != 0.0 and not (wait_s is None and self._pending):
                    self._changed.wait(wait_s)

    def _lose(self, job_id: str, reason: str) -> None:
        self.lost += 1
        log.error("job %s gets no archive: %s", job_id, reason)
