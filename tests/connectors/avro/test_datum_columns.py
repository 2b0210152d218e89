"""Datums decoded to columns and encoded again, against fastavro, for schemas of every sort."""

from __future__ import annotations

import datetime
import io
import itertools
import random
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayflink.connectors.avro.arrow_mapping import arrow_schema_of
from rayflink.connectors.avro.avro_schema import AvroSchema, BadAvroSchema, RecursiveSchema
from rayflink.connectors.avro.datum_columns import BadDatum, DatumColumns
from rayflink.connectors.avro.datum_encoding import DatumEncoder

UTC = datetime.timezone.utc
LONGS = st.integers(-(2**63), 2**63 - 1)
MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))


def typed(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


def in_milliseconds(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def decimals(digits: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda number: Decimal(number).scaleb(-2))


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()), ("int", st.integers(-(2**31), 2**31 - 1)), ("long", LONGS),
    ("float", st.floats(width=32, allow_nan=False)), ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=5)), ("string", st.text(max_size=5)),
    ({"type": "enum", "name": "E", "symbols": ["red", "green"]}, st.sampled_from(["red", "green"])),
    ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
    (typed("bytes", "decimal", precision=20, scale=2), decimals(20)),
    (typed("fixed", "decimal", precision=5, scale=2, name="D", size=17), decimals(5)),
    (typed("int", "date"), st.dates()),
    (typed("int", "time-millis"), st.times().map(
        lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000))),
    (typed("long", "time-micros"), st.times()),
    (typed("long", "timestamp-millis"), MOMENTS.map(in_milliseconds).map(lambda at: at.replace(tzinfo=UTC))),
    (typed("long", "timestamp-micros"), MOMENTS.map(lambda at: at.replace(tzinfo=UTC))),
    (typed("long", "local-timestamp-millis"), MOMENTS.map(in_milliseconds)),
    (typed("long", "local-timestamp-micros"), MOMENTS),
    (typed("string", "uuid"), st.uuids().map(str)),
]  # fmt: skip


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema, with a strategy of its values; maps are lists of pairs in the columns and dicts in fastavro."""
    form = draw(st.sampled_from(["leaf", "leaf", "null", "array", "map", "record"] if depth else ["leaf", "null"]))
    if form == "leaf":
        return draw(st.sampled_from(LEAVES))
    if form == "null":
        inner, values = draw(st.sampled_from(LEAVES) if not depth else schemas(depth - 1))
        if isinstance(inner, list):
            return inner, values
        return draw(st.permutations(["null", inner])), st.none() | values
    if form == "record":
        fields = draw(st.lists(schemas(depth - 1), min_size=1, max_size=3))
        schema = [{"name": f"f{number}", "type": kind} for number, (kind, _) in enumerate(fields)]
        strategies = {f"f{number}": values for number, (_, values) in enumerate(fields)}
        return {"type": "record", "name": "R", "fields": schema}, st.fixed_dictionaries(strategies)
    inner, values = draw(schemas(depth - 1))
    if form == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    return {"type": "map", "values": inner}, st.dictionaries(st.text(max_size=2), values, max_size=3)


def with_own_names(schema: Any, numbers: Any) -> Any:
    if isinstance(schema, list):
        return [with_own_names(branch, numbers) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: with_own_names(value, numbers) if key in ("items", "values", "type") else value
             for key, value in schema.items()}  # fmt: skip
    if "name" in found and "type" in found and found["type"] in ("record", "enum", "fixed"):
        found["name"] = f"{found['name']}{next(numbers)}"
    if "fields" in found:
        found["fields"] = [{**field, "type": with_own_names(field["type"], numbers)} for field in found["fields"]]
    return found


def encoded(schema: Any, *records: Any) -> list[bytes]:
    parsed, messages = fastavro.parse_schema(schema), []
    for record in records:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, record)
        messages.append(stream.getvalue())
    return messages


def plain(value: Any) -> Any:
    """Return a value of columns as fastavro takes it."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: plain(item) for key, item in value}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        found = dict(found) if isinstance(found, list) else found
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return bool(found == wanted)


def decoders(schema: Any, wanted: pyarrow.Schema | None = None) -> list[DatumColumns]:
    """The decoder as it is, and one without polars."""
    both = [DatumColumns(AvroSchema(schema), wanted) for _ in range(2)]
    both[1]._by_columns = None
    return both


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_columns_are_what_fastavro_reads_and_are_encoded_alike(data: st.DataObject) -> None:
    fields = data.draw(st.lists(schemas(), min_size=1, max_size=4))
    numbers = itertools.count()
    schema = {"type": "record", "name": "Row", "namespace": "n.s", "fields": [
        {"name": f"f{number}", "type": with_own_names(kind, numbers)} for number, (kind, _) in enumerate(fields)
    ]}  # fmt: skip
    one = st.fixed_dictionaries({f"f{number}": values for number, (_, values) in enumerate(fields)})
    records = data.draw(st.lists(one, max_size=4))
    messages = encoded(schema, *records)
    for decoder in decoders(schema):
        columns = decoder.of_messages(messages)
        assert columns.num_rows == len(records)
        for found, wanted in zip(columns.to_pylist(), records, strict=True):
            assert same(found, wanted), (found, wanted)
        columns.validate(full=True)
    encoder = DatumEncoder(AvroSchema(schema))
    assert encoder.messages_of(columns) == messages
    assert encoder.block_of(columns) == b"".join(messages)
    part = pyarrow.schema([columns.schema.field(len(fields) - 1)])
    for decoder in decoders(schema, part):
        assert decoder.of_messages(messages).column(0).equals(columns.column(len(fields) - 1))


ROW = {"type": "record", "name": "R", "fields": [
    {"name": "n", "type": ["null", "long"]}, {"name": "s", "type": "string"},
    {"name": "a", "type": {"type": "array", "items": "int"}},
]}  # fmt: skip
RECORDS = [{"n": number or None, "s": "x" * number, "a": [1] * number} for number in range(6)]


@pytest.mark.parametrize("position", range(6))
def test_messages_that_are_cut_or_too_long_are_found(position: int) -> None:
    good = encoded(ROW, *RECORDS)
    for bad in (good[position][:-1], good[position] + b"\0", b""):
        messages = [*good[:position], bad, *good[position + 1 :]]
        for decoder in decoders(ROW):
            with pytest.raises(BadDatum, match="it ends within a field|1 bytes are left behind the last field"):
                decoder.of_messages(messages)
            assert decoder.of_messages(good).num_rows == 6  # a later batch is not affected


def test_damaged_messages_raise_and_nothing_else_happens() -> None:
    """Bytes at random: a ValueError, or what fastavro reads."""
    rng, good = random.Random(5), encoded(ROW, *RECORDS)
    decoder = DatumColumns(AvroSchema(ROW))
    for _ in range(300):
        damaged = bytearray(rng.choice(good))
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        decoder._without_columns = 0
        try:
            columns = decoder.of_messages([good[0], bytes(damaged), good[1]])
        except ValueError:
            continue
        stream = io.BytesIO(damaged)
        try:
            wanted = fastavro.schemaless_reader(stream, fastavro.parse_schema(ROW))
        except IndexError:  # polars takes the number of a branch that there is not for that of the second one
            continue
        assert columns.to_pylist()[1] == wanted
        assert stream.tell() == len(damaged)


def test_readers_promote_skip_and_fill_in() -> None:
    writer = {"type": "record", "name": "Old", "fields": [
        {"name": "old_name", "type": "int"}, {"name": "gone", "type": ["null", "string", "int"]},
        {"name": "text", "type": "string"}, {"name": "price", "type": "float"},
        {"name": "at", "type": typed("long", "timestamp-micros")},
        {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}},
    ]}  # fmt: skip
    reader = AvroSchema({"type": "record", "name": "New", "fields": [
        {"name": "price", "type": "double"}, {"name": "new_name", "type": "long", "aliases": ["old_name"]},
        {"name": "text", "type": "bytes"}, {"name": "at", "type": typed("long", "timestamp-millis")},
        {"name": "color", "type": {"type": "enum", "name": "E", "symbols": ["red", "green"]}, "default": "green"},
        {"name": "raw", "type": "bytes", "default": "\u00ff"},
        {"name": "none", "type": ["null", "int"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {"a": 1}},
        {"name": "inner", "type": {"type": "record", "name": "I", "fields": [
            {"name": "x", "type": "long"}, {"name": "y", "type": ["null", "int"], "default": None}]}},
    ]})  # fmt: skip
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    message = encoded(writer, {"old_name": 1, "gone": 5, "text": "é", "price": 0.5, "at": at, "inner": {"x": 4}})
    columns = DatumColumns(AvroSchema(writer), arrow_schema_of(reader.root), reader.root).of_messages(message)
    assert columns.to_pylist() == [{
        "price": 0.5, "new_name": 1, "text": "é".encode(), "at": at.replace(microsecond=678000), "color": "green",
        "raw": b"\xff", "none": None, "tags": [("a", 1)], "inner": {"x": 4, "y": None},
    }]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (pyarrow.field("n", pyarrow.int32()), "field 'n' is long in the schema of the writer, int32 is wanted"),
        (pyarrow.field("s", pyarrow.int64()), "field 's' is string"),
        (pyarrow.field("a", pyarrow.list_(pyarrow.string())), r"field 'a'\[\] is int"),
        (pyarrow.field("b", pyarrow.int64(), nullable=False), "field 'b' is not in the schema of the writer"),
    ],
)
def test_types_that_do_not_fit_are_an_error_before_anything_is_read(wanted: pyarrow.Field, found: str) -> None:
    with pytest.raises(BadAvroSchema, match=found):
        DatumColumns(AvroSchema(ROW), pyarrow.schema([wanted]))


def test_unions_of_several_types_and_recursive_types_have_no_columns() -> None:
    union = {"type": "record", "name": "R", "fields": [{"name": "u", "type": ["null", "int", "string"]}]}
    with pytest.raises(BadAvroSchema, match="is a union of several types"):
        DatumColumns(AvroSchema(union))
    nested = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
    with pytest.raises(RecursiveSchema, match="the type R contains itself"):
        DatumColumns(AvroSchema(nested))


def test_a_schema_that_is_no_record_has_one_column() -> None:
    messages = encoded("string", "a", "")
    assert DatumColumns(AvroSchema("string")).of_messages(messages).to_pydict() == {"value__": ["a", ""]}


def test_what_is_no_schema_is_an_error() -> None:
    with pytest.raises(BadAvroSchema, match="this is no Avro schema"):
        AvroSchema.parse_string('{"type": "recrod", "name": "R", "fields": []}')
    with pytest.raises(BadAvroSchema, match="the schema is no JSON"):
        AvroSchema.parse_string("{")


def test_values_that_the_schema_does_not_have_are_an_error() -> None:
    encoder = DatumEncoder(AvroSchema(ROW))
    rows = pyarrow.record_batch({"n": [1], "s": pyarrow.array([None], pyarrow.string()), "a": [[1]]})
    with pytest.raises(ValueError, match="a value of 's' is NULL, which its type string does not have"):
        encoder.messages_of(rows)
    with pytest.raises(ValueError, match="the rows have no column 's'"):
        encoder.messages_of(rows.select(["n", "a"]))
    enum = {"type": "record", "name": "R", "fields": [{"name": "e", "type": {
        "type": "enum", "name": "E", "symbols": ["a"]}}]}  # fmt: skip
    with pytest.raises(ValueError, match="'b' of 'e' is no symbol of E"):
        DatumEncoder(AvroSchema(enum)).messages_of(pyarrow.record_batch({"e": ["b"]}))


def test_decimals_that_are_too_large_are_an_error() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "d", "type": typed("bytes", "decimal", precision=38)}]}
    large = b"\x28" + b"\x01" * 20
    with pytest.raises(ValueError, match="a decimal has 20 bytes"):
        DatumColumns(AvroSchema(schema)).of_messages([large])
    padded = b"\x28" + b"\xff" * 20
    assert DatumColumns(AvroSchema(schema)).of_messages([padded]).to_pylist() == [{"d": Decimal(-1)}]
