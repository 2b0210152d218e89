"""The job of the real kills on Ray, here with nobody killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
PROGRAMS = Path(__file__).parent.parent / "exactly_once"
SHAPE = ["--lanes", "4", "--keys", "10", "--records", "10000", "--window", "100"]


def run(program: str, *given: str) -> str:
    """What a program prints; it must end with 0."""
    command = [sys.executable, str(PROGRAMS / program), *SHAPE, *given]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_what_the_job_writes_on_two_nodes_is_exact(tmp_path):
    (tmp_path / "release").touch()
    out = str(tmp_path / "out")
    run("job.py", "--out", out, "--release", str(tmp_path / "release"), "--option", "parallelism.default=2")
    told = run("verifier.py", "--out", out)
    assert told == "ALL-RECORDS-DELIVERED-ONCE records=40000 windows=4000 files=2\n"
