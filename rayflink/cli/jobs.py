"""Jobs of the cluster as commands select and show them: running jobs, ended jobs, and their logs."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

from rayflink import launch
from rayflink.actors.on_ray.task_log import LogLine, of_level
from rayflink.common.errors import TaskLost
from rayflink.common.job_status import JobStatus
from rayflink.common.metrics.job_report import short
from rayflink.common.options import registry as options
from rayflink.common.user_code.stalled import stalled_tasks
from rayflink.launch.cluster_address import ClusterAddress

from .archived import archived_jobs, whole_status
from .background import Background
from .given_options import configuration_of
from .render import job_table, printable
from .script import FAILED, OK, TERMINATED, USAGE

NO_SHARED_CLUSTER = (
    "only jobs of a running cluster are visible (`ray start --head`, or RAY_ADDRESS); "
    "without one a program starts a Ray of its own, which other terminals cannot see"
)
SESSION_CLUSTER = "the session cluster at {url}, which was started here, is asked with `-D execution.target=remote`"
LOCAL_JOBS = "a job of `--local` is visible to its own program alone, which asks the client of the job"
ENDED_JOBS = "`rayflink list -a` lists jobs that have ended"
NO_LINES = "job {job!r} has written no such lines; `rayflink status {job}` shows failures, and why it is slow"
FOLLOW_EVERY_S = 0.5
"""Seconds between two looks for new lines by `logs --follow`."""
TELL_EVERY_S = 5.0
"""Seconds between two reports of `cancel` and `stop` on what they wait for."""
LOST = "LOST"
"""The state that is shown of a job whose coordinator was killed, so that its end is unknown."""


def list_jobs(chosen: argparse.Namespace) -> int:
    """Print a table of the jobs and return the exit code."""
    jobs = all_jobs(chosen) if chosen.all else running_jobs(chosen)
    print(job_table(jobs) if jobs else "no jobs")
    if not jobs:
        ended = "" if chosen.all else f"{ENDED_JOBS}; "
        print(f"rayflink: {ended}{_visible(chosen)}", file=sys.stderr)
    return OK


def cancel(chosen: argparse.Namespace) -> int:
    """Cancel a job, wait until it has ended, and return the exit code."""
    return end_job(chosen, lambda job: job.cancel())


def running_jobs(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the status of each job that has not ended, at most some seconds old."""
    jobs = launch.published_jobs(configuration_of(chosen))
    if jobs is None:
        return joined_jobs(chosen)
    return [job for job in jobs if not JobStatus(job["state"]).is_terminal]


def joined_jobs(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the status of each running job from its coordinator itself; this process joins the cluster for that."""
    return [job for job in _coordinated_jobs(chosen) if not JobStatus(job["state"]).is_terminal]


def all_jobs(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the status of each job that runs, then of those that have ended, the latest first, then archived ones."""
    running, configuration = _coordinated_jobs(chosen), configuration_of(chosen)
    archived = archived_jobs(configuration)
    known = {job["jid"] for job in running}
    ended = [job for job in launch.recorded_jobs(configuration) if job["jid"] not in known]
    for job in ended:
        if not JobStatus(job["state"]).is_terminal:
            job["state"] = LOST
    ended = [job for job in ended if job["state"] != LOST or job["jid"] not in archived]
    known |= {job["jid"] for job in ended}
    order = [*running, *reversed(ended), *(job for job_id, job in archived.items() if job_id not in known)]
    return sorted(order, key=lambda job: JobStatus(job["state"]).is_terminal if job["state"] != LOST else True)


def one_job(chosen: argparse.Namespace, ended: bool = False) -> dict[str, Any] | None:
    """Return the job that JOB names; None, with a message, if it names no job or several.

    Args:
        ended: whether it may have ended.
    """
    wanted = str(chosen.job)
    jobs = running_jobs(chosen)
    matches = _meant(jobs, wanted)
    if not matches:  # it may have ended, or be published no more
        jobs = all_jobs(chosen) if ended else joined_jobs(chosen)
        matches = _meant(jobs, wanted)
        if ended and len({job["name"] for job in matches}) == 1 and matches[0]["name"] == wanted:
            matches = matches[:1]  # of the runs of one job the latest is meant
    if len(matches) == 1:
        return whole_status(configuration_of(chosen), matches[0])
    known = "".join(f"\n  {job['jid']}  {printable(job['name'])}  {job['state']}" for job in matches or jobs)
    if matches:
        print(f"rayflink: {wanted!r} matches {len(matches)} jobs; give more of the id:{known}", file=sys.stderr)
    else:
        none = f"no job is running ({ENDED_JOBS}); {_visible(chosen)}"
        where = f"; its jobs are:{known}" if known else f"; {none}"
        print(f"rayflink: no job {wanted!r} on the cluster ({LOCAL_JOBS}){where}", file=sys.stderr)
    return None


def end_job(chosen: argparse.Namespace, ask: Callable[[Any], object]) -> int:
    """Ask the chosen job to end, wait until it has ended, print its state, and return the exit code."""
    job_status = one_job(chosen)
    if job_status is None:
        return FAILED
    configuration = configuration_of(chosen)
    job = launch.attach(job_status["jid"], configuration)
    ask(job)
    try:
        state = str(job.wait(_HeldUp()).status.value)
    except TaskLost:  # the job's driver had its end first, and needed the coordinator no longer
        states = [
            record["state"] for record in launch.recorded_jobs(configuration) if record["jid"] == job_status["jid"]
        ]
        if not states or not JobStatus(states[0]).is_terminal:
            raise
        state = states[0]
    print(f"{printable(job_status['name'])}  {job_status['jid']}  {state}")
    return OK


class _HeldUp:
    """Prints from time to time which functions do not return while their job is ending."""

    def __init__(self) -> None:
        self._told_at = time.monotonic()

    def __call__(self, status: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._told_at >= TELL_EVERY_S:
            self._told_at = now
            for line in [status["note"]] if status.get("note") else stalled_tasks(status["vertices"]):
                print(f"rayflink: {line}", file=sys.stderr)


def show_log(chosen: argparse.Namespace) -> int:
    """Print what the tasks and the coordinator of a job wrote, for `rayflink logs`, and return the exit code."""
    job_status = one_job(chosen, ended=True)
    if job_status is None:
        return FAILED
    vertices = [vertex["name"] for vertex in job_status["vertices"]]
    if chosen.vertex is not None and not any(_is_vertex(chosen.vertex, name) for name in vertices):
        known = ", ".join(map(repr, vertices)) or "none"
        print(
            f"rayflink: no vertex {chosen.vertex!r} in job {job_status['name']!r}, which has {known}", file=sys.stderr
        )
        return USAGE
    configuration = configuration_of(chosen)
    log = launch.job_log(job_status["jid"], configuration)
    parallelism = {vertex["name"]: vertex["parallelism"] for vertex in job_status["vertices"]}
    is_silent = True
    with _ended_by_sigterm():
        while True:
            goes_on = chosen.follow and any(job["jid"] == job_status["jid"] for job in running_jobs(chosen))
            lines = log.read()
            if chosen.level is not None:
                lines = of_level(lines, chosen.level)
            for line in _chosen(lines, chosen.vertex, chosen.subtask):
                print(_shown(line, parallelism))
                is_silent = False
            sys.stdout.flush()
            if not goes_on:
                if is_silent:
                    print(f"rayflink: {NO_LINES.format(job=job_status['name'])}", file=sys.stderr)
                return OK
            time.sleep(FOLLOW_EVERY_S)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """End the command on SIGTERM without a message; Ray, which is joined by now, would print frames of its own code."""

    def end(number: int, frame: object) -> None:
        sys.exit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _visible(chosen: argparse.Namespace) -> str:
    """Say of which cluster jobs are visible, and how to make one."""
    configuration = configuration_of(chosen)
    if configuration.get(options.TARGET) is not options.Target.REMOTE:
        session = Background("cluster", "cluster").running()
        return NO_SHARED_CLUSTER if session is None else SESSION_CLUSTER.format(url=session.url)
    return f"only jobs of the cluster at {ClusterAddress.of(configuration).url} are visible (execution.target: remote)"


def _coordinated_jobs(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the jobs that have a coordinator; they may have ended within a minute, or be unknown to their driver."""
    return launch.list_jobs(configuration_of(chosen))


def _meant(jobs: Iterable[dict[str, Any]], wanted: str) -> list[dict[str, Any]]:
    return [job for job in jobs if job["jid"].startswith(wanted) or job["name"] == wanted]


def _is_vertex(wanted: str, name: str) -> bool:
    return wanted.lower() in name.lower()


def _chosen(lines: Iterable[LogLine], vertex: str | None, subtask: int | None) -> list[LogLine]:
    return [
        line
        for line in lines
        if (vertex is None or (line.vertex and _is_vertex(vertex, line.vertex)))
        and (subtask is None or line.subtask == subtask)
    ]


def _shown(line: LogLine, parallelism: dict[str, int]) -> str:
    timestamp = datetime.fromtimestamp(line.at_ms / 1000, timezone.utc).strftime("%H:%M:%S.%f")[:-3]
    who = line.process
    if line.vertex:
        who = f"{short(line.vertex, 40)} ({line.subtask + 1}/{parallelism.get(line.vertex, '?')})"
    return f"{timestamp} {line.stream} {who}: {line.text}"


__all__ = [
    "ENDED_JOBS", "LOST", "NO_SHARED_CLUSTER", "all_jobs", "cancel", "end_job", "list_jobs", "one_job", "running_jobs",
    "show_log",
]  # fmt: skip
