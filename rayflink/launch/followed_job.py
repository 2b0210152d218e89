"""Clients of jobs that run in other processes, by a handle that asks them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from rayflink.common.completable_future import CompletableFuture
from rayflink.common.errors import DriverEnded
from rayflink.common.job_execution_result import DetachedJobExecutionResult, JobExecutionResult
from rayflink.common.metrics.job_report import has_begun
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.signals import heeding_signals

from .submitted_job import SubmittedJob

if TYPE_CHECKING:
    from rayflink.actors.messages.commands import JobResult

__all__ = ["AttachedJob", "FollowedHandle", "FollowedJob", "Handle", "HandledJob"]


class Handle(Protocol):
    """Asks a job of another process."""

    def status(self) -> dict[str, Any]:
        """Return the job as plain data."""

    def cancel(self, by: str = "the user") -> None:
        """Request cancellation."""

    def stop(self) -> None:
        """Request that the sources end and the job finishes."""

    def savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float
    ) -> tuple[str, str] | None:
        """Return the address of a savepoint, and why there is none; None where it is not known in time."""

    def rescale(self, request_id: str, parallelism: Mapping[str, int], timeout_s: float) -> tuple[int, str] | None:
        """Return the pause in milliseconds, and why there is no change; None where it is not known in time."""

    def checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        """Return statistics of checkpoints, or of one; None when it is not remembered."""

    def accumulators(self) -> dict[str, Any]:
        """Return name -> value, merged over the subtasks that have finished."""

    def poll(self, timeout_s: float) -> JobResult | None:
        """Return the result, or None when the job still runs after `timeout_s`."""


class FollowedHandle(Handle, Protocol):
    """The handle of a job that this process has submitted, and follows in a thread."""

    owns_cluster: bool
    """Whether the job cannot go on without this process."""

    def rows(self, timeout_s: float) -> list[Any] | None:
        """Return rows collected since the last call, [] when none came in time; None when there will be no more."""

    def release(self) -> None:
        """Let the job go on without this process."""


class HandledJob(SubmittedJob):
    """A job in other processes, by its handle."""

    _job: Handle

    def _cancel(self) -> None:
        self._job.cancel()

    def _ask_savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float | None
    ) -> tuple[str, str] | None:
        wait_s = 1.0 if timeout_s is None else timeout_s
        while (answer := self._job.savepoint(request_id, directory, stop, wait_s)) is None:
            if timeout_s is not None:
                return None
        return answer

    def _ask_rescale(
        self, request_id: str, parallelism: Mapping[str, int], timeout_s: float | None
    ) -> tuple[int, str] | None:
        wait_s = 1.0 if timeout_s is None else timeout_s
        while (answer := self._job.rescale(request_id, parallelism, wait_s)) is None:
            if timeout_s is not None:
                return None
        return answer

    def _checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        return self._job.checkpoints(checkpoint_id)

    def _accumulators(self) -> dict[str, Any]:
        return self._job.accumulators()

    def _poll(self, timeout_s: float) -> JobResult | None:
        return self._job.poll(timeout_s)

    def _describe(self) -> dict[str, Any]:
        return self._job.status()


class FollowedJob(HandledJob):
    """A job that this process submitted; its tasks' output is printed here for as long as this process lives.

    Args:
        job: its handle.
        ends_with_driver: whether it is cancelled when a signal ends this process.
    """

    _job: FollowedHandle

    def __init__(self, job_id: str, job: FollowedHandle, ends_with_driver: bool) -> None:
        super().__init__(job_id)
        self._job, self._ends_with_driver = job, ends_with_driver

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        stopped_by: list[str] = []
        reported_at = time.monotonic()
        with heeding_signals(stopped_by.append):
            while True:
                result = self._job.poll(0.2)
                if result is not None:
                    return result
                if stopped_by:
                    self._driver_ends(stopped_by.pop())
                if on_progress is not None and time.monotonic() - reported_at >= 1:
                    reported_at = time.monotonic()
                    on_progress(self.status())

    def draw(self) -> list[Any] | None:
        stopped_by: list[str] = []
        with heeding_signals(stopped_by.append):
            while (rows := self._job.rows(0.2)) is not None:
                if rows:
                    return rows
                if stopped_by:
                    self._driver_ends(stopped_by.pop())
        self._ask_result(None)
        return None

    def abandon(self) -> None:
        cancel = threading.Thread(target=self._job.cancel, args=("the end of its iterator",), daemon=True)
        cancel.start()  # a collection of garbage must not wait for calls

    def _wait_until_running(self) -> None:
        stopped_by: list[str] = []
        with heeding_signals(stopped_by.append):
            while not has_begun(self.status()):
                if self._ask_result(0.2) is not CompletableFuture.PENDING:
                    return
                if stopped_by:
                    self._driver_ends(stopped_by.pop())

    def _driver_ends(self, by: str) -> None:
        if not self._ends_with_driver and not self._job.owns_cluster:
            self._job.release()
            raise DriverEnded(self._job_id, by)
        self._job.cancel(by)


class AttachedJob(HandledJob):
    """A job that another process submitted."""

    def stop(self) -> None:
        """Let the sources end, then the job finish."""
        self._job.stop()

    def detach(self) -> JobExecutionResult:
        return DetachedJobExecutionResult(self._job_id)

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        while True:
            result = self._job.poll(1.0)
            if result is not None:
                return result
            if on_progress is not None:
                on_progress(self.status())
