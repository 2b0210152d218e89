"""The client of a job, whatever its runner."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayflink.actors.job.job_outcome import raise_if_failed
from rayflink.actors.job.rates import Rates, averaged
from rayflink.common.completable_future import CompletableFuture
from rayflink.common.job_client import JobClient
from rayflink.common.job_execution_result import JobExecutionResult
from rayflink.common.job_status import JobStatus
from rayflink.common.metrics.live_table import is_terminal, progress_shown

if TYPE_CHECKING:
    from rayflink.actors.messages.commands import JobResult


class SubmittedJob(JobClient):
    """A job that runs somewhere; `status` and `wait` differ by runner.

    `shows_progress`: whoever waits for its end on a terminal sees how it gets on.
    """

    shows_progress = False

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self._result: JobResult | None = None
        self._rates = Rates()

    def status(self) -> dict[str, Any]:
        """Return the job as plain data: state, timestamps, exceptions, vertices with counters and current rates."""
        described = self._describe()
        return {**described, "vertices": self._rates.added(described["vertices"], time.monotonic())}

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        """Wait for the end; `on_progress` is given the status about once a second."""
        raise NotImplementedError

    def draw(self) -> list[Any] | None:
        """Return the next rows of a job with a `DrawnSink`, waiting for the first; None at its end.

        Raises: what `get_job_execution_result().result()` raises, in place of the end.
        """
        raise NotImplementedError

    def abandon(self) -> None:
        """Let the job be cancelled, on Ray without waiting: its remaining rows will not be drawn."""

    def _poll(self, timeout_s: float) -> JobResult | None:
        raise NotImplementedError

    def _describe(self) -> dict[str, Any]:
        raise NotImplementedError

    def _wait_shown(self, on_progress: Callable[[dict[str, Any]], None] | None) -> JobResult:
        if on_progress is not None or not self.shows_progress or not is_terminal(sys.stderr):
            return self.wait(on_progress)
        with progress_shown() as progress:
            return self.wait(progress)

    def detach(self) -> JobExecutionResult:
        """Let the job go on without this program, and print its id.

        Raises:
            JobExecutionError: it cannot, and is cancelled.
        """
        raise NotImplementedError

    def _ask_result(
        self, timeout_s: float | None, on_progress: Callable[[dict[str, Any]], None] | None = None
    ) -> JobExecutionResult:
        if self._result is None:
            self._result = self._wait_shown(on_progress) if timeout_s is None else self._poll(timeout_s)
        if self._result is None:
            pending: JobExecutionResult = CompletableFuture.PENDING
            return pending
        described = self._describe() if self._result.status is JobStatus.FAILED else {}
        result = raise_if_failed(self._result, described)
        vertices = tuple(averaged(vertex) for vertex in result.vertices)
        return JobExecutionResult(result.job_id, result.runtime_ms, result.accumulators, vertices)


__all__ = ["SubmittedJob"]
