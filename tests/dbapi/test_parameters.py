"""Values in the places of question marks."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from rayflink.common.types import Row
from rayflink.dbapi import InterfaceError, ProgrammingError
from rayflink.dbapi.parameters import literal, with_parameters

UTC = dt.timezone.utc
LITERALS = [
    (None, "NULL"), (True, "TRUE"), (-3, "-3"), (1 << 63, "CAST('9223372036854775808' AS DECIMAL(19, 0))"),
    (1.5, "1.5E0"), (1e300, "1e+300"), (float("nan"), "CAST('NaN' AS DOUBLE)"),
    (float("-inf"), "CAST('-Infinity' AS DOUBLE)"), (Decimal("1.50"), "1.50"), (Decimal("1E+3"), "1000"),
    ("it's", "'it''s'"), ("", "''"), (b"\x00\xff", "X'00ff'"), (bytearray(b"a"), "X'61'"),
    (dt.date(2024, 1, 31), "DATE '2024-01-31'"), (dt.time(1, 2, 3, 4000), "TIME '01:02:03.004000'"),
    (dt.datetime(2024, 1, 1, 1, 2, 3), "TIMESTAMP '2024-01-01 01:02:03'"),
    (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "TO_TIMESTAMP_LTZ(1000, 3)"),
    (dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "TO_TIMESTAMP_LTZ(1, 6)"),
    (dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "TO_TIMESTAMP_LTZ(-1000, 3)"),
    (dt.timedelta(days=1, hours=2, microseconds=5), "INTERVAL '1 02:00:00.000005' DAY(2) TO SECOND(6)"),
    (dt.timedelta(seconds=-1), "INTERVAL -'0 00:00:01.000000' DAY(2) TO SECOND(6)"),
    (dt.timedelta(days=1234), "INTERVAL '1234 00:00:00.000000' DAY(4) TO SECOND(6)"),
    (uuid.UUID(int=1), "'00000000-0000-0000-0000-000000000001'"), (Row(1, "a"), "ROW(1, 'a')"),
    ([1, None], "ARRAY[1, NULL]"), ((1,), "ARRAY[1]"), ({"a": [1]}, "MAP['a', ARRAY[1]]"), (np.int64(7), "7"),
    (pd.NaT, "NULL"),
    (np.datetime64("2024-01-01"), "DATE '2024-01-01'"), (np.float32(0.5), "0.5E0"), (np.bool_(True), "TRUE"),
    (np.str_("x"), "'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "written"), LITERALS)
def test_values_have_a_form_in_sql(value, written):
    assert literal(value) == written


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (object(), "type object, which has no form in SQL"),
        ({1, 2}, "type set"),
        (Decimal("NaN"), "a DECIMAL has no such value"),
        (10**38, "more than 38 digits"),
        (dt.time(1, tzinfo=UTC), "with a time zone"),
        (np.datetime64("2024-01-01T00:00:00.000000001"), r"astype\('datetime64\[us\]'\)"),
        (np.timedelta64(5, "ns"), r"astype\('datetime64\[us\]'\)"),
        (np.longdouble(1.5), "type longdouble|type float128"),
        (np.array([1, 2]), "type ndarray"),
    ],
)
def test_a_value_without_a_form_is_refused(value, problem):
    with pytest.raises(InterfaceError, match=problem):
        literal(value)


@pytest.mark.parametrize(
    "text", ["'?'", "'it''s ?'", "`?`", "`a``?`", '"?"', "1 -- ?\n", "/* ?\n ? */ 1", "1 -- '\n", "''"]
)
def test_marks_in_strings_names_and_comments_stay(text):
    assert with_parameters(f"SELECT {text}, ?, ?", [1, "?"]) == f"SELECT {text}, 1, '?'"


def test_values_are_not_looked_through_for_marks():
    assert with_parameters("SELECT ?, ?", ["?", "'"]) == "SELECT '?', ''''"


@pytest.mark.parametrize("values", [[], [1, 2]])
def test_there_is_one_value_for_each_mark(values):
    with pytest.raises(ProgrammingError, match=f"found 1 question marks and {len(values)} values"):
        with_parameters("SELECT ?", values)


@pytest.mark.parametrize("values", ["x", b"x", {"a": 1}, 5])
def test_parameters_are_a_sequence(values):
    with pytest.raises(InterfaceError, match="expected a list or tuple"):
        with_parameters("SELECT ?", values)


def test_a_minus_before_a_negative_number_begins_no_comment():
    assert with_parameters("SELECT 5 -?, 5-?, -1?", [-1, 1, -2]) == "SELECT 5 - -1, 5-1, -1-2"
    assert with_parameters("SELECT 5 -?", [dt.timedelta(seconds=-1)]).startswith("SELECT 5 -INTERVAL -'")


@pytest.mark.parametrize("statement", [None, b"SELECT 1", 7])
def test_a_statement_is_a_string(statement):
    with pytest.raises(InterfaceError, match="found a statement of type .*, expected a string"):
        with_parameters(statement, [])
