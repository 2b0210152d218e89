"""What a program carries to the processes that run it."""

from __future__ import annotations

import pickletools
from typing import Any

import pytest

from rayflink.actors.on_ray.driver.user_program import pack
from rayflink.common import Duration, JobFailed, Types, WatermarkStrategy
from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.functions.accumulators import IntCounter
from rayflink.common.functions.function_classes import CoMapFunction, KeySelector, Partitioner
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows


def modules_named(data: bytes) -> set[str]:
    """The modules of rayflink that a pickle loads."""
    texts = [argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str)]
    return {text for text in texts if text.startswith("rayflink.")}


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


def test_a_process_that_runs_tasks_loads_nothing_of_the_api():
    env = StreamExecutionEnvironment({"execution.target": "local"})
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    numbers = env.from_sequence(0, 9).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(int.__add__))
    pairs = numbers.map(lambda n: (n % 2, n), output_type=Types.TUPLE([Types.INT(), Types.INT()]))
    keyed = pairs.key_by(lambda pair: pair[0])
    keyed.map(tuple).sink_to(DiscardingSink())
    again = keyed.filter(bool).key_by(lambda pair: pair[0])
    again.connect(keyed).map(Both()).sink_to(DiscardingSink())
    keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(1))).max(1).print()
    pairs.window_all(TumblingEventTimeWindows.of(Duration.of_seconds(1))).apply(lambda window, records: records).print()
    loaded = modules_named(pack(env.get_job_graph()))
    assert "rayflink.operators.factory" in loaded
    assert [name for name in loaded if name.startswith("rayflink.datastream")] == []


class ByTable(KeySelector, Partitioner):
    """Knows its table once it is open."""

    def open(self, runtime_context: Any) -> None:
        self.table = {0: "even", 1: "odd"}

    def close(self) -> None:
        CLOSED.append(len(self.table))

    def get_key(self, value: int) -> str:
        return self.table[value % 2]

    def partition(self, key: str, num_partitions: int) -> int:
        return sorted(self.table.values()).index(key)


CLOSED: list[int] = []


@pytest.mark.parametrize("parallelism", [1, 2])
def test_functions_that_deal_records_are_opened_and_closed_where_they_deal(parallelism: int) -> None:
    env = StreamExecutionEnvironment({"execution.target": "local"}).set_parallelism(parallelism)
    CLOSED.clear()
    rows = env.from_collection(range(4)).map(int).key_by(ByTable()).sum().execute_and_collect()
    assert sorted(rows) == [0, 1, 2, 4]
    assert len(CLOSED) == 2 * parallelism, "once with the writer and once with the keyed operator, in each subtask"
    dealt = env.from_collection(range(4)).partition_custom(ByTable(), ByTable()).map(str).set_parallelism(2)
    assert sorted(dealt.execute_and_collect()) == ["0", "1", "2", "3"]


def test_a_key_selector_that_fails_to_open_names_key_by_and_its_line() -> None:
    class Broken(KeySelector):
        def open(self, runtime_context: Any) -> None:
            raise OSError("no table")

        def get_key(self, value: int) -> int:
            return value

    env = StreamExecutionEnvironment({"execution.target": "local"}).set_parallelism(2)
    stream = env.from_collection([1]).key_by(Broken()).map(str)
    with pytest.raises(JobFailed, match=r"(?s)'key_by' \(created at .*test_travelling.py.*OSError: no table"):
        list(stream.execute_and_collect())


def test_every_subtask_has_functions_and_sinks_of_its_own() -> None:
    counts = [0]

    def count(value: int) -> int:
        counts[0] += 1
        return counts[0]

    class Total(Sink):
        """Whose writers all write to the sink itself."""

        def __init__(self) -> None:
            self.seen = 0

        def create_writer(self, ctx: WriterContext) -> SinkWriter:
            return TotalWriter(self, ctx)

    class TotalWriter(SinkWriter):
        def __init__(self, sink: Total, ctx: WriterContext) -> None:
            self._sink, self._seen = sink, ctx.accumulators.setdefault(f"subtask {ctx.subtask}", IntCounter())

        def write(self, batch: Any) -> None:
            self._sink.seen += len(batch)

        def flush(self, end_of_input: bool) -> None:
            self._seen.add(self._sink.seen)

        def close(self) -> None:
            pass

    env = StreamExecutionEnvironment({"execution.target": "local"}).set_parallelism(2)
    stream = env.from_collection(range(20)).rebalance().map(count)
    stream.map(count).sink_to(Total())
    result = env.execute()
    assert [result.get_accumulator_result(f"subtask {n}") for n in (0, 1)] == [10, 10]
    assert counts == [0]
    counted = list(env.from_collection(range(10)).map(count).map(count).execute_and_collect())
    assert sorted(counted) == sorted([*range(1, 6)] * 2), "each step counts for itself, in each subtask"
