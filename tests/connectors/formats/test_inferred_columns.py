"""Records as columns: which types they get, that the split into batches does not matter, and what does not fit."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.common.types import Row
from rayflink.connectors.formats.inferred_columns import InferredColumns, fitted, joined

UTC = datetime.timezone.utc


class Flight(NamedTuple):
    carrier: str
    delay: float | None


@dataclass
class Plane:
    tailnum: str
    seats: int


def table(records: list[Any], at: int | None = None, schema: pyarrow.Schema | None = None) -> pyarrow.Table:
    """All records, given in one batch, or in two that are split there."""
    columns = InferredColumns(schema)
    cuts = [records] if at is None else [records[:at], records[at:]]
    blocks = [columns.of(RowBatch(batch)) for batch in cuts if batch]
    assert columns.schema is not None
    return pyarrow.Table.from_batches([fitted(block, columns.schema) for block in blocks], columns.schema)


@pytest.mark.parametrize(
    ("records", "names"),
    [
        ([("AA", 1.5), ("UA", None)], ["f0", "f1"]),
        ([Row(carrier="AA", delay=1.5), Row(carrier="UA", delay=None)], ["carrier", "delay"]),
        ([Row("AA", 1.5), Row("UA", None)], ["f0", "f1"]),
        ([Flight("AA", 1.5), Flight("UA", None)], ["carrier", "delay"]),
        ([{"carrier": "AA", "delay": 1.5}, {"carrier": "UA"}], ["carrier", "delay"]),
        ([["AA", 1.5], ["UA", None]], ["f0", "f1"]),
    ],
)
@pytest.mark.parametrize("at", [None, 1])
def test_records_of_any_form_have_the_columns_of_their_fields(records, names, at):
    found = table(records, at)
    assert found.schema.names == names
    assert found.columns[0].to_pylist() == ["AA", "UA"] and found.columns[1].to_pylist() == [1.5, None]


def test_dataclasses_single_values_and_nested_rows():
    assert table([Plane("N1", 2)]).to_pylist() == [{"tailnum": "N1", "seats": 2}]
    assert table(["a", None, "b"], 1).to_pydict() == {"value": ["a", None, "b"]}
    nested = table([Row(id=1, of=Row(x=2, y=["a"])), Row(id=2, of=Row(x=None, y=[]))], 1)
    assert nested.to_pylist() == [{"id": 1, "of": {"x": 2, "y": ["a"]}}, {"id": 2, "of": {"x": None, "y": []}}]


values = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**50), 2**50), st.floats(allow_nan=False)), min_size=2, max_size=8),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=2, max_size=8),
    st.lists(st.one_of(st.none(), st.decimals(-999, 999, places=2)), min_size=2, max_size=8),
    st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 9)))), min_size=2, max_size=8),
    st.lists(st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.dates()), min_size=2, max_size=8),
    st.lists(st.one_of(st.binary(max_size=2), st.text(max_size=2)), min_size=2, max_size=8),
)


@given(values, st.data())
def test_the_split_into_batches_changes_neither_columns_nor_what_is_refused(column, data):
    records = [(value,) for value in column]
    at = data.draw(st.integers(1, len(records) - 1))
    try:
        whole = table(records)
    except ValueError as error:
        assert "does not fit the columns" in str(error)
        with pytest.raises(ValueError, match="does not fit the columns") as again:
            table(records, at)
        assert str(again.value).split("(")[1] == str(error).split("(")[1]  # the same record
    else:
        assert table(records, at).equals(whole)
        assert whole.columns[0].to_pylist() == column


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("a", 1, r"record \(1,\) does not fit the columns .*'f0' has values of (int64|number|str|string) and "),
        ("a", b"b", r"record \(b'b',\) does not fit the columns"),
        (datetime.date(2013, 1, 1), datetime.datetime(2013, 1, 1, 5), r"record \(datetime.datetime\(2013"),
        (datetime.datetime(2013, 1, 1), datetime.datetime(2013, 1, 1, tzinfo=UTC), "timezone.utc.*does not fit"),
        (True, 2, r"record \(2,\) does not fit"),
        (Decimal("1.5"), 1.5, r"record \(1.5,\) does not fit"),
        (1, object(), r"record \(<object object .*does not fit the columns"),
        (1, 2**70, r"record \(1180591620717411303424,\) does not fit the columns"),
        ([datetime.date(2013, 1, 1)], [datetime.datetime(2013, 1, 1, 5)], r"\.datetime.*'f0\[\]' has values of date32"),
        ({"x": [b"a"]}, {"x": ["b"]}, r"record .*'b'.*'f0.x\[\]' has values of binary and string"),
        ({"x": 1}, {"x": Decimal("1.5")}, r"record .*1.5.*'f0.x' has values of int64 and decimal"),
        (
            {"at": datetime.datetime(2013, 1, 1)},
            {"at": datetime.datetime(2013, 1, 1, tzinfo=UTC)},
            "timezone.utc.*'f0.at' has",
        ),
        (
            [1],
            [datetime.date(2013, 1, 1), datetime.datetime(2013, 1, 1, 5)],
            "'f0\\[\\]' has values of date and datetime",
        ),
    ],
)
@pytest.mark.parametrize("at", [None, 1])
def test_what_arrow_would_bend_or_refuse_is_an_error_with_the_record(first, second, why, at):
    with pytest.raises(ValueError, match=why) as error:
        table([(first,), (second,)], at)
    assert "give a schema" in str(error.value)


@pytest.mark.parametrize("at", [None, 1])
def test_records_with_other_fields_do_not_fit(at):
    with pytest.raises(ValueError, match=r"record \(1, 2\) does not fit the columns"):
        table([(1,), (1, 2)], at)
    with pytest.raises(ValueError, match=r"record Row\(b=2\) does not fit the columns"):
        table([Row(a=1), Row(b=2)], at)
    assert table([{"a": 1}, {"b": "x"}], at).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


@pytest.mark.parametrize("at", [None, 1, 2])
def test_records_without_a_field_are_rows_too(at):
    assert table([{}, {"a": 1}, {}], at).to_pylist() == [{"a": None}, {"a": 1}, {"a": None}]
    assert table([{}, {}, {"a": 1}], at).to_pylist() == [{"a": None}, {"a": None}, {"a": 1}]


@pytest.mark.parametrize("at", [None, 1, 2])
def test_moments_of_several_zones_are_one_column(at):
    zones = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (2, 2, 1)]
    moments = [datetime.datetime(2013, 10, 27, 2, tzinfo=zone) for zone in zones]
    found = table([(one,) for one in moments], at)
    assert found.schema.types == [pyarrow.timestamp("us", "UTC")] and found.columns[0].to_pylist() == moments
    assert table([(one,) for one in moments[:2]], 1).schema.types == [pyarrow.timestamp("us", "+02:00")]


def test_a_given_schema_is_kept_and_names_what_does_not_fit():
    schema = pyarrow.schema([("id", pyarrow.int32()), ("price", pyarrow.decimal128(9, 2))])
    assert table([(1, Decimal("2.50")), {"id": None, "price": None}], schema=schema).schema == schema
    assert table([{"price": Decimal("2.50")}], schema=schema).to_pylist() == [{"id": None, "price": Decimal("2.50")}]
    for record, why in [
        ((1,), "it has 1 fields, columns are id, price"),
        ({"id": 1, "cost": 2}, "it has id, cost, columns are id, price"),
        ((1.5, None), "id: found float 1.5, wanted int32"),
        ((2**40, None), "does not fit the columns"),
        (7, "it is one value, columns are id, price"),
    ]:
        with pytest.raises(ValueError, match="does not fit the columns") as error:
            table([(1, None), record], schema=schema)
        assert why in str(error.value) and repr(record) in str(error.value)
    strict = pyarrow.schema([pyarrow.field("id", pyarrow.int64(), nullable=False)])
    with pytest.raises(ValueError, match=r"record \(None,\) does not fit .*not null"):
        table([(1,), (None,)], schema=strict)


def blocks(*columns: dict[str, pyarrow.Array]) -> Iterator[ArrowBatch]:
    yield from (ArrowBatch(pyarrow.RecordBatch.from_pydict(of)) for of in columns)


def test_columns_keep_their_types_and_differing_ones_are_refused():
    columns = InferredColumns()
    first, second = blocks({"n": pyarrow.array([1], pyarrow.int32())}, {"n": pyarrow.array([2], pyarrow.int64())})
    columns.of(first)
    assert columns.schema == pyarrow.schema([("n", pyarrow.int32())])
    columns.of(second)
    assert columns.schema == pyarrow.schema([("n", pyarrow.int64())])
    (text,) = blocks({"n": pyarrow.array(["x"])})
    with pytest.raises(ValueError, match="columns of one stream differ: column 'n' has values of int64 and string"):
        columns.of(text)
    (other,) = blocks({"m": pyarrow.array([1])})
    with pytest.raises(ValueError, match="columns of one stream differ: columns n and columns m"):
        columns.of(other)


def test_what_subtasks_found_is_joined_or_refused():
    kinds = pyarrow.null(), pyarrow.int64(), pyarrow.float64()
    none, whole, broken = (pyarrow.schema([("n", kind)]) for kind in kinds)
    assert joined([none, whole, broken]) == broken and joined([none, none]) == none
    with pytest.raises(TypeError, match="column 'n' has values of int64 and string"):
        joined([whole, pyarrow.schema([("n", pyarrow.string())])])


def test_names_of_fields_are_texts():
    for name in (1, None, ("a", 1)):
        with pytest.raises(ValueError, match=r"record \{.*: 2\} does not fit .*of type .*, wanted a text"):
            table([{"a": 1}, {name: 2}])
