"""Rows held as columns are the same rows: nothing of a value is lost, and what cannot be held stays rows."""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import RowBatch
from rayflink.common.records.row_columns import Coded, RowColumns, column_of, concatenated, fields_of, in_use, objects


class Color(str, enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


plain = {
    str: st.text(max_size=3),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(),
    bool: st.booleans(),
}


@st.composite
def rows(draw: Any, least: int = 1) -> list[Any]:
    kinds = draw(st.lists(st.sampled_from(list(plain)), min_size=1, max_size=4))
    return draw(st.lists(st.tuples(*(plain[kind] for kind in kinds)), min_size=least, max_size=9))


def columns_of(values: list[Any]) -> list[Any] | None:
    fields = fields_of(values)
    if fields is None:
        return None
    columns = [column_of(field, kind) for field, kind in zip(fields.values, fields.kinds, strict=True)]
    return None if any(column is None for column in columns) else columns


def held(values: list[Any], stamps: list[int] | None = None) -> RowColumns:
    columns = columns_of(values)
    assert columns is not None
    return RowColumns(columns, None if stamps is None else np.array(stamps, np.int64))


def exactly(values: list[Any]) -> list[Any]:
    """Values with their types, floats by their bits."""
    return [[(type(part), repr(part)) for part in value] for value in values]


@given(rows())
def test_the_rows_come_back_value_by_value_and_type_by_type(values: list[Any]) -> None:
    assert exactly(held(values).values) == exactly(values)


@given(rows(), st.data())
def test_slices_and_chosen_rows_are_those_of_the_list(values: list[Any], data: Any) -> None:
    stamps = list(range(100, 100 + len(values)))
    batch = held(values, stamps)
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    part = batch.slice(start, stop)
    assert (len(part), exactly(part.values), part.timestamps) == (
        stop - start, exactly(values[start:stop]), stamps[start:stop],
    )  # fmt: skip
    chosen = data.draw(st.lists(st.integers(0, len(values) - 1)))
    part = batch.take(np.array(chosen, np.int64))
    assert exactly(part.values) == exactly([values[index] for index in chosen])
    assert part.timestamps == [stamps[index] for index in chosen]


@given(rows(least=2), st.data())
def test_parts_put_together_are_the_whole(values: list[Any], data: Any) -> None:
    cut = data.draw(st.integers(1, len(values) - 1))
    first, second = held(values[:cut]), held(values[cut:])
    assert first.is_like(second)
    assert exactly(concatenated([first, second]).values) == exactly(values)


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["text"],
        [()],
        [("a", 1), ("a", True)],
        [("a", 1), ("a", 1.0)],
        [("a", 1), ("a",)],
        [("a",), ("a", 1)],
        [("a", 1), ["a", 1]],
        [("a", 1), "a1"],
        [(Color.RED, 1), (Color.RED, 1)],
        [("red", 1), (Color.RED, 1)],
        [("a", None)],
        [("a", 1), ("a", None)],
        [("a", 1), ("a", object())],
        [("a", 1), ("a", np.int64(1)), ("a", None), ("a", None)],
        [("a", 1.0), ("a", 1)],
        [("a", True), ("a", 1)],
        [("a", np.int64(1))],
        [("a", [1])],
        [Point(1, 2), Point(1, 2)],
        [(1, 2), Point(1, 2)],
    ],
)
def test_rows_that_columns_would_change_stay_rows(values: list[Any]) -> None:
    assert columns_of(values) is None


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
@pytest.mark.parametrize("others", [(), (1,)])
def test_whole_numbers_beyond_64_bits_are_no_column(number: int, others: tuple[int, ...]) -> None:
    assert column_of((number, *others), int) is None


def test_floats_keep_their_bits() -> None:
    values = [(0.0,), (-0.0,), (math.inf,), (-math.inf,), (math.nan,)]
    assert exactly(held(values).values) == exactly(values)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1), st.integers(0, 1000))
def test_a_table_is_cut_down_to_what_occurs(texts: list[str], idle: int) -> None:
    table = [f"idle {i}" for i in range(idle)] + list("abcdefgh")
    column = Coded(table, np.array([table.index(text) for text in texts], np.uint16))
    found, places = in_use(column)
    assert sorted(found) == sorted(set(texts))
    assert objects(Coded(found, places)) == texts == objects(column)


def test_only_columns_of_one_form_go_behind_each_other() -> None:
    table, codes = ["a"], np.zeros(2, np.uint16)
    base = RowColumns([Coded(table, codes), np.arange(2)], None, 0)
    assert base.is_like(RowColumns([Coded(table, codes), np.arange(2)], None, 0))
    for other in (
        RowColumns([Coded(["a"], codes), np.arange(2)], None, 0),
        RowColumns([Coded(table, codes), np.arange(2.0)], None, 0),
        RowColumns([Coded(table, codes), ["x", "y"]], None, 0),
        RowColumns([["a", "a"], np.arange(2)], None, 0),
        RowColumns([Coded(table, codes)], None, 0),
        RowColumns([Coded(table, codes), np.arange(2)], np.arange(2), 0),
        RowColumns([Coded(table, codes), np.arange(2)], None, None),
        RowBatch([("a", 0), ("a", 1)]),
    ):
        assert not base.is_like(other)
        assert not (isinstance(other, RowColumns) and other.is_like(base))


def test_a_batch_is_equal_to_the_same_rows_however_they_are_held() -> None:
    values = [("a", 1), ("b", 2)]
    assert held(values) == RowBatch(values)
    assert held(values, [1, 2]) == RowBatch(values, [1, 2])
    assert held(values, [1, 2]) != RowBatch(values)
    assert repr(held(values)) == repr(RowBatch(values))


def test_rows_are_made_once() -> None:
    batch = held([("a", 1)], [7])
    assert batch.values is batch.values
    assert batch.timestamps is batch.timestamps


odd = st.sampled_from([True, None, 1.0, "i", b"i" * 9, np.int64(1)])


@given(st.lists(st.one_of(st.integers(-(2**33), 2**33), odd)))
def test_numbers_are_told_from_all_else_by_their_bytes(values: list[Any]) -> None:
    column = column_of(tuple(values), int)
    if {*map(type, values)} == {int}:
        assert column is not None and objects(column) == values
    elif values:
        assert column is None
