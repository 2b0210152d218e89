"""Sums over columns equal sums row by row: results, state and what is left to the rows."""

from __future__ import annotations

import enum
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import Batch, RowBatch
from rayflink.common.records.row_columns import Coded, RowColumns
from rayflink.operators.keyed.rolling import KeyedReduceOperator, KeyedSumOperator, running_sums
from tests.operators.laws import answers, context, flat, snapshot_of, started

number = st.one_of(st.integers(-5, 5), st.integers(-(2**61), 2**61), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**50), 2**50)), min_size=1), st.data())
def test_each_row_gives_the_total_of_its_key_so_far(rows: list[tuple[int, int]], data: Any) -> None:
    keys = list(dict.fromkeys(key for key, _ in rows))
    totals = data.draw(st.lists(st.integers(-(2**50), 2**50), min_size=len(keys), max_size=len(keys)))
    now, expected = list(totals), []
    for key, added in rows:
        now[keys.index(key)] += added
        expected.append(now[keys.index(key)])
    codes = np.array([keys.index(key) for key, _ in rows], np.uint16)
    found = running_sums(codes, np.array([added for _, added in rows]), totals)
    assert found is not None
    assert (found[0].tolist(), found[1]) == (expected, now)


@pytest.mark.parametrize(("added", "total"), [(2**61, 2**61), (-(2**61), -(2**61)), (1, 2**70), (-(2**63), 0)])
def test_totals_that_may_need_more_than_64_bits_are_left_to_python(added: int, total: int) -> None:
    assert running_sums(np.zeros(2, np.uint16), np.array([added, added]), [total]) is None


def columns(rows: list[tuple[str, int]], key_column: int | None = 0) -> RowColumns:
    table = ["idle", *dict.fromkeys(key for key, _ in rows)]
    codes = np.array([table.index(key) for key, _ in rows], np.uint16)
    stamps = np.arange(len(rows), dtype=np.int64)
    return RowColumns([Coded(table, codes), np.array([added for _, added in rows], np.int64)], stamps, key_column)


def as_rows(batch: RowColumns) -> RowBatch:
    return RowBatch(list(batch.values), list(batch.timestamps or ()))


def outcome(batches: list[Batch]) -> Any:
    operator = started(lambda: KeyedSumOperator(itemgetter(0), 1), context())
    out = [answer for batch in batches for answer in flat(answers(operator, batch))]
    rows = [(value, *map(type, value), stamp) for _, value, stamp in out]
    return rows, dict(snapshot_of(operator).keyed)


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), number), min_size=1, max_size=6), max_size=4), st.data())
def test_sums_and_state_are_those_of_rows_whatever_is_held_as_columns(batches: list[Any], data: Any) -> None:
    held = [columns(rows) for rows in batches]
    mixed = [batch if data.draw(st.booleans()) else as_rows(batch) for batch in held]
    assert outcome(list(mixed)) == outcome([as_rows(batch) for batch in held])


class Color(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "first",
    [("red", 1.5), ("red", True), ("red", 10**30), (Color.RED, 1), ("red", [1]), ("red", "text"), ("other", 1)],
)
def test_state_that_is_no_plain_total_is_added_to_as_rows_are(first: Any) -> None:
    def values(second: Batch) -> Any:
        try:
            return outcome([RowBatch([first], [0]), second])
        except Exception as error:
            return type(error), str(error)

    batch = columns([("red", 2), ("red", 3)])
    assert values(batch) == values(as_rows(batch))


@pytest.mark.parametrize(
    "batch",
    [
        columns([("a", 1), ("b", 2)], key_column=None),
        RowColumns([["a", "b"], np.array([1, 2])], None, 0),
        RowColumns([np.array([1, 2]), np.array([3, 4])], None, 0),
        RowColumns([Coded(["a"], np.zeros(2, np.uint16)), np.array([0.1, 0.2])], None, 0),
        RowColumns([Coded(["a"], np.zeros(2, np.uint16)), np.array([1, 2]), np.array([1, 2])], None, 0),
        RowColumns([Coded(["a"], np.zeros(2, np.uint16)), np.array([True, True])], None, 0),
    ],
)
def test_columns_of_other_forms_are_summed_as_rows(batch: RowColumns) -> None:
    rows = RowBatch(list(batch.values), batch.timestamps)
    assert outcome([batch, batch]) == outcome([rows, rows])


def test_a_reduce_of_the_user_takes_keys_from_their_column_and_rows_as_tuples() -> None:
    asked: list[Any] = []
    operator = started(lambda: KeyedReduceOperator(asked.append, lambda old, new: (old[0], old[1] * new[1])), context())
    out = flat(answers(operator, columns([("a", 2), ("b", 5), ("a", 3)])))
    assert [value for _, value, _ in out] == [("a", 2), ("b", 5), ("a", 6)]
    assert asked == [], "the sender has asked the selector"
