"""A program with its own Ray runs one job after the other in the same processes, where the jobs are alike."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_files import ROOT

pytestmark = [pytest.mark.ray, pytest.mark.soak]

PROGRAM = """
import os
from rayflink.datastream import StreamExecutionEnvironment

def processes(job, parallelism, fails=False):
    env = StreamExecutionEnvironment.get_execution_environment({"rayflink.ray.idle-process-timeout": "1 min"})
    env.set_parallelism(parallelism)

    def process_of(number):
        if fails:
            raise ValueError("as it should")
        if number == 7:
            print("printed by", job)
        return os.getpid()

    return set(env.from_sequence(0, 99).map(process_of).execute_and_collect(job))

first, second = processes("the first job", 2), processes("the second job", 2)
assert first & second and len(first | second) <= 2, (first, second)
narrower = processes("the narrower job", 1)
assert not narrower & (first | second)
try:
    processes("the failing job", 1, fails=True)
except Exception as error:
    assert "as it should" in str(error)
assert not processes("the job behind a failure", 1) & narrower
print("done")
"""


def test_jobs_that_are_alike_run_in_the_same_processes(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": "local"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=180)
    lines = done.stdout.splitlines()
    jobs = ("the first job", "the second job", "the narrower job", "the job behind a failure")
    assert [line for line in lines if line.startswith("printed")] == [f"printed by {job}" for job in jobs], done.stderr
    assert (lines[-1], done.returncode) == ("done", 0), done.stderr
