"""Jobs of which no runner has a status: those that begin, cannot begin, or were lost."""

from __future__ import annotations

import time
from typing import Any

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.common.job_status import JobStatus

from ..jobs.cluster_job import Document
from ..registry.job_registry import AcceptedJob

__all__ = ["began_ms", "beginning_job", "is_over", "last_of_job", "now_ms"]


DISPATCHER = "dispatcher"
"""The task of a failure by which a job has not begun."""


def beginning_job(
    job: AcceptedJob, description: Document | None = None, state: str = "INITIALIZING", reason: str = "",
    refusal: tuple[str, str] | None = None,
) -> JobArchive:  # fmt: skip
    """Return a job that has not begun here.

    Args:
        reason: why it could not begin; "": nothing has kept it from that.
        refusal: the reason and the remedy of the `JobExecutionError` that its client raises; None: there is none.
    """
    now = now_ms()
    exceptions: list[dict[str, Any]] = []
    if reason:
        exceptions.append({"timestamp": now, "task": DISPATCHER, "exception": reason, "refusal": refusal})
    status = {
        "jid": job.job_id,
        "name": job.name,
        "state": state,
        "timestamps": {"INITIALIZING": job.accepted_ms, state: now},
        "vertices": [],
        "recovery": None,
        "exceptions": exceptions,
        "scope": "",
        "metrics": {},
    }
    return JobArchive.of(status, description)


def last_of_job(status: Document) -> JobArchive:
    """Return a job of which only a status is left; one that was not over then has failed."""
    if not is_over(status):
        entry = {"timestamp": now_ms(), "task": "coordinator", "exception": "the job's coordinator was lost"}
        stamps = {**status["timestamps"], "FAILED": now_ms()}
        exceptions = [*status.get("exceptions", ()), entry]
        status = {**status, "state": "FAILED", "timestamps": stamps, "exceptions": exceptions}
    return JobArchive.of(status)


def is_over(status: Document) -> bool:
    """Return whether a job has ended."""
    return JobStatus(status["state"]).is_terminal


def began_ms(status: Document) -> int:
    """Return when a job began, epoch milliseconds."""
    return min((int(stamp) for stamp in status["timestamps"].values()), default=0)


def now_ms() -> int:
    """Return the time, epoch milliseconds."""
    return int(time.time() * 1000)
