"""Lookup joins under every hardship, beside a model that goes row by row, and what they do when a table fails."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row
from rayflink.connectors.lookup_cache import LookupCache
from rayflink.operators.base import UserCodeError
from rayflink.table.conversion.arrow_columns import arrow_schema
from rayflink.table.plan.joins import JoinKind, joined_schema
from rayflink.table.plan.logical import Attribute
from rayflink.table.plan.typed import Call, Column, Session, named
from rayflink.table.runtime.joins.join_rows import JoinSide, JoinSpec
from rayflink.table.runtime.lookups.lookup_calls import LookupCalls, LookupSettings
from rayflink.table.runtime.lookups.lookup_function import LookupFailed, LookupFunction, LookupRows, TableLookup
from rayflink.table.runtime.lookups.lookup_join import LookupJoinOperator, LookupSpec
from rayflink.table.types import DataTypes
from rayflink.testing import OperatorHarness, rec, verify, wm
from rayflink.testing.elements import columns

BIGINT = DataTypes.BIGINT()
LEFT = (Attribute("n", BIGINT), Attribute("k", BIGINT))
RIGHT = (Attribute("id", BIGINT), Attribute("v", BIGINT))
PLACES = {1: [10], 2: [20, 21], 5: [50, 51, 52]}
"""The rows of the table, by key."""


class Places(LookupFunction):
    """Finds rows in `PLACES`; fails as often as it is asked to, then answers.

    Args:
        failures: of calls before the first that succeeds.
        has_positions: rows come with the numbers of their keys; else they are found by their key column.
    """

    blocks = False

    def __init__(self, failures: int = 0, has_positions: bool = True, rows: dict[int, list[int]] | None = None) -> None:
        self.failures, self.has_positions = failures, has_positions
        self.rows = PLACES if rows is None else rows
        self.calls: list[list[int]] = []

    def look_up(self, keys: pa.RecordBatch) -> LookupRows:
        asked = keys.column("id").to_pylist()
        self.calls.append(asked)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the server is away")
        pairs = [(key, place, value) for place, key in enumerate(asked) for value in self.rows.get(key, ())][::-1]
        rows = pa.table({
            "v": pa.array([value for _, _, value in pairs], pa.int64()),
            "id": pa.array([key for key, _, _ in pairs], pa.int64()),
        })  # fmt: skip
        return LookupRows(rows, np.array([place for _, place, _ in pairs], np.int64) if self.has_positions else None)


class AwaitedPlaces(Places):
    """Awaits before each answer, the longer the smaller the first key is."""

    async def look_up(self, keys: pa.RecordBatch) -> LookupRows:  # type: ignore[override]
        for _ in range(10 - keys.column("id")[0].as_py()):
            await asyncio.sleep(0)
        return super().look_up(keys)


class WaitingPlaces(Places):
    """Answers all calls when a number of them was made.

    Args:
        wanted: that number.
    """

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self._wanted = wanted
        self._ready: asyncio.Event | None = None

    async def look_up(self, keys: pa.RecordBatch) -> LookupRows:  # type: ignore[override]
        answer = super().look_up(keys)
        self._ready = self._ready or asyncio.Event()
        if len(self.calls) >= self._wanted:
            self._ready.set()
        await self._ready.wait()
        return answer


ONE_BY_ONE, SLOW = LookupSettings(), LookupSettings(capacity=4)


def operator(
    function: LookupFunction, kind: JoinKind = JoinKind.LEFT, condition: Any = None, cache: LookupCache | None = None,
    settings: LookupSettings = ONE_BY_ONE, retries: int = 3,
) -> LookupJoinOperator:  # fmt: skip
    exprs = tuple(Column(column.type, index, column.name) for index, column in enumerate(RIGHT))
    left, right = (JoinSide(arrow_schema(schema), (), ()) for schema in (LEFT, RIGHT))
    join = JoinSpec(kind, left, right, (), condition, arrow_schema(joined_schema(LEFT, RIGHT, kind)), Session())
    lookup = TableLookup(function, cache, retries)
    keys = arrow_schema(RIGHT[:1])
    return LookupJoinOperator(
        LookupSpec("places", lookup, settings, keys, (Column(BIGINT, 1, "k"),), right.schema, None, exprs, join)
    )


def batch(*rows: tuple[int, int | None]) -> pa.RecordBatch:
    arrays = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["n", "k"])


def out(*values: int | None) -> Any:
    return rec(Row("n", "k", "id", "v")(*values))


def rows_of(operator: LookupJoinOperator, *batches: pa.RecordBatch) -> list[tuple[int | None, ...]]:
    harness = OperatorHarness(lambda: operator)
    for data in batches:
        harness.process_batch(ArrowBatch(data))
    harness.end_input()
    return [tuple(row) for row in harness.output_values()]


@pytest.mark.parametrize("function", [Places, AwaitedPlaces])
def test_rows_and_watermarks_are_the_same_under_every_hardship(function):
    verify(
        lambda: operator(function(), settings=SLOW),
        elements=[columns(ArrowBatch(batch((0, 2), (1, None), (2, 1)))), wm(3),
               columns(ArrowBatch(batch((3, 9), (4, 5))))],
        then=[out(0, 2, 2, 21), out(0, 2, 2, 20), out(1, None, None, None), out(2, 1, 1, 10), wm(3),
              out(3, 9, None, None), out(4, 5, 5, 52), out(4, 5, 5, 51), out(4, 5, 5, 50)],
    )  # fmt: skip


@pytest.mark.spec("R26", "kinds")
def test_inner_joins_drop_rows_without_partners_and_conditions_count():
    given_rows = batch((0, 2), (1, None), (2, 1), (30, 5))
    assert rows_of(operator(Places(), JoinKind.INNER), given_rows) == [
        (0, 2, 2, 21), (0, 2, 2, 20), (2, 1, 1, 10), (30, 5, 5, 52), (30, 5, 5, 51), (30, 5, 5, 50),
    ]  # fmt: skip
    is_less = Call(DataTypes.BOOLEAN(), named("<"), (Column(BIGINT, 0, "n"), Column(BIGINT, 3, "v")))
    kept = operator(Places(), JoinKind.LEFT, is_less)
    assert rows_of(kept, batch((20, 2), (10, 1), (7, None), (51, 5))) == [
        (20, 2, 2, 21), (10, 1, None, None), (7, None, None, None), (51, 5, 5, 52),
    ]  # fmt: skip


def test_changes_of_rows_keep_their_kinds():
    kinds = np.array([0, 1, 2, 3], np.int8)
    harness = OperatorHarness(lambda: operator(Places()))
    harness.process_batch(ArrowBatch(with_kinds(batch((0, 1), (1, 2), (2, 1), (3, 9)), kinds)))
    assert [row.get_row_kind().value for row in harness.output_values()] == [0, 1, 1, 2, 3]


def test_distinct_keys_of_a_batch_are_asked_for_once_and_null_never():
    function = Places()
    rows_of(operator(function), batch(*((n, n % 3 or None) for n in range(100))), batch((0, None)))
    assert [sorted(call) for call in function.calls] == [[1, 2]]


def test_a_table_that_is_away_is_asked_again_and_then_the_job_fails():
    function = Places(failures=3)
    assert rows_of(operator(function, JoinKind.INNER), batch((0, 1))) == [(0, 1, 1, 10)]
    assert function.calls == [[1]] * 4
    with pytest.raises(UserCodeError) as caught:
        rows_of(operator(Places(failures=9), retries=1), batch((0, 1), (1, 2)))
    message = str(caught.value)
    assert "the lookup in places" in message and "id=1, the first of 2 keys" in message
    assert "in 2 tries: " in message and "the server is away" in message and "lookup.max-retries" in message


def test_a_key_that_is_under_way_is_not_asked_for_again():
    function = WaitingPlaces(2)
    joined = operator(function, cache=LookupCache(100), settings=SLOW)
    assert rows_of(joined, batch((0, 1), (1, 2)), batch((2, 2), (3, 5), (4, 1))) == [
        (0, 1, 1, 10), (1, 2, 2, 21), (1, 2, 2, 20), (2, 2, 2, 21), (2, 2, 2, 20), (3, 5, 5, 52), (3, 5, 5, 51),
        (3, 5, 5, 50), (4, 1, 1, 10),
    ]  # fmt: skip
    assert sorted(map(sorted, function.calls)) == [[1, 2], [5]]


@pytest.mark.spec("R26", "requests")
def test_requests_under_way_are_in_the_checkpoint_and_are_asked_again():
    first = OperatorHarness(lambda: operator(WaitingPlaces(9), settings=SLOW))
    first.process_batch(ArrowBatch(batch((0, 1), (1, 9))))
    first.advance_watermark(5)
    first.process_batch(ArrowBatch(batch((2, 5))))
    snapshot = first.snapshot()
    assert first.take() == []
    second = first.restore(lambda: operator(Places(), JoinKind.INNER), snapshot)
    second.end_input()
    assert second.output == [out(0, 1, 1, 10), wm(5), out(2, 5, 5, 52), out(2, 5, 5, 51), out(2, 5, 5, 50),
                               wm(2**63 - 1)]  # fmt: skip


def test_other_errors_fail_at_once():
    class Broken(Places):
        def look_up(self, keys: pa.RecordBatch) -> LookupRows:
            self.calls.append([])
            raise ZeroDivisionError("of the function")

    function = Broken()
    with pytest.raises(UserCodeError, match="the lookup in places failed: ZeroDivisionError: of the function"):
        rows_of(operator(function), batch((0, 1)))
    assert len(function.calls) == 1


def test_a_function_that_ends_an_iteration_fails_the_job():
    class Blocking(Places):
        blocks = True

        def look_up(self, keys: pa.RecordBatch) -> LookupRows:
            return next(iter(()))

    schemas = arrow_schema(RIGHT[:1]), arrow_schema(RIGHT)
    calls = LookupCalls("places", TableLookup(Blocking()), *schemas, LookupSettings(timeout_ms=2000), True)
    calls.open(SimpleNamespace(get_metrics_group=MetricGroup), lambda: 0)
    with pytest.raises(LookupFailed, match="the lookup in places failed: RuntimeError: StopIteration, perhaps of next"):
        asyncio.run(calls.find([pa.array([1], pa.int64())]))
    calls.close()


def test_a_request_that_takes_too_long_fails():
    with pytest.raises(UserCodeError, match="longer than 20 ms; raise 'timeout' of the hint LOOKUP"):
        rows_of(operator(WaitingPlaces(9), settings=LookupSettings(timeout_ms=20)), batch((0, 1)))


def test_missing_keys_are_asked_for_again():
    class Late(Places):
        def look_up(self, keys: pa.RecordBatch) -> LookupRows:
            answer = super().look_up(keys)
            if len(self.calls) == 2:
                self.rows = {**self.rows, 9: [90]}
            return answer

    function = Late()
    again = LookupSettings(miss_retries=3, miss_delay_ms=500)
    assert rows_of(operator(function, settings=again), batch((0, 1), (1, 9))) == [(0, 1, 1, 10), (1, 9, 9, 90)]
    assert [sorted(call) for call in function.calls] == [[1, 9], [9], [9]]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (pa.table({"id": [1]}), "have no column 'v', only id; return all columns"),
        (pa.table({"id": [1], "v": ["x"]}), "column 'v' of the lookup in places is string"),
        (LookupRows(pa.table({"id": [1], "v": [2]}), np.array([7])), "numbers of keys for 1 rows"),
        ([1], "returned a list; return LookupRows"),
    ],
)
def test_answers_of_another_form_are_refused(answer, problem):
    class Wrong(Places):
        def look_up(self, keys: pa.RecordBatch) -> LookupRows:
            return LookupRows(answer) if isinstance(answer, pa.Table) else answer

    with pytest.raises(UserCodeError, match=problem):
        rows_of(operator(Wrong()), batch((0, 1)))


ROWS = st.lists(st.tuples(st.integers(0, 99), st.none() | st.integers(0, 6)), min_size=1, max_size=12)
TABLE = st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 99), max_size=3), max_size=5)


@settings(max_examples=40, deadline=None)
@given(batches=st.lists(ROWS, max_size=3), table=TABLE, is_left=st.booleans(), has_positions=st.booleans(),
       most=st.none() | st.integers(1, 6))  # fmt: skip
def test_rows_are_those_of_a_model(batches, table, is_left, has_positions, most):
    cache = None if most is None else LookupCache(most)
    kind = JoinKind.LEFT if is_left else JoinKind.INNER
    joined = operator(Places(0, has_positions, table), kind, None, cache)
    wanted = [
        (n, k, None if v is None else k, v)
        for rows in batches
        for n, k in rows
        for v in table.get(k, [])[::-1] or ([None] if is_left else [])
    ]
    assert rows_of(joined, *(batch(*rows) for rows in batches)) == wanted
