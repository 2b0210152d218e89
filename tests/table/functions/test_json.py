"""JSON in columns."""

from __future__ import annotations

import datetime
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.functions.json_paths import parse_json, path_of, select, to_json
from rayflink.table.types import DataTypes
from tests.table.functions.calling import DOUBLE, INT, STRING, RowError, column, constant, one, result, resulting

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab .", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read(value):
    assert parse_json(to_json(value)) == value == json.loads(to_json(value))
    assert result("IS JSON", column(STRING, to_json(value), None)) == [True, False]


@pytest.mark.slow
@given(st.lists(st.text(max_size=5) | st.none(), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_strings_are_quoted(strings):
    values = column(STRING, *strings)
    results = result("JSON_STRING", values)
    assert [None if one is None else json.loads(one) for one in results] == strings
    assert result("JSON_UNQUOTE", column(STRING, *result("JSON_QUOTE", values))) == strings
    whole = result(
        "JSON_OBJECT", constant(STRING, "a"), values, constant(STRING, "b"), column(INT, *[1] * len(strings))
    )
    assert [json.loads(one) for one in whole] == [{"a": text, "b": 1} for text in strings]
    absent = result("JSON_OBJECT", constant(STRING, "a"), values, options=("ABSENT",))
    assert [json.loads(one) for one in absent] == [{} if text is None else {"a": text} for text in strings]
    assert [json.loads(one) for one in result("JSON_ARRAY", values, 1, options=("NULL",))] == [
        [text, 1] for text in strings
    ]
    assert [json.loads(one) for one in result("JSON_ARRAY", values)] == [
        [] if text is None else [text] for text in strings
    ]


def test_paths():
    document = parse_json('{"a": [{"b": 1}, {"b": 2, "c d": {"b": 3}}], "e.f": 4}')
    for path, expected in (
        ("$", document),
        ("$.a[0].b", 1),
        ("lax $['a'][-1]['c d'].b", 3),
        ('$["e.f"]', 4),
        ("$.a[*].b", [1, 2]),
        ("$..b", [1, 2, 3]),
        ("$.a[9]", None),
        ("$.x.y", None),
    ):
        assert select(document, path_of(path)) == expected, path
    assert path_of("strict $.a").is_strict
    for path in ("a.b", "$.a[", "$[?(@.b)]"):
        with pytest.raises(RowError, match="not a supported JSON path"):
            path_of(path)


def test_values():
    strings = column(STRING, '{"a": 1}', '{"a": "x"}', '{"a": [1]}', "no", None)
    assert result("JSON_VALUE", strings, "$.a") == ["1", "x", None, None, None]
    assert result("JSON_VALUE", strings, "$.a", options=(INT,)) == [1, None, None, None, None]
    assert result("JSON_VALUE", strings, "$.a", options=(DOUBLE,)) == [1.0, None, None, None, None]
    words = ("DEFAULT", "ON", "EMPTY", "DEFAULT", "ON", "ERROR")
    given_ = ("JSON_VALUE", strings, "$.a", column(STRING, *"abcde"), "!")
    assert result(*given_, options=words) == ["1", "x", "c", "!", None]
    with pytest.raises(RowError, match="JSON_VALUE of '\\$.a' has an error"):
        result("JSON_VALUE", strings, "$.a", options=("ERROR", "ON", "ERROR"))
    with pytest.raises(RowError, match="has nothing"):
        result("JSON_VALUE", strings, "$.a", options=("ERROR", "ON", "EMPTY"))
    paths = column(STRING, "$.a", "$.b", "$.a[0]", "$", "$")
    assert result("JSON_VALUE", strings, paths) == ["1", None, "1", None, None]


def test_queries_and_whether_there_is_a_value():
    strings = column(STRING, '{"a": {"b": 1}}', '{"a": 2}', "no", None)
    assert result("JSON_EXISTS", strings, "$.a.b") == [True, False, False, None]
    assert result("JSON_EXISTS", strings, "$.a", options=("UNKNOWN", "ON", "ERROR")) == [True, True, None, None]
    assert result("JSON_QUERY", strings, "$.a") == ['{"b":1}', None, None, None]
    assert result("JSON_QUERY", strings, "$.a", options=("WITH", "WRAPPER")) == ['[{"b":1}]', "[2]", None, None]
    with pytest.raises(RowError):
        result("JSON_QUERY", strings, "$.a", options=("ERROR", "ON", "ERROR"))
    array_of_strings = DataTypes.ARRAY(STRING)
    assert result("JSON_QUERY", column(STRING, '[1,"a",{}]', None), "$", options=(array_of_strings,)) == [
        ["1", "a", "{}"],
        None,
    ]
    assert resulting("JSON_QUERY", strings, "$", options=(INT,)) == "RETURNING STRING or ARRAY<STRING>"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IS JSON", [True, True, True, False, False]),
        ("IS JSON VALUE", [True, True, True, False, False]),
        ("IS JSON SCALAR", [True, False, False, False, False]),
        ("IS JSON ARRAY", [False, True, False, False, False]),
        ("IS JSON OBJECT", [False, False, True, False, False]),
    ],
)
def test_kinds(name, expected):
    strings = column(STRING, "1", "[]", "{}", "{", None)
    assert result(name, strings) == expected
    assert result(name.replace("IS", "IS NOT"), strings) == [not one for one in expected]


def test_the_negative_forms_are_there():
    for name in ("IS NOT JSON", "IS NOT JSON VALUE", "IS NOT JSON SCALAR", "IS NOT JSON ARRAY", "IS NOT JSON OBJECT"):
        assert one(name, "x") is True


def test_values_of_all_types():
    assert result("JSON_STRING", column(DOUBLE, 1.5, 1e10, 1e-7, math.nan)) == ["1.5", "1.0E+10", "1.0E-7", '"NaN"']
    assert result("JSON_STRING", column(DataTypes.BYTES(), b"\1\2", None)) == ['"AQI="', None]
    time = datetime.datetime(2020, 1, 2, 3, 4, 5)
    assert result("JSON_STRING", column(DataTypes.TIMESTAMP(0), time)) == ['"2020-01-02T03:04:05"']
    assert result("JSON_STRING", column(DataTypes.MAP(STRING, INT), [("a", None)], None)) == ['{"a":null}', None]
    assert result("JSON", column(STRING, "{}", None)) == ["{}", None]
