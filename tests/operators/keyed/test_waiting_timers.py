"""Timers of processing time that are not due when a stream ends do not fire, and are counted."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from rayflink.common.functions.function_classes import KeyedProcessFunction
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.windows.assigners import (
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rayflink.operators.windows.session_windows import ProcessingTimeSessionWindows
from rayflink.operators.windows.window_factory import window_operator
from rayflink.operators.windows.window_functions import reducing
from rayflink.testing import OperatorHarness, at, rec


class Later(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_processing_time_timer(value[1])
        ctx.timer_service().register_event_time_timer(value[1])
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.time_domain().name


def windowed(assigner: Any) -> Any:
    return lambda: window_operator(itemgetter(0), assigner, reducing(lambda one, other: one))


GIVEN = [at(1), rec(("a", 5), 1), rec(("b", 7), 1), at(6), rec(("a", 50), 6), rec(("c", 60), 6)]


@pytest.mark.parametrize(
    ("made", "left"),
    [
        (windowed(TumblingProcessingTimeWindows.of(5)), 2),
        (windowed(SlidingProcessingTimeWindows.of(10, 5)), 3),  # of the panes of a key the earliest window has one
        (windowed(ProcessingTimeSessionWindows.with_gap(100)), 3),
        (windowed(TumblingEventTimeWindows.of(5)), 0),
        (lambda: KeyedProcessOperator(itemgetter(0), Later()), 3),
    ],
)
def test_timers_that_wait_at_the_end_are_counted(made, left):
    with OperatorHarness(made) as harness:
        for element in GIVEN:
            harness.give(element)
        fired = harness.output_values()
        harness.end_input()
        operator = harness.operators[0]
        assert operator.ctx.metrics.counter("numProcessingTimersDropped").get_count() == left
        assert "PROCESSING_TIME" not in harness.output_values()[len(fired) :]
