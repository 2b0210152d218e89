"""A job goes on in new processes: the savepoint before, and the beginning after."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from rayflink.common.configuration import Configuration
from rayflink.common.errors import JobExecutionError
from rayflink.common.options import registry as options
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.state.storage.ledger import LedgerEnded

from ..jobs.cluster_job import Document, RunningJob
from ..runners.runner import Runner
from .job_documents import is_over

__all__ = [
    "RENEW_S", "Renewal", "RenewalPlan", "await_running", "is_end", "renewal_plan", "savepoint_directory",
    "take_savepoint",
]  # fmt: skip

RENEW_S = 300.0
LOOK_S = 0.1


@dataclass(frozen=True)
class Renewal:
    """A job that goes on in new processes.

    Args:
        savepoint: address of the one that it took before.
        pause_s: seconds for which it did not run.
    """

    savepoint: str
    pause_s: float


@dataclass(frozen=True)
class RenewalPlan:
    """The plan of a renewal, which `renew` carries out.

    Args:
        starts: how often the job was started.
        directory: in which its savepoint would get a folder.
        reason: why the job would be left as it is; "": it would go on in new processes.
        remedy: what to do then.
    """

    starts: int
    directory: str
    reason: str = ""
    remedy: str = ""


def renewal_plan(submission: RemoteSubmission | None, registry: str, starts: int) -> RenewalPlan:
    """Return what can be done with a job that has not ended.

    Args:
        submission: of the job; None: a program has started it by itself.
        registry: address of the registry.
        starts: how often the job was started.
    """
    remedy = "stop it with a savepoint, and run its program again from there (-s)"
    if submission is None:
        return RenewalPlan(starts, "", "was started by its program itself, without this cluster", remedy)
    configured = Configuration.from_dict(dict(submission.description.get("configuration", {})))
    directory = configured.get(options.SAVEPOINT_DIRECTORY) or savepoint_directory(submission.description, registry)
    if submission.stored is None:
        return RenewalPlan(starts, directory, "takes no checkpoints, and would begin anew in new processes", remedy)
    return RenewalPlan(starts, directory)


def savepoint_directory(description: Document, registry: str) -> str:
    """Return where the savepoint of a job goes: "" where its own options say so, else a folder beside the registry.

    >>> savepoint_directory({"configuration": {}}, "s3://bucket/cluster-default")
    's3://bucket/cluster-default-savepoints'

    Args:
        description: of the job, with its options.
        registry: address of the registry.
    """
    configured = Configuration.from_dict(dict(description.get("configuration", {})))
    return "" if configured.get(options.SAVEPOINT_DIRECTORY) else f"{registry.rstrip('/')}-savepoints"


def take_savepoint(job_id: str, job: RunningJob, directory: str, wait_s: float) -> str:
    """Take a savepoint of a job, and return its address.

    Raises:
        JobExecutionError: there is none, or none in time.
    """
    request_id, until = uuid.uuid4().hex, time.monotonic() + wait_s
    while (answer := job.savepoint(request_id, directory, None, 1.0)) is None:
        if time.monotonic() > until:
            raise JobExecutionError(job_id, f"has given no savepoint within {wait_s:.0f} s", "it goes on as it was")
    location, failure = answer
    if failure:
        raise JobExecutionError(job_id, f"gives no savepoint: {failure}", "it goes on as it was")
    return location


def await_running(job_id: str, runner: Runner, wait_s: float) -> None:
    """Wait until a job runs, or has run and ended.

    Raises:
        JobExecutionError: it does not in time.
    """
    until = time.monotonic() + wait_s
    while (status := runner.status(job_id)) is None or not (status["state"] == "RUNNING" or is_over(status)):
        if time.monotonic() > until:
            state = "no state" if status is None else status["state"]
            remedy = "see its exceptions; it is tried again and again"
            raise JobExecutionError(job_id, f"has not begun within {wait_s:.0f} s, and is in {state}", remedy)
        time.sleep(LOOK_S)


def is_end(error: BaseException) -> bool:
    """Return whether a job cannot start because its checkpoints say that it has ended."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, LedgerEnded) or isinstance(getattr(seen, "cause", None), LedgerEnded):
            return True
        seen = seen.__cause__
    return False
