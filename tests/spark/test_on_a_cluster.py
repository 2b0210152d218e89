"""What is lost in the middle of a pipeline, on a Ray of two nodes with an executor on each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from rayflink.common.errors import JobExecutionError
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.connectors.hybrid_source import HybridSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.spark import spark_source
from tests.cluster import watching
from tests.spark.test_frames import environment, keepers

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(200)]
ROOT = Path(__file__).resolve().parent.parent.parent


def executors() -> list[psutil.Process]:
    """The JVMs of Spark's executors."""
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            command = one.cmdline()
            if "io.ray.runtime.runner.worker.DefaultWorker" in command and "-Xmx600M" in command:
                found.append(one)
    return found


def restarting(tmp_path: Path) -> StreamExecutionEnvironment:
    env = environment(execution_checkpointing_interval="50 ms")
    env.get_configuration().set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    env.get_configuration().set_string("restart-strategy.type", "fixed-delay")
    env.get_configuration().set_string("restart-strategy.fixed-delay.attempts", "3")
    env.get_configuration().set_string("restart-strategy.fixed-delay.delay", "0 s")
    return env


@pytest.mark.soak
def test_an_executor_that_is_lost_while_it_computes_costs_no_row(spark, tmp_path):
    from pyspark.sql.functions import udf

    started, killed, there = tmp_path / "started", tmp_path / "killed", executors()
    assert len(there) == 2

    @udf("long")
    def slow(number: int) -> int:
        started.touch()
        if number % 5_000 == 100:
            watching.eventually(killed.exists, within_s=60)
        return number

    def kill() -> None:
        assert watching.eventually(started.exists, within_s=60)
        there[0].send_signal(signal.SIGKILL)
        killed.touch()

    killing = threading.Thread(target=kill)
    killing.start()
    stream = environment().from_spark(spark.range(0, 40_000, 1, 8).select(slow("id").alias("id")))
    killing.join()
    assert not there[0].is_running() or there[0].status() == psutil.STATUS_ZOMBIE
    rows = stream.execute_and_collect(limit=50_000)
    assert Counter(row.id for row in rows) == Counter(range(40_000))
    assert watching.eventually(lambda: len(executors()) == 2, within_s=30), "another executor takes its place"
    assert spark.range(100).count() == 100


@pytest.mark.soak
def test_a_lost_stream_actor_costs_no_row_even_where_history_ends_and_live_begins(spark, tmp_path):
    """The process is killed at the first record of the live source, which begins behind the history's last."""
    killed = tmp_path / "killed"
    history = spark.range(0, 30_000, 1, 6).orderBy("id")
    behind = history.agg({"id": "max"}).collect()[0][0] + 1
    both = HybridSource.builder(spark_source(history)).add_source(NumberSequenceSource(behind, 49_999)).build()

    def number_of(record: Any) -> int:
        if isinstance(record, int) and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return record if isinstance(record, int) else record.id

    numbers = restarting(tmp_path).from_source(both, source_name="history, then live").map(number_of)
    kept = numbers.key_by(lambda number: number % 7).map(lambda number: number)
    assert Counter(kept.execute_and_collect(limit=60_000)) == Counter(range(50_000))
    assert killed.exists()


@pytest.mark.soak
def test_history_comes_in_order_before_what_is_live(spark):
    history = spark.range(0, 10_000, 1, 4).orderBy("id")
    both = HybridSource.builder(spark_source(history)).add_source(NumberSequenceSource(10_000, 10_999)).build()
    env = environment()
    env.set_parallelism(1)
    numbers = env.from_source(both).map(lambda record: record if isinstance(record, int) else record.id)
    assert list(numbers.execute_and_collect(limit=20_000)) == list(range(11_000))


@pytest.mark.soak
def test_blocks_that_are_lost_are_an_error_with_the_remedy(spark):
    stream = environment().from_spark(spark.range(0, 1_000, 1, 2))
    for name in keepers():
        ray.kill(ray.get_actor(name, namespace="rayflink"))
    with pytest.raises(JobExecutionError, match=r"blocks of a DataFrame are gone: .*df, path=...\), .* keeps them in"):
        stream.execute_and_collect(limit=2_000)


DETACHED = """
import sys, threading
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors import text_file_sink
from rayflink.spark import spark_session
from tests.cluster.watching import waiter

if __name__ == "__main__":
    out, gate = sys.argv[1:]
    env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": 2})
    with spark_session("detached", executor_memory="450m") as spark:
        rows = env.from_spark(spark.range(0, 20_000, 1, 4))
    rows.map(lambda row: str(row.id)).map(waiter(gate)).sink_to(text_file_sink(out))
    env.execute("goes on alone")
"""


@pytest.mark.soak
def test_a_job_that_goes_on_alone_keeps_the_rows_and_they_go_with_it(running_spark, tmp_path):
    script, out, gate = tmp_path / "detached.py", tmp_path / "out", tmp_path / "gate"
    script.write_text(DETACHED)
    before = set(keepers())
    run = [sys.executable, "-m", "rayflink.cli.main", "run", "--detached", str(script), "--", str(out), str(gate)]
    done = subprocess.run(run, text=True, capture_output=True, timeout=180, check=False)
    assert done.returncode == 0 and "has been submitted" in done.stdout, done.stderr
    assert len(set(keepers()) - before) >= 1
    gate.touch()

    def lines() -> list[str]:
        return [line for part in out.glob("part-*") for line in part.read_text().split()]

    assert watching.eventually(lambda: len(lines()) >= 20_000, within_s=30)
    assert Counter(map(int, lines())) == Counter(range(20_000))
    for actor in watching.actors():  # a coordinator whose end nobody has asked for stays a minute
        ray.kill(ray.get_actor(actor["Name"], namespace=watching.NAMESPACE))
    assert watching.eventually(lambda: set(keepers()) <= before, within_s=30)
