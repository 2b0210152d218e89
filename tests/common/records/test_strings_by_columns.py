"""CSV and JSON by columns: what is written and read is the same as record by record, or is left to that."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common import Row, Types
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.records.batches import ArrowBatch, RowBatch, rows_of
from rayflink.common.records.csv_by_columns import CsvParser
from rayflink.common.records.csv_marks import CsvMarks
from rayflink.common.records.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from rayflink.common.records.json_rows import JsonRowSerializationSchema

FLAT = Types.ROW_NAMED(
    ["n", "s", "x", "f", "b", "day", "at"],
    [Types.SHORT(), Types.STRING(), Types.DOUBLE(), Types.FLOAT(), Types.BOOLEAN(), Types.SQL_DATE(),
     Types.SQL_TIMESTAMP()],
)  # fmt: skip
NESTED = Types.ROW_NAMED(
    ["n", "s", "x", "f", "b", "many", "inner"],
    [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.FLOAT(), Types.BOOLEAN(), Types.LIST(Types.STRING()),
     Types.ROW_NAMED(['a "b"', "deep"], [Types.INT(), Types.ROW_NAMED(["l"], [Types.LIST(Types.DOUBLE())])])],
)  # fmt: skip
STRINGS = st.text(st.sampled_from('ab ,";#\\\'\n\r\t\x00\x07\x1f\x7f0é😀'), max_size=30) | st.sampled_from(
    ["", "null", "x" * 25, "NaN", "true", "\u2028"]
)
DOUBLES = st.floats() | st.sampled_from([0.0, -0.0, 1e-3, 1e7, 1e-300, 123456789.125, math.inf])
SINGLES = st.floats(width=32)
TIMES = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


FLAT_ROWS = st.lists(
    st.tuples(*map(_maybe, (st.integers(-(2**15), 2**15 - 1), STRINGS, DOUBLES, SINGLES, st.booleans(),
                            TIMES.map(datetime.datetime.date), TIMES))), max_size=5,
)  # fmt: skip
DEEP = _maybe(st.fixed_dictionaries({"l": _maybe(st.lists(_maybe(DOUBLES), max_size=3))}))
INNER = _maybe(st.fixed_dictionaries({'a "b"': _maybe(st.integers(-5, 5)), "deep": DEEP}))
NESTED_ROWS = st.lists(
    st.tuples(*map(_maybe, (st.integers(-(2**63), 2**63 - 1), STRINGS, DOUBLES, SINGLES, st.booleans(),
                            st.lists(_maybe(STRINGS), max_size=3))), INNER), max_size=5,
)  # fmt: skip


def _columns(kind: Any, rows: list[Any]) -> ArrowBatch:
    schema = to_arrow_schema(kind)
    arrays = [pyarrow.array([row[index] for row in rows], field.type) for index, field in enumerate(schema)]
    return ArrowBatch(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))


def _marks(name: str) -> CsvMarks:
    return {"plain": CsvMarks(), "null": CsvMarks(null="null", delimiter=";"), "bare": CsvMarks(quote=None),
            "escaped": CsvMarks(escape="\\"), "comments": CsvMarks(comments=True)}[name]  # fmt: skip


@given(rows=FLAT_ROWS, name=st.sampled_from(["plain", "null", "bare", "escaped"]), split=st.integers(0, 4))
def test_csv_is_written_by_columns_as_it_is_record_by_record(rows: list[Any], name: str, split: int) -> None:
    schema = CsvRowSerializationSchema(FLAT, _marks(name))
    batch = ArrowBatch(_columns(FLAT, rows).data.slice(split))
    assert schema.serialize_batch(batch) == [schema.serialize(row) for row in rows_of(batch)]


@given(rows=NESTED_ROWS, split=st.integers(0, 4))
def test_json_is_written_by_columns_as_it_is_record_by_record(rows: list[Any], split: int) -> None:
    schema = JsonRowSerializationSchema(NESTED)
    batch = ArrowBatch(_columns(NESTED, rows).data.slice(split))
    assert schema._writer is not None and schema._writer.objects(batch.data) is not None
    assert schema.serialize_batch(batch) == [schema.serialize(row) for row in rows_of(batch)]


READ = Types.ROW_NAMED(
    ["n", "s", "x", "b", "day", "at"],
    [Types.SHORT(), Types.STRING(), Types.DOUBLE(), Types.BOOLEAN(), Types.SQL_DATE(), Types.SQL_TIMESTAMP()],
)
PARTS = {
    "n": ["1", "-7", "+7", " 3", "0x1F", "32768", "", "1_0", '"5"', "null"],
    "s": ["a", "", '""', '"a,b"', '"a""b"', 'a"b', '"a"b', "é", "null", "#a", " b ", "\x00", "a\rb", '"a\nb"', "\\"],
    "x": ["1.5", "1e3", "1e999", "nan", "inf", "-0", ".5", "5.", "", "0x1p3", "1e-5"],
    "b": ["true", "FALSE", "1", "0", "yes", "", " true"],
    "day": ["2020-02-29", "2021-02-29", "0000-01-01", "2020-1-1", "20200101", ""],
    "at": ["2020-01-01 00:00:00", "2020-01-01T00:00:00.5", "2020-01-01 24:00:00", "2020-01-01 00:00:00Z", "",
           "2020-01-01 00:00:60", "2020-01-01", "0001-01-01 00:00:00.000001", "2020-01-01 00:00:00.1234567"],
}  # fmt: skip
GOOD = b"1,a,1.5,true,2020-02-29,2020-01-01 00:00:00"
LINES = st.one_of(
    st.tuples(*map(st.sampled_from, PARTS.values())).map(lambda parts: ",".join(parts).encode()),
    st.sampled_from([GOOD, GOOD + b"\n", GOOD + b"\r\n", b"", b"#x", b"\xef\xbb\xbf" + GOOD, GOOD + b",1", b"\xff"]),
    st.tuples(st.sampled_from(list(PARTS)), st.integers(0, 14)).map(
        lambda at: ",".join(
            PARTS[name][at[1] % len(PARTS[name])] if name == at[0] else part
            for name, part in zip(PARTS, GOOD.decode().split(","), strict=True)
        ).encode()
    ),
)


@given(st.lists(LINES, max_size=4), st.sampled_from(["plain", "null", "bare", "comments"]), st.booleans())
def test_csv_is_read_by_columns_as_it_is_record_by_record(messages: list[bytes], name: str, lenient: bool) -> None:
    if name == "null":
        messages = [message.replace(b",", b";") for message in messages]
    schema = CsvRowDeserializationSchema(READ, _marks(name), lenient)
    try:
        expected = [row for row in map(schema.deserialize, messages) if row is not None]
    except ValueError as error:
        with pytest.raises(type(error)):
            schema.deserialize_batch(messages)
        return
    batch, indices = schema.deserialize_batch(messages)
    assert repr(list(rows_of(batch))) == repr(expected)
    assert len(expected) == len(messages if indices is None else indices)


def test_common_lines_are_read_as_columns_and_subclasses_decide_for_themselves() -> None:
    schema = CsvRowDeserializationSchema(READ, CsvMarks())
    lines = [GOOD, b'2,"b,c",,,,' + b"\n"]
    batch, indices = schema.deserialize_batch(lines)
    assert isinstance(batch, ArrowBatch) and indices is None
    assert batch.data.column("s").to_pylist() == ["a", "b,c"]
    assert CsvParser(FLAT, CsvMarks()).columns(lines) is None, "numbers of 32 bits are rounded one by one"

    class Own(CsvRowDeserializationSchema):
        def deserialize(self, message: bytes) -> Row:
            return Row(len(message))

    assert rows_of(Own(READ, CsvMarks()).deserialize_batch(lines)[0]) == [Row(len(line)) for line in lines]
    assert JsonRowSerializationSchema(NESTED).serialize_batch(RowBatch([])) == []
