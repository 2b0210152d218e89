"""Schemas and encoders: records as bytes, bytes as records."""

from __future__ import annotations

import json
import pickle
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common import Encoder, Row, TypeMismatch, Types
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import InvalidTypesError
from rayflink.common.records.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from rayflink.common.records.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from rayflink.common.serialization import ByteArraySchema, RowFieldExtractorSchema, SimpleStringSchema

NESTED = Types.ROW_NAMED(
    ["id", "name", "price", "when", "day", "tags", "sub", "extra", "raw"],
    [
        Types.INT(), Types.STRING(), Types.BIG_DEC(), Types.SQL_TIMESTAMP(), Types.SQL_DATE(),
        Types.LIST(Types.LONG()), Types.ROW_NAMED(["x"], [Types.DOUBLE()]), Types.MAP(Types.STRING(), Types.BOOLEAN()),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ],
)  # fmt: skip
VALUE = Row(
    id=1, name="ä\n", price=Decimal("1.2500000000000000000001"), when=datetime(2024, 2, 29, 12, 30, 1, 500000),
    day=date(2024, 2, 29), tags=[1, None], sub=Row(x=0.5), extra={"a": True}, raw=b"\x00\xff",
)  # fmt: skip


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "utf-16"])
def test_texts_become_bytes_of_their_character_set_and_back(charset: str) -> None:
    schema = pickle.loads(pickle.dumps(SimpleStringSchema(charset)))
    assert schema.serialize("é") == "é".encode(charset) and schema.deserialize("é".encode(charset)) == "é"
    assert schema.get_produced_type() == Types.STRING()
    with pytest.raises(TypeError, match="writes str, found int 1; map it to a string"):
        schema.serialize(1)


def test_an_unknown_character_set_is_refused_where_it_is_written() -> None:
    with pytest.raises(LookupError):
        SimpleStringSchema("no-such")
    with pytest.raises(LookupError):
        Encoder.simple_string_encoder("no-such")


def test_bytes_stay_as_they_are_and_a_field_of_bytes_is_taken_out_of_a_row() -> None:
    assert ByteArraySchema().serialize(bytearray(b"a")) == b"a" and ByteArraySchema().deserialize(b"a") == b"a"
    assert RowFieldExtractorSchema(1).serialize(Row(b"k", b"v")) == b"v"
    assert RowFieldExtractorSchema(1).serialize(Row(b"k", None)) == RowFieldExtractorSchema(0).serialize(None) == b""
    with pytest.raises(ValueError, match="Field index must be non-negative, got: -1"):
        RowFieldExtractorSchema(-1)
    with pytest.raises(TypeError, match="field 0 must be bytes, found str 'k'"):
        RowFieldExtractorSchema(0).serialize(Row("k"))
    with pytest.raises(TypeError, match="a Row with a field 2 is wanted"):
        RowFieldExtractorSchema(2).serialize(Row(b"k"))
    with pytest.raises(TypeError, match="writes bytes, found str"):
        ByteArraySchema().serialize("a")


def test_a_row_becomes_json_and_the_same_row_again() -> None:
    writer = JsonRowSerializationSchema.builder().with_type_info(NESTED).build()
    reader = JsonRowDeserializationSchema.builder().type_info(NESTED).build()
    text = writer.serialize(VALUE)
    assert json.loads(text)["when"] == "2024-02-29T12:30:01.5Z" and "ä".encode() in text and b"\n" not in text
    assert pickle.loads(pickle.dumps(reader)).deserialize(text) == VALUE
    assert reader.get_produced_type() == NESTED


@given(st.integers(-(2**31), 2**31 - 1) | st.none(), st.text() | st.none(), st.lists(st.integers(-9, 9)) | st.none())
def test_any_values_survive_json(number: Any, text: Any, many: Any) -> None:
    of = Types.ROW_NAMED(["n", "t", "m"], [Types.INT(), Types.STRING(), Types.LIST(Types.LONG())])
    row = Row(n=number, t=text, m=many)
    assert JsonRowDeserializationSchema(of).deserialize(JsonRowSerializationSchema(of).serialize(row)) == row


def test_json_fields_that_are_missing_or_more_or_wrong() -> None:
    of = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    lax = JsonRowDeserializationSchema.builder().type_info(of).build()
    assert lax.deserialize(b'{"c": 1, "a": 2}') == Row(a=2, b=None)
    strict = JsonRowDeserializationSchema.builder().type_info(of).fail_on_missing_field().build()
    with pytest.raises(ValueError, match="no field b"):
        strict.deserialize(b'{"a": 2}')
    with pytest.raises(ValueError, match="does not fit .*field a"):
        lax.deserialize(b'{"a": 99999999999}')
    with pytest.raises(ValueError, match="the whole is .*, an object is wanted"):
        lax.deserialize(b"[1]")
    with pytest.raises(ValueError, match="JSON .*does not fit"):
        lax.deserialize(b'{"a": ')
    assert JsonRowDeserializationSchema.builder().type_info(of).ignore_parse_errors().build().deserialize(b"{") is None
    with pytest.raises(TypeMismatch):
        JsonRowSerializationSchema(of).serialize(Row("x", "y"))
    with pytest.raises(TypeError, match=r"call type_info\(...\) or json_schema"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(InvalidTypesError, match="a row type is wanted"):
        JsonRowSerializationSchema(Types.INT())


NUMBERS = Types.ROW_NAMED(
    ["long", "double", "big", "decimal"], [Types.LONG(), Types.DOUBLE(), Types.BIG_INT(), Types.BIG_DEC()]
)


@pytest.mark.parametrize("name", NUMBERS.get_field_names())
@pytest.mark.parametrize("text", ["true", "false", '"1_0"', '"\u0663"', '"1 0"', '""', '"0x1"', '"1,5"'])
def test_json_that_is_no_number_is_refused_where_one_is_declared(name: str, text: str) -> None:
    line = f'{{"{name}": {text}}}'.encode()
    with pytest.raises(ValueError, match=rf"does not fit .*field {name}: .* is (no|a Boolean)"):
        JsonRowDeserializationSchema(NUMBERS).deserialize(line)
    assert JsonRowDeserializationSchema(NUMBERS, ignore_parse_errors=True).deserialize(line) is None


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("long", '" +12 "', 12), ("long", "1e3", 1000), ("long", '"-7"', -7), ("double", '"1.5E-3"', 0.0015),
        ("double", '".5"', 0.5), ("double", '"-Infinity"', float("-inf")), ("double", "3", 3.0),
        ("big", "1e30", 10**30), ("decimal", '"1.50"', Decimal("1.50")), ("decimal", "0.1", Decimal("0.1")),
    ],
)  # fmt: skip
def test_json_numbers_may_be_texts_and_have_exponents(name: str, text: str, value: Any) -> None:
    assert JsonRowDeserializationSchema(NUMBERS).deserialize(f'{{"{name}": {text}}}'.encode())[name] == value  # type: ignore[index]


def test_a_json_number_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="field big: .* is too large, at most 4300 digits"):
        JsonRowDeserializationSchema(NUMBERS).deserialize(b'{"big": 1e999999999}')


def test_json_that_lies_too_deep_does_not_fit_or_is_left_out() -> None:
    with pytest.raises(ValueError, match="does not fit .*recursion"):
        JsonRowDeserializationSchema(NUMBERS).deserialize(b"[" * 100_000)
    assert JsonRowDeserializationSchema(NUMBERS, ignore_parse_errors=True).deserialize(b"[" * 100_000) is None


@pytest.mark.parametrize("text", ["1_0", "\u0663", "0x1", "true"])
@pytest.mark.parametrize("kind", [Types.LONG(), Types.DOUBLE(), Types.BIG_DEC()])
def test_csv_that_is_no_number_is_refused_where_one_is_declared(kind: Any, text: str) -> None:
    reader = CsvRowDeserializationSchema.Builder(Types.ROW_NAMED(["n"], [kind])).build()
    with pytest.raises(ValueError, match="field n: .* is no .*number; ASCII digits are wanted"):
        reader.deserialize(text.encode())


def test_a_json_schema_names_the_types() -> None:
    schema = {"type": "object", "properties": {
        "n": {"type": "integer"}, "t": {"type": ["string", "null"]}, "at": {"type": "string", "format": "date-time"},
        "l": {"type": "array", "items": {"type": "boolean"}},
        "o": {"type": "object", "properties": {"x": {"type": "number"}}},
    }}  # fmt: skip
    reader = JsonRowDeserializationSchema.builder().json_schema(json.dumps(schema)).build()
    found = reader.deserialize(b'{"n": 1, "at": "2020-01-02T03:04:05Z", "l": [true], "o": {"x": 1.5}}')
    assert found == Row(n=Decimal(1), t=None, at=datetime(2020, 1, 2, 3, 4, 5), l=[True], o=Row(x=Decimal("1.5")))
    with pytest.raises(InvalidTypesError, match="there is no type for"):
        JsonRowDeserializationSchema.builder().json_schema('{"anyOf": []}')


CSV_TYPE = Types.ROW_NAMED(
    ["n", "t", "d", "b", "l", "at"],
    [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.BOOLEAN(), Types.LIST(Types.INT()), Types.SQL_TIME()],
)


@pytest.mark.parametrize("quote", [None, "'", '"'])
def test_a_row_becomes_a_line_of_csv_and_the_same_row_again(quote: str | None) -> None:
    writer = CsvRowSerializationSchema.Builder(CSV_TYPE).set_field_delimiter("|").set_null_literal("-")
    reader = CsvRowDeserializationSchema.Builder(CSV_TYPE).set_field_delimiter("|").set_null_literal("-")
    if quote is None:
        writer.disable_quote_character()
    else:
        writer.set_quote_character(quote)
        reader.set_quote_character(quote)
    row = Row(n=1, t="a,b" if quote is None else "a|'\"b", d=None, b=True, l=[1, None, 2], at=time(1, 2, 3))
    line = writer.build().serialize(row)
    inside = quote or ""
    assert line.endswith(f"|-|true|{inside}1;-;2{inside}|{inside}01:02:03{inside}\n".encode())
    assert reader.build().deserialize(line) == row


def test_malformed_lines_of_csv() -> None:
    of = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.BOOLEAN()])
    reader = CsvRowDeserializationSchema.Builder(of).set_allow_comments(True).build()
    assert reader.deserialize(b"#1,2") is None and reader.deserialize(b"1,true\r\n") == Row(a=1, b=True)
    with pytest.raises(ValueError, match="it has 1 fields, 2 are wanted"):
        reader.deserialize(b"1")
    with pytest.raises(ValueError, match="CSV 'x,true': field a"):
        reader.deserialize(b"x,true")
    with pytest.raises(ValueError, match="field b: 'y' is not a Boolean"):
        reader.deserialize(b"1,y")
    lenient = CsvRowDeserializationSchema.Builder(of).set_ignore_parse_errors(True).build()
    assert lenient.deserialize(b"x,true") == Row(a=None, b=True) and lenient.deserialize(b"1") is None
    with pytest.raises(ValueError, match="field delimiter must be a single character, found '::'"):
        CsvRowSerializationSchema.Builder(of).set_field_delimiter("::")
    with pytest.raises(ValueError, match="line delimiter ';' is not supported"):
        CsvRowSerializationSchema.Builder(of).set_line_delimiter(";")


@pytest.mark.parametrize(
    ("of", "record", "line"),
    [
        (None, ("a", 1), b"('a', 1)\n"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", 1), b"(a,1)\n"),
        (Types.PICKLED_BYTE_ARRAY(), Row(a=1), b"Row(a=1)\n"),
        (Types.ROW([Types.STRING(), Types.INT()]), Row("a", None), b"+I[a, null]\n"),
    ],
)
def test_the_simple_encoder_writes_what_java_writes_for_a_declared_type(
    of: TypeInformation | None, record: Any, line: bytes
) -> None:
    encoder = pickle.loads(pickle.dumps(Encoder.simple_string_encoder().for_type(of)))
    assert encoder.encode(record) == line and encoder.encode_all([record, record]) == [line, line]


def test_lines_of_a_schema_are_encoded_one_after_the_other() -> None:
    of = Types.ROW_NAMED(["a"], [Types.INT()])
    assert Encoder.lines_of(JsonRowSerializationSchema(of)).encode_all([Row(1), Row(2)]) == [b'{"a":1}\n', b'{"a":2}\n']
