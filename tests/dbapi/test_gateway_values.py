"""Types and values as gateways write them in JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pytest

from rayflink.common.types import Row
from rayflink.dbapi import InternalError
from rayflink.dbapi.gateway_values import reader_of, type_of

INT = {"type": "INTEGER", "nullable": True}
STRING = {"type": "VARCHAR", "nullable": True, "length": 2147483647}
TYPES = [
    ({"type": "NULL"}, "NULL"), (INT, "INT"), (STRING, "STRING"),
    ({"type": "CHAR", "nullable": False, "length": 3}, "CHAR(3) NOT NULL"),
    ({"type": "TIME_WITHOUT_TIME_ZONE", "nullable": True, "precision": 0}, "TIME(0)"),
    ({"type": "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "nullable": True, "precision": 3}, "TIMESTAMP_LTZ(3)"),
    ({"type": "INTERVAL_YEAR_MONTH", "nullable": True, "precision": 2, "resolution": "YEAR_TO_MONTH"},
     "INTERVAL YEAR TO MONTH"),
    ({"type": "MAP", "nullable": True, "keyType": STRING, "valueType": INT}, "MAP<STRING, INT>"),
    ({"type": "MULTISET", "nullable": True, "elementType": INT}, "MULTISET<INT>"),
    ({"type": "ROW", "nullable": True, "fields": [{"name": "a", "fieldType": INT}]}, "ROW<`a` INT>"),
]  # fmt: skip


@pytest.mark.parametrize(("description", "sql"), TYPES)
def test_types_are_read(description, sql):
    assert str(type_of(description)) == sql


@pytest.mark.parametrize("description", [{"type": "RAW"}, {"type": "CHAR"}, {"type": "ARRAY", "elementType": 1}, {}])
def test_an_unknown_type_is_named(description):
    with pytest.raises(InternalError, match="which is not known"):
        type_of(description)


VALUES = [
    ("DATE", '"2024-01-31"', dt.date(2024, 1, 31)),
    ("FLOAT", "1.1", 1.1), ("DOUBLE", '"Infinity"', math.inf), ("BIGINT", "9007199254740993", 9007199254740993),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_plain_values_are_read(kind, text, value):
    read = reader_of(type_of({"type": kind}))
    assert read(json.loads(text, parse_float=Decimal)) == value
    assert type(read(json.loads(text, parse_float=Decimal))) is type(value)
    assert read(None) is None


def value_of(description: object, text: str) -> object:
    return reader_of(type_of(description))(json.loads(text, parse_float=Decimal))


def test_numbers_have_the_digits_of_their_column():
    description = {"type": "DECIMAL", "precision": 38, "scale": 2}
    assert str(value_of(description, "1.5")) == "1.50"
    assert value_of(description, "123456789012345678901234567890123456.78") == Decimal(
        "123456789012345678901234567890123456.78"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"2024-01-01T01:02:03.123456789"', dt.datetime(2024, 1, 1, 1, 2, 3, 123456)),
        ('"2024-01-01T01:02"', dt.datetime(2024, 1, 1, 1, 2)),
        ('"2024-01-01T01:02:03.5Z"', dt.datetime(2024, 1, 1, 1, 2, 3, 500_000, dt.timezone.utc)),
    ],
)
def test_timestamps_are_read(text, value):
    kind = "TIMESTAMP_WITH_LOCAL_TIME_ZONE" if value.tzinfo else "TIMESTAMP_WITHOUT_TIME_ZONE"
    assert value_of({"type": kind, "precision": 9}, text) == value


def test_times_bytes_and_intervals_are_read():
    assert value_of({"type": "TIME_WITHOUT_TIME_ZONE", "precision": 3}, '"01:02:03.5"') == dt.time(1, 2, 3, 500_000)
    assert value_of({"type": "VARBINARY", "length": 9}, '"AP8="') == b"\x00\xff"
    day_time = {"type": "INTERVAL_DAY_TIME", "fractionalPrecision": 3, "resolution": "DAY_TO_SECOND"}
    assert value_of(day_time, "-1500") == dt.timedelta(seconds=-1.5)


def test_nested_values_are_read():
    row = {"type": "ROW", "fields": [{"name": "a", "fieldType": INT}, {"name": "d", "fieldType": {"type": "DATE"}}]}
    kind = {"type": "MAP", "keyType": INT, "valueType": {"type": "ARRAY", "elementType": row}}
    read = value_of(kind, '{"7": [{"a": 1, "d": "2024-01-31"}, null, {"a": null}]}')
    assert read == {7: [Row(a=1, d=dt.date(2024, 1, 31)), None, Row(a=None, d=None)]}


@pytest.mark.parametrize("kind", ["TIMESTAMP_WITHOUT_TIME_ZONE", "TIME_WITHOUT_TIME_ZONE"])
def test_a_time_without_a_known_form_is_named(kind):
    with pytest.raises(InternalError, match="'soon', which has no known form"):
        value_of({"type": kind, "precision": 3}, '"soon"')
