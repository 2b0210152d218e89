"""`rayflink cluster upgrade`: what becomes of each job, as a table; one that cannot go on elsewhere is left alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rayflink.common.errors import RayflinkError
from rayflink.common.text_output.plain_table import table
from rayflink.launch.background_server import BackgroundServer
from rayflink.launch.cluster_client import ClusterUnreachable, RequestRefused

from .cluster_requests import ask

__all__ = ["JobUpgrade", "JobUpgrades", "show_upgrades", "upgrade_table"]

RENEW_S = 900.0
"""Time for a job's savepoint and its new beginning."""
BACK_S = 120.0
"""Time for a dispatcher that was lost to be back, and for the job that it was about to run."""
LOOK_S = 0.5
TRIES = 3
_OVER = ("FINISHED", "CANCELED", "FAILED")
_UNKNOWN_ROUTE = (404, 405)
"""Status of an answer of a dispatcher that does not know the request, or the job."""


@dataclass(frozen=True)
class JobUpgrade:
    """The outcome of an upgrade for one job, or the outcome that it would have.

    Args:
        job_id: 32 hex digits.
        name: of the job.
        is_done: it has been upgraded, or would be.
        outcome: in words.
        savepoint: from which it goes on; None: there is none.
        pause_ms: for which it did not run; None: not known.
    """

    job_id: str
    name: str
    is_done: bool
    outcome: str
    savepoint: str | None = None
    pause_ms: int | None = None


@dataclass(frozen=True)
class _Plan:
    """The answer of a dispatcher about a job that is to be renewed.

    Args:
        starts: how often the job was started.
        refusal: why it would not be renewed; "": it would.
        directory: in which its savepoint would get a folder.
    """

    starts: int
    refusal: str
    directory: str


class JobUpgrades:
    """Lets the jobs of a dispatcher go on in new processes, one after the other.

    Args:
        server: the dispatcher.
    """

    def __init__(self, server: BackgroundServer) -> None:
        self._server = server

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs that have not ended, in the order in which they began."""
        jobs: list[dict[str, Any]] = ask(self._server, "GET", "/rayflink/jobs")["jobs"]
        return [job for job in reversed(jobs) if job["state"] not in _OVER]

    def would_renew(self, job: Mapping[str, Any]) -> JobUpgrade:
        """Return what would become of a job that runs on Ray."""
        plan = self._plan(job["jid"])
        if isinstance(plan, str):
            return _left(job, plan)
        if plan.refusal:
            return _left(job, f"stays as it is: {plan.refusal}")
        return JobUpgrade(job["jid"], job["name"], True, "would go on in new processes", f"in {plan.directory}")

    def of_process(self, job: Mapping[str, Any]) -> JobUpgrade:
        """Return what becomes of a job that runs in the dispatcher's own process when that is replaced."""
        plan = self._plan(job["jid"])
        if isinstance(plan, str):
            return _left(job, plan)
        if plan.refusal:
            return _left(job, f"begins anew: {plan.refusal}")
        return JobUpgrade(job["jid"], job["name"], True, "goes on from its newest checkpoint")

    def renew(self, job: Mapping[str, Any]) -> JobUpgrade:
        """Let a job go on in new processes, and return what became of it.

        Where the dispatcher is lost meanwhile, the next one is asked whether the job has begun anew, else once more.
        """
        job_id = job["jid"]
        before = self._plan(job_id)
        for _ in range(TRIES):
            try:
                answer = ask(self._server, "POST", f"/rayflink/jobs/{job_id}/renewal", RENEW_S)
            except ClusterUnreachable as error:
                failure: RayflinkError = error
                if not self._await_running(job_id):
                    break
                now = self._plan(job_id)
                if not isinstance(before, str) and not isinstance(now, str) and now.starts > before.starts:
                    return JobUpgrade(job_id, job["name"], True, "upgraded, while the dispatcher was lost")
            except RayflinkError as error:
                return _left(job, self._end_of(job_id) or f"left as it was: {_reason(error)}")
            else:
                return JobUpgrade(job_id, job["name"], True, "upgraded", answer["savepoint"], answer["pause-ms"])
        return _left(job, f"not known: {failure}")

    def _plan(self, job_id: str) -> _Plan | str:
        """Return what the dispatcher says about a job; a text where it does not say that."""
        try:
            answer = ask(self._server, "GET", f"/rayflink/jobs/{job_id}/renewal")
        except RequestRefused as error:
            if error.status in _UNKNOWN_ROUTE:
                return "not known: the dispatcher that runs is of an older version"
            return f"not known: {_reason(error)}"
        except ClusterUnreachable as error:
            return f"not known: {error}"
        return _Plan(int(answer["starts"]), str(answer["refusal"]), str(answer["target-directory"]))

    def _end_of(self, job_id: str) -> str:
        """Return that a job has ended; "" where it has not, or that is not known."""
        try:
            jobs = ask(self._server, "GET", "/rayflink/jobs")["jobs"]
        except RayflinkError:
            return ""
        states = {job["jid"]: str(job["state"]) for job in jobs}
        return f"has ended ({states.get(job_id)})" if states.get(job_id) in _OVER else ""

    def _await_running(self, job_id: str) -> bool:
        """Wait until a dispatcher answers that a job runs or has ended; return False where none does in time."""
        until = time.monotonic() + BACK_S
        while time.monotonic() < until:
            try:
                jobs = ask(self._server, "GET", "/rayflink/jobs")["jobs"]
            except RayflinkError:
                jobs = []
            if any(job["jid"] == job_id and job["state"] in ("RUNNING", *_OVER) for job in jobs):
                return True
            time.sleep(LOOK_S)
        return False


def upgrade_table(upgrades: Iterable[JobUpgrade]) -> str:
    """Return what became of jobs, one a line."""
    rows = [(each.job_id, each.name, each.outcome, each.savepoint, each.pause_ms) for each in upgrades]
    return table(("job", "name", "outcome", "savepoint", "pause ms"), rows)


def show_upgrades(upgrades: Iterable[JobUpgrade], of_left: str) -> bool:
    """Print what became of jobs, and return whether all are upgraded.

    Args:
        of_left: what happens to the others, such as "were not upgraded".
    """
    upgrades = list(upgrades)
    if upgrades:
        print(upgrade_table(upgrades))
    left = [each for each in upgrades if not each.is_done]
    if left:
        print(f"rayflink: {len(left)} of {len(upgrades)} jobs {of_left}", file=sys.stderr)
    return not left


def _left(job: Mapping[str, Any], outcome: str) -> JobUpgrade:
    return JobUpgrade(job["jid"], job["name"], False, outcome)


def _reason(error: RayflinkError) -> str:
    return "; ".join(error.messages) if isinstance(error, RequestRefused) and error.messages else str(error)
