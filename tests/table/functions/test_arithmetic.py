"""Operators on numbers, against Java's arithmetic."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.types import DataType, DataTypes
from tests.table.functions.calling import RowError, column, constant, one, result, resulting, same

TINYINT, SMALLINT, INT, BIGINT = DataTypes.TINYINT(), DataTypes.SMALLINT(), DataTypes.INT(), DataTypes.BIGINT()
BITS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
D = Decimal


def wrapped(value: int, bits: int) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def whole_numbers(kind: DataType) -> st.SearchStrategy[int | None]:
    half = 2 ** (BITS[kind] - 1)
    return st.none() | st.integers(-3, 3) | st.integers(-half, half - 1) | st.sampled_from([-half, half - 1])


@st.composite
def two_columns(draw: st.DrawFn) -> tuple[DataType, DataType, list[tuple[int | None, int | None]]]:
    left, right = draw(st.sampled_from(list(BITS))), draw(st.sampled_from(list(BITS)))
    return left, right, draw(st.lists(st.tuples(whole_numbers(left), whole_numbers(right)), min_size=1, max_size=8))


@pytest.mark.slow
@given(two_columns())
@settings(max_examples=60, deadline=None)
def test_whole_numbers_are_those_of_java(drawn):
    left, right, rows = drawn
    wide = max(BITS[left], BITS[right])
    a, b = column(left, *[row[0] for row in rows]), column(right, *[row[1] for row in rows])
    for name, operation in (("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__)):
        expected = [None if x is None or y is None else wrapped(operation(x, y), wide) for x, y in rows]
        assert result(name, a, b) == expected
    by = [(x, None if y == 0 else y) for x, y in rows]
    divisor = column(right, *[y for _, y in by])
    expected = [None if x is None or y is None else wrapped(quotient(x, y), wide) for x, y in by]
    assert result("/", a, divisor) == expected
    expected = [None if x is None or y is None else x - quotient(x, y) * y for x, y in by]
    assert result("%", a, divisor) == expected
    assert result("negate", a) == [None if x is None else wrapped(-x, BITS[left]) for x, _ in rows]


@pytest.mark.parametrize(
    ("left", "right", "name", "expected"),
    [
        (INT, BIGINT, "+", "BIGINT"),
        (TINYINT, TINYINT, "*", "TINYINT"),
        (INT, INT, "/", "INT"),
        (BIGINT, TINYINT, "%", "TINYINT"),
        (INT, DataTypes.DECIMAL(10, 2), "+", "DECIMAL(13, 2)"),
        (DataTypes.DECIMAL(10, 2), DataTypes.DECIMAL(10, 2), "*", "DECIMAL(21, 4)"),
        (DataTypes.DECIMAL(10, 2), DataTypes.DECIMAL(10, 2), "/", "DECIMAL(23, 13)"),
        (DataTypes.DECIMAL(38, 18), DataTypes.DECIMAL(38, 18), "*", "DECIMAL(38, 6)"),
        (DataTypes.FLOAT(), INT, "+", "FLOAT"),
        (DataTypes.FLOAT(), DataTypes.DECIMAL(5, 2), "+", "DOUBLE"),
    ],
)
def test_types_of_results(left, right, name, expected):
    assert str(resulting(name, column(left), column(right))) == expected


def test_a_result_may_be_null_where_an_argument_may():
    assert resulting("+", 1, 2) == INT.not_null()
    assert resulting("+", 1, column(INT)) == INT
    assert resulting("+", 1, None) == INT
    assert one("+", 1, None) is None
    assert result("*", column(INT, 1, 2), None) == [None, None]


def test_the_expected_value_is_reported():
    assert resulting("+", 1, "a") == "a number, a number; or a time and an interval, or two intervals of one kind"


@pytest.mark.parametrize("name", ["/", "%", "MOD"])
def test_by_zero(name):
    for kind in (INT, BIGINT, DataTypes.DECIMAL(10, 2), DataTypes.DECIMAL(38, 10)):
        with pytest.raises(RowError, match="division by zero; divide by NULLIF"):
            result(name, column(kind, 1, 2), column(kind, 1, 0))
        assert result(name, column(kind, None, 2), column(kind, 0, None)) == [None, None]


def test_floating_points_are_those_of_java():
    doubles = column(DataTypes.DOUBLE(), 1.0, -1.0, 0.0, 7.5, None)
    divisors = column(DataTypes.DOUBLE(), 0.0, 0.0, 0.0, 2.0, 1.0)
    assert same(result("/", doubles, divisors), [math.inf, -math.inf, math.nan, 3.75, None])
    assert same(result("%", doubles, divisors), [math.nan, math.nan, math.nan, 1.5, None])
    assert one("%", constant(DataTypes.DOUBLE(), -7.5), constant(DataTypes.DOUBLE(), 2.0)) == -1.5


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal | None]:
    most = 10**precision - 1
    return st.none() | (st.integers(-most, most) | st.integers(-9, 9)).map(
        lambda n: D(n).scaleb(-scale, Context(prec=99))
    )


@st.composite
def two_decimals(draw: st.DrawFn) -> tuple[DataType, DataType, list[tuple[Decimal | None, Decimal | None]]]:
    kinds = []
    for _ in range(2):
        precision = draw(st.sampled_from([1, 4, 10, 18, 25, 38]))
        kinds.append(DataTypes.DECIMAL(precision, draw(st.integers(0, precision))))
    pairs = st.tuples(*[decimals(kind.precision, kind.scale) for kind in kinds])
    return kinds[0], kinds[1], draw(st.lists(pairs, min_size=1, max_size=6))


def fitting(value: Decimal, kind: DataType) -> Decimal | None:
    found = value.quantize(D(1).scaleb(-kind.scale), ROUND_HALF_UP, Context(prec=999))
    return found if abs(found) < D(10) ** (kind.precision - kind.scale) else None


@pytest.mark.slow
@given(two_decimals())
@settings(max_examples=80, deadline=None)
def test_decimals_are_rounded_half_up_and_null_where_they_do_not_fit(drawn):
    left, right, rows = drawn
    exact = Context(prec=300)
    for name, operation in (
        ("+", exact.add),
        ("-", exact.subtract),
        ("*", exact.multiply),
        ("/", exact.divide),
        ("%", exact.remainder),
    ):
        pairs = [(x, None if y == 0 and name in "/%" else y) for x, y in rows]
        kind = resulting(name, column(left), column(right))
        assert isinstance(kind, DataType)
        expected = [None if x is None or y is None else fitting(operation(x, y), kind) for x, y in pairs]
        a, b = column(left, *[x for x, _ in pairs]), column(right, *[y for _, y in pairs])
        assert result(name, a, b) == expected, (name, kind, pairs)
