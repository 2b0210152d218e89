"""`rayflink rescale`: other numbers of subtasks for a job that runs."""

from __future__ import annotations

import argparse

from .given_options import configuration_of
from .jobs import one_job
from .script import FAILED, OK


def wanted_parallelism(text: str) -> tuple[str, int]:
    """OPERATOR=N.

    Raises:
        ArgumentTypeError: it is not of that form.
    """
    operator, separator, number = text.rpartition("=")
    if not separator or not operator or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted OPERATOR=N with N of at least 1")
    return operator, int(number)


def rescale(chosen: argparse.Namespace) -> int:
    """Ask the job that is meant, wait until its tasks run again, and print the pause; returns the exit code."""
    from rayflink import launch

    found = one_job(chosen)
    if found is None:
        return FAILED
    job = launch.attach(found["jid"], configuration_of(chosen))
    pause_ms = job.rescale(dict(chosen.wanted)).result()
    changed = ", ".join(f"{operator}={parallelism}" for operator, parallelism in chosen.wanted)
    print(f"{found['name']}  {found['jid']}  {changed}  pause {pause_ms / 1000:.2f} s")
    return OK


__all__ = ["rescale", "wanted_parallelism"]
