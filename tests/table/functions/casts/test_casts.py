"""CAST and TRY_CAST between numbers, strings, truth values and bytes."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from rayflink.table.functions.casts.casts import castable
from rayflink.table.types import DataTypes
from tests.table.functions.calling import BIGINT, BOOLEAN, DOUBLE, INT, STRING, RowError, column, one, result

TINYINT, FLOAT = DataTypes.TINYINT(), DataTypes.FLOAT()


def cast(kind, values, to):
    return result("CAST", column(kind, *values), to=to)


def try_cast(kind, values, to):
    return result("TRY_CAST", column(kind, *values), to=to)


def test_whole_numbers_keep_their_low_bits():
    assert cast(INT, [300, -129, None], TINYINT) == [44, 127, None]
    assert cast(BIGINT, [2**31, -(2**63)], INT) == [-(2**31), 0]
    assert cast(DataTypes.DECIMAL(20, 1), [Decimal("99999999999.9"), Decimal("-1.9")], INT) == [1215752191, -1]


def test_floating_points_are_cut_and_stay_within_bounds():
    values = [1.9, -1.9, 1e30, -1e30, math.nan, math.inf, None]
    assert cast(DOUBLE, values, INT) == [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, None]
    assert cast(DOUBLE, values, BIGINT) == [1, -1, 2**63 - 1, -(2**63), 0, 2**63 - 1, None]
    assert cast(DOUBLE, values, TINYINT) == [1, -1, -1, 0, 0, -1, None]
    assert cast(FLOAT, [0.5, 1e10], INT) == [0, 2**31 - 1]


def test_decimals_are_rounded_half_up_and_null_beyond_their_digits():
    assert cast(DOUBLE, [2.675, 1e9, -0.005, 1e-300, None], DataTypes.DECIMAL(5, 2)) == [
        Decimal("2.68"),
        None,
        Decimal("-0.01"),
        Decimal("0.00"),
        None,
    ]
    assert cast(INT, [12345, 7], DataTypes.DECIMAL(4, 1)) == [None, Decimal("7.0")]
    assert cast(DataTypes.DECIMAL(10, 3), [Decimal("1.005")], DataTypes.DECIMAL(5, 2)) == [Decimal("1.01")]
    assert cast(DataTypes.DECIMAL(10, 3), [Decimal("1.005")], DOUBLE) == [1.005]
    assert cast(BOOLEAN, [True, False, None], DataTypes.DECIMAL(3, 2)) == [Decimal("1.00"), Decimal("0.00"), None]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (12345678.5, "1.23456785E7"),
        (1e10, "1.0E10"),
        (1e22, "1.0E22"),
        (1.5e300, "1.5E300"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e-5, "1.0E-5"),
        (-1.25e-7, "-1.25E-7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (None, None),
    ],
)
def test_floating_points_are_written_as_java_does(value, text):
    assert cast(DOUBLE, [value], STRING) == [text]
    assert cast(DOUBLE, [1.5, value, 1e300], STRING) == ["1.5", text, "1.0E300"]
    if text is not None:
        assert result("CAST", column(STRING, text), to=DOUBLE) == [value] or math.isnan(value)


def test_other_values_as_strings():
    assert cast(FLOAT, [0.1, 1e10], STRING) == ["0.1", "1.0E10"]
    assert cast(INT, [-5, None], STRING) == ["-5", None]
    assert cast(BOOLEAN, [True, False, None], STRING) == ["TRUE", "FALSE", None]
    assert cast(DataTypes.DECIMAL(20, 3), [Decimal("12345678901234567.100")], STRING) == ["12345678901234567.100"]


def test_strings_as_whole_numbers():
    good = ["12", " 12 ", "+5", "-5", "12.9", ".", "-.5", "007", "0000000000000000000000001"]
    assert cast(STRING, good, INT) == [12, 12, 5, -5, 12, 0, 0, 7, 1]
    assert cast(STRING, ["9223372036854775807", "-9223372036854775808"], BIGINT) == [2**63 - 1, -(2**63)]
    bad = ["x", "", "1e3", "0x1A", "1 2", "99999999999", "-", "9" * 50, None]
    assert try_cast(STRING, bad, INT) == [None] * 9
    assert try_cast(STRING, ["128", "127", "-128"], TINYINT) == [None, 127, -128]
    assert try_cast(STRING, ["9223372036854775808"], BIGINT) == [None]
    for text in bad[:-1]:
        with pytest.raises(RowError, match="cannot be cast to INT; use TRY_CAST"):
            cast(STRING, ["1", text], INT)


def test_strings_as_floating_points():
    good = ["1e3", " 1.5 ", "1d", "1.5F", "+.5", "5.", "-Infinity", "-0"]
    assert cast(STRING, good, DOUBLE) == [1000.0, 1.5, 1.0, 1.5, 0.5, 5.0, -math.inf, 0.0]
    assert try_cast(STRING, ["x", "", "inf", "nan", "1e", "--1"], DOUBLE) == [None] * 6


def test_strings_as_decimals():
    good = ["1.005", "1e1", ".5", "1.", " -7 ", "0000000000000000000000000000000000000000000009", "1.5E-1"]
    expected = ["1.01", "10.00", "0.50", "1.00", "-7.00", "9.00", "0.15"]
    assert cast(STRING, good, DataTypes.DECIMAL(5, 2)) == [Decimal(one) for one in expected]
    assert cast(STRING, ["9" * 38, "0." + "0" * 37 + "5"], DataTypes.DECIMAL(38, 0)) == [Decimal("9" * 38), 0]
    small = Decimal(1).scaleb(-38)
    assert cast(STRING, ["1e-38", "0." + "0" * 37 + "1"], DataTypes.DECIMAL(38, 38)) == [small, small]
    assert try_cast(STRING, ["x", "1000", "999.995", "", "9" * 99], DataTypes.DECIMAL(5, 2)) == [None] * 5
    with pytest.raises(RowError, match=r"'1000' cannot be cast to DECIMAL\(5, 2\)"):
        cast(STRING, ["1000"], DataTypes.DECIMAL(5, 2))


def test_truth_values():
    assert cast(STRING, ["t", "True", "yes", "Y", "1"], BOOLEAN) == [True] * 5
    assert cast(STRING, ["f", "false", "NO", "n", "0"], BOOLEAN) == [False] * 5
    assert try_cast(STRING, ["maybe", "", " 1", None], BOOLEAN) == [None] * 4
    assert cast(INT, [0, 1, -5, None], BOOLEAN) == [False, True, True, None]
    assert cast(DOUBLE, [0.0, 1.5], BOOLEAN) == [False, True]
    assert cast(DataTypes.DECIMAL(2, 1), [Decimal("0.0"), Decimal("0.1")], BOOLEAN) == [False, True]
    assert cast(BOOLEAN, [True, False], INT) == [1, 0]
    assert cast(BOOLEAN, [True, False], DOUBLE) == [1.0, 0.0]


def test_lengths():
    assert cast(STRING, ["abcdef", "ä", None], DataTypes.CHAR(3)) == ["abc", "ä  ", None]
    assert cast(STRING, ["abcdef", "\U0001f600bcd"], DataTypes.VARCHAR(3)) == ["abc", "\U0001f600bc"]
    assert cast(INT, [12345], DataTypes.CHAR(8)) == ["12345   "]
    assert cast(STRING, ["hello", "a"], DataTypes.BINARY(2)) == [b"he", b"a\0"]
    assert cast(STRING, ["hello"], DataTypes.BYTES()) == [b"hello"]
    assert cast(DataTypes.BYTES(), [b"hello"], STRING) == ["hello"]


def test_null_becomes_anything():
    assert one("CAST", None, to=DataTypes.ARRAY(INT)) is None
    assert one("TRY_CAST", None, to=DataTypes.DECIMAL(5, 2)) is None


def test_what_can_be_cast():
    assert castable(INT, STRING) and castable(DataTypes.NULL(), INT)
    assert not castable(DataTypes.BYTES(), INT) and not castable(INT, DataTypes.BYTES())
