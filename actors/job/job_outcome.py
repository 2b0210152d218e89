"""Turns the result of a job into the exception that its program sees."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rayflink.common.errors import JobCancelled, JobExecutionError, JobFailed, NoResourceAvailable, TaskLost
from rayflink.common.job_status import JobStatus

from ..messages.commands import JobResult


def raise_if_failed(result: JobResult, described: Mapping[str, Any] | None = None) -> JobResult:
    """Return the result of a job that finished, or raise its failure.

    Args:
        described: the job as plain data, for what the result does not hold.

    Raises:
        JobFailed: a function of the program raised.
        TaskLost: the process of a task died or stopped answering.
        NoResourceAvailable: the cluster did not give the job its slots in time.
        JobCancelled, JobExecutionError: it ended otherwise.
    """
    if result.status is JobStatus.FINISHED:
        return result
    if result.status is JobStatus.CANCELED:
        left = result.checkpoints
        raise JobCancelled(result.job_id, result.cancelled_by, left.newest, left.deleted, left.directory)
    failure = result.failure
    assert failure is not None, "a failed job keeps its first failure"
    if failure.operator:
        raise JobFailed(
            result.job_id,
            failure.operator,
            result.failed_subtask,
            failure.record,
            failure.traceback or failure.message,
            failure.call_site,
        )
    if described and failure.kind == "TaskLost":
        raise _lost(result, described)
    if described and failure.kind == "NoResourceAvailable":
        stamps = described["timestamps"]
        waited = stamps[JobStatus.FAILING.value] - stamps[JobStatus.CREATED.value]
        raise NoResourceAvailable(f"all slots of job {result.job_name!r}", failure.message, waited)
    raise JobExecutionError(result.job_id, f"failed: {failure.message}", "see the job's exceptions for the history")


def _lost(result: JobResult, described: Mapping[str, Any]) -> TaskLost:
    """Return the first failure, with the place and the last report of the lost task."""
    first = described["exceptions"][0]
    subtasks = {
        f"{vertex['name']} ({subtask['subtask'] + 1}/{vertex['parallelism']})": subtask["metrics"]
        for vertex in described["vertices"]
        for subtask in vertex["subtasks"]
    }
    metrics = subtasks.get(first["task"], {})
    place = f"{metrics['host']} (pid {metrics['pid']})" if "pid" in metrics else ""
    silent = first["timestamp"] - metrics.get("reportedMs", first["timestamp"])
    assert result.failure is not None, "a failed job keeps its first failure"
    cause = re.sub(r"^lost task .* \(attempt #\d+\): ", "", result.failure.message)
    return TaskLost(first["task"], place, max(0, silent), cause)


__all__ = ["raise_if_failed"]
