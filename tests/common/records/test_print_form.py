"""Records print as Flink prints them; the forms of numbers are those of Java's Double.toString and Float.toString."""

from __future__ import annotations

import pickle
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.print_form import PrintForm
from rayflink.common.time import Instant
from rayflink.common.typeinfo import Types
from rayflink.common.types import Row, RowKind

INT, TEXT, DOUBLE, FLOAT = Types.INT(), Types.STRING(), Types.DOUBLE(), Types.FLOAT()


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (None, ("hi", 1, None, True), "('hi', 1, None, True)"),
        (None, "hi", "hi"),
        (None, Row(1, "a"), "<Row(1, 'a')>"),
        (Types.PICKLED_BYTE_ARRAY(), ["a"], "['a']"),
        (TEXT, "hi", "hi"),
        (INT, 5, "5"),
        (Types.BOOLEAN(), True, "true"),
        (Types.BIG_DEC(), Decimal("1.50"), "1.50"),
        (Types.TUPLE([TEXT, INT, TEXT, Types.BOOLEAN()]), ("hi", 1, None, False), "(hi,1,null,false)"),
        (Types.TUPLE([Types.TUPLE([INT, DOUBLE]), Types.LIST(INT)]), ((1, 2.0), [1, None]), "((1,2.0),[1, null])"),
        (Types.TUPLE([Types.PRIMITIVE_ARRAY(Types.BYTE()), INT]), (b"\x01\xff", 2), "([1, -1],2)"),
        (Types.TUPLE([Types.ROW([INT, TEXT])]), (Row(1, "a"),), "(+I[1, a])"),
        (Types.ROW([INT, TEXT, TEXT, Types.BOOLEAN()]), Row(1, "a", None, True), "+I[1,a,None,True]"),
        (Types.ROW([INT]), Row.of_kind(RowKind.UPDATE_BEFORE, 1), "-U[1]"),
        (Types.LIST(TEXT), ["a", "b"], "[a, b]"),
        (Types.MAP(TEXT, DOUBLE), {"x": 1.0, "y": None}, "{x=1.0, y=null}"),
        (Types.SQL_DATE(), date(2024, 2, 29), "2024-02-29"),
        (Types.SQL_TIME(), time(7, 5, 3), "07:05:03"),
        (Types.TUPLE([Types.SQL_TIME(), INT]), (time(7, 5, 3, 120_000), 1), "(07:05:03,1)"),
        (Types.ROW([Types.SQL_TIME()]), Row(time(7, 5, 3, 120_000)), "+I[07:05:03.120000]"),
        (Types.SQL_TIMESTAMP(), datetime(2024, 2, 29, 7, 5, 3), "2024-02-29 07:05:03.0"),
        (Types.SQL_TIMESTAMP(), datetime(2024, 2, 29, 7, 5, 3, 120_000), "2024-02-29 07:05:03.12"),
        (Types.INSTANT(), Instant(0, 0), "1970-01-01T00:00:00Z"),
        (Types.INSTANT(), Instant(1, 500_000_000), "1970-01-01T00:00:01.500Z"),
    ],
)
def test_a_record_prints_by_its_type(type_info: TypeInformation | None, value: Any, text: str) -> None:
    form = PrintForm(type_info)
    assert form(value) == text
    assert pickle.loads(pickle.dumps(form))(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (0.001, "0.001"), (0.0001, "1.0E-4"),
        (1234567.0, "1234567.0"), (9999999.0, "9999999.0"), (1e7, "1.0E7"), (12345678.9, "1.23456789E7"),
        (1e300, "1.0E300"), (-2.5e-10, "-2.5E-10"), (float("nan"), "NaN"), (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"), (0.1 + 0.2, "0.30000000000000004"),
    ],
)  # fmt: skip
def test_doubles_print_as_in_java(number: float, text: str) -> None:
    assert PrintForm(DOUBLE)(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(110.1, "110.1"), (1e10, "1.0E10"), (0.1, "0.1"), (16777216.0, "1.6777216E7")]
)
def test_floats_print_with_the_digits_of_32_bits(number: float, text: str) -> None:
    assert PrintForm(FLOAT)(FLOAT.convert(number)) == text
