"""Lines by layouts give the columns that they give one by one, or none."""

from __future__ import annotations

import json
from math import isfinite

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records import json_layouts
from rayflink.common.records.json_columns import JsonParser
from rayflink.common.records.json_layouts import JsonLayouts
from rayflink.common.records.json_numbers import parsed_numbers

SCHEMA = pyarrow.schema([
    ("n", pyarrow.int32()), ("name", pyarrow.string()), ("ok", pyarrow.bool_()), ("size", pyarrow.float64()),
    ("of", pyarrow.struct([("n", pyarrow.int64()), ("url", pyarrow.string())])),
])  # fmt: skip
LINES = [
    b'{"n":%d,"name":"%s","ok":true,"size":%d.5,"of":{"n":%d,"url":"%s"},"more":[1,{"n":2}]}',
    b'{"n":%d, "name":"%s", "size":%d, "of":null, "other":%d, "text":"%s"}',
    b' {"of":{"x":%d,"url":"%s","n":%d},"n":%d,"name":"%s"} ',
    b'{"n":%d,"name":"%s","a":{"b":["u","v"]},"ok":false,"size":1e%d,"z":%d,"name2":"%s"}',
]
STRINGS = [b"", b"a", b"tea and milk", "\u00e4\u20ac".encode(), b"a\\\"b", b"1", b"},{", b"x" * 40]
NUMBERS = [0, 7, -3, 12, 40, 1234567]
PIECES = [b'"', b"\\", b"{", b"}", b"[", b",", b":", b"0", b".", b"-", b"e", b" ", b"\t", b"\r", b"n", b"1.5", b"null",
          b'"n":5,', b"\xff", b"99999999999999999999"]  # fmt: skip


FOR_FEW_LINES = {"LEAST_LINES": 1, "_MOST_ODD": 1, "_MOST_BYTES": 1000, "_SCRATCH": 64}
"""Limits by which layouts are used for as few lines as there are."""


@st.composite
def lines(draw):
    form = draw(st.sampled_from(LINES))
    kinds = [form[place + 1 : place + 2] for place in range(len(form)) if form[place : place + 1] == b"%"]
    values = [draw(st.sampled_from(STRINGS if kind == b"s" else NUMBERS)) for kind in kinds]
    line = form % tuple(values)
    if draw(st.integers(0, 5)) == 0:
        start = draw(st.integers(0, len(line)))
        line = line[:start] + draw(st.sampled_from(PIECES)) + line[start + draw(st.integers(0, 2)) :]
    return line


@given(st.lists(st.lists(lines(), min_size=1, max_size=12), min_size=1, max_size=3))
def test_layouts_give_what_single_lines_give(blocks):
    parser = JsonParser(SCHEMA)
    for block in blocks:
        with pytest.MonkeyPatch.context() as patch:
            for name, limit in FOR_FEW_LINES.items():
                patch.setattr(json_layouts, name, limit)
            whole = parser.lines(b"\n".join(block))
            similar = parser.similar_lines(b"\n".join(block))
        single = parser.messages(block)
        assert similar is None or similar == single
        if whole is None and single is not None:  # a number that is not read is too large for any type of number
            assert any(b"99999999" in line for line in block)
        else:
            assert whole == single


def block_of(*forms: bytes, lines: int = 1000) -> bytes:
    return b"\n".join(forms[number % len(forms)] % (number, number) for number in range(lines))


def test_few_lines_of_other_layouts_stand_in_their_places():
    rare = b'{"b":{"c":"%d"},\t"n":%d}'
    block = block_of(*[b'{"n":%d,"b":{"c":"%d","d":true}}'] * 9, rare)
    seen = []
    schema = pyarrow.schema([("n", pyarrow.int64()), ("b", pyarrow.struct([("c", pyarrow.string())]))])

    def parse(odd_lines):
        seen.extend(odd_lines)
        return pyarrow.RecordBatch.from_pylist([json.loads(line) for line in odd_lines], schema)

    columns = JsonLayouts(schema).columns(block, parse)
    assert columns.to_pylist() == [{"n": number, "b": {"c": str(number)}} for number in range(1000)]
    assert len(seen) == 100
    assert all(b"\t" in line for line in seen)


@pytest.mark.parametrize(
    "form",
    [b'{"n":%d,"m":[%d,2]}', b'{"n":%d,"n":%d}', b'{"m":"%d\\n","n":%d}', b'{"n":"%d","m":%d}', b'{"n":%d,"m":%d}\r'],
    ids=["numbers without a quote between them", "a name twice", "escapes", "other types", "ends of DOS"],
)
def test_lines_without_a_layout_are_left_to_the_parser(form):
    layouts = JsonLayouts(pyarrow.schema([("n", pyarrow.int64())]))
    assert [layouts.columns(block_of(form), list) for _ in range(3)] == [None] * 3


def test_long_lines_of_which_little_is_read_are_left_to_the_parser():
    layouts = JsonLayouts(pyarrow.schema([("n", pyarrow.int64())]))
    assert layouts.columns(block_of(b'{"n":%d,"m":"%d' + b"x" * 200 + b'"}'), list) is None
    assert layouts.columns(block_of(b'{"n":%d,"m":"%d' + b"x" * 20 + b'"}'), list).num_rows == 1000


@given(st.lists(st.text("0123456789.eE+-xinf ", max_size=6), min_size=1, max_size=4), st.booleans())
def test_numbers_are_those_of_json(strings, is_whole):
    kind = pyarrow.int64() if is_whole else pyarrow.float64()
    numbers, are_numbers = parsed_numbers(pyarrow.array(strings, pyarrow.string()), kind)
    expected = [number_of(string, is_whole) for string in strings]
    assert (are_numbers is None) == (None not in expected)
    for value, wanted in zip(numbers.to_pylist(), expected, strict=True):
        assert wanted is None or value == wanted
    assert are_numbers is None or are_numbers.tolist() == [value is not None for value in expected]


def number_of(string, is_whole):
    """Return the number as Python's parser reads it; None: it is none, or too large."""
    try:
        value = json.loads(string)
    except ValueError:
        return None
    is_number = string == string.strip() and type(value) in ((int,) if is_whole else (int, float))
    return value if is_number and isfinite(value) else None
