"""Window aggregation under every hardship, and beside a model that goes row by row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from rayflink.common.types import Row
from rayflink.table.runtime.global_window import GlobalWindowAggregate, WindowAggregate
from rayflink.table.runtime.local_window import LocalWindowAggregate
from rayflink.table.runtime.window_spec import WindowAggregation
from rayflink.testing import OperatorHarness, rec, verify, wm

from .window_cases import N, aggregate, by_word, key_of, rows, tumble


def two_phases(aggregation: WindowAggregation) -> Any:
    return lambda: [LocalWindowAggregate(aggregation), GlobalWindowAggregate(aggregation)]


def one_phase(aggregation: WindowAggregation) -> Any:
    return lambda: WindowAggregate(aggregation)


def ms(value: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=value)


def out(aggregation: WindowAggregation, *values: Any) -> Any:
    """A row of the result; the last two values are the window's start and end."""
    names = [field.name for field in aggregation.result.fields]
    *given, start, end = values
    return rec(Row(*names)(*given, ms(start), ms(end), ms(end - 1)), end - 1)


BASIC = by_word(
    tumble(), aggregate("COUNT"), aggregate("COUNT", N), aggregate("SUM", N), aggregate("MIN", N), aggregate("MAX", N),
    aggregate("AVG", N),
)  # fmt: skip
GIVEN = [
    rows(("b", 4, 3), ("a", 1, 0), ("b", None, 9), ("a", 2, 12), ("b", -9, 5), (None, 7, 3), ("c", None, 19)),
    wm(8),
    rows(("b", 1, 2), ("a", 5, 29), ("c", 6, 11)),
    wm(9),
    rows(("late", 1, 9), ("a", -8, 10)),
    wm(19),
    wm(25),
    rows(("a", 3, 20)),
    wm(40),
]
THEN = [
    wm(8),
    out(BASIC, "b", 4, 3, -4, -9, 4, -1, 0, 10),
    out(BASIC, "a", 1, 1, 1, 1, 1, 1, 0, 10),
    out(BASIC, None, 1, 1, 7, 7, 7, 7, 0, 10),
    wm(9),
    out(BASIC, "a", 2, 2, -6, -8, 2, -3, 10, 20),
    out(BASIC, "c", 2, 1, 6, 6, 6, 6, 10, 20),
    wm(19),
    wm(25),
    out(BASIC, "a", 2, 2, 8, 3, 5, 4, 20, 30),
    wm(40),
]


def test_tumbling_windows_in_two_phases():
    verify(two_phases(BASIC), GIVEN, THEN, key=key_of(BASIC))


def test_tumbling_windows_in_one_phase():
    verify(one_phase(BASIC), GIVEN, THEN, key=key_of(BASIC))


def test_late_rows_are_counted():
    for factory in (two_phases(BASIC), one_phase(BASIC)):
        with OperatorHarness(factory) as harness:
            for element in [rows(("a", 1, 0)), wm(9), rows(("b", 1, 9), ("b", 1, 1), ("c", 1, 3), ("a", 2, 10)), wm(9)]:
                harness.give(element)
            harness.advance_watermark(100)
            assert harness.operators[-1].ctx.metrics.counter("numLateRecordsDropped").get_count() == 3
