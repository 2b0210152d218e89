"""Latency markers from the source that sends them to the histograms of the operators they pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rayflink.actors.exchange.codec import decode_batch
from rayflink.actors.exchange.frames import BufferResponse, PartitionId, TaskAddress
from rayflink.actors.exchange.marker_writer import MarkerWriter
from rayflink.actors.exchange.partition import PoolLimits, ResultPartition
from rayflink.actors.exchange.writer import RecordWriter
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import JobResult
from rayflink.common.records.batches import LatencyMarker, RowBatch, Watermark
from rayflink.common.watermarks import WatermarkGenerator, WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import OperatorContext
from rayflink.operators.latency import LatencyMarks
from rayflink.operators.sinks import SinkOperator
from rayflink.operators.sources import ReaderSourceOperator
from rayflink.operators.stateless import MapOperator
from rayflink.state.clock import ManualClock
from tests.actors.task.task_bench import TaskBench

SOURCE = "5" * 32


def run(**options: str) -> JobResult:
    """Twenty numbers, ten milliseconds apart, over two shuffles; every task has two subtasks."""
    given = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    env = StreamExecutionEnvironment.get_execution_environment(given).set_parallelism(2)
    numbers = env.from_source(DataGeneratorSource(count=20, records_per_second=100), None, "Numbers")
    numbers.rebalance().map(lambda n: n + 0).name("Same").rebalance().sink_to(CollectSink("out")).name("Out")
    clock = ManualClock(1_000)
    return InProcessCluster(env.get_job_graph("job"), clock, lambda ms: clock.advance(max(1, int(ms)))).run()


def operators(result: JobResult, vertex: str) -> list[Mapping[str, Any]]:
    """The head operator of each subtask of a vertex, as last reported."""
    return [t["metrics"]["operators"][0] for v in result.vertices if vertex in v["name"] for t in v["subtasks"]]


@pytest.mark.spec("U07", "E27")
def test_every_operator_reports_the_latency_by_source_and_functions_see_no_marker() -> None:
    result = run(metrics_latency_interval="50 ms")
    assert sorted(result.accumulators["out"]) == list(range(20))
    [source, _] = operators(result, "Numbers")
    assert [name for name in source["metrics"] if "latency" in name] == []
    histogram = f"latency.source_id.{source['id']}.latency"
    passed = {}
    for vertex in ("Same", "Out"):
        seen = [o["metrics"] for o in operators(result, vertex)]
        assert all(0 <= m[f"{histogram}.p50"] <= m[f"{histogram}.p99"] <= 50 for m in seen)
        passed[vertex] = sum(m[f"{histogram}.count"] for m in seen)
    assert passed["Same"] >= 2 * 4, "two sources run for 190 ms"
    assert passed["Out"] == passed["Same"], "markers do not multiply at an exchange"


def test_without_an_interval_there_are_no_markers() -> None:
    result = run()
    assert [name for o in operators(result, "") for name in o["metrics"] if "latency" in name] == []


def test_in_batch_mode_a_file_that_waits_for_its_reader_is_no_latency() -> None:
    result = run(metrics_latency_interval="50 ms", execution_runtime__mode="BATCH")
    assert sorted(result.accumulators["out"]) == list(range(20))
    assert [name for name in operators(result, "Out")[0]["metrics"] if "latency" in name] == []


def test_a_marker_keeps_its_place_among_records_and_each_operator_records_its_age() -> None:
    seen: list[Any] = []
    bench = TaskBench([MapOperator(lambda n: seen.append(n) or n), MapOperator(lambda n: n)]).start()
    marker = LatencyMarker(900, SOURCE, 0)
    bench.feed(0, 1, marker, 2, LatencyMarker(1_030, SOURCE, 1), LatencyMarker(0, "6" * 32, 0))
    bench.work()
    assert bench.output[:3] == [1, marker, 2]
    assert seen == [1, 2]
    for operator in bench.task.report().metrics["operators"]:
        ages = operator["metrics"]
        of_both_subtasks, of_another = f"latency.source_id.{SOURCE}.latency", f"latency.source_id.{'6' * 32}.latency"
        assert (ages[f"{of_both_subtasks}.min"], ages[f"{of_both_subtasks}.max"]) == (-30, 100)
        assert (ages[f"{of_another}.count"], ages[f"{of_another}.p99"]) == (1, 1_000)


def test_a_sink_notes_the_age_of_a_marker_and_as_many_as_the_history_holds() -> None:
    options = {"metrics.latency.history-size": "2"}
    bench = TaskBench([SinkOperator(CollectSink("out"))], config=options, has_output=False).start()
    for age in (500, 10, 20):
        bench.feed(0, LatencyMarker(1_000 - age, SOURCE, 0))
    bench.work()
    [sink] = bench.task.report().metrics["operators"]
    ages = {name.rpartition(".")[2]: value for name, value in sink["metrics"].items() if "latency" in name}
    assert (ages["count"], ages["min"], ages["max"]) == (3, 10, 20)


def test_a_source_sends_a_marker_at_once_then_one_an_interval_and_catches_up_none() -> None:
    clock = ManualClock(1_000)
    ctx = OperatorContext(SOURCE, "op", subtask=3, clock=clock, config={"metrics.latency.interval": "100 ms"})
    marks = LatencyMarks(ctx)
    sent = [(now, marks.due(now)) for now in (1_000, 1_001, 1_099, 1_100, 1_500, 1_550, 1_600)]
    assert [now for now, markers in sent if markers] == [1_000, 1_100, 1_500, 1_600]
    assert sent[0][1] == (LatencyMarker(1_000, SOURCE, 3),)
    off = LatencyMarks(OperatorContext(SOURCE, "op", clock=clock))
    assert (off.next_ms, off.due(10**15)) == (None, ())


class Emits(WatermarkGenerator):
    """Counts when it is asked for a watermark."""

    def __init__(self) -> None:
        self.asked = 0

    def on_event(self, event: Any, timestamp: int, output: Any) -> None:
        raise AssertionError("no record comes")

    def on_periodic_emit(self, output: Any) -> None:
        self.asked += 1
        output.emit_watermark(Watermark(self.asked))


def test_a_source_sends_markers_and_watermarks_each_at_their_own_interval() -> None:
    options = {"metrics.latency.interval": "10 ms", "pipeline.auto-watermark-interval": "100 ms"}
    source = ReaderSourceOperator(DataGeneratorSource(), WatermarkStrategy.for_generator(Emits))
    clock = ManualClock(1_000)
    source.setup(OperatorContext(SOURCE, "op", clock=clock, config=options, request_split=lambda: None))
    source.open()
    elements: list[Any] = []
    for _ in range(25):
        due = source.next_processing_time()
        assert due is not None
        clock.advance(due - clock.now_ms())
        elements += source.on_processing_time(clock.now_ms())
    source.close()
    assert clock.now_ms() == 1_240
    assert [e.marked_time for e in elements if isinstance(e, LatencyMarker)] == list(range(1_000, 1_250, 10))
    assert [e for e in elements if isinstance(e, Watermark)] == [Watermark(1), Watermark(2)]


def test_markers_take_the_channels_in_turn_behind_the_records_of_theirs() -> None:
    partition = ResultPartition(PartitionId("d" * 32, 0), 2, PoolLimits(100, 100))
    for sub in partition.subpartitions:
        sub.request(TaskAddress("consumer"), sub.index, 100)
    writer = MarkerWriter(RecordWriter(partition), first=1)
    marks = [LatencyMarker(at, SOURCE, 0) for at in range(3)]
    for at, mark in enumerate(marks):
        writer.write(RowBatch([2 * at, 2 * at + 1]))
        writer.write(mark)
    found: list[list[Any]] = [[], []]
    for sub in partition.subpartitions:
        while (frame := sub.poll()) is not None:
            assert isinstance(frame, BufferResponse)
            found[sub.index].append(frame.event if frame.body is None else decode_batch(frame.body).values)  # type: ignore[union-attr]
    assert found == [[[0], [2], marks[1], [4]], [[1], marks[0], [3], [5], marks[2]]]
