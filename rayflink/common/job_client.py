"""What a program holds of a job it has submitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from .completable_future import CompletableFuture
from .errors import JobExecutionError
from .job_execution_result import JobExecutionResult
from .job_id import JobID
from .job_report import html_table
from .job_status import JobStatus


class JobClient(ABC):
    """A submitted job. Questions are answered by futures; `result()` of each waits for the answer.

    Args:
        job_id: 32 hex digits.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> sink = env.from_collection([1, 2]).add_sink(lambda number: None)
    >>> client = env.execute_async("numbers")
    >>> finished = client.get_job_execution_result().result()
    >>> client.get_job_status().result()
    <JobStatus.FINISHED: 'FINISHED'>
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = JobID(job_id)

    def get_job_id(self) -> JobID:
        """32 hex digits, a str."""
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job stands now."""
        return CompletableFuture.completed(JobStatus(self.status()["state"]))

    def cancel(self) -> CompletableFuture[None]:
        """Ask for the job's cancellation; done when the job has been told, not when it has ended."""
        self._cancel()
        return CompletableFuture.completed(None)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stop the job and keep its state.

        Raises:
            JobExecutionError: always: this version takes no savepoints.
        """
        raise self._no_savepoint()

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Keep the state of the job, which goes on.

        Raises:
            JobExecutionError: always: this version takes no savepoints.
        """
        raise self._no_savepoint()

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Name -> value, merged over the subtasks that have finished so far."""
        return CompletableFuture.completed(self._accumulators())

    def get_job_execution_result(
        self, on_progress: Callable[[dict[str, Any]], None] | None = None
    ) -> CompletableFuture[JobExecutionResult]:
        """The end of the job; its `result()` waits for it.

        `result()` raises `JobFailed` where a function of the program raised, `JobCancelled` where the job was
        cancelled, and `JobExecutionError` where it failed otherwise.

        Args:
            on_progress: given the job's status about once a second while `result()` waits.
        """
        return CompletableFuture(lambda timeout_s: self._ask_result(timeout_s, on_progress))

    def detach(self) -> JobExecutionResult:
        """Let the job go on without this program; one that cannot is waited for."""
        return self._ask_result(None, None)

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """The job as plain data: state, timestamps, exceptions, vertices with counters and rates since last asked."""

    @abstractmethod
    def _cancel(self) -> None: ...

    @abstractmethod
    def _accumulators(self) -> dict[str, Any]: ...

    @abstractmethod
    def _ask_result(
        self, timeout_s: float | None, on_progress: Callable[[dict[str, Any]], None] | None
    ) -> JobExecutionResult:
        """The end of the job, or `CompletableFuture.PENDING` where it has not ended within `timeout_s`."""

    def _no_savepoint(self) -> JobExecutionError:
        remedy = "use cancel(); state is not kept"
        return JobExecutionError(self._job_id, "cannot take a savepoint: this version has no savepoints", remedy)

    def _repr_html_(self) -> str:
        """For notebooks: the job's state and a row a vertex."""
        return html_table(self.status())


__all__ = ["JobClient"]
