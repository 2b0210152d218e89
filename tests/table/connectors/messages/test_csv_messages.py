"""The format `csv` of messages: batches decode as single messages do."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.malformed_records import MalformedMessage
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch, rows_of
from rayflink.common.types import Row
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.messages.known_formats import message_format
from rayflink.table.plan.logical import Attribute

CSV = message_format("csv", "t")
SCHEMA = (Attribute("id", DataTypes.INT()), Attribute("name", DataTypes.STRING()))


def options(**chosen: Any) -> dict[str, Any]:
    defaults = {name: option.default for name, option in CSV.options.items()}
    return {**defaults, **{name.replace("_", "-"): value for name, value in chosen.items()}}


def decode(messages: Sequence[Any], names: Sequence[str] = ("id", "name"), **chosen: Any) -> tuple[Any, Any]:
    schema = pickle.loads(pickle.dumps(CSV.decoder(SCHEMA, names, options(**chosen))))
    batch, indices = schema.deserialize_batch(messages)
    assert isinstance(batch, ArrowBatch)
    return [tuple(row) for row in rows_of(batch)], indices


def test_a_batch_of_messages_becomes_columns() -> None:
    assert decode([b"1,a", b'2,"b,c"']) == ([(1, "a"), (2, "b,c")], None)
    assert decode([b"1,a", b"2,b"], ["name"]) == ([("a",), ("b",)], None)
    assert decode([b"1|-", b"-|b"], field_delimiter="|", null_literal="-") == ([(1, None), (None, "b")], None)


def test_messages_without_a_row_or_with_line_ends_name_their_indices() -> None:
    messages = [b"", b"1,a\n", None, b'2,"b\nc"', b"#3,x", b"4,d\r\n"]
    assert decode(messages, allow_comments=True) == ([(1, "a"), (2, "b\nc"), (4, "d")], [1, 3, 5])
    assert decode([b"", None]) == ([], [])


@pytest.mark.parametrize("bad", [b"x,a", b"1", b"1,a,b", b'1,"a', b"1,a\n2,b", b"1,\xff", b"99999999999,a"])
def test_malformed_messages_raise_and_are_found_by_the_decoder(bad: bytes) -> None:
    decoder = MessageDecoder(CSV.decoder(SCHEMA, ["id", "name"], options()))
    with pytest.raises(MalformedMessage, match="message 1.*cannot be decoded"):
        decoder.decode([b"1,a", bad, b'2,b"'], lambda index: f"message {index}")


def test_a_quote_that_is_closed_in_another_message_is_malformed() -> None:
    with pytest.raises(ValueError, match="a quoted value does not end"):
        decode([b'1,"a', b'b"'])


def test_ignored_errors_are_counted_and_the_messages_before_and_behind_stay() -> None:
    metrics = MetricGroup()
    decoder = MessageDecoder(CSV.decoder(SCHEMA, ["name", "id"], options(ignore_parse_errors=True)), None, metrics)
    decoded = decoder.decode([b"1,a", b"1,2,3", b"x,b", b"2,c"], str)
    assert decoded.batch.data.to_pydict() == {"name": ["a", "b", "c"], "id": [1, None, 2]}  # type: ignore[union-attr]
    assert decoded.indices == [0, 2, 3]
    assert metrics.counter("numRecordsInErrors").get_count() == 2


@given(
    st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.text(st.characters(codec="utf-8", exclude_characters="\r\n")))
    )
)
def test_what_is_encoded_is_decoded_again(rows: list[tuple[int, str]]) -> None:
    kinds = [("id", pyarrow.int32()), ("name", pyarrow.string())]
    values = list(zip(*rows, strict=True)) if rows else [(), ()]
    arrays = [pyarrow.array(column, kind) for column, (_, kind) in zip(values, kinds, strict=True)]
    data = pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(kinds))
    messages = CSV.encoder(SCHEMA, options()).serialize_batch(ArrowBatch(data))
    assert not any((message or b"").endswith(b"\n") for message in messages)
    assert decode(messages)[0] == rows
    assert [decode([message])[0] for message in messages] == [[row] for row in rows]


def test_single_records_are_batches_of_one_and_rows_without_columns_are_counted() -> None:
    assert CSV.decoder(SCHEMA, ["id", "name"], options()).deserialize(b"1,a") == Row(id=1, name="a")
    assert CSV.encoder(SCHEMA, options()).serialize(Row(1, "a b")) == b'1,"a b"'
    assert len(CSV.decoder(SCHEMA, [], options()).deserialize_batch([b"1,a", b"2,b"])[0]) == 2


def test_nested_columns_are_refused() -> None:
    with pytest.raises(SqlError, match="CSV cannot represent column 'a'"):
        CSV.encoder((Attribute("a", DataTypes.ARRAY(DataTypes.INT())),), options())
