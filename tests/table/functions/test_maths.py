"""Functions of numbers in columns, with DuckDB as the oracle where its meaning is the same."""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

import duckdb
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.types import DataTypes
from tests.table.functions.calling import BIGINT, DOUBLE, INT, STRING, column, one, result, resulting, same

NUMBERS = st.none() | st.floats(-50, 50).map(lambda one: round(one, 3)) | st.sampled_from([0.0, 1.0, -1.0])


def near(found, expected):
    pairs = zip(found, expected, strict=True)
    return all(a is b or None not in (a, b) and math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) for a, b in pairs)


def by_duckdb(query, **columns):
    given_table = pyarrow.table({name: pyarrow.array(one.values, one.kind.to_arrow()) for name, one in columns.items()})
    assert len(given_table)
    return [row[0] for row in duckdb.sql(f"SELECT {query} FROM given_table").fetchall()]


@pytest.mark.slow
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_functions_of_floating_points(rows):
    a, b = column(DOUBLE, *[row[0] for row in rows]), column(DOUBLE, *[row[1] for row in rows])
    for name, query in (
        ("SIN", "sin(a)"),
        ("COS", "cos(a)"),
        ("TAN", "tan(a)"),
        ("ATAN", "atan(a)"),
        ("SINH", "sinh(a)"),
        ("COSH", "cosh(a)"),
        ("TANH", "tanh(a)"),
        ("EXP", "exp(a)"),
        ("DEGREES", "degrees(a)"),
        ("RADIANS", "radians(a)"),
        ("ABS", "abs(a)"),
        ("CEIL", "ceil(a)"),
        ("FLOOR", "floor(a)"),
        ("SIGN", "sign(a)"),
    ):
        assert near(result(name, a), by_duckdb(query, a=a)), name
    assert near(result("ATAN2", a, b), by_duckdb("atan2(a, b)", a=a, b=b))
    positive = column(DOUBLE, *[None if row[0] is None else abs(row[0]) + 0.5 for row in rows])
    for name, query in (
        ("SQRT", "sqrt(a)"),
        ("LN", "ln(a)"),
        ("LOG10", "log10(a)"),
        ("LOG2", "log2(a)"),
        ("LOG", "ln(a)"),
    ):
        assert near(result(name, positive), by_duckdb(query, a=positive)), name
    small = column(DOUBLE, *[None if row[0] is None else row[0] / 50 for row in rows])
    assert near(result("ASIN", small), by_duckdb("asin(a)", a=small))
    assert near(result("ACOS", small), by_duckdb("acos(a)", a=small))


def test_beyond_their_bounds():
    assert same(result("SQRT", column(DOUBLE, -1.0)), [math.nan])
    assert same(result("LN", column(DOUBLE, 0.0, -1.0)), [-math.inf, math.nan])
    assert result("COT", column(DOUBLE, 0.0)) == [math.inf]
    assert result("POWER", column(INT, 2, None), column(INT, 10, 1)) == [1024.0, None]
    assert result("LOG", column(DOUBLE, 2.0), column(DOUBLE, 8.0)) == [3.0]
    assert (one("PI"), one("E")) == (math.pi, math.e)


@pytest.mark.slow
@given(st.lists(st.none() | st.integers(-(10**9), 10**9), min_size=1, max_size=6), st.integers(-4, 6))
@settings(max_examples=60, deadline=None)
def test_rounding(numbers, digits):
    kind = DataTypes.DECIMAL(12, 4)
    values = [None if number is None else Decimal(number).scaleb(-4) for number in numbers]
    quantum = Decimal(1).scaleb(-min(digits, 4))

    def rounded(mode):
        return [None if value is None else value.quantize(quantum, mode) for value in values]

    assert result("ROUND", column(kind, *values), digits) == rounded(ROUND_HALF_UP)
    assert result("TRUNCATE", column(kind, *values), digits) == rounded(ROUND_DOWN)
    floats = [None if value is None else float(value) for value in values]
    expected = [None if value is None else float(value) for value in rounded(ROUND_HALF_UP)]
    assert result("ROUND", column(DOUBLE, *floats), digits) == expected


def test_rounding_of_whole_numbers():
    assert result("ROUND", column(INT, 1250, -1250, None), -2) == [1300, -1300, None]
    assert result("ROUND", column(BIGINT, 5), 3) == [5]
    assert result("TRUNCATE", column(INT, 1299), column(INT, -2)) == [1200]
    assert same(result("ROUND", column(DOUBLE, math.nan, 1e300, None), 2), [math.nan, 1e300, None])
    assert resulting("ROUND", column(DataTypes.DECIMAL(10, 4)), 2) == DataTypes.DECIMAL(9, 2)


def test_decimals_up_and_down():
    values = column(DataTypes.DECIMAL(3, 1), Decimal("99.9"), Decimal("-99.9"), Decimal("5.0"), None)
    assert result("CEIL", values) == [100, -99, 5, None]
    assert result("FLOOR", values) == [99, -100, 5, None]
    assert result("SIGN", values) == [1, -1, 1, None]
    assert result("ABS", values) == [Decimal("99.9"), Decimal("99.9"), Decimal("5.0"), None]


def test_other_bases():
    numbers = column(BIGINT, 0, 10, -1, None)
    assert result("BIN", numbers) == ["0", "1010", "1" * 64, None]
    assert result("HEX", numbers) == ["0", "A", "F" * 16, None]
    assert result("HEX", column(STRING, "hä", "", None)) == ["68C3A4", "", None]
    assert result("UNHEX", column(STRING, "68C3a4", "abc", "x", "", None)) == [
        "hä".encode(),
        b"\0\xbc",
        None,
        b"",
        None,
    ]


def test_chance():
    count = 1000
    numbers = column(INT, *range(count))
    some = result("RAND", column(INT, *[None] * count))
    assert len(set(some)) == count and all(0 <= one < 1 for one in some)
    whole = result("RAND_INTEGER", column(INT, *[7] * count))
    assert set(whole) == set(range(7))
    assert one("RAND", 5) == one("RAND", 5)
    assert numbers.values
    name = one("UUID")
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", name)
