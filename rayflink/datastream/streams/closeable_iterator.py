"""The records of a stream, drawn one by one while its job runs."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from rayflink.common.errors import JobCancelled
from rayflink.common.functions.type_variables import Record


class DrawnJob(Protocol):
    """The part of a job's client that the iterator needs."""

    def draw(self) -> list[Any] | None:
        """Return the next records, waiting for the first; None at the end of the job. Raises where it failed."""

    def cancel(self) -> Any:
        """Ask for cancellation."""

    def abandon(self) -> None:
        """Let the job be cancelled, on a cluster without waiting: its remaining records will not be drawn."""

    def get_job_execution_result(self) -> Any:
        """Return a future of the job's end."""


class CloseableIterator(Iterator[Record]):
    """Records of a running job, in the order they come; the job waits until they are drawn.

    Closing it before the last record cancels the job. It is its own context manager.

    Args:
        job: gives the records.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> with env.from_sequence(1, 1_000_000_000).execute_and_collect() as numbers:
    ...     print(next(numbers), next(numbers))
    1 2
    """

    def __init__(self, job: DrawnJob) -> None:
        self._job = job
        self._rows: deque[Record] = deque()
        self._ended = False

    @property
    def job(self) -> DrawnJob:
        """Return the client of the job that gives the records."""
        return self._job

    def __iter__(self) -> CloseableIterator[Record]:
        return self

    def __next__(self) -> Record:
        while not self._rows:
            if self._ended:
                raise StopIteration
            drawn = self._drawn()
            if drawn is None:
                self._ended = True
            else:
                self._rows.extend(drawn)
        return self._rows.popleft()

    def next(self) -> Record:
        """Return the next record.

        Raises:
            StopIteration: there was the last one, or the iterator is closed.
            JobFailed: a function of the program raised.
            JobCancelled, JobExecutionError: the job ended otherwise than by finishing.
        """
        return next(self)

    def close(self) -> None:
        """Give up the records that have not been drawn; a job that still runs is cancelled, and its end waited for.

        Raises:
            JobExecutionError: the job had failed already.
        """
        self._rows.clear()
        if self._ended:
            return
        self._ended = True
        self._job.cancel()
        try:
            self._job.get_job_execution_result().result()
        except JobCancelled:
            return

    def __enter__(self) -> CloseableIterator[Record]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._ended and not sys.is_finalizing():
            self._job.abandon()

    def _drawn(self) -> list[Any] | None:
        try:
            return self._job.draw()
        except Exception:
            self._ended = True
            raise


__all__ = ["CloseableIterator"]
