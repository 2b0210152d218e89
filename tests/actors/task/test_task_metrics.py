"""What a task reports: counts and watermarks under Flink's names, on the in-process runner."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.checkpoint_statistics import CheckpointMetrics
from rayflink.actors.messages.commands import JobResult
from rayflink.actors.messages.messages import CheckpointAcknowledged
from rayflink.common.records.batches import CheckpointBarrier, Watermark
from rayflink.common.time import Time
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.operators.base import Operator
from rayflink.operators.stateless import FlatMapOperator, MapOperator
from rayflink.state.clock import ManualClock
from rayflink.testing import ScriptedSource, rec, wm
from tests.actors.task.task_bench import ListSource, TaskBench


def run(env: StreamExecutionEnvironment) -> JobResult:
    clock = ManualClock(1_000)
    return InProcessCluster(env.get_job_graph("job"), clock, lambda ms: clock.advance(max(1, int(ms)))).run()


def environment(**options: str) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({**options})


def metrics_of(result: JobResult, vertex: str) -> list[Mapping[str, Any]]:
    """The last report of each subtask of the vertices whose name contains `vertex`."""
    return [task["metrics"] for v in result.vertices if vertex in v["name"] for task in v["subtasks"]]


def counted(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection(list(range(10))).name("Numbers")
    kept = numbers.map(lambda n: n).name("Same").filter(lambda n: n % 2 == 0).name("Even")
    kept.rebalance().sink_to(CollectSink("out")).name("Out")


@pytest.mark.spec("U01")
def test_what_one_task_sends_the_next_receives() -> None:
    env = environment()
    counted(env)
    result = run(env)
    [source], [sink] = metrics_of(result, "Numbers"), metrics_of(result, "Out")
    assert (source["numRecordsIn"], source["numRecordsOut"]) == (0, 5)
    assert (sink["numRecordsIn"], sink["numRecordsOut"]) == (5, 0)
    assert source["numBytesOut"] == sink["numBytesIn"] > 0
    assert source["numBuffersOut"] == sink["numBuffersIn"] > 0
    assert (source["numBytesIn"], source["numBuffersIn"], sink["numBytesOut"], sink["numBuffersOut"]) == (0, 0, 0, 0)


@pytest.mark.spec("U01", "U02", "I25", "counts")
def test_every_operator_of_a_chain_counts_what_it_takes_and_gives() -> None:
    env = environment()
    counted(env)
    [source] = metrics_of(run(env), "Numbers")
    counts = {
        operator["name"]: (operator["metrics"]["numRecordsIn"], operator["metrics"]["numRecordsOut"])
        for operator in source["operators"]
    }
    assert counts == {"Source: Numbers": (0, 10), "Same": (10, 10), "Even": (10, 5)}


@pytest.mark.spec("U02")
def test_operators_of_one_name_are_counted_apart() -> None:
    twice = FlatMapOperator(lambda n: [n, n])
    bench = TaskBench([MapOperator(lambda n: n), twice, MapOperator(lambda n: n)]).start()
    names = [ops["metrics"]["numRecordsIn"] for ops in bench.task.report().metrics["operators"]]
    assert names == [0, 0, 0]
    bench.feed(0, 1, 2, 3)
    bench.work()
    report = bench.task.report().metrics
    assert [ops["metrics"]["numRecordsIn"] for ops in report["operators"]] == [3, 3, 6]
    assert [ops["metrics"]["numRecordsOut"] for ops in report["operators"]] == [3, 6, 6]


class BehindByFive(Operator):
    """Holds its watermark five milliseconds back."""

    def process_watermark(self, watermark: Any) -> Any:
        return (type(watermark)(watermark.timestamp - 5),)


@pytest.mark.spec("U03")
def test_an_operator_shows_the_watermark_it_got_and_the_one_it_gave() -> None:
    bench = TaskBench([MapOperator(lambda n: n), BehindByFive()]).start()

    def marks() -> list[tuple[Any, Any]]:
        shown = [operator["metrics"] for operator in bench.task.report().metrics["operators"]]
        return [(m["currentInputWatermark"], m["currentOutputWatermark"]) for m in shown]

    assert marks() == [(None, None), (None, None)]
    bench.feed(0, Watermark(50))
    bench.work()
    assert marks() == [(50, 50), (50, 45)]


@pytest.mark.spec("U04")
def test_late_records_are_counted_where_they_are_dropped() -> None:
    env = environment()
    script = [rec(("a", 1), 1_000), wm(10_000), rec(("a", 7), 3_000), rec(("a", 8), 4_000), rec(("a", 1), 12_000)]
    stream = env.from_source(ScriptedSource(script)).key_by(lambda pair: pair[0])
    stream.window(TumblingEventTimeWindows.of(Time.seconds(10))).sum(1).sink_to(CollectSink("out"))
    result = run(env)
    assert result.accumulators["out"] == [("a", 1), ("a", 1)]
    [window] = [task for task in metrics_of(result, "") if "numLateRecordsDropped" in task["operators"][0]["metrics"]]
    assert window["operators"][0]["metrics"]["numLateRecordsDropped"] == 2


@pytest.mark.spec("V22", "U05", "detailed")
@pytest.mark.parametrize("detailed", ["true", "false", "absent"])
def test_queue_lengths_are_reported_where_detailed_network_metrics_are_on(detailed: str) -> None:
    config = {} if detailed == "absent" else {"taskmanager.network.detailed-metrics": detailed}
    bench = TaskBench([MapOperator(lambda n: n)], config=config).start(credit=0)
    bench.feed(0, "a", "b")
    bench.work()
    report = bench.task.report().metrics
    queues = {name: length for name, length in report.items() if name.startswith("Network.")}
    expected = {"Network.Input.inputQueueLength": 0, "Network.Output.outputQueueLength": 2}
    assert queues == (expected if detailed == "true" else {})
    assert report["queuedBytes"] > 0
    assert report["recordsInFlight"] > 0


@pytest.mark.spec("U06")
def test_a_tasks_group_is_its_jobs_and_bears_who_the_attempt_is() -> None:
    bench = TaskBench([ListSource([])], channels=())
    group = bench.task.metrics.group
    assert group.group.get_scope_components() == ["job", "me"]
    assert group.variables() == {
        "<job_id>": "job", "<job_name>": "job", "<task_id>": "vertex", "<task_name>": "Vertex",
        "<task_attempt_id>": "me", "<task_attempt_num>": "0", "<subtask_index>": "0",
        "<host>": "localhost", "<tm_id>": "local",
    }  # fmt: skip
    bench.start().work()
    assert group.group.snapshot() == {}, "the group is closed when the task is done"


@pytest.mark.spec("U05", "buffers")
def test_a_task_says_how_full_its_buffers_are() -> None:
    config = {"taskmanager.network.memory.buffers-per-channel": "2",
              "taskmanager.network.memory.floating-buffers-per-gate": "2"}  # fmt: skip
    bench = TaskBench([MapOperator(lambda n: n)], config=config).start(credit=0)

    def shown() -> dict[str, float]:
        report = bench.task.report().metrics
        buffers = {name.rpartition(".")[2]: value for name, value in report.items() if ".Buffers." in name}
        return {**buffers, "isBackPressured": report["isBackPressured"]}

    idle = shown()
    assert set(idle) == {
        "inputQueueLength", "inPoolUsage", "inputExclusiveBuffersUsage", "inputFloatingBuffersUsage",
        "outputQueueLength", "outPoolUsage", "isBackPressured",
    }  # fmt: skip
    assert not any(idle.values())
    for letter in "abcde":
        bench.feed(0, letter)
        bench.work()
    full = shown()
    assert full["isBackPressured"] is True and full["outPoolUsage"] == 1.0
    assert 0 < full["inPoolUsage"] <= 1
    assert 0 <= full["inputFloatingBuffersUsage"] <= 1


def test_a_source_says_how_far_its_watermark_lags_behind_the_clock() -> None:
    bench = TaskBench([ListSource([Watermark(400)])], channels=())
    bench.start()
    [before] = bench.task.report().metrics["operators"]
    assert before["metrics"]["watermarkLag"] is None
    bench.step()
    [operator] = bench.task.report().metrics["operators"]
    assert operator["metrics"]["watermarkLag"] == bench.clock.now_ms() - 400


def test_the_report_bears_the_scopes_of_the_task_and_its_operators() -> None:
    config = {"metrics.scope.operator": "<job_name>.<operator_name>.<subtask_index>"}
    bench = TaskBench([MapOperator(lambda n: n)], config=config)
    bench.task.metrics.located("10.0.0.1", "tm3")
    bench.start()
    report = bench.task.report().metrics
    assert report["scope"] == "10.0.0.1.taskmanager.tm3.job.Vertex.0"
    [operator] = report["operators"]
    assert operator["scope"] == f"job.{operator['name']}.0"


def test_in_one_thread_a_task_is_idle_or_back_pressured_while_others_run() -> None:
    bench = TaskBench([MapOperator(lambda n: n)]).start()
    metrics = bench.task.metrics
    metrics.stepped(10.0, 10.2, back_pressured=False)
    metrics.stepped(10.5, 10.6, back_pressured=True)
    metrics.stepped(11.0, 11.1, back_pressured=False)
    report = bench.task.report().metrics
    names = ("accumulateBusyTimeMs", "accumulateIdleTimeMs", "accumulateBackPressuredTimeMs")
    assert [report[name] for name in names] == [400, 300, 400]


@pytest.mark.spec("U10", "task", "jar")
def test_a_tasks_life_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rayflink"):
        TaskBench([ListSource([])], channels=()).start().work()
    assert [record.getMessage() for record in caplog.records] == [
        "Received task Vertex (1/1) (attempt #0).",
        "Loading the operators of task Vertex (1/1) (attempt #0).",
        "Registering task at network: Vertex (1/1) (attempt #0).",
        "Freeing task resources for Vertex (1/1) (attempt #0).",
    ]


@pytest.mark.spec("U08")
def test_an_acknowledgement_says_how_long_the_barrier_took_to_come_and_to_align() -> None:
    bench = TaskBench([MapOperator(lambda n: n)], channels=(0, 0)).start()
    barrier = CheckpointBarrier(1, timestamp=900)
    bench.feed(0, barrier)
    bench.work()
    bench.clock.advance(30)
    bench.feed(1, barrier)
    bench.work()
    [ack] = bench.reported(CheckpointAcknowledged)
    assert (ack.checkpoint_id, ack.metrics) == (1, CheckpointMetrics(100, 30, 0))
    metrics = bench.task.report().metrics
    assert (metrics["checkpointStartDelayNanos"], metrics["checkpointAlignmentTime"]) == (100_000_000, 30_000_000)
