"""`rayflink rescale`: other numbers of subtasks for a job that runs."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from rayflink import launch

from .given_options import configuration_of
from .jobs import one_job
from .render import printable
from .script import FAILED, OK

if TYPE_CHECKING:
    from rayflink.common.completable_future import CompletableFuture
    from rayflink.common.job_client import JobClient

LOOK_EVERY_S = 0.5
"""Seconds between two looks of the command at what the job waits for."""


def rescale(chosen: argparse.Namespace) -> int:
    """Ask the job that is meant, wait for its tasks to run again, print the pause, and return the exit code."""
    job_status = one_job(chosen)
    if job_status is None:
        return FAILED
    job = launch.attach(job_status["jid"], configuration_of(chosen))
    future = job.rescale(dict(chosen.wanted))
    _tell_what_it_waits_for(job, future)
    pause_ms = future.result()
    changed = ", ".join(f"{operator}={parallelism}" for operator, parallelism in chosen.wanted)
    print(f"{printable(job_status['name'])}  {job_status['jid']}  {changed}  pause {pause_ms / 1000:.2f} s")
    return OK


def _tell_what_it_waits_for(job: JobClient, future: CompletableFuture[int]) -> None:
    printed = ""
    while not future.done():
        time.sleep(LOOK_EVERY_S)
        note = str(job.status().get("note", ""))
        if note and not printed:  # once: what the cluster has changes all the time
            printed = note
            print(f"rayflink: {note}", file=sys.stderr, flush=True)


__all__ = ["rescale"]
