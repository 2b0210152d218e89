"""What `JsonRowSerializationSchema` and `CsvRowSerializationSchema` of Flink 2.1 write and read, value by value."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from rayflink.common.records.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from rayflink.common.records.shortest_floats import shortest_floats
from rayflink.common.time import Instant
from rayflink.common.typeinfo import Types
from rayflink.common.types import Row

TEXT, FLOAT, DOUBLE, DECIMAL, INT = Types.STRING(), Types.FLOAT(), Types.DOUBLE(), Types.BIG_DEC(), Types.INT()
STAMP, CLOCK = Types.SQL_TIMESTAMP(), Types.SQL_TIME()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (DECIMAL, Decimal("1.10"), "1.10"),
        (DECIMAL, Decimal("227.000"), "227.000"),
        (DECIMAL, Decimal("0.00000001"), "1E-8"),
        (DECIMAL, Decimal("1E+3"), "1E+3"),
        (FLOAT, 1.1, "1.1"),
        (FLOAT, 16777216.0, "1.6777216E7"),
        (FLOAT, 9e-4, "9.0E-4"),
        (FLOAT, float("nan"), '"NaN"'),
        (DOUBLE, 1.1, "1.1"),
        (DOUBLE, 1e10, "1.0E10"),
        (DOUBLE, 1e-5, "1.0E-5"),
        (DOUBLE, 3.0, "3.0"),
        (DOUBLE, float("-inf"), '"-Infinity"'),
        (STAMP, datetime(2015, 7, 14, 23, 59, 55), '"2015-07-14T23:59:55Z"'),
        (STAMP, datetime(2015, 7, 14, 23, 59, 55, 100_000), '"2015-07-14T23:59:55.1Z"'),
        (STAMP, datetime(2015, 7, 14, 23, 59, 55, 123_456), '"2015-07-14T23:59:55.123456Z"'),
        (STAMP, datetime(15, 7, 14), '"0015-07-14T00:00:00Z"'),
        (CLOCK, time(12), '"12:00:00Z"'),
        (Types.SQL_DATE(), date(2015, 7, 14), '"2015-07-14"'),
        (Types.INSTANT(), Instant(1, 5_000), '"1970-01-01T00:00:01.000005Z"'),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x01\x02\xc8", '"AQLI"'),
        (TEXT, "x\ud800y", '"x\\uD800y"'),
        (Types.LIST(FLOAT), [1.1, None], "[1.1,null]"),
        (Types.MAP(TEXT, FLOAT), {"a": 1.1}, '{"a":1.1}'),
    ],
)
def test_json_has_the_texts_that_flink_writes_and_they_are_read_again(
    kind: TypeInformation, value: Any, text: str
) -> None:
    of = Types.ROW_NAMED(["a"], [kind])
    line = JsonRowSerializationSchema(of).serialize(Row(value))
    assert line.decode() == f'{{"a":{text}}}'
    again: Any = JsonRowDeserializationSchema(of).deserialize(line)
    want = of.convert(Row(a=value)) if value != "x\ud800y" else Row(a="x?y")
    assert str(again) == str(want)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (CLOCK, "12:00:00Z", time(12)),
        (CLOCK, "12:00:00", time(12)),
        (CLOCK, "12:00:00.5", time(12, 0, 0, 500_000)),
        (STAMP, "2015-07-14T23:59:55Z", datetime(2015, 7, 14, 23, 59, 55)),
        (STAMP, "2015-07-14T23:59:55.123456Z", datetime(2015, 7, 14, 23, 59, 55, 123_456)),
        (STAMP, "2015-07-14 23:59:55", datetime(2015, 7, 14, 23, 59, 55)),
        (STAMP, "2015-07-14T23:59:55.5", datetime(2015, 7, 14, 23, 59, 55, 500_000)),
        (STAMP, "2015-07-14T23:59:55+01:00", datetime(2015, 7, 14, 22, 59, 55)),
        (Types.INSTANT(), "1969-12-31T23:59:59.999999999Z", Instant(-1, 999_999_999)),
        (TEXT, "\\udc00\\ud83d\\ude00", "?\U0001f600"),
    ],
)
def test_json_times_are_read_with_and_without_a_zone(kind: TypeInformation, text: str, value: Any) -> None:
    read = JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [kind])).deserialize
    assert read(f'{{"a": "{text}"}}'.encode()) == Row(a=value)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (CLOCK, "12:00:00+01:00", "is not in UTC"),
        (CLOCK, "noon", "not a time of day; write it as 07:05:03"),
        (STAMP, "today", "not a timestamp; write it as 2024-02-29T07:05:03Z"),
    ],
)
def test_json_that_is_no_time_is_refused(kind: TypeInformation, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [kind])).deserialize(f'{{"a": "{text}"}}'.encode())


def test_a_timestamp_with_a_zone_is_written_in_utc() -> None:
    value = datetime(2015, 7, 14, 1, tzinfo=timezone(timedelta(hours=2)))
    of = Types.ROW_NAMED(["a"], [STAMP])
    assert JsonRowSerializationSchema(of).serialize(Row(value)) == b'{"a":"2015-07-13T23:00:00Z"}'
    assert CsvRowSerializationSchema.Builder(of).build().serialize(Row(value)) == b'"2015-07-13 23:00:00Z"\n'


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (DECIMAL, Decimal("1.10"), "1.10"),
        (DECIMAL, Decimal("0.00000001"), "1E-8"),
        (FLOAT, 1.1, "1.1"),
        (FLOAT, float("inf"), "Infinity"),
        (DOUBLE, 1e10, "1.0E10"),
        (STAMP, datetime(2015, 7, 14, 23, 59, 55), '"2015-07-14 23:59:55.0"'),
        (STAMP, datetime(2015, 7, 14, 23, 59, 55, 123_456), '"2015-07-14 23:59:55.123456"'),
        (CLOCK, time(12, 0, 5), "12:00:05"),
        (Types.SQL_DATE(), date(2015, 7, 14), "2015-07-14"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x01\x02\xc8", "AQLI"),
        (Types.LIST(TEXT), ["a", "b c", None, 'd"e'], '"a;b c;;d""e"'),
        (Types.LIST(FLOAT), [1.1, 2.0], "1.1;2.0"),
        (Types.ROW([TEXT, INT]), Row("x", 1), "x;1"),
        (Types.BOOLEAN(), True, "true"),
        (TEXT, None, ""),
    ],
)
def test_csv_has_the_texts_that_flink_writes(kind: TypeInformation, value: Any, text: str) -> None:
    of = Types.ROW_NAMED(["a", "b"], [kind, INT])
    assert CsvRowSerializationSchema.Builder(of).build().serialize(Row(value, 7)).decode() == f"{text},7\n"


def _in(quote: str, *strings: str) -> dict[str, str]:
    return {text: f"{quote}{text}{quote}" for text in strings}


PLAIN = {text: text for text in ("a", "a-b", "a.b", "a/b", "a;b", "é", "null", "abcdefghijklmnopqrstuvwx")}
QUOTED = _in('"', "two words", "a,b", "a#b", "it's", "(x)", "a+b", "$1", "50%", "a!", "a\nb", "a\tb", "\x01")
LONG = "abcdefghijklmnopqrstuvwxy"


@pytest.mark.parametrize(
    ("change", "strings"),
    [
        (lambda b: b, {**PLAIN, **QUOTED, 'a"b': '"a""b"', "a\\b": '"a\\b"', **_in('"', LONG, "\U0001f600" * 13)}),
        (lambda b: b.set_escape_character("\\"), {**PLAIN, **QUOTED, 'a"b': '"a""b"', "a\\b": '"a\\\\b"'}),
        (lambda b: b.set_escape_character("|"), {'|"': '"||"""', "a\\b": "a\\b"}),
        (lambda b: b.set_quote_character("'").set_escape_character("\\"), {"it's": "'it''s'"}),
        (lambda b: b.set_field_delimiter("\t"), {"a,b": "a,b", "a#b": "a#b", "it's": "it's", "a!": '"a!"'}),
        (
            lambda b: b.set_field_delimiter(";").set_quote_character("'"),
            {"it's": "'it''s'", "a;b": "'a;b'", "a-b": "'a-b'", "a": "a", "null": "null"},
        ),
        (lambda b: b.disable_quote_character(), {'a "b", c': 'a "b", c', LONG: LONG}),
    ],
)
def test_csv_texts_are_quoted_and_escaped_as_by_jackson(change: Any, strings: dict[str, str]) -> None:
    of = Types.ROW_NAMED(["a"], [TEXT])
    schema = change(CsvRowSerializationSchema.Builder(of)).build()
    assert {text: schema.serialize(Row(text)).decode() for text in strings} == {
        text: f"{written}\n" for text, written in strings.items()
    }


@pytest.mark.parametrize("escape", [None, "\\", "|"])
def test_texts_with_quotes_and_escapes_are_read_again(escape: str | None) -> None:
    of = Types.ROW_NAMED(["a", "b"], [TEXT, TEXT])
    writer, reader = CsvRowSerializationSchema.Builder(of), CsvRowDeserializationSchema.Builder(of)
    if escape is not None:
        writer, reader = writer.set_escape_character(escape), reader.set_escape_character(escape)
    for text in ('say "a"', "\\", '\\"', '|"|', "a,b", "two words"):
        assert reader.build().deserialize(writer.build().serialize(Row(text, "x"))) == Row(a=text, b="x")


def test_null_literal_and_line_ends_stand_as_they_are() -> None:
    of = Types.ROW([TEXT, INT])
    builder = CsvRowSerializationSchema.Builder(of).set_null_literal("n a").set_line_delimiter("\r\n")
    assert builder.build().serialize(Row(None, None)) == b"n a,n a\r\n"
    assert CsvRowSerializationSchema.Builder(of).set_line_delimiter("").build().serialize(Row("a", 1)) == b"a,1"


def test_a_line_with_one_empty_text_is_no_empty_line() -> None:
    """Here more is written than by Flink, whose line a reader leaves out."""
    assert CsvRowSerializationSchema.Builder(Types.ROW([TEXT])).build().serialize(Row("")) == b'""\n'


def test_floats_of_32_bits_become_the_numbers_of_their_shortest_texts() -> None:
    of = Types.ROW_NAMED(["a", "b", "c"], [FLOAT, Types.TUPLE([INT, FLOAT]), Types.MAP(TEXT, FLOAT)])
    row = of.convert(Row(a=1.1, b=(1, 2.2), c={"x": 3.3}))
    replace = shortest_floats(of)
    assert replace is not None and row.a != 1.1
    assert replace(row) == Row(a=1.1, b=(1, 2.2), c={"x": 3.3}) and row.a != 1.1
    assert shortest_floats(Types.ROW([DOUBLE, TEXT])) is None and shortest_floats(None) is None
