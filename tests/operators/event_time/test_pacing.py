"""A long firing pauses after a few calls or a few milliseconds, whatever it emits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.task.slicing import Slicer
from rayflink.common.functions.function_classes import KeyedProcessFunction, ProcessWindowFunction
from rayflink.common.records.batches import RowBatch, Watermark
from rayflink.operators.base import Operator
from rayflink.operators.chain import ChainLink, OperatorChain
from rayflink.operators.event_time.pacing import FIRING_CALLS, FIRING_RECORDS, paced
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.output_buffer import OutputBuffer
from rayflink.operators.windows.assigners import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from rayflink.operators.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, aggregating, collecting
from rayflink.state.clock import ManualClock
from tests.operators.laws import context, flat, started

first = itemgetter(0)
KEYS = 300


def calls(costs_ms: Iterable[int], clock: ManualClock, emit: Callable[[int], None]) -> Iterator[None]:
    for number, cost in enumerate(costs_ms):
        clock.advance(cost)
        emit(number)
        yield


def test_calls_that_take_no_time_and_emit_nothing_pause_every_so_many() -> None:
    out, made = OutputBuffer(), 0

    def count(number: int) -> None:
        nonlocal made
        made += 1

    clock = ManualClock()
    pauses = [(made, element) for element in paced(calls([0] * 200, clock, count), out, clock)]
    assert pauses == [(FIRING_CALLS * i, RowBatch([])) for i in (1, 2, 3)]


def test_records_that_are_added_together_have_the_timestamp_each() -> None:
    out = OutputBuffer()
    out.extend(["a", "b"], 5)
    out.add("c", 7)
    assert out.take() == [RowBatch(["a", "b", "c"], [5, 5, 7])]


def test_quick_calls_hand_results_on_by_the_batch() -> None:
    out, clock = OutputBuffer(), ManualClock()
    every = calls([0] * 10_000, clock, lambda number: out.add(number, 5))
    batches = [element for element in paced(every, out, clock) if len(element)]  # type: ignore[arg-type]
    assert [len(batch) for batch in batches] == [FIRING_RECORDS, FIRING_RECORDS, 10_000 - 2 * FIRING_RECORDS]  # type: ignore[arg-type]


def test_slow_calls_hand_on_what_they_have() -> None:
    out, clock = OutputBuffer(), ManualClock()
    every = calls([500, 500, 0, 0], clock, lambda number: out.add(number, None))
    assert list(paced(every, out, clock)) == [RowBatch([0]), RowBatch([1]), RowBatch([2, 3])]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=100))
def test_no_pause_is_far_off_and_all_results_come_in_order(steps: list[tuple[int, bool]]) -> None:
    costs_ms, emits = [cost for cost, _ in steps], [emit for _, emit in steps]
    out, clock, went_on_ms, found = OutputBuffer(), ManualClock(), 0, []
    every = calls(costs_ms, clock, lambda number: out.add(number, None) if emits[number] else None)
    for element in paced(every, out, clock):
        assert isinstance(element, RowBatch)
        assert clock.now_ms() - went_on_ms <= 2 + 8 * 3  # unseen: at most eight calls
        found += element.values
        clock.advance(1000)  # others have their turn
        went_on_ms = clock.now_ms()
    assert found == [number for number in range(len(costs_ms)) if emits[number]]


class SlowTimer(KeyedProcessFunction):
    """Sets a timer of either kind; each takes a millisecond and emits nothing."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(9)
        ctx.timer_service().register_processing_time_timer(9)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        self._clock.advance(1)


class LongTimer(SlowTimer):
    """One timer with many results, a millisecond each."""

    def process_element(self, value: Any, ctx: Any) -> None:
        if value[0] == 0:
            super().process_element(value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        for _ in range(KEYS):
            self._clock.advance(1)
            yield ctx.get_current_key()


class SlowWindow(ProcessWindowFunction):
    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        self._clock.advance(1)
        return ()


class SlowClear(SlowWindow):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        return ()

    def clear(self, context: Any) -> None:
        self._clock.advance(1)


class SlowResult:
    """An AggregateFunction whose result takes a millisecond."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        self._clock.advance(1)
        return accumulator


def windows(event_time: bool, function: Any, triggered: bool = False) -> Operator:
    assigner: Any = (TumblingEventTimeWindows if event_time else TumblingProcessingTimeWindows).of(9)
    trigger: Any = (EventTimeTrigger() if event_time else ProcessingTimeTrigger()) if triggered else None
    if isinstance(function, SlowResult):
        return window_operator(first, assigner, aggregating(function), None, WindowRules(trigger))
    return window_operator(first, assigner, collecting(), WindowEvaluation(function), WindowRules(trigger))


OPERATORS: dict[str, Callable[[bool, ManualClock], Operator]] = {
    "timers without results": lambda _, clock: KeyedProcessOperator(first, SlowTimer(clock)),
    "a timer of many results": lambda _, clock: KeyedProcessOperator(first, LongTimer(clock)),
    "window functions": lambda event, clock: windows(event, SlowWindow(clock)),
    "results of an aggregate": lambda event, clock: windows(event, SlowResult(clock)),
    "functions that clear": lambda event, clock: windows(event, SlowClear(clock)),
    "triggered windows": lambda event, clock: windows(event, SlowWindow(clock), triggered=True),
}


@pytest.mark.parametrize("event_time", [True, False], ids=["event time", "processing time"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_firing_of_slow_calls_leaves_its_task_in_steps_of_its_slice(name: str, event_time: bool) -> None:
    clock = ManualClock()
    operator = started(lambda: OPERATORS[name](event_time, clock), context(clock))
    flat(operator.process(RowBatch([(key, 1) for key in range(KEYS)], [0] * KEYS), 0))
    chain, slicer, took_ms = OperatorChain([ChainLink(operator)], lambda: False), Slicer(clock, 10.0), []
    if event_time:
        chain.feed(Watermark(9))
    else:
        clock.advance(10)
        chain.emit(0, operator.on_processing_time(clock.now_ms()))
    idle = False
    while not idle:
        begun = clock.now_ms()
        slicer.begin()
        idle = chain.run(slicer.may_continue)
        took_ms.append(clock.now_ms() - begun)
    assert sum(took_ms) == KEYS
    assert max(took_ms) <= (10 + 16 if name == "a timer of many results" else 10 + 3)
