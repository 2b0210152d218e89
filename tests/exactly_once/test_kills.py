"""What the killer decides without a cluster: whom it kills and when, and which checkpoint it has seen."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from benchmarks.servers.kafka_broker import kafka_jars
from benchmarks.servers.postgres_server import programs
from tests.exactly_once.kills import VICTIMS, Campaign, plan, run
from tests.exactly_once.running import ROOT, RoundFailed, RunningJob, database


def test_a_seed_gives_one_plan_and_the_first_rounds_take_each_kind_once():
    assert plan(20, 7, VICTIMS) == plan(20, 7, VICTIMS)
    plans = [plan(100, seed, VICTIMS) for seed in range(20)]
    assert len({tuple(chosen) for chosen in plans}) == 20
    for chosen in plans:
        assert sorted(victim for victim, _ in chosen[:5]) == sorted(VICTIMS)
        assert {victim for victim, _ in chosen[5:]} == set(VICTIMS)
        assert all(0 <= wait_s <= 1.5 for _, wait_s in chosen)
    assert [victim for victim, _ in plan(2, 0, ("task",))] == ["task", "task"]


def test_a_checkpoint_is_complete_when_its_metadata_is_there(tmp_path: Path):
    job = RunningJob(tmp_path, records=1)
    assert job.newest_checkpoint() == 0
    for number in (9, 10, 11):
        (tmp_path / "checkpoints-0" / "0a" / f"chk-{number}").mkdir(parents=True)
    assert job.newest_checkpoint() == 0
    for number in (9, 10):
        (tmp_path / "checkpoints-0" / "0a" / f"chk-{number}" / "_metadata").touch()
    assert job.newest_checkpoint() == 10
    (tmp_path / "checkpoints-0" / "0a" / "chk-10" / "_metadata").unlink()
    assert job.newest_checkpoint() == 10, "it was there"


@pytest.mark.slow
def test_a_job_that_ended_before_its_rounds_did_is_a_failure(tmp_path: Path):
    job = RunningJob(tmp_path, records=5, options=["execution.target=local"])
    (tmp_path / "release").touch()
    job.start()
    try:
        with pytest.raises(RoundFailed, match="ended before its rounds did"):
            job.await_checkpoint(10**6, within_s=30)
        assert job.verdict() == (True, "ALL-RECORDS-DELIVERED-ONCE records=20 windows=20 files=2")
    finally:
        job.kill()


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["files", pytest.param("PostgreSQL", marks=pytest.mark.soak)])
def test_functions_that_raise_and_other_parallelisms_lose_and_repeat_nothing(sink: str, tmp_path: Path):
    said: list[str] = []
    options = ("execution.target=local", "execution.checkpointing.interval=200 ms")
    campaign = Campaign(rounds=6, seed=11, victims=("function", "rescale"), records=12_000, options=options)
    with database() if sink == "PostgreSQL" else nullcontext("") as dsn:
        assert run(replace(campaign, postgres=dsn), None, tmp_path, said.append), said
    assert sum("made a function raise" in line for line in said) >= 1
    assert sum("rescaled a job of parallelism 2, which goes on with 1" in line for line in said) >= 1
    assert said[-1].startswith("ALL-RECORDS-DELIVERED-ONCE records=48000 windows=4800 "), said
    assert ("table=lines" in said[-1]) == (sink == "PostgreSQL")


def campaign(rounds: int, victims: tuple[str, ...], *more: str, within_s: float = 90) -> str:
    """The verdict of a campaign, which is a process with a cluster of its own; longer ones are run by hand."""
    command = [sys.executable, "-m", "tests.exactly_once.kills", "--rounds", str(rounds), "--seed", "1"]
    command += ["--within", "60", "--victims", *victims, *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        said, _ = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        for each in [*psutil.Process(process.pid).children(recursive=True), process]:
            each.kill()
        process.wait()
        raise
    assert process.returncode == 0, said
    verdicts = [line for line in said.splitlines() if line.startswith("ALL-RECORDS-DELIVERED-ONCE ")]
    assert len(verdicts) == 1, said  # not always the last line: Ray's own word of a killed raylet may come after it
    return verdicts[0]


@pytest.mark.spec("A10", "recovery")
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(
    ("victims", "on_postgres"),
    [
        pytest.param(("task", "coordinator", "rescale"), False, id="task-coordinator-rescale"),
        pytest.param(("task", "raylet"), programs() is not None, id="task-raylet", marks=pytest.mark.soak),
    ],
)
def test_lost_processes_lose_and_repeat_nothing(victims: tuple[str, ...], on_postgres: bool):
    often = ("--option", "execution.checkpointing.interval=300 ms")
    verdict = campaign(len(victims), victims, *often, *["--postgres"] * on_postgres)
    assert ("table=lines" in verdict) == on_postgres


@pytest.mark.ray
@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("victims", [("task", "broker"), ("coordinator", "rescale")], ids="-".join)
def test_kills_between_topics_lose_and_repeat_nothing_and_strand_no_reader(victims: tuple[str, ...]):
    pytest.importorskip("confluent_kafka")
    kafka_jars()  # skips where there are none
    verdict = campaign(2, victims, "--kafka", within_s=240)
    assert all(f"{victim}=1" in verdict for victim in victims), verdict
