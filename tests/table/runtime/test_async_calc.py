"""Asynchronous functions by hand: order, the number of calls, repetitions, failures, and what a snapshot holds."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row, RowKind
from rayflink.operators.base import UserCodeError
from rayflink.table.physical.async_steps import async_steps
from rayflink.table.plan.typed import Call, Column, Literal, Session, named
from rayflink.table.runtime.async_answers import AsyncAnswers, AsyncCallSettings, WantedCalls
from rayflink.table.runtime.async_calc import AsyncCalcOperator
from rayflink.table.types import DataTypes
from rayflink.table.udf import AsyncScalarFunction, udf
from rayflink.testing import MAX_WATERMARK, OperatorHarness, end, rec, verify, wm
from rayflink.testing.elements import columns

BIGINT = DataTypes.BIGINT()
N = Column(BIGINT, 0, "n")
SCHEMA = pa.schema([("n", pa.int64()), ("r", pa.int64())])


async def doubled(n):
    """Take the longer the smaller the number is."""
    for _ in range(9 - n % 10):
        await asyncio.sleep(0)
    return 2 * n


def calc(function=doubled, twice=False, condition=None, **settings):
    """Return what makes an operator: SELECT n, f(n) or f(f(n)) WHERE condition of f(n)."""
    function = udf(function, result_type=BIGINT, name="f").registered("F")
    call = Call(BIGINT, function, (N,))
    result = Call(BIGINT, function, (call,)) if twice else call
    condition = None if condition is None else condition(call)
    steps = async_steps(condition, (N, result), 1)
    settings = AsyncCallSettings(**settings)
    return lambda: AsyncCalcOperator(steps, SCHEMA, Session(), settings, settings)


def batch(*numbers, kinds=None):
    data = pa.record_batch({"n": pa.array(numbers, pa.int64())})
    return columns(ArrowBatch(data if kinds is None else with_kinds(data, [kind.value for kind in kinds])))


def out(n, result):
    return rec(Row("n", "r")(n, result))


def over_four(call):
    return Call(DataTypes.BOOLEAN(), named(">"), (call, Literal(BIGINT, 4)))


@pytest.mark.parametrize("most_calls", [1, 3])
def test_rows_and_watermarks_keep_their_order_under_every_hardship(most_calls):
    verify(
        calc(twice=True, condition=over_four, most_calls=most_calls),
        [batch(4, 1, 3, 2, 7), wm(3), batch(9, 0, 5), end()],
        [out(4, 16), out(3, 12), out(7, 28), wm(3), out(9, 36), out(5, 20), MAX_WATERMARK],
    )


def results(operator, *numbers, kinds=None):
    with OperatorHarness(operator) as harness:
        data = pa.record_batch({"n": pa.array(numbers, pa.int64())})
        harness.process_batch(ArrowBatch(data if kinds is None else with_kinds(data, [k.value for k in kinds])))
        harness.end_input()
        return harness.output_values()


def test_changes_keep_their_kinds_where_some_are_dropped():
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    rows = results(calc(condition=over_four, most_calls=2), 1, 3, 4, 5, kinds=kinds)
    assert [(row.get_row_kind(), *row) for row in rows] == [
        (RowKind.UPDATE_BEFORE, 3, 6), (RowKind.UPDATE_AFTER, 4, 8), (RowKind.DELETE, 5, 10),
    ]  # fmt: skip


def test_at_most_so_many_calls_are_under_way_and_a_snapshot_holds_rows_alone():
    under_way, most = set(), 0

    async def watched(n):
        nonlocal most
        under_way.add(n)
        most = max(most, len(under_way))
        await asyncio.sleep(0.01)
        under_way.discard(n)
        return n

    with OperatorHarness(calc(watched, most_calls=3)) as harness:
        harness.process_batch(ArrowBatch(pa.record_batch({"n": pa.array(range(10_000), pa.int64())}).slice(0, 20)))
        assert len(under_way) == 3
        [[snapshot]] = harness.snapshot().values()
        [(_, entries)] = snapshot.lists.values()
        assert sum(map(len, entries)) < 20_000  # not the batch of which they are a part
        harness.end_input()
        assert [tuple(row) for row in harness.output_values()] == [(n, n) for n in range(20)] and most == 3


def test_a_call_is_repeated_and_one_that_fails_in_the_end_is_named():
    class Fails(AsyncScalarFunction):
        async def open(self, function_context):
            self.left = {1: 2, 2: 9}

        async def eval(self, n):
            if self.left.get(n, 0):
                self.left[n] -= 1
                raise ConnectionError("the server is away")
            return n

    assert [tuple(row) for row in results(calc(Fails(), retries=2), 0, 1)] == [(0, 0), (1, 1)]
    with pytest.raises(UserCodeError, match=r"failed in function F on record \(2,\): ConnectionError: the server"):
        results(calc(Fails(), retries=2), 0, 1, 2)


def test_a_failure_cancels_the_calls_that_are_under_way_and_those_that_wait():
    ended = []

    class Kernel:
        name = "F"

        async def answer(self, args):
            if args == (0,):
                raise ConnectionError("the server is away")
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(args[0])

    async def failure():
        settings = AsyncCallSettings(most_calls=3, retries=0)
        answers = AsyncAnswers([Kernel()], settings, settings, MetricGroup())
        failure = await answers.answers([WantedCalls(Kernel(), [(1,), (2,), (0,), (3,)])])
        return failure.args, asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(failure()) == ((0,), set()) and {1, 2} <= {*ended} <= {1, 2, 3}


def test_a_call_that_takes_too_long_fails_with_its_input():
    async def forever(n):
        await asyncio.Event().wait()

    with pytest.raises(UserCodeError, match=r"has timed out for input: \[7\].*async-scalar.timeout"):
        results(calc(forever, timeout_ms=50), 7)


def test_a_function_that_gives_nothing_to_await_is_refused():
    class Sync(AsyncScalarFunction):
        def eval(self, n):
            return n

    with pytest.raises(UserCodeError, match="function F returned int, which cannot be awaited"):
        results(calc(Sync(), retries=0), 7)
