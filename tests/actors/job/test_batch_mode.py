"""Bounded jobs with blocking partitions: consumers start when their producers are done, from spilled data."""

from __future__ import annotations

import re
from collections import Counter
from operator import itemgetter
from pathlib import Path

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.states import ExecutionState
from rayflink.common import PlanError, WatermarkStrategy
from rayflink.common.errors import ConfigError
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from rayflink.graph.job_graph import ScheduleMode
from rayflink.launch import raise_if_failed
from rayflink.state.clock import SystemClock

ROWS = 40_000


def batch_environment(folder: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        {
            "execution.target": "local",
            "execution.runtime-mode": "BATCH",
            "rayflink.blocking-partition.memory": "20 kb",
            "io.tmp.dirs": str(folder),
        }
    )
    return env.set_parallelism(2)


@pytest.mark.spec("N14", "T02")
def test_a_spilled_shuffle_gives_every_record_once_and_leaves_no_file(tmp_path: Path) -> None:
    env = batch_environment(tmp_path)
    counts = env.from_sequence(1, ROWS).map(lambda x: (x % 7, 1)).key_by(itemgetter(0)).sum(1)
    rows = list(counts.execute_and_collect())
    assert sorted(rows) == sorted(Counter(x % 7 for x in range(1, ROWS + 1)).items())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("J06", "T03", "N38", "N02", "batch")
def test_consumers_are_deployed_when_all_their_producers_have_finished(tmp_path: Path) -> None:
    env = batch_environment(tmp_path)
    env.from_sequence(1, 100).key_by(lambda x: x).sum().print_to_err()
    cluster = InProcessCluster(env.get_job_graph(), SystemClock(), lambda ms: None)
    result = raise_if_failed(cluster.run())
    source, counts = result.vertices
    finished = max(task["timestamps"]["FINISHED"] for task in source["subtasks"])
    assert all(task["timestamps"]["SCHEDULED"] >= finished for task in counts["subtasks"])


def test_a_failing_consumer_leaves_no_spill_file_behind(tmp_path: Path) -> None:
    env = batch_environment(tmp_path)
    env.from_sequence(1, ROWS).map(lambda x: (x, "x" * 20)).key_by(itemgetter(0)).map(lambda x: 1 // 0).print()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        env.execute()
    assert list(tmp_path.iterdir()) == []


def test_a_producer_that_dies_before_its_result_was_read_fails_the_job(tmp_path: Path) -> None:
    env = batch_environment(tmp_path)
    env.from_sequence(1, ROWS).key_by(lambda x: x).sum().print_to_err()
    cluster = InProcessCluster(env.get_job_graph(), SystemClock(), lambda ms: None)
    cluster.start()
    sources = [e for e in cluster.job.executions.values() if e.vertex.is_input]
    while any(e.state is not ExecutionState.FINISHED for e in sources):
        cluster.round()
    cluster.kill(sources[0].attempt, "the process died")
    while cluster.result is None:
        cluster.round()
    assert cluster.result.failure is not None
    assert "lost the result" in cluster.result.failure.message


def test_a_spill_file_that_is_damaged_before_it_was_read_fails_the_job(tmp_path: Path) -> None:
    env = batch_environment(tmp_path)
    env.from_sequence(1, ROWS).key_by(lambda x: x).sum().print_to_err()
    cluster = InProcessCluster(env.get_job_graph(), SystemClock(), lambda ms: None)
    cluster.start()
    sources = [e for e in cluster.job.executions.values() if e.vertex.is_input]
    while any(e.state is not ExecutionState.FINISHED for e in sources):
        cluster.round()
    partitions = [writer.partition for task in cluster.tasks.values() for writer in task._writers]
    for spilled in [sub._spill._file for partition in partitions for sub in partition.subpartitions]:
        spilled.flush()
        spilled.truncate(spilled.tell() // 2)
    while cluster.result is None:
        cluster.round()
    failure = cluster.result.failure
    assert failure is not None and failure.kind == "TaskLost"
    assert re.match(r"lost the result of Source: .* before it was read: SpillError: spill file .*", failure.message)
    assert "ends early or is damaged" in failure.message
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_spill_files_that_cannot_be_made_is_an_error_of_its_option(tmp_path: Path) -> None:
    file = tmp_path / "no folder"
    file.touch()
    env = batch_environment(file)
    env.from_sequence(1, 10).key_by(lambda x: x).sum().print_to_err()
    found = "option 'io.tmp.dirs': found .*/no folder' .(Not a directory|File exists).*every node"
    with pytest.raises(ConfigError, match=found):
        env.execute()


def test_a_source_without_end_is_refused_and_the_mode_may_be_left_to_the_sources(tmp_path: Path) -> None:
    env = batch_environment(tmp_path)
    endless = env.from_source(DataGeneratorSource(str, None), WatermarkStrategy.no_watermarks(), "Forever")
    endless.print()
    with pytest.raises(PlanError, match=r"source 'Source: Forever' has no end.*AUTOMATIC.*test_batch_mode.py"):
        env.get_job_graph()
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    graph = env.get_job_graph()
    assert graph.schedule_mode is ScheduleMode.EAGER
    assert graph.configuration["execution.runtime-mode"] == "STREAMING"
    bounded = batch_environment(tmp_path).set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    rows = list(bounded.from_collection([1, 2, 3]).key_by(lambda n: 0).sum().execute_and_collect())
    assert rows == [6]
