"""Compaction of a table's small files beside the job that writes them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger

from .lake_errors import without_secrets

log = get_logger(__name__)

CLOSES_WITHIN_S = 10
"""Seconds for which a job that ends waits for a compaction; it loses nothing but work where it does not end."""


class BackgroundCompaction:
    """Merges small files of a table after each time some commits were made, in a thread of its own.

    A compaction that fails is counted and logged: the next one finds what is left.

    Args:
        table: its name in messages.
        merge: merges the small files; returns what it did.
        every_commits: after which it runs, unless the last time has not ended; None: never.
    """

    def __init__(
        self, table: str, merge: Callable[[], object], every_commits: int | None, metrics: MetricGroup | None
    ) -> None:
        self._table, self._merge, self._every_commits = table, merge, every_commits
        self._commits = 0
        self._thread: threading.Thread | None = None
        metrics = metrics or MetricGroup()
        self._done = metrics.counter("numCompactions")
        self._failed = metrics.counter("numFailedCompactions")

    def count_commit(self) -> None:
        """Count a commit, and start a compaction where it is time for one."""
        self._commits += 1
        if self._every_commits is None or self._commits % self._every_commits or self._is_running():
            return
        self._thread = threading.Thread(target=self._run, name="compacts a table", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for a compaction that runs, for some seconds."""
        if self._thread is None:
            return
        self._thread.join(CLOSES_WITHIN_S)
        if self._is_running():
            log.warning("%s is still compacted; what that has written by now may be left without a commit", self._table)

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            done = self._merge()
        except Exception as error:  # another writer may have deleted the files; the next time finds others
            self._failed.inc()
            log.warning("%s was not compacted: %s", self._table, without_secrets(described(error)))
            return
        self._done.inc()
        log.info("%s compacted: %s", self._table, done)


__all__ = ["BackgroundCompaction"]
