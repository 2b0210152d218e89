"""Operators that compare."""

from __future__ import annotations

import datetime
import itertools
import math
from decimal import Decimal

import pytest

from rayflink.table.types import DataTypes
from tests.table.functions.calling import BIGINT, BOOLEAN, DOUBLE, INT, STRING, column, one, result, resulting

SIGNS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
VALUES = [
    (INT, [1, 2, -5]),
    (BIGINT, [2**40, 1, -(2**62)]),
    (DOUBLE, [0.5, -0.0, 0.0, math.inf, math.nan, 1.0]),
    (DataTypes.DECIMAL(10, 2), [Decimal("1.00"), Decimal("0.99"), Decimal("-5.01")]),
    (DataTypes.DECIMAL(38, 0), [Decimal(10**38 - 1), Decimal(1), Decimal(-(10**38) + 1)]),
]


@pytest.mark.parametrize("sign", SIGNS)
def test_numbers_of_all_types_are_compared(sign):
    for (left, some), (right, others) in itertools.product(VALUES, VALUES):
        pairs = [*itertools.product(some, others), (None, others[0]), (some[0], None)]
        known = float if DOUBLE in (left, right) else Decimal
        expected = [None if None in pair else SIGNS[sign](*map(known, pair)) for pair in pairs]
        assert result(sign, column(left, *[a for a, _ in pairs]), column(right, *[b for _, b in pairs])) == expected


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (STRING, ["", "a", "A", "ab", "ä", "\U0001f600", "\uffee"]),
        (BOOLEAN, [False, True]),
        (DataTypes.BYTES(), [b"", b"\xff", b"a"]),
        (DataTypes.DATE(), [datetime.date(2020, 1, 1), datetime.date(1969, 1, 1)]),
        (DataTypes.TIME(3), [datetime.time(1), datetime.time(23, 59, 59, 999000)]),
        (DataTypes.TIMESTAMP(3), [datetime.datetime(2020, 1, 1), datetime.datetime(1950, 1, 1, 1, 1, 1, 1000)]),
        (DataTypes.INTERVAL_DAY_TIME(), [datetime.timedelta(days=1), datetime.timedelta(hours=1)]),
        (DataTypes.INTERVAL_YEAR_MONTH(), [13, -1]),
    ],
)
def test_other_values_are_compared(sign, kind, values):
    pairs = [*itertools.product(values, values), (None, values[0]), (values[0], None)]
    expected = [None if a is None or b is None else SIGNS[sign](a, b) for a, b in pairs]
    assert result(sign, column(kind, *[a for a, _ in pairs]), column(kind, *[b for _, b in pairs])) == expected


def test_arrays_maps_and_rows_are_equal_or_not():
    arrays = DataTypes.ARRAY(INT)
    left = column(arrays, [1, None], [1], None, [], [2, 3])
    right = column(arrays, [1, None], [1, 2], [1], [], [2, 4])
    assert result("=", left, right) == [True, False, None, True, False]
    assert result("<>", left, right) == [False, True, None, False, True]
    rows = DataTypes.ROW([("a", INT), ("b", arrays)])
    left = column(rows, {"a": 1, "b": [1]}, {"a": None, "b": None}, {"a": 1, "b": [2]}, None)
    right = column(rows, {"a": 1, "b": [1]}, {"a": None, "b": None}, {"a": 1, "b": [3]}, {"a": 1, "b": [1]})
    assert result("=", left, right) == [True, True, False, None]
    maps = DataTypes.MAP(STRING, INT)
    left = column(maps, [("a", 1), ("b", None)], [("a", 1)], [], None)
    right = column(maps, [("b", None), ("a", 1)], [("a", 2)], [], [])
    assert result("=", left, right) == [True, False, True, None]
    assert resulting("<", left, right) == "two values with an order: numbers, strings, times, truth values"


def test_a_text_beside_a_time_is_read_as_one():
    assert resulting("=", 1, "1") == "two values of one kind: numbers, strings, times, truth values"


def test_null_is_distinguished():
    assert result("IS NULL", column(INT, 1, None)) == [False, True]
    assert result("IS NOT NULL", column(STRING, "", None)) == [True, False]
    assert one("IS NULL", None) is True
    left, right = column(INT, 1, 1, None, None), column(INT, 1, 2, 1, None)
    assert result("IS DISTINCT FROM", left, right) == [False, True, True, False]
    assert result("IS NOT DISTINCT FROM", left, right) == [True, False, False, True]
    assert resulting("IS DISTINCT FROM", left, right) == BOOLEAN.not_null()


def test_in_a_list():
    assert result("IN", column(INT, 4, 1, None), 1, 2, 3) == [False, True, None]
    assert result("IN", column(INT, 4, 1, None), 1, 2, None) == [None, True, None]
    assert result("IN", column(BIGINT, 4, 2**40), 4.0, 1) == [True, False]
    assert result("IN", column(STRING, "a", "b"), column(STRING, "a", "a"), "c") == [True, False]
    assert result("IN", column(DOUBLE, math.nan, -0.0, 1.0), math.nan, 0.0) == [False, True, False]
    assert result("IN", column(DataTypes.ARRAY(INT), [1], [2], None), column(DataTypes.ARRAY(INT), [1], [1], [1])) == [
        True,
        False,
        None,
    ]
    assert resulting("IN", 1, "a") == "a value and values of its kind"


def test_the_greatest_and_the_least():
    assert result("GREATEST", column(INT, 1, 5, None), 3) == [3, 5, None]
    assert result("LEAST", column(INT, 1, 5, None), 3, column(BIGINT, 0, 9, 9)) == [0, 3, None]
    assert result("LEAST", column(STRING, "b", "a"), "ab") == ["ab", "a"]
    assert one("GREATEST", True, False) is True
    assert one("GREATEST", 1, column(DataTypes.DECIMAL(3, 1), Decimal("2.5"))) == Decimal("2.5")
    assert resulting("GREATEST", 1, "a") == "values with one order: numbers, strings or times"
