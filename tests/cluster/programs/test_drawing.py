"""Records drawn from a job on Ray while it runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rayflink.common import JobExecutionError, JobFailed
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch import list_jobs
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({"execution.target": "ray"})


def test_records_of_an_endless_job_are_drawn_and_closing_ends_it():
    drawn = environment().from_sequence(1, 10**12).execute_and_collect("endless")
    with drawn:
        assert [next(drawn) for _ in range(100_000)] == list(range(1, 100_001))
    assert list(drawn) == []
    assert watching.eventually(lambda: not [job for job in list_jobs() if job["state"] == "RUNNING"], within_s=40)


def test_records_come_before_the_failure_of_their_job():
    def fragile(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    drawn = []
    with pytest.raises(JobFailed, match="three"):
        for number in environment().add_source(lambda: iter([1, 2, 3])).map(fragile).execute_and_collect():
            drawn.append(number)
    assert drawn in ([], [1], [1, 2])


@pytest.mark.parametrize(
    "checkpoints",
    [pytest.param(True, id="with checkpoints"), pytest.param(False, id="without", marks=pytest.mark.soak)],
)
def test_rows_come_once_over_the_death_of_their_process_or_the_program_is_told(checkpoints, tmp_path):
    dead = tmp_path / "dead"

    def deadly(number: int) -> int:
        if number == 150_000 and not Path(dead).exists():
            Path(dead).touch()
            os._exit(1)
        return number

    restarts = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"}
    interval = {"execution.checkpointing.interval": "200 ms"} if checkpoints else {}
    env = StreamExecutionEnvironment({"execution.target": "ray", **restarts, **interval})
    drawn = env.from_sequence(1, 300_000).map(deadly).execute_and_collect("deadly")
    if checkpoints:
        assert list(drawn) == list(range(1, 300_001))
    else:
        with pytest.raises(JobExecutionError, match="has begun anew without checkpoints"):
            list(drawn)
    assert dead.exists()


@pytest.mark.soak
def test_rows_come_once_over_the_death_of_the_coordinator(tmp_path):
    checkpoints = {"execution.checkpointing.interval": "200 ms", "execution.checkpointing.dir": str(tmp_path)}
    env = StreamExecutionEnvironment({"execution.target": "ray", **checkpoints})
    numbers = env.from_source(DataGeneratorSource(lambda n: n + 1, 30_000, 6_000), None, "numbers")
    drawn, rows = numbers.map(lambda number: number).execute_and_collect("headless"), []
    for number in drawn:
        rows.append(number)
        if len(rows) == 5_000:
            os.kill(watching.pid_of("/coordinator"), signal.SIGKILL)
    assert rows == list(range(1, 30_001))


def test_with_a_limit_the_job_is_cancelled():
    assert environment().from_sequence(1, 10**12).execute_and_collect(limit=3) == [1, 2, 3]


def test_the_accumulators_of_a_job_that_has_ended_are_there():
    env = environment()
    env.from_sequence(1, 4).map(str).add_sink(lambda text: None)
    client = env.execute_async("sink only")
    assert client.get_job_execution_result().result().get_net_runtime() > 0
    assert client.get_accumulators().result() == {}
    assert "sink only" in client._repr_html_()
