"""A StopIteration from a user's function fails the job; it is never taken for the end of the records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.source import ReaderContext
from rayflink.common.records.batches import RowBatch
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.formats.csv_writing import text_file_sink
from rayflink.connectors.generator import DataGeneratorSource, NumberSplit
from rayflink.operators.base import Operator, UserCodeError
from rayflink.operators.event_time.watermark_operator import TimestampsAndWatermarksOperator
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.rolling import KeyedReduceOperator
from rayflink.operators.list_loops import ensure_all_taken
from rayflink.operators.process import ProcessOperator
from rayflink.operators.sinks import SinkFunctionOperator, SinkOperator
from rayflink.operators.stateless import FilterOperator, FlatMapOperator, MapOperator, ProjectOperator
from rayflink.operators.two_input import CoFlatMapOperator, CoMapOperator
from tests.operators.running import FixedClock, opened, records


def stops_at(bad: int, result: Callable[[int], Any] = lambda x: x) -> Callable[..., Any]:
    return lambda x, *_: next(result(y) for y in (x,) if y != bad)


def raises_at(bad: int) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        if value == bad:
            raise StopIteration
        return value

    return call


class Keeping:
    """A map function that keeps what it gives, so that its results are looked at one by one."""

    def __init__(self, bad: int) -> None:
        self._kept: list[Any] = []
        self._call = stops_at(bad)

    def __call__(self, value: Any) -> Any:
        self._kept.append([self._call(value)])
        return self._kept[-1]


def stamped(bad: int) -> Operator:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
    return TimestampsAndWatermarksOperator(strategy.with_timestamp_assigner(stops_at(bad)))


OPERATORS: dict[str, Callable[[int], Operator]] = {
    "map": lambda bad: MapOperator(raises_at(bad)),
    "map, watched": lambda bad: MapOperator(Keeping(bad)),
    "filter": lambda bad: FilterOperator(stops_at(bad, lambda x: True)),
    "flat_map": lambda bad: FlatMapOperator(stops_at(bad, lambda x: [x])),
    "sink": lambda bad: SinkFunctionOperator(stops_at(bad)),
    "timestamps": stamped,
    "key": lambda bad: KeyedReduceOperator(stops_at(bad), lambda a, b: b),
    "reduce": lambda bad: KeyedReduceOperator(lambda x: 0, lambda a, b: stops_at(bad)(b)),
    "process": lambda bad: ProcessOperator(stops_at(bad, lambda x: [x])),
    "keyed process": lambda bad: KeyedProcessOperator(lambda x: x, stops_at(bad, lambda x: [x])),
    "co_map": lambda bad: CoMapOperator((stops_at(bad), stops_at(bad))),
    "co_flat_map": lambda bad: CoFlatMapOperator((stops_at(bad, lambda x: [x]), stops_at(bad, lambda x: [x]))),
}


@pytest.mark.parametrize("stamps", [None, [10, 20, 30]], ids=["without timestamps", "with timestamps"])
@pytest.mark.parametrize("bad", [1, 2, 3])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_function_that_lets_a_stop_iteration_out_fails_on_its_record(
    name: str, bad: int, stamps: list[int] | None
) -> None:
    if name == "reduce" and bad == 1:
        bad = 2  # the first record of a key is not reduced
    operator = opened(OPERATORS[name](bad))
    with pytest.raises(UserCodeError) as failure:
        records(operator.process(RowBatch([1, 2, 3], stamps), 0))
    assert failure.value.record == str(bad)
    assert "StopIteration" in str(failure.value)


class Fields:
    """A record whose fields end the loop that asks for them."""

    def __getitem__(self, index: int) -> Any:
        raise StopIteration

    def __repr__(self) -> str:
        return "Fields()"


def test_a_record_without_fields_that_stops_fails_a_projection() -> None:
    with pytest.raises(UserCodeError, match="failed in project on record Fields()"):
        opened(ProjectOperator(0, 1)).process(RowBatch([(1, 2), Fields()]), 0)


@pytest.mark.parametrize("bad", [4, 5, 9])
def test_a_generator_s_function_that_lets_a_stop_iteration_out_fails_at_its_index(bad: int) -> None:
    reader = DataGeneratorSource(stops_at(bad)).create_reader(ReaderContext(0, 1, FixedClock(), None, {}))
    reader.add_splits([NumberSplit(4, 10)])
    with pytest.raises(RuntimeError, match=f"StopIteration out at {bad}"):
        reader.poll(100)


def test_a_record_whose_text_stops_fails_a_text_file(tmp_path: Path) -> None:
    class Stopping:
        def __str__(self) -> str:
            return next(iter(()))

    operator = opened(SinkOperator(text_file_sink(tmp_path)))
    with pytest.raises(UserCodeError, match=r"failed in write on record <.*Stopping object at .*>: StopIteration"):
        operator.process(RowBatch(["a", Stopping(), "b"]), 0)
    operator.close()
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.integers(), max_size=5), st.integers(0, 7))
def test_a_loop_over_a_list_has_taken_all_only_when_it_asked_for_one_more(values: list[int], asked: int) -> None:
    iterator = iter(values)
    for _ in range(asked):
        next(iterator, None)
    if asked > len(values):
        ensure_all_taken(iterator)
    else:
        with pytest.raises(StopIteration):
            ensure_all_taken(iterator)
