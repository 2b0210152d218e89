"""AsyncDataStream in programs: on a thread of its own, in the simulator, with checkpoints; and what it refuses.

Only what is simulated sleeps, by the simulator's clock.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import defaultdict

import pytest

from rayflink.common import Time, Types
from rayflink.common.errors import InvalidFunction, JobFailed
from rayflink.common.records.batches import RowBatch, Watermark
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    StreamExecutionEnvironment,
    async_retry_strategies,
)
from rayflink.datastream.async_retry_predicates import exception_type_predicate
from rayflink.graph.errors import PlanError
from rayflink.state.descriptors import ListStateDescriptor
from rayflink.state.operator_state import OperatorStateStore
from rayflink.testing import UNRELIABLE_NETWORK, Pause, ScriptedSource, SlowSink, TriggerCheckpoint, simulate
from tests.datastream.programs import environment, timed

SECOND = Time.seconds(1)


async def doubled(n):
    await asyncio.sleep(0.002 * (n % 3))
    return [2 * n]


def test_a_coroutine_may_be_given_as_it_is_and_runs_beside_the_task():
    answered = defaultdict(asyncio.Event)

    async def where(n):
        if n % 2:
            await answered[n + 1].wait()  # the next record's answer is there first
        answered[n].set()
        return [(2 * n, threading.current_thread().name)]

    numbers = environment().from_sequence(1, 50)
    found = list(AsyncDataStream.ordered_wait(numbers, where, SECOND).execute_and_collect())
    assert [n for n, _ in found] == [2 * n for n in range(1, 51)]
    assert {name for _, name in found} == {"async async wait operator"}


def test_calls_are_under_way_together():
    met = asyncio.Event()

    async def meets(n):
        if n == 3:
            met.set()
        await asyncio.wait_for(met.wait(), 10)
        return [n]

    numbers = environment().from_sequence(1, 3)
    assert sorted(AsyncDataStream.unordered_wait(numbers, meets, Time.seconds(20), 3).execute_and_collect()) == [
        1,
        2,
        3,
    ]


def test_results_have_the_declared_type_and_the_timestamps_of_their_records():
    async def pair(record):
        return [record[0], str(record[1])]

    stream = timed(environment(), [("a", 1_000), ("b", 2_000)])

    async def fields(record):
        return [record]

    typed = AsyncDataStream.ordered_wait(stream, fields, SECOND, 5, Types.ROW([Types.STRING(), Types.LONG()]))
    stamped = typed.process(lambda row, ctx: [(row[0], ctx.timestamp())])
    assert list(stamped.execute_and_collect()) == [("a", 1_000), ("b", 2_000)]
    wrong = AsyncDataStream.ordered_wait(timed(environment(), [("a", 1)]), pair, SECOND, 5, Types.LONG())
    with pytest.raises(JobFailed, match="found str 'a', wanted Long"):
        list(wrong.execute_and_collect())


def test_a_failure_names_the_line_of_the_program():
    async def fails(n):
        raise ConnectionError("refused")

    stream = AsyncDataStream.unordered_wait(environment().from_collection([7]), fails, SECOND)
    with pytest.raises(JobFailed, match=r"(?s)ConnectionError: refused.*test_async_data_stream.py.*record: 7"):
        list(stream.execute_and_collect())


def test_the_time_of_a_call_is_bounded_on_a_thread_too():
    async def silent(n):
        await asyncio.Event().wait()

    stream = AsyncDataStream.ordered_wait(environment().from_collection([7]), silent, Time.milliseconds(20))
    with pytest.raises(JobFailed, match="the async call took too long for record 7; allow more time"):
        list(stream.execute_and_collect())


def program(env, ordered, capacity=4):
    wait = AsyncDataStream.ordered_wait if ordered else AsyncDataStream.unordered_wait
    wait(env.from_sequence(1, 60), doubled, SECOND, capacity).sink_to(CollectSink("out"))
    return env.get_job_graph()


@pytest.mark.parametrize("ordered", [True, False])
def test_nothing_is_lost_or_doubled_from_any_seed_with_small_capacity_and_slow_sinks(ordered):
    for seed in range(4):
        faults = [*UNRELIABLE_NETWORK, SlowSink(ms=20), TriggerCheckpoint(1, move=40)]
        story = simulate(program(StreamExecutionEnvironment(), ordered), seed, faults)
        found = story.collected("out")
        assert (found if ordered else sorted(found)) == [2 * n for n in range(1, 61)]
        assert simulate(program(StreamExecutionEnvironment(), ordered), seed, faults).collected("out") == found


def test_a_checkpoint_does_not_wait_for_calls_and_holds_their_records():
    async def slow(n):
        await asyncio.sleep(6)
        return [n]

    env = StreamExecutionEnvironment()
    stream = env.from_source(ScriptedSource([1, 2, 3, Pause(3_000), 4, 5])).rebalance()
    AsyncDataStream.ordered_wait(stream, slow, Time.minutes(5), 10).sink_to(CollectSink("out"))
    held = []
    for seed in range(4):
        story = simulate(env.get_job_graph(), seed, [TriggerCheckpoint(1, move=40)])
        assert story.collected("out") == [1, 2, 3, 4, 5]
        for acknowledged in story.acknowledged.get(1, {}).values():
            assert acknowledged.metrics.alignment_ms < 1_000
            for snapshot in acknowledged.snapshots.values():
                if "in flight" in snapshot.lists:
                    store = OperatorStateStore([snapshot.lists])
                    held.append(list(store.get_list_state(ListStateDescriptor("in flight"))))
    batches = [[e for e in entries if isinstance(e, RowBatch)] for entries in held]
    assert [1, 2, 3] in [[batch.values[0] for batch in found] for found in batches], held
    assert all(isinstance(e, RowBatch | Watermark) for entries in held for e in entries[1:])


def test_strategies_have_pyflinks_names():
    assert AsyncRetryStrategy.no_restart() is async_retry_strategies.NO_RETRY_STRATEGY
    of_type = functools.partial(exception_type_predicate, expected_error_type=OSError)
    fixed = AsyncRetryStrategy.fixed_delay(2, 50, None, of_type)
    assert fixed.can_retry(2) and not fixed.can_retry(3) and fixed.get_backoff_time_millis(9) == 50
    assert fixed.get_retry_predicate().exception_predicate()(ConnectionError())
    growing = AsyncRetryStrategy.exponential_backoff(9, 10, 35, 2.0, None, of_type)
    assert [growing.get_backoff_time_millis(n) for n in (1, 2, 3, 1)] == [10, 20, 35, 10]
    with pytest.raises(ValueError, match="max_attempts must be above 0, found 0"):
        AsyncRetryStrategy.fixed_delay(0, 50, None, None)


class Plain(AsyncFunction):
    def async_invoke(self, value):
        return [value]


@pytest.mark.parametrize(
    "given, refused, found",
    [
        ({"async_function": lambda n: [n]}, InvalidFunction, "is no coroutine function; declare it as 'async def'"),
        ({"async_function": Plain()}, InvalidFunction, "async_invoke of Plain is no coroutine function"),
        ({"async_function": Plain}, InvalidFunction, r"pass an instance: Plain\(...\)"),
        ({"capacity": 0}, PlanError, "has capacity 0; give a whole number of records"),
        ({"timeout": "1 s"}, TypeError, "a length of time must be"),
        ({"data_stream": [1]}, TypeError, "unordered_wait needs a DataStream"),
    ],
)
def test_what_cannot_work_is_refused_in_the_users_line(given, refused, found):
    whole = {"data_stream": environment().from_collection([1]), "async_function": doubled, "timeout": SECOND, **given}
    with pytest.raises(refused, match=found):
        AsyncDataStream.unordered_wait(**whole)


def test_retries_need_a_bound():
    fixed, numbers = AsyncRetryStrategy.fixed_delay(2, 50, None, None), environment().from_collection([1])
    with pytest.raises(PlanError, match="a timeout of 0 ms; give a timeout above 0"):
        AsyncDataStream.ordered_wait_with_retry(numbers, doubled, Time.seconds(0), fixed)
    with pytest.raises(PlanError, match="was given int as retry strategy"):
        AsyncDataStream.ordered_wait_with_retry(numbers, doubled, SECOND, 3)


@pytest.mark.parametrize("capacities", [(1, 3), (3, 1), (2, 2)])
def test_async_steps_of_one_chain_that_hold_each_other_back_keep_the_order(capacities):
    async def spread(n):
        await asyncio.sleep(0.001 * (n % 4))
        return [10 * n, 10 * n + 1]

    async def late(n):
        await asyncio.sleep(0.001 * (n % 5))
        return [n]

    for seed in range(4):
        env = StreamExecutionEnvironment()
        first = AsyncDataStream.ordered_wait(env.from_sequence(1, 30), spread, SECOND, capacities[0])
        AsyncDataStream.ordered_wait(first, late, SECOND, capacities[1]).sink_to(CollectSink("out"))
        story = simulate(env.get_job_graph(), seed, [SlowSink(ms=5), TriggerCheckpoint(1, move=30)])
        assert story.collected("out") == [n for ten in range(10, 310, 10) for n in (ten, ten + 1)]
