"""The cases which the fast tests give to `verify` give the same as jobs on Ray, many of them in one job."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from rayflink.actors.on_ray.driver.ray_cluster import RayJob, RayOptions
from rayflink.testing.case_jobs import CaseJob, can_spread, job_of_cases
from rayflink.testing.cases import Case
from tests.cluster.conftest import ROOT

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

CASES_A_JOB = 40
PARTS = 6
"""Of the tests, of which the first runs each day."""
TELL_THE_WATERMARK = (
    "timers_at_or_before_the_watermark", "timers_give_the_same", "a_watermark_before_its_timer",
    "a_continuous_event_time_trigger_fires",
)  # fmt: skip
"""Of tests whose records say how far event time had come; where watermarks are merged that is another moment."""


SOAKED = [pytest.param(part, marks=pytest.mark.soak) for part in range(2, PARTS + 1)]


@pytest.fixture(scope="module", params=[1, *SOAKED])
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[tuple[str, Case]]:
    """What a part of the fast tests of operators and of the test kit verify, by test."""
    file: Path = tmp_path_factory.mktemp("cases") / "cases.pickle"
    recording = ["-p", "tests.suite.recorded_cases", "--record-cases", str(file)]
    recording += ["--cases-part", f"{request.param}/{PARTS}", "-m", "not slow and not ray", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *recording]
    run = subprocess.run([*command, "tests/operators", "tests/testing"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stdout + run.stderr  # 1: tests of `verify` itself find it changed
    return [(test, pickle.loads(case)) for test, case in pickle.loads(file.read_bytes())]


def check(jobs: list[tuple[str, CaseJob]]) -> None:
    for start in range(0, len(jobs), CASES_A_JOB):
        group = jobs[start : start + CASES_A_JOB]
        result = RayJob(job_of_cases([job for _, job in group]), RayOptions(slot_cpus=0.25)).wait()
        for test, job in group:
            job.check(result, test)


def test_every_case_gives_the_same_in_one_process_on_ray(recorded: list[tuple[str, Case]]) -> None:
    assert len(recorded) > 20
    check([(test, CaseJob(case)) for test, case in recorded])


@pytest.mark.soak
def test_keyed_cases_give_the_same_records_from_two_processes_on_ray(recorded: list[tuple[str, Case]]) -> None:
    keyed = [(test, case) for test, case in recorded if case.keys is not None and can_spread(case)]
    spread = [(test, case) for test, case in keyed if not any(name in test for name in TELL_THE_WATERMARK)]
    assert len(spread) > 5
    check([(test, CaseJob(case, parallelism=2, spread=True)) for test, case in spread])
