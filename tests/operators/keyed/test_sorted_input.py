"""In batch mode a keyed operator gets its records key by key: results, timers and state are of one key at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import Row, Types, WatermarkStrategy
from rayflink.common.functions.function_classes import KeyedCoProcessFunction, KeyedProcessFunction
from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark
from rayflink.common.watermarks import WatermarkGenerator, WatermarkOutput
from rayflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from rayflink.operators import external_sort
from rayflink.operators.keyed import sorted_input
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.keyed_two_input import KeyedCoProcessOperator
from rayflink.operators.keyed.rolling import KeyedReduceOperator, KeyedSumOperator
from rayflink.operators.keyed.sorted_input import SortedInput
from rayflink.operators.windows.assigners import TumblingEventTimeWindows
from rayflink.operators.windows.window_factory import window_operator
from rayflink.operators.windows.window_functions import built_in
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.testing import HARDSHIPS, OperatorHarness, at, idle, in2, rec, verify, wm

first = itemgetter(0)
END = wm(MAX_TIMESTAMP)
WITHOUT_SNAPSHOTS = [name for name in HARDSHIPS if "restored" in name or "become two" in name or "checkpoint" in name]
"""Batch jobs take no checkpoints."""


def check(make: Any, given: list[Any], then: list[Any], key: Any = first) -> None:
    verify(SortedInput(make), given, then, key=key, without=WITHOUT_SNAPSHOTS)


PAIRS = [rec(("b", 1), 5), rec(("a", 2), 4), wm(4), rec(("b", 3), 1), idle(), rec(("c", 7), 2), rec(("a", 5), 3)]


def test_a_rolling_aggregate_gives_the_last_result_of_each_key() -> None:
    then = [rec(("a", 7), 4), rec(("b", 4), 5), rec(("c", 7), 2), END]
    check(lambda: KeyedSumOperator(first, 1), [*PAIRS, END], then)
    check(lambda: KeyedReduceOperator(first, lambda x, y: (x[0], x[1] + y[1])), [*PAIRS, END], then)


def test_records_of_a_key_come_by_time_and_then_as_they_arrived() -> None:
    make = lambda: KeyedReduceOperator(first, lambda x, y: (x[0], x[1] + y[1]))  # noqa: E731
    given = [rec(("a", "3"), 3), rec(("a", "1"), 1), rec(("a", "2"), 2), rec(("a", "!"), 3)]
    check(make, [*given, END], [rec(("a", "123!"), 3), END])
    check(make, [rec(("a", "x")), rec(("a", "y")), END], [rec(("a", "xy")), END])


def test_nothing_is_late_and_windows_fire_key_by_key() -> None:
    make = lambda: window_operator(first, TumblingEventTimeWindows.of(10), built_in("sum", 1))  # noqa: E731
    given = [rec(("b", 1), 25), wm(24), rec(("a", 2), 3), rec(("b", 4), 4), rec(("a", 8), 28), END]
    with OperatorHarness(SortedInput(make)) as harness:
        for step in given:
            harness.give(step)
        assert sorted(harness.output_values()) == [("a", 2), ("a", 8), ("b", 1), ("b", 4)]
    check(make, given, [rec(("a", 2), 9), rec(("a", 8), 29), rec(("b", 4), 9), rec(("b", 1), 29), END])


class Counting(KeyedProcessFunction):
    """Counts the records of its key, sets a timer of each kind, and yields count and event time."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(100)
        ctx.timer_service().register_processing_time_timer(10**15)
        yield value[0], self.count.value(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), self.count.value(), ctx.time_domain().name, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("chunk", [1, 4096])
def test_all_timers_of_a_key_fire_behind_its_last_record(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_input, "CHUNK_ROWS", chunk)
    with OperatorHarness(SortedInput(lambda: KeyedProcessOperator(first, Counting()))) as harness:
        for step in (rec(("b",), 1), rec(("a",), 2), wm(50), rec(("b",), 3), END):
            harness.give(step)
        values = harness.output_values()
    of_b = [value for value in values if value[0] == "b"]
    assert of_b == [
        ("b", 1, MIN_TIMESTAMP), ("b", 2, MIN_TIMESTAMP),
        ("b", 2, "EVENT_TIME", MAX_TIMESTAMP), ("b", 2, "PROCESSING_TIME", MAX_TIMESTAMP),
    ]  # fmt: skip
    assert [value[0] for value in values] == ["a"] * 3 + ["b"] * 4


def test_the_state_of_a_key_is_gone_when_the_next_keys_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_input, "CHUNK_ROWS", 10)
    most = 0
    with OperatorHarness(SortedInput(lambda: KeyedProcessOperator(first, Counting()))) as harness:
        [operator] = harness.operators
        backend = operator._inner.backend  # type: ignore[attr-defined]
        table = backend.table(ValueStateDescriptor("count"))
        end_of_keys = operator._inner.end_of_keys  # type: ignore[attr-defined]

        def counted() -> Any:
            nonlocal most
            most = max(most, len(table))
            yield from end_of_keys()

        operator._inner.end_of_keys = counted  # type: ignore[attr-defined]
        harness.process_batch(_rows(1_000))
        harness.give(END)
        assert len([value for value in harness.output_values() if len(value) == 4]) == 2_000
    assert most == 1


def test_a_timer_that_sets_itself_again_fires_once_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    class Again(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(5)
            ctx.timer_service().register_processing_time_timer(5)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
            ctx.timer_service().register_event_time_timer(timestamp + 5)
            ctx.timer_service().register_processing_time_timer(timestamp + 5)
            yield ctx.get_current_key(), timestamp, ctx.time_domain().name

    with OperatorHarness(SortedInput(lambda: KeyedProcessOperator(first, Again()))) as harness:
        for step in (rec(("a",), 1), rec(("b",), 2), END):
            harness.give(step)
        assert harness.output_values() == [
            (key, 5, domain) for key in "ab" for domain in ("EVENT_TIME", "PROCESSING_TIME")
        ]
        [operator] = harness.operators
        assert operator.ctx.metrics.counter("numTimersIgnored").get_count() == 8
    assert caplog.text.count("sets timers while the last timers of a key fire") == 1


def test_what_timers_give_has_the_declared_type(tmp_path: Path) -> None:
    options = {"execution.target": "local", "execution.runtime-mode": "BATCH"}
    env = StreamExecutionEnvironment(options)
    rows = Types.ROW([Types.STRING(), Types.INT()])

    class Late(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(7)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
            yield ctx.get_current_key(), timestamp

    found = list(env.from_collection([("a", 1)]).key_by(first).process(Late(), rows).execute_and_collect())
    assert found == [Row(f0="a", f1=7)]


@pytest.mark.parametrize("sorts", ["true", "false"])
def test_no_watermark_makes_a_record_late(sorts: str) -> None:
    options = {"execution.target": "local", "execution.runtime-mode": "BATCH", "execution.sorted-inputs.enabled": sorts}
    env = StreamExecutionEnvironment(options)

    class Greatest(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark(Watermark(MAX_TIMESTAMP))

        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            pass

    strategy = WatermarkStrategy.for_generator(Greatest).with_timestamp_assigner(lambda pair, _: pair[1])
    stream = env.from_collection([("a", 50), ("a", 1), ("a", 2)]).assign_timestamps_and_watermarks(strategy)
    counted = stream.map(lambda pair: (pair[0], 1)).key_by(first).window(TumblingEventTimeWindows.of(10)).sum(1)
    assert sorted(counted.execute_and_collect()) == [("a", 1), ("a", 2)]


def _rows(count: int) -> Any:
    from rayflink.common.records.batches import RowBatch

    numbers = list(range(count))
    random.Random(7).shuffle(numbers)
    return RowBatch([(number,) for number in numbers])


def test_two_inputs_meet_by_key_and_time() -> None:
    class Both(KeyedCoProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

        def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
            self.seen.update([*(self.seen.value() or ()), value[1]])
            return ()

        def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
            yield value[0], value[1], tuple(self.seen.value() or ())

    given = [in2(rec(("b", "x"), 5)), rec(("b", 1), 4), rec(("a", 2), 1), in2(rec(("a", "y"), 0)), rec(("b", 3), 6),
             in2(rec(("b", "z"), 9)), wm(MAX_TIMESTAMP), in2(wm(MAX_TIMESTAMP))]  # fmt: skip
    then = [rec(("a", "y", ()), 0), rec(("b", "x", (1,)), 5), rec(("b", "z", (1, 3)), 9), END]
    check(lambda: KeyedCoProcessOperator(first, first, Both()), given, then, key=(first, first))


def test_a_key_larger_than_a_chunk_is_worked_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_input, "CHUNK_ROWS", 7)
    given = [rec((key, 1)) for key in "a" * 3 + "b" * 50 + "c" * 2 + "d" * 20]
    check(lambda: KeyedSumOperator(first, 1), [*given, END], [rec(pair) for pair in
          [("a", 3), ("b", 50), ("c", 2), ("d", 20)]] + [END])  # fmt: skip


def test_an_empty_input_and_moments_give_nothing() -> None:
    check(lambda: KeyedSumOperator(first, 1), [at(5), wm(3), END], [END])


@pytest.mark.slow
def test_ten_times_the_budget_is_sorted_on_disk_and_gives_the_rows_of_streaming(tmp_path: Path) -> None:
    def totals(mode: RuntimeExecutionMode) -> tuple[dict[int, int], int]:
        options = {
            "execution.target": "local",
            "parallelism.default": 2,
            "io.tmp.dirs": str(tmp_path),
            "execution.sorted-inputs.memory": "1 mb",
            "taskmanager.memory.managed.size": "2 mb",
        }
        env = StreamExecutionEnvironment(options).set_runtime_mode(mode)
        numbers = env.from_sequence(1, 60_000).map(lambda n: (n * 7919 % 20_011, n))
        rows = list(numbers.key_by(first).reduce(lambda x, y: (x[0], x[1] + y[1])).execute_and_collect())
        last: dict[int, int] = {}
        for key, total in rows:
            last[key] = max(total, last.get(key, 0))
        return last, len(rows)

    batch, rows = totals(RuntimeExecutionMode.BATCH)
    streaming, running = totals(RuntimeExecutionMode.STREAMING)
    assert batch == streaming and (rows, running) == (len(batch), 60_000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.spec("T05")
def test_two_streams_are_joined_by_sorting_both_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Joined(KeyedCoProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.left = runtime_context.get_state(ValueStateDescriptor("left"))

        def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
            self.left.update(value[1])
            return ()

        def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
            yield value[0], self.left.value(), value[1]

    spilled, close = [], external_sort.ExternalSort.close

    def noted(sort: external_sort.ExternalSort) -> None:
        spilled.append(sort.spilled_bytes)
        close(sort)

    monkeypatch.setattr(external_sort.ExternalSort, "close", noted)
    options = {"execution.target": "local", "io.tmp.dirs": str(tmp_path), "taskmanager.memory.managed.size": "64 kb"}
    env = StreamExecutionEnvironment(options).set_runtime_mode(RuntimeExecutionMode.BATCH)
    left, right = (env.from_sequence(1, 5_000).map(lambda n, m=m: (n * m % 5_003, f"{n:0100}")) for m in (7, 11))
    rows = list(left.connect(right).key_by(first, first).process(Joined()).execute_and_collect())
    of_left = {n * 7 % 5_003: f"{n:0100}" for n in range(1, 5_001)}
    assert sorted(rows) == sorted((n * 11 % 5_003, of_left.get(n * 11 % 5_003), f"{n:0100}") for n in range(1, 5_001))
    assert max(spilled) > 10 * 64 * 1024 and list(tmp_path.iterdir()) == []


def test_memory_is_taken_from_the_slot_and_given_back() -> None:
    manager = MemoryManager(8 << 20)
    operator = SortedInput(lambda: KeyedSumOperator(first, 1))()
    with OperatorHarness(lambda: operator) as harness:
        operator.ctx.managed_memory = Allowance(manager, "me", 8 << 20)
        operator.setup(operator.ctx)
        harness.process_batch(_pairs(1_000))
        assert manager.used >= 1_000 * 220
    assert manager.used == 0


def _pairs(count: int) -> Any:
    from rayflink.common.records.batches import RowBatch

    return RowBatch([(number, 1) for number in range(count)])
