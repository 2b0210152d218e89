"""Window aggregation of the Table layer: rows a second of processor time of its operators alone.

Keys are drawn by Zipf's law from 10,000, as numbers or as texts; batches have 65,536 rows, and a watermark is behind
each. `python -m benchmarks.tables.ours_table_windows` prints a line for each case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch, Watermark
from rayflink.operators.base import Operator, OperatorContext
from rayflink.state.clock import ManualClock
from rayflink.table.plan.logical import WindowKind
from rayflink.table.runtime.aggregates.aggregates import Aggregate, AggregateKind, result_type
from rayflink.table.runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from rayflink.table.runtime.windows.window_operators import (
    global_window_aggregate,
    local_window_aggregate,
    one_phase_window_aggregate,
    session_window_aggregate,
)
from rayflink.table.types import DataType, DataTypes

BATCH_ROWS = 65_536
BATCHES = 40
KEYS = 10_000
ROWS_A_SECOND = 1_000_000
"""Of event time."""
OUT_OF_ORDER_MS = 2_000
KEY, VALUE, TIME = range(3)


def input_of(key: DataType) -> DataType:
    """The type of a row."""
    return DataTypes.ROW([("k", key), ("v", DataTypes.BIGINT()), ("ts", DataTypes.TIMESTAMP(3))])


def batches(is_text: bool, count: int) -> list[tuple[ArrowBatch, Watermark]]:
    """Batches of rows, each with the watermark behind it."""
    draw = np.random.default_rng(7)
    made = []
    numbers = draw.permutation(10_000_000)[:KEYS]
    texts = pa.array([f"user-{number}" for number in numbers])
    for batch in range(count):
        picked = draw.zipf(1.1, 6 * BATCH_ROWS)
        picked = (picked[picked <= KEYS] - 1)[:BATCH_ROWS]
        rows = len(picked)
        start = batch * BATCH_ROWS * 1000 // ROWS_A_SECOND
        times = start + np.arange(rows) * 1000 // ROWS_A_SECOND - draw.integers(0, OUT_OF_ORDER_MS, rows)
        key = texts.take(pa.array(picked)) if is_text else pa.array(numbers[picked])
        columns = [key, pa.array(draw.integers(0, 1_000_000, rows)), pa.array(times).cast(pa.timestamp("ms"))]
        data = pa.RecordBatch.from_arrays(columns, names=["k", "v", "ts"])
        made.append((ArrowBatch(data), Watermark(int(start - OUT_OF_ORDER_MS))))
    return made


def aggregation(window: WindowSpec, *aggregates: tuple[str, bool], is_text: bool = False) -> WindowAggregation:
    """COUNT of rows, and others as (name, whether distinct) of the value."""
    row = input_of(DataTypes.STRING() if is_text else DataTypes.BIGINT())
    made = [Aggregate(AggregateKind.COUNT, None, result_type(AggregateKind.COUNT))]
    for name, distinct in aggregates:
        kind = AggregateKind(name)
        made.append(Aggregate(kind, VALUE, result_type(kind, row.fields[VALUE].type), distinct=distinct))
    return WindowAggregation(row, (KEY,), tuple(made), window)


def run(chain: list[Operator], given: list[tuple[ArrowBatch, Watermark]]) -> tuple[float, int]:
    """(seconds of processor time, rows of the result)."""
    for operator in chain:
        operator.setup(OperatorContext("0" * 32, "window", clock=ManualClock(), metrics=MetricGroup()))
        operator.initialize_state(())
        operator.open()
    results = 0

    def feed(at: int, elements: Iterable[Any]) -> None:
        nonlocal results
        for element in elements:
            if at == len(chain):
                results += len(element) if isinstance(element, ArrowBatch) else 0
            elif isinstance(element, ArrowBatch):
                feed(at + 1, chain[at].process(element, 0))
            else:
                feed(at + 1, chain[at].process_watermark(element))

    start = time.process_time()
    for batch, watermark in given:
        feed(0, (batch, watermark))
    return time.process_time() - start, results


def cases() -> dict[str, tuple[bool, Callable[[], list[Operator]]]]:
    """Return name -> (whether keys are strings, makes the operators)."""

    def both(aggregation: WindowAggregation) -> list[Operator]:
        return [local_window_aggregate(aggregation), global_window_aggregate(aggregation)]

    def window(kind: WindowKind, size_ms: int, slide_ms: int = 0, gap_ms: int = 0) -> WindowSpec:
        return WindowSpec(kind, size_ms, slide_ms, gap_ms=gap_ms, time_column=TIME)

    tumble, hop = window(WindowKind.TUMBLE, 10_000), window(WindowKind.HOP, 6_000, 1_000)
    most = ("MAX", False)
    of_numbers, of_texts = aggregation(tumble, most), aggregation(tumble, most, is_text=True)
    hopping, distinct = aggregation(hop, most), aggregation(tumble, ("COUNT", True))
    many = aggregation(tumble, ("SUM", False), ("MIN", False), most, ("AVG", False), ("STDDEV_POP", False))
    sessions = aggregation(window(WindowKind.SESSION, 0, gap_ms=100), most)
    return {
        "local, COUNT and MAX by BIGINT": (False, lambda: [local_window_aggregate(of_numbers)]),
        "local, COUNT and MAX by STRING": (True, lambda: [local_window_aggregate(of_texts)]),
        "TUMBLE, both phases": (False, lambda: both(of_numbers)),
        "TUMBLE by STRING, both": (True, lambda: both(of_texts)),
        "TUMBLE, one phase": (False, lambda: [one_phase_window_aggregate(of_numbers)]),
        "TUMBLE, six aggregates": (False, lambda: both(many)),
        "HOP of 6 slices, both": (False, lambda: both(hopping)),
        "COUNT DISTINCT, both phases": (False, lambda: both(distinct)),
        "SESSION": (False, lambda: [session_window_aggregate(sessions)]),
    }


def main() -> None:
    """Print the rows a second of each case, the best of three."""
    given = {is_text: batches(is_text, BATCHES) for is_text in (False, True)}
    for name, (is_text, make) in cases().items():
        rows = sum(len(batch) for batch, _ in given[is_text])
        seconds, results = min(run(make(), given[is_text]) for _ in range(3))
        print(f"{name:32s} {rows / seconds / 1e6:7.1f} M rows/s {results:9d} results")


if __name__ == "__main__":
    main()
