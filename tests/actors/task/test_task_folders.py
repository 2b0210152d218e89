"""The folders of a job on a node's disks: whose they are, and who removes them when their task was killed."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.local.task_executor import TaskExecutor
from rayflink.actors.messages.commands import DeployTask, SlotsGranted
from rayflink.actors.messages.messages import TaskDeployment
from rayflink.actors.task.task_folders import (
    copies_folder,
    remove_folders,
    remove_older_spills,
    remove_spills,
    spill_folder,
)
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch import raise_if_failed
from rayflink.state.clock import ManualClock
from tests.actors.job.job_events import Job


def sums(folder: Path, **options: str) -> StreamExecutionEnvironment:
    config = {"io.tmp.dirs": str(folder), "parallelism.default": "2", **options}
    env = StreamExecutionEnvironment.get_execution_environment(config)
    pairs = env.from_collection([(name, 1) for name in "abcdefgh"] * 50)
    pairs.key_by(lambda pair: pair[0]).sum(1).sink_to(CollectSink("out"))
    return env


def deployed(folder: Path) -> list[TaskDeployment]:
    job = Job(sums(folder).get_job_graph())
    job.start()
    return [command.deployment for command in job.on(SlotsGranted()) if isinstance(command, DeployTask)]


def filled(folder: Path) -> Path:
    (folder / "state").mkdir(parents=True)
    (folder / "state" / "part.spill").write_bytes(b"spilled")
    return folder


def test_an_attempt_removes_what_those_before_it_left_and_nothing_else(tmp_path: Path) -> None:
    tasks = deployed(tmp_path)
    again = replace(tasks[-1], attempt="0a" * 16, attempt_number=1)
    folders = [filled(spill_folder(task)) for task in tasks]
    kept = [*folders[:-1], filled(copies_folder(again)), filled(spill_folder(again))]
    other_job = filled(spill_folder(replace(again, job_id="0b" * 16)))
    twentieth = filled(spill_folder(replace(again, subtask=10 * again.subtask + 2)))
    remove_older_spills(again)
    assert {*tmp_path.iterdir()} == {*kept, other_job, twentieth}
    remove_older_spills(again)
    assert {*tmp_path.iterdir()} == {*kept, other_job, twentieth}


def test_what_stays_of_an_older_attempt_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task = deployed(tmp_path)[-1]
    old = filled(spill_folder(replace(task, attempt="0a" * 16)))
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    with caplog.at_level(logging.WARNING, logger="rayflink"):
        remove_older_spills(task)
    assert f"could not remove what an older attempt of {task.name} has spilled: {old}" in caplog.text


def test_an_attempt_removes_its_own_folder_also_when_somebody_was_faster(tmp_path: Path) -> None:
    task = deployed(tmp_path)[0]
    folder = filled(spill_folder(task))
    assert remove_spills(task) and not folder.exists()
    assert remove_spills(task)


def test_of_a_job_everything_goes_with_or_without_its_copies(tmp_path: Path) -> None:
    tasks = deployed(tmp_path)
    stranger, copies = filled(tmp_path / "rayflink-0c"), filled(copies_folder(tasks[0]))
    for task in tasks:
        filled(spill_folder(task))
    job_id, config = tasks[0].job_id, tasks[0].config
    assert remove_folders(job_id, config, copies=False) == []
    assert {*tmp_path.iterdir()} == {stranger, copies}
    assert remove_folders(job_id, config, copies=True) == []
    assert {*tmp_path.iterdir()} == {stranger}


def test_both_kinds_of_disks_are_cleared_and_one_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    of_state = filled(tmp_path / "state" / "rayflink-0a-v-0-1")
    spilled = filled(tmp_path / "tmp" / "rayflink-0a-v-0-1")
    config = {
        "io.tmp.dirs": f"{tmp_path / 'tmp'};{tmp_path / 'absent'}",
        "state.backend.rocksdb.localdir": str(tmp_path / "state"),
    }
    assert remove_folders("0a", config, copies=True) == []
    assert not of_state.exists() and not spilled.exists()


def test_a_folder_that_cannot_be_removed_is_said_to_be_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = filled(tmp_path / "rayflink-0a-v-0-1")
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    assert remove_folders("0a", {"io.tmp.dirs": str(tmp_path)}, copies=True) == [str(folder)]


def test_what_a_dying_process_still_writes_is_removed_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = []

    def removed_at_the_second_try(path: Path, ignore_errors: bool) -> None:
        rounds.append(path)
        if len(rounds) == 2:
            path.rmdir()

    monkeypatch.setattr(shutil, "rmtree", removed_at_the_second_try)
    (tmp_path / "rayflink-0a-v-0-1").mkdir()
    config = {"io.tmp.dirs": str(tmp_path)}
    assert remove_folders("0a", config, copies=True, within_s=5) == [] and len(rounds) == 2


def test_a_job_that_restarts_has_one_folder_a_subtask_whatever_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed task is dropped as a process dies: what it spilled stays where it is."""

    def drop_as_a_process_dies(executor: TaskExecutor, attempt: TaskAddress) -> None:
        executor.memory.free(attempt)
        del executor.tasks[attempt]

    monkeypatch.setattr(TaskExecutor, "drop", drop_as_a_process_dies)
    strategy = {"type": "fixed-delay", "fixed-delay.delay": "0 ms", "fixed-delay.attempts": "3"}
    options = {f"restart-strategy.{key}": value for key, value in strategy.items()}
    clock = ManualClock()
    cluster = InProcessCluster(sums(tmp_path, **options).get_job_graph(), clock, clock.advance, {})
    left: list[Path] = []
    while len(left) < 3 and cluster.result is None:
        if not cluster.turn():
            cluster.pause()
        for attempt, task in list(cluster.tasks.items()):
            if task.deployment.inputs and task.deployment.attempt_number == len(left):
                assert [*tmp_path.iterdir()] == [], "the attempt before this one left a folder"
                left.append(filled(spill_folder(task.deployment)))
                cluster.kill(attempt, "its process died")
                break
    assert Counter(raise_if_failed(cluster.run()).accumulators["out"]) == Counter(
        (name, count) for name in "abcdefgh" for count in range(1, 51)
    )
    assert len({*left}) == 3
    assert [*tmp_path.iterdir()] == []
