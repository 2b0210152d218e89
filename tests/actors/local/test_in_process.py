"""The local runner: a whole job in this thread, with the machine's clock."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.states import JobStatus
from rayflink.common.errors import JobFailed
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.clock import ManualClock
from rayflink.testing import Pause, ScriptedSource


def local() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})


def by_hand(env: StreamExecutionEnvironment, waits: list[float] | None = None) -> InProcessCluster:
    """The job on a clock that a wait moves on; `waits` takes how long each is."""
    clock = ManualClock(1_000_000)

    def wait(ms: float) -> None:
        if waits is not None:
            waits.append(ms)
        clock.advance(max(int(ms), 1))

    return InProcessCluster(env.get_job_graph(), clock, wait)


@pytest.mark.spec("S16")
def test_user_code_runs_in_the_calling_thread():
    here = threading.get_ident()
    stream = local().from_collection([1, 2]).map(lambda n: threading.get_ident())
    assert list(stream.execute_and_collect()) == [here] * 2


def test_a_debugger_stops_in_user_code(monkeypatch):
    stops: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(sys._getframe(1).f_code.co_name))

    def looked_at(n: int) -> int:
        breakpoint()
        return n + 1

    assert list(local().from_collection([1]).map(looked_at).execute_and_collect()) == [2]
    assert stops == ["looked_at"]


def test_a_failure_shows_the_users_traceback_record_operator_and_line():
    env = local()
    stream = env.from_collection(["3", "x"]).map(int).name("parse")
    with pytest.raises(JobFailed) as caught:
        list(stream.execute_and_collect())
    text = str(caught.value)
    assert "parse" in text
    assert "'x'" in text
    assert "test_in_process.py:" in text
    assert "ValueError: invalid literal for int()" in text
    assert "Traceback" not in text, "no frame of it is the program's"


def test_the_runner_waits_no_longer_than_until_the_next_thing_to_do():
    waits: list[float] = []
    env = local()
    env.from_source(ScriptedSource([1, Pause(1_300), 2])).sink_to(CollectSink("out"))
    result = by_hand(env, waits).run()
    assert result.accumulators == {"out": [1, 2]}
    assert 1_300 <= sum(waits) < 1_400
    assert max(waits) <= 500, "reports go out every 500 ms"


def test_checkpoints_of_a_job_that_has_finished_are_deleted(tmp_path):
    env = local()
    env.enable_checkpointing(100)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path))
    env.from_source(ScriptedSource([1, Pause(300), 2])).sink_to(CollectSink("out"))
    cluster = by_hand(env)
    cluster.run()
    assert cluster.job.report.job_metrics()["metrics"]["numberOfCompletedCheckpoints"] > 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_cancel_from_another_thread_ends_the_job():
    env = local()
    env.from_sequence(0, 2**62).map(lambda n: n).rebalance().map(lambda n: n).set_parallelism(2).sink_to(
        DiscardingSink()
    )
    cluster = by_hand(env)
    steps = 0

    def cancel() -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            thread = threading.Thread(target=cluster.cancel)
            thread.start()
            thread.join()

    assert cluster.run(cancel).status is JobStatus.CANCELED


def test_counters_of_the_end_are_in_the_result():
    env = local()
    env.from_collection(range(10)).rebalance().filter(lambda n: n % 2).name("odd").sink_to(CollectSink("out"))
    result = by_hand(env).run()
    (vertex,) = [v for v in result.vertices if "odd" in v["name"]] or [result.vertices[-1]]
    assert vertex["numRecordsIn"] == 10
    assert vertex["states"] == {"FINISHED": vertex["parallelism"]}


@pytest.mark.slow
def test_starting_a_job_takes_less_than_half_a_second():
    took = []
    for _ in range(3):
        program = local().from_collection([1])
        started = time.monotonic()
        assert list(program.execute_and_collect()) == [1]
        took.append(time.monotonic() - started)
    assert min(took) < 0.5
