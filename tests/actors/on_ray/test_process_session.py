"""Processes that do not wait behind those of jobs, and what a slot loads before it begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def printed_by(program: str, group: int | None = None) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, process_group=group)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("group", [0, None], ids=["that leads a group, as Ray's workers do", "of its parent's group"])
def test_a_process_begins_a_session_of_its_own(group: int | None) -> None:
    program = (
        "import os; from rayflink.actors.on_ray.process_session import begin_session; begin_session(); "
        "print(os.getsid(0) == os.getpgrp() == os.getpid())"
    )
    assert printed_by(program, group) == "True\n"


def test_a_slot_loads_nothing_of_coordinators() -> None:
    """Each job on a cluster starts slots: what they load takes its time and memory many times."""
    program = "import sys, rayflink.actors.on_ray.slots.slot_actor; print(*sys.modules)"
    loaded = set(printed_by(program).split())
    coordinators = ("actors.checkpoints.coordinator", "actors.job.submission", "actors.job.job_master", "launch")
    assert loaded.isdisjoint(f"rayflink.{name}" for name in coordinators)
