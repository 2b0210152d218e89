"""What a task does with each kind of input, and what it refuses."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from rayflink.actors.exchange.codec import encode_pieces, join_batches
from rayflink.actors.exchange.frames import BufferResponse, TaskAddress
from rayflink.common.functions.function_classes import KeyedProcessFunction
from rayflink.common.records.batches import (
    CancelCheckpointMarker,
    CheckpointBarrier,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.operators.capabilities import StatePrefetch
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.stateless import MapOperator
from rayflink.operators.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from rayflink.operators.windows.session_windows import EventTimeSessionWindows
from rayflink.operators.windows.window_factory import window_operator
from rayflink.operators.windows.window_functions import built_in
from rayflink.state.descriptors import ValueStateDescriptor
from tests.actors.task.task_bench import Logged, TaskBench


@pytest.mark.spec("L15")
def test_each_kind_of_input_goes_to_the_method_for_it():
    class Says(Logged):
        def process_status(self, status: Any) -> Any:
            self._says("process_status")
            return (status,)

    log: list[str] = []
    bench = TaskBench([Says(log)]).start()
    del log[:]
    marker = LatencyMarker(7, "0" * 32, 0)
    for element in ("record", Watermark(5), WatermarkStatus(True), marker, CheckpointBarrier(1, 0), EndOfData()):
        bench.feed(0, element)
        bench.work()
    assert log == [
        "op.process", "op.process_watermark", "op.process_status", "op.process_latency_marker",
        "op.prepare_snapshot", "op.snapshot_state", "op.finish",
    ]  # fmt: skip
    assert bench.task.report().metrics["numRecordsIn"] == 1
    bench.feed(0, CancelCheckpointMarker(2), EndOfPartition())
    bench.work()
    assert bench.states[-1] == "FINISHED"


@pytest.mark.spec("L15")
def test_an_event_no_task_knows_fails_the_task_with_the_event_in_its_error():
    bench = TaskBench([MapOperator(lambda n: n)]).start()
    bench.say(TaskAddress("producer 0"), BufferResponse(0, 0, 0, None, "superstep"))  # type: ignore[arg-type]
    bench.work()
    assert bench.states[-1] == "FAILED"
    assert bench.failure.message == (
        "ExchangeError: Unexpected event: 'superstep' on channel 0; run one version on all nodes"
    )


@pytest.mark.spec("L16")
def test_a_task_is_finished_when_every_channel_has_ended():
    log: list[str] = []
    bench = TaskBench([Logged(log)], channels=(0, 0)).start()
    bench.end(0)
    bench.work()
    assert (bench.states[-1], "op.close" in log) == ("RUNNING", False)
    bench.end(1)
    bench.work()
    assert (bench.states[-1], log[-2:]) == ("FINISHED", ["op.finish", "op.close"])


@pytest.mark.spec("L16")
@pytest.mark.parametrize("channels", [(0,), (0, 0)])
def test_data_behind_the_end_of_a_channel_fails_the_task_instead_of_being_lost(channels):
    log: list[str] = []
    bench = TaskBench([Logged(log)], channels=channels).start()
    bench.feed(0, "x", EndOfData(), EndOfPartition(), "y", "z")
    bench.work()
    assert bench.states[-1] == "FAILED"
    wanted = "Trailing data in checkpoint barrier handler. Channel 0 holds 2 items behind its end of partition"
    assert wanted in bench.failure.message
    assert log.count("op.process") == 1


class CountsPerKey(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))

    def process_element(self, value: Any, ctx: Any) -> Any:
        seen = (self.count.value() or 0) + 1
        self.count.update(seen)
        yield (value, ctx.get_current_key(), seen)


def buffer(channel: int, sequence: int, *batches: list[Any]) -> BufferResponse:
    return BufferResponse(channel, sequence, 0, join_batches([encode_pieces(RowBatch(rows)) for rows in batches]))


def ended(bench: TaskBench, sequence: int) -> None:
    for event in (EndOfData(), EndOfPartition()):
        bench.say(TaskAddress("producer 0"), BufferResponse(0, sequence, 0, None, event))
        sequence += 1
    bench.work()


@pytest.mark.spec("L18")
@pytest.mark.parametrize("rows_a_slice", [1, 2, 100])
def test_buffers_of_several_channels_stay_apart_and_each_record_sees_its_key(rows_a_slice):
    bench = TaskBench([KeyedProcessOperator(lambda v: v[0], CountsPerKey())], channels=(0, 0)).start()
    bench.task._slicer.rows = lambda available: min(available, rows_a_slice)  # type: ignore[method-assign]
    for sequence in range(3):
        for channel in (0, 1):
            mine = f"channel {channel}"
            frame = buffer(channel, sequence, [("a", mine), ("b", mine), ("a", mine)], [("b", mine)])
            bench.say(TaskAddress(f"producer {channel}"), frame)
    bench.work()
    assert [key for (_, key, _) in bench.output] == [value[0] for (value, _, _) in bench.output]
    for channel in (0, 1):
        of_channel = [value[0] for value, _, _ in bench.output if value[1] == f"channel {channel}"]
        assert of_channel == ["a", "b", "a", "b"] * 3
    for key in "ab":
        assert [count for _, k, count in bench.output if k == key] == list(range(1, 13))


def test_records_whose_state_may_be_on_disk_are_announced_before_their_slices_once():
    class Looks(MapOperator, StatePrefetch):
        reads_ahead = 4000
        seen: list[Any] = []
        worked: list[Any] = []

        def read_ahead(self, batch: Any, input_index: int) -> None:
            self.seen.append(list(batch.values))

        def process(self, batch: Any, input_index: int) -> Any:
            self.worked.append(list(batch.values))
            return super().process(batch, input_index)

    rows = list(range(4010))
    operator = Looks(lambda n: n)
    bench = TaskBench([operator]).start()
    bench.task._slicer.rows = lambda available: min(available, 3000)  # type: ignore[method-assign]
    bench.say(TaskAddress("producer 0"), buffer(0, 0, rows))
    bench.work()
    assert operator.seen == [rows[:4000], rows[4000:]]
    assert operator.worked == [rows[:3000], rows[3000:4000], rows[4000:]]


@pytest.mark.slow
def test_state_beyond_its_memory_is_read_for_many_records_at_once():
    operator = KeyedProcessOperator(lambda v: v, CountsPerKey())
    bench = TaskBench([operator], config={"state.backend.rocksdb.memory.fixed-per-slot": "4 mb"}).start()
    keys = list(range(20_000))
    for sequence in range(4):
        bench.say(TaskAddress("producer 0"), buffer(0, sequence, keys))
        bench.work()
    column = operator.backend._tables["count"][1].column
    single, many, read, read_all = [], [], column.read, column.read_all
    column.read = lambda row: single.append(row) or read(row)
    column.read_all = lambda rows: many.append(rows) or read_all(rows)
    bench.say(TaskAddress("producer 0"), buffer(0, 4, keys))
    bench.work()
    assert [count for _, _, count in bench.output] == [turn for turn in range(1, 6) for _ in keys]
    ended(bench, 5)
    assert sum(map(len, many)) > 10_000 > 100 * len(single) and len(many) < 40, "most are read in a few goes"


@pytest.mark.slow
@pytest.mark.parametrize(
    "assigner",
    [TumblingEventTimeWindows.of(50), SlidingEventTimeWindows.of(60, 20), EventTimeSessionWindows.with_gap(3)],
    ids=["tumbling", "sliding", "session"],
)
def test_windows_beyond_their_memory_give_what_those_in_memory_give(assigner: Any):
    outputs = []
    for config in ({"state.backend.type": "hashmap"}, {"state.backend.rocksdb.memory.fixed-per-slot": "300 kb"}):
        operator = window_operator(lambda pair: pair[0], assigner, built_in("sum", 1))
        bench, rows_ahead = TaskBench([operator], config=config).start(), []
        read_ahead = operator.read_ahead
        operator.read_ahead = lambda batch, index, r=rows_ahead, a=read_ahead: r.append(len(batch)) or a(batch, index)
        rnd = random.Random(7)
        for sequence in range(12):
            stamps = [10 * sequence + rnd.randrange(25) for _ in range(2000)]
            rows = RowBatch([(rnd.randrange(1500), 1) for _ in stamps], stamps)
            frame = BufferResponse(0, 2 * sequence, 0, join_batches([encode_pieces(rows)]))
            mark = BufferResponse(0, 2 * sequence + 1, 0, None, Watermark(10 * sequence))
            bench.say(TaskAddress("producer 0"), frame)
            bench.say(TaskAddress("producer 0"), mark)
            bench.work()
        outputs.append(bench.output)
        ended(bench, 24)
        assert bench.states[-1] == "FINISHED", bench.failure.message
        assert bool(rows_ahead) == ("state.backend.type" not in config)
    assert len(outputs[0]) > 3000
    for mine, others in zip(*map(between_watermarks, outputs), strict=True):
        assert mine == others, "timers of equal time fire in any order"


def between_watermarks(output: list[Any]) -> list[Counter[Any]]:
    groups: list[Counter[Any]] = [Counter()]
    for entry in output:
        if isinstance(entry, Watermark):
            groups.append(Counter([entry]))
        else:
            groups[-1][entry] += 1
    return groups
