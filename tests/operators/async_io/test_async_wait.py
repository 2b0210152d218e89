"""Async I/O by hand: order, capacity, time, retries, failures, and what a snapshot holds."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from rayflink.common.functions.async_retries import (
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    empty_result_predicate,
    has_exception_predicate,
)
from rayflink.common.functions.function_classes import AsyncFunction
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import EndOfData, LatencyMarker, RowBatch
from rayflink.operators.async_io.async_wait import AsyncWaitOperator
from rayflink.operators.async_io.event_loops import LoopThread, SteppedLoop, coroutine_runner
from rayflink.operators.base import OperatorContext, UserCodeError
from rayflink.operators.stateless import FlatMapOperator
from rayflink.state.clock import ManualClock, SystemClock
from rayflink.testing import (
    MAX_WATERMARK,
    OperatorHarness,
    active,
    at,
    end,
    idle,
    rec,
    rescaled_snapshots,
    side,
    verify,
    wm,
)

STEPS = [
    rec(("a", 30), 1), rec(("b", 10), 2), rec(("c", 20), 3), at(40), wm(3), idle(), active(), rec(("d", 5), 4),
    rec(("e", 1), 5), at(100), wm(5), end(),
]  # fmt: skip


async def sleeps(pair):
    name, ms = pair
    await asyncio.sleep(ms / 1000)
    return [name]


def waiting(function=sleeps, timeout_ms=0, capacity=10, ordered=True, **more):
    return lambda: AsyncWaitOperator(function, timeout_ms, capacity, ordered, **more)


@pytest.mark.parametrize("capacity", [1, 2, 10])
def test_results_come_in_the_order_of_the_records_under_every_hardship(capacity):
    names = [rec(name, stamp) for stamp, name in enumerate("abcde", start=1)]
    verify(waiting(capacity=capacity), STEPS, [*names[:3], wm(3), idle(), active(), *names[3:], wm(5), MAX_WATERMARK])


def test_unordered_results_come_as_they_are_ready_under_every_hardship():
    then = [rec("b", 2), rec("c", 3), rec("a", 1), wm(3), idle(), active(), rec("e", 5), rec("d", 4), wm(5)]
    verify(waiting(ordered=False), STEPS, [*then, MAX_WATERMARK])


def test_no_unordered_result_crosses_a_watermark():
    steps = [rec(("late", 50), 1), wm(1), rec(("soon", 1), 2), wm(2), at(10), rec(("sooner", 0), 3), at(60), end()]
    then = [rec("late", 1), wm(1), rec("soon", 2), wm(2), rec("sooner", 3), MAX_WATERMARK]
    verify(waiting(ordered=False), steps, then)


def test_a_record_may_have_no_results_several_or_some_for_a_side_output():
    tag = OutputTag("odd")

    async def digits(n):
        return [] if n == 0 else [(tag, digit) if digit in "13579" else digit for digit in str(n)]

    then = [rec("2"), side(tag, "1"), rec("4"), rec("6"), MAX_WATERMARK]
    verify(waiting(digits), [rec(0), rec(21), rec(46), end()], then)


def test_async_steps_follow_one_another_in_one_chain():
    def chain():
        spread = FlatMapOperator(lambda n: [(f"{n}{c}", 7 * n % 5) for c in "xyz"])
        return [spread, AsyncWaitOperator(sleeps, 0, 2, True), AsyncWaitOperator(shout, 0, 1, True)]

    async def shout(text):
        await asyncio.sleep(0.003)
        return [text.upper()]

    then = [rec(f"{n}{c}") for n in (1, 2, 3) for c in "XYZ"]
    verify(chain, [rec(1), rec(2), rec(3), at(500), wm(9), end()], [*then, wm(9), MAX_WATERMARK])


def test_at_most_capacity_calls_are_under_way():
    under_way, most = set(), 0

    async def watched(n):
        nonlocal most
        under_way.add(n)
        most = max(most, len(under_way))
        await asyncio.sleep(0.01)
        under_way.discard(n)
        return [n]

    with OperatorHarness(waiting(watched, capacity=3)) as harness:
        for n in range(10):
            harness.process(n)
        assert harness.output == [] and len(under_way) == 3
        assert harness.metrics.snapshot()["operator.AsyncWaitOperator-0.inFlightRequests"] == 3
        harness.end_input()
        assert harness.output_values() == list(range(10)) and most == 3
        assert harness.clock.now_ms() == 40


def test_an_operator_that_is_busy_takes_no_input_and_the_end_waits_for_all():
    operator = AsyncWaitOperator(sleeps, 0, 2, True)
    with OperatorHarness(lambda: operator) as harness:
        assert operator.accepts(RowBatch([])) and operator.accepts(EndOfData())
        harness.process(("a", 5))
        assert operator.accepts(RowBatch([])) and operator.accepts(EndOfData(False))
        assert not operator.accepts(EndOfData())
        harness.process(("b", 9))
        assert not operator.accepts(RowBatch([])) and operator.next_completion_ms() == 5
        harness.set_processing_time(5)
        assert operator.accepts(RowBatch([])) and harness.output_values() == ["a"]


def test_a_snapshot_holds_what_is_under_way_and_it_is_asked_again_once():
    asked = []

    async def ask(pair):
        asked.append(pair[0])
        return await sleeps(pair)

    make = waiting(ask, capacity=2)
    harness = OperatorHarness(make)
    for name in "abcd":
        harness.process((name, 10), ord(name))
    harness.advance_watermark(99)
    harness.process(("e", 10), 200)
    harness.set_processing_time(10)
    assert harness.take() == [rec("a", 97), rec("b", 98)]
    with harness.restore(make, harness.snapshot()) as restored:
        restored.end_input()
        assert restored.output == [rec("c", 99), rec("d", 100), wm(99), rec("e", 200), MAX_WATERMARK]
    assert asked == ["a", "b", "c", "d", "c", "d", "e"]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_no_record_is_late_behind_a_watermark_of_another_subtask_after_rescaling(parallelism):
    make, taken = waiting(), []
    for name, time_ms in (("a", 9), ("b", 4)):
        with OperatorHarness(make) as harness:
            harness.process((name, 5), time_ms)
            harness.advance_watermark(time_ms)
            taken.append(harness.snapshot())
    output = []
    for snapshots in rescaled_snapshots(taken, parallelism):
        with OperatorHarness(make, restore=[snapshots]) as harness:
            harness.advance_watermark(3)
            harness.end_input()
            output.append(harness.output)
    rows = {1: [[rec("a", 9), rec("b", 4)]], 3: [[rec("a", 9)], [], [rec("b", 4)]]}[parallelism]
    assert output == [[*own, wm(3), MAX_WATERMARK] for own in rows]


def test_a_call_that_takes_too_long_fails_the_job_with_record_and_remedy():
    with OperatorHarness(waiting(timeout_ms=20)) as harness:
        harness.process(("slow", 21))
        harness.set_processing_time(19)
        with pytest.raises(UserCodeError, match=r"in timeout on record \('slow', 21\): TimeoutError.*allow more time"):
            harness.set_processing_time(20)
        assert harness.metrics.snapshot()["operator.AsyncWaitOperator-0.numTimeouts"] == 1


def test_timeout_may_give_results_and_the_call_is_cancelled():
    cancelled = []

    class Patient(AsyncFunction):
        async def async_invoke(self, value):
            try:
                return await sleeps(value)
            except asyncio.CancelledError:
                cancelled.append(value[0])
                raise

        def timeout(self, value):
            return [f"{value[0]}?"]

    steps = [rec(("a", 30), 1), rec(("b", 5), 2), at(100), end()]
    verify(waiting(Patient(), timeout_ms=20), steps, [rec("a?", 1), rec("b", 2), MAX_WATERMARK])
    cancelled.clear()
    with OperatorHarness(waiting(Patient(), timeout_ms=20)) as harness:
        for element in steps:
            harness.give(element)
        assert cancelled == ["a"]


class Flaky(AsyncFunction):
    """Fails for each record as often as the record says, 10 ms each time; `asked` holds when."""

    def __init__(self, error):
        self.asked, self.error = [], error

    async def async_invoke(self, value):
        self.asked.append(round(asyncio.get_running_loop().time() * 1000))
        await asyncio.sleep(0.01)
        if len(self.asked) <= value:
            if self.error is None:
                return []
            raise self.error
        return [len(self.asked)]


@pytest.mark.parametrize(
    "error, strategy, times",
    [
        (OSError("away"), FixedDelayRetryStrategy(3, 100, None, has_exception_predicate), [0, 110, 220]),
        (None, FixedDelayRetryStrategy(3, 100, empty_result_predicate, None), [0, 110, 220]),
        (
            OSError("away"),
            ExponentialBackoffDelayRetryStrategy(9, 20, 1000, 3, None, has_exception_predicate),
            [0, 30, 100],
        ),
    ],
)
def test_what_the_strategy_names_is_tried_again_after_its_pause(error, strategy, times):
    flaky = Flaky(error)
    with OperatorHarness(waiting(flaky, timeout_ms=1000, strategy=strategy)) as harness:
        harness.process(2)
        harness.end_input()
        assert harness.output_values() == [3] and flaky.asked == times
        assert harness.metrics.snapshot()["operator.AsyncWaitOperator-0.numRetries"] == 2


def test_retries_end_with_the_last_outcome():
    strategy = FixedDelayRetryStrategy(2, 10, empty_result_predicate, has_exception_predicate)
    with OperatorHarness(waiting(Flaky(None), timeout_ms=1000, strategy=strategy)) as harness:
        harness.process(99)
        harness.end_input()
        assert harness.output_values() == []
    with OperatorHarness(waiting(Flaky(OSError("away")), timeout_ms=1000, strategy=strategy)) as harness:
        harness.process(99)
        with pytest.raises(UserCodeError, match="async_invoke on record 99: OSError: away"):
            harness.end_input()
        assert harness.metrics.snapshot()["operator.AsyncWaitOperator-0.numFailures"] == 3


def test_retries_count_within_the_timeout_also_at_the_end_of_input():
    strategy = FixedDelayRetryStrategy(99, 100, None, has_exception_predicate)
    flaky = Flaky(OSError("away"))
    with OperatorHarness(waiting(flaky, timeout_ms=250, strategy=strategy)) as harness:
        harness.process(99)
        with pytest.raises(UserCodeError, match="failed in timeout on record 99"):
            harness.end_input()
        assert harness.clock.now_ms() == 250 and flaky.asked == [0, 110, 220]


def test_what_a_coroutine_raises_names_operator_line_and_record():
    async def fails(value):
        raise KeyError(value)

    with OperatorHarness(waiting(fails)) as harness:
        with pytest.raises(UserCodeError, match="'AsyncWaitOperator'.* in async_invoke on record 'a': KeyError: 'a'"):
            harness.process("a")


def test_a_result_that_is_no_list_and_a_coroutine_that_cancels_itself_fail_the_job():
    async def number(value):
        return 5

    async def cancels(value):
        raise asyncio.CancelledError

    for function, found in ((number, "gave int 5, wanted an iterable"), (cancels, "cancelled from within")):
        with OperatorHarness(waiting(function)) as harness, pytest.raises(UserCodeError, match=found):
            harness.process("a")


def test_open_and_close_run_in_the_loop_and_may_be_async():
    seen = []

    class Session(AsyncFunction):
        async def open(self, runtime_context):
            await asyncio.sleep(1)
            seen.append(asyncio.get_running_loop())
            self.subtask = runtime_context.get_index_of_this_subtask()

        def close(self):
            seen.append(asyncio.get_running_loop())

        async def async_invoke(self, value):
            seen.append(asyncio.get_running_loop())
            return [(value, self.subtask)]

    with OperatorHarness(waiting(Session())) as harness:
        harness.process("a")
        assert harness.output_values() == [("a", 0)]
    assert len(seen) == 3 and len(set(seen)) == 1


def test_a_latency_marker_keeps_its_place():
    operator = AsyncWaitOperator(sleeps, 0, 5, True)
    with OperatorHarness(lambda: operator) as harness:
        harness.process(("a", 5))
        operator.process_latency_marker(LatencyMarker(0, "f" * 32, 0))
        assert list(operator.take_completed()) == []
        harness.clock.advance(5)
        batch, marker = operator.take_completed()
        assert batch.values == ["a"] and isinstance(marker, LatencyMarker)


# the thread of a real runner


def test_in_a_thread_answers_wake_the_task():
    woken = threading.Event()
    loop = LoopThread("test", SystemClock(), woken.set)
    loop.begin("a", lambda: asyncio.sleep(0.001, 1))
    assert woken.wait(10) and list(loop.answers) == [("a", 1)] and loop.next_due_ms() is not None
    loop.close()
    assert not loop._thread.is_alive()


def test_what_blocks_the_loop_is_named_when_it_is_closed(monkeypatch):
    monkeypatch.setattr("rayflink.operators.async_io.event_loops.END_SECONDS", 0.05)
    release, begun = threading.Event(), threading.Event()

    async def blocks():
        begun.set()
        release.wait(10)

    loop = LoopThread("test", SystemClock(), lambda: None)
    loop.begin("a", blocks)
    assert begun.wait(10)
    with pytest.raises(TimeoutError, match="instead of time.sleep"):
        loop.close()
    release.set()


def test_a_context_that_can_be_woken_has_a_thread_and_one_without_is_stepped():
    clock = ManualClock()
    stepped = coroutine_runner(OperatorContext("0" * 32, "a", clock=clock))
    threaded = coroutine_runner(OperatorContext("0" * 32, "a", clock=clock, wake=lambda: None))
    assert isinstance(stepped, SteppedLoop) and isinstance(threaded, LoopThread)
    stepped.close()
    threaded.close()


def test_timers_of_a_stepped_loop_fire_each_at_its_time_however_far_the_clock_moves():
    async def three():
        times = []
        for _ in range(3):
            await asyncio.sleep(0.1)
            times.append(round(loop.time(), 3))
        return times

    clock = ManualClock()
    loop = SteppedLoop(clock)
    started = time.monotonic()
    loop.begin("a", three)
    loop.advance()
    assert loop.next_due_ms() == 100
    clock.advance(3_600_000)
    loop.advance()
    assert list(loop.answers) == [("a", [0.1, 0.2, 0.3])] and time.monotonic() - started < 5
    loop.close()


@pytest.mark.spec("L10", "async")
def test_nothing_is_closed_before_calls_are_cancelled_and_a_raising_close_is_named():
    seen = []

    class Session(AsyncFunction):
        def close(self):
            seen.append("closed")
            raise OSError("socket")

        async def async_invoke(self, value):
            try:
                await asyncio.sleep(60)
            finally:
                seen.append("cancelled")

    harness = OperatorHarness(waiting(Session()))
    harness.process("a")
    with pytest.raises(UserCodeError, match="failed in close: OSError: socket"):
        harness.close()
    assert seen == ["cancelled", "closed"]


def test_a_task_of_the_users_own_that_ends_the_loop_fails_the_job():
    ended = []

    async def exits():
        raise SystemExit("bye")

    async def spawns(value):
        self_made = asyncio.ensure_future(exits())
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(self_made.exception())

    woken, operator = threading.Event(), AsyncWaitOperator(spawns, 0, 5, True)
    operator.setup(OperatorContext("0" * 32, "ask", clock=SystemClock(), metrics=MetricGroup(), wake=woken.set))
    operator.initialize_state(())
    operator.open()
    operator.process(RowBatch([1]), 0)
    assert woken.wait(10)
    thread = operator._runner._thread
    with pytest.raises(
        UserCodeError, match="'ask' failed in the event loop: RuntimeError: .* ended by SystemExit: bye"
    ):
        operator.take_completed()
    operator.close()
    assert not thread.is_alive()
    assert [str(error) for error in ended] == ["bye"]


def test_a_harness_works_in_a_notebook_too():
    async def cell():
        with OperatorHarness(waiting()) as harness:
            harness.process(("a", 5))
            harness.end_input()
            return harness.output_values(), asyncio.get_running_loop().is_running()

    assert asyncio.run(cell()) == (["a"], True)
