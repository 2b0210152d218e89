"""The client of a job that a program has submitted."""

from __future__ import annotations

import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from rayflink.state.storage.storage_schemes import from_root

from .completable_future import CompletableFuture
from .errors import JobExecutionError
from .job_execution_result import JobExecutionResult
from .job_id import JobID
from .job_status import JobStatus
from .metrics.job_report import html_table
from .options.registry import CHECKPOINT_HISTORY
from .options.stop_mode import StopMode

T = TypeVar("T")


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
        """Return the job's id: 32 hex digits, a str."""
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return where the job stands now."""
        return CompletableFuture.completed(JobStatus(self.status()["state"]))

    def cancel(self) -> CompletableFuture[None]:
        """Ask for the job's cancellation; the future is done when the request has arrived, not at the job's end."""
        self._cancel()
        return CompletableFuture.completed(None)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Keep the state of the job and end it; the future gives the savepoint's address when the job has ended.

        Args:
            advance_to_end_of_event_time: fire all timers and windows first, as at the end of the input (drain); else
                nothing fires, and a job that starts from the savepoint goes on where this one ended.
            savepoint_directory: in which the savepoint gets a folder of its own; None: as
                `execution.checkpointing.savepoint-dir` says.

        The future's `result()` raises `JobExecutionError` where there is no savepoint.

        Raises:
            TypeError: `advance_to_end_of_event_time` is no truth value: a path there would drain the job.
        """
        if not isinstance(advance_to_end_of_event_time, bool):
            problem = (
                f"found advance_to_end_of_event_time={advance_to_end_of_event_time!r}, wanted True (drain) or False"
            )
            raise TypeError(f"{problem}; write stop_with_savepoint(False, savepoint_directory)")
        stop = StopMode.DRAIN if advance_to_end_of_event_time else StopMode.SUSPEND
        return self._future_savepoint(savepoint_directory, stop)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Keep the state of the job, which goes on; the future gives the savepoint's address when it is complete.

        Args:
            savepoint_directory: in which the savepoint gets a folder of its own; None: as
                `execution.checkpointing.savepoint-dir` says.

        The future's `result()` raises `JobExecutionError` where there is no savepoint.
        """
        return self._future_savepoint(savepoint_directory, None)

    def rescale(self, parallelism: Mapping[str, int]) -> CompletableFuture[int]:
        """Run operators with other numbers of subtasks from now on; the future gives the pause in milliseconds.

        The job takes a checkpoint while it runs, ends its tasks, and begins with new ones from there. Operators of one
        chain, and those joined by forward edges, have one parallelism: naming one of them means all.

        Args:
            parallelism: operator -> subtasks; by uid, by name, or by the beginning of the operator's or vertex's id.

        The future's `result()` raises `JobExecutionError` where the job goes on as it was.
        """
        request_id, wanted = uuid.uuid4().hex, dict(parallelism)
        return self._future(partial(self._ask_rescale, request_id, wanted), "cannot be rescaled")

    def checkpoints(self, checkpoint_id: int | None = None) -> dict[str, Any]:
        """Return statistics of the job's checkpoints and savepoints, as Flink's `/jobs/:jobid/checkpoints` does.

        Args:
            checkpoint_id: of this one alone, with each vertex and each subtask.

        Raises:
            JobExecutionError: the job does not remember that one.
        """
        statistics = self._checkpoints(checkpoint_id)
        if statistics is None:
            known = (
                ", ".join(str(checkpoint["id"]) for checkpoint in (self._checkpoints(None) or {})["history"]) or "none"
            )
            remedy = f"ask for one that it remembers ({known}), or raise {CHECKPOINT_HISTORY.key}"
            raise JobExecutionError(self._job_id, f"has no record of checkpoint {checkpoint_id}", remedy)
        return statistics

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return the accumulators, name -> value, merged over the subtasks that have finished so far."""
        return CompletableFuture.completed(self._accumulators())

    def get_job_execution_result(
        self, on_progress: Callable[[dict[str, Any]], None] | None = None
    ) -> CompletableFuture[JobExecutionResult]:
        """Return the end of the job; its `result()` waits for it.

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
        """Return the job as plain data: state, timestamps, exceptions, vertices with counters and current rates."""

    @abstractmethod
    def _checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        """Return the statistics of one checkpoint, or of all for None; None where that one is not remembered."""

    @abstractmethod
    def _cancel(self) -> None: ...

    @abstractmethod
    def _accumulators(self) -> dict[str, Any]: ...

    @abstractmethod
    def _ask_result(
        self, timeout_s: float | None, on_progress: Callable[[dict[str, Any]], None] | None
    ) -> JobExecutionResult:
        """Return the end of the job, or `CompletableFuture.PENDING` where it has not ended within `timeout_s`."""

    @abstractmethod
    def _ask_savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float | None
    ) -> tuple[str, str] | None:
        """Return the address of the savepoint, and why there is none; None where it is not known within `timeout_s`.

        Only the first call of a `request_id` asks for one; later calls wait for it.
        """

    @abstractmethod
    def _ask_rescale(
        self, request_id: str, parallelism: Mapping[str, int], timeout_s: float | None
    ) -> tuple[int, str] | None:
        """Return the pause in ms, and why there is no change; None where it is not known within `timeout_s`."""

    def _future_savepoint(self, directory: str | None, stop: StopMode | None) -> CompletableFuture[str]:
        request_id, place = uuid.uuid4().hex, from_root(os.fspath(directory)) if directory else ""
        return self._future(partial(self._ask_savepoint, request_id, place, stop), "has no savepoint")

    def _future(self, ask: Callable[[float | None], tuple[T, str] | None], failed: str) -> CompletableFuture[T]:
        """Return the future of a request, made now; its number makes sure that it is made once."""

        def answer(timeout_s: float | None) -> T:
            reply = ask(timeout_s)
            if reply is None:
                pending: T = CompletableFuture.PENDING
                return pending
            value, failure = reply
            if failure:
                raise JobExecutionError(self._job_id, f"{failed}: {failure}", "ask again once that is repaired")
            return value

        future = CompletableFuture(answer)
        future.done()  # so that it begins now
        return future

    def _repr_html_(self) -> str:
        """Return the job's state and a row a vertex, as HTML for notebooks."""
        return html_table(self.status())


__all__ = ["JobClient"]
