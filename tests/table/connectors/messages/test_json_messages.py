"""The format `json` of messages: batches decode as single messages do, by Flink's rules."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.malformed_records import MalformedMessage
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch
from rayflink.common.types import Row
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.messages.known_formats import message_format
from rayflink.table.plan.logical import Attribute, Schema
from rayflink.table.types import DataType

JSON = message_format("json", "t")


def columns(**types: DataType) -> Schema:
    return tuple(Attribute(name, kind) for name, kind in types.items())


SCHEMA = columns(id=DataTypes.BIGINT(), name=DataTypes.STRING(), inner=DataTypes.ROW([("x", DataTypes.INT())]))


def options(**chosen: Any) -> dict[str, Any]:
    defaults = {name: option.default for name, option in JSON.options.items()}
    return {**defaults, **{name.replace("_", "-"): value for name, value in chosen.items()}}


def decode(messages: Sequence[Any], names: Sequence[str] = (), **chosen: Any) -> tuple[list[Any], Any]:
    schema = JSON.decoder(SCHEMA, names or [column.name for column in SCHEMA], options(**chosen))
    batch, indices = pickle.loads(pickle.dumps(schema)).deserialize_batch(messages)
    assert isinstance(batch, ArrowBatch)
    return [tuple(row.values()) for row in batch.data.to_pylist()], indices


def test_a_batch_of_messages_becomes_columns() -> None:
    messages = [b'{"id": 1, "name": "a", "inner": {"x": 2}}', b'{"id": 2, "more": [1, 2]}']
    assert decode(messages) == ([(1, "a", {"x": 2}), (2, None, None)], None)
    assert decode(messages, ["name", "id"]) == ([("a", 1), (None, 2)], None)


def test_messages_of_several_rows_none_or_several_lines_name_their_indices() -> None:
    messages = [b'[{"id": 1}, {"id": 2}]', b"", None, b'{"id":\n3}', b"[]", b'{"id": "4"}']
    assert decode(messages, ["id"]) == ([(1,), (2,), (3,), (4,)], [0, 0, 3, 5])


@pytest.mark.parametrize(
    "bad", [b"{", b" ", b"null", b"1", b'{"id": "x"}', b'{"id": 1} {"id": 2}', b'{"name": "\xff"}']
)
def test_malformed_messages_raise_and_are_found_by_the_decoder(bad: bytes) -> None:
    decoder = MessageDecoder(JSON.decoder(SCHEMA, ["id", "name"], options()))
    with pytest.raises(MalformedMessage, match="message 1.*cannot be decoded"):
        decoder.decode([b'{"id": 1}', bad], lambda index: f"message {index}")


def test_ignored_errors_are_counted_and_the_messages_before_and_behind_stay() -> None:
    metrics = MetricGroup()
    decoder = MessageDecoder(JSON.decoder(SCHEMA, ["id"], options(ignore_parse_errors=True)), None, metrics)
    decoded = decoder.decode([b'{"id": 1}', b"{", b'{"id": "x"}', b'{"id": 2}'], str)
    assert decoded.batch.data.to_pydict() == {"id": [1, None, 2]}  # type: ignore[union-attr]
    assert decoded.indices == [0, 2, 3]
    assert metrics.counter("numRecordsInErrors").get_count() == 2


def test_a_missing_field_is_an_error_where_the_option_says_so() -> None:
    with pytest.raises(ValueError, match="field 'name' is missing"):
        decode([b'{"id": 1, "inner": null}'], fail_on_missing_field=True)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SqlError, match="both true"):
        JSON.check(options(fail_on_missing_field=True, ignore_parse_errors=True))


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        st.one_of(st.none(), st.text()),
        st.one_of(st.none(), st.fixed_dictionaries({"x": st.integers(0, 9)})),
    ),
    max_size=5,
)


@given(ROWS)
def test_what_is_encoded_is_decoded_again(rows: list[tuple[Any, ...]]) -> None:
    import pyarrow

    kinds = [(column.name, column.type.to_arrow()) for column in SCHEMA]
    values = list(zip(*rows, strict=True)) if rows else [()] * 3
    arrays = [pyarrow.array(column, kind) for column, (_, kind) in zip(values, kinds, strict=True)]
    data = pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(kinds))
    messages = JSON.encoder(SCHEMA, options()).serialize_batch(ArrowBatch(data))
    assert [tuple(json.loads(message or b"").values()) for message in messages] == rows
    assert decode(messages)[0] == rows


def test_single_records_are_batches_of_one() -> None:
    decoder = JSON.decoder(SCHEMA, ["id", "name"], options())
    assert decoder.deserialize(b'{"id": 1}') == Row(id=1, name=None)
    assert decoder.deserialize(b"") is None
    with pytest.raises(ValueError, match="2 rows"):
        decoder.deserialize(b"[{}, {}]")
    assert JSON.encoder(SCHEMA, options()).serialize(Row(1, "a", None)) == b'{"id":1,"name":"a","inner":null}'


def test_rows_without_columns_are_counted() -> None:
    batch, indices = JSON.decoder(SCHEMA, [], options()).deserialize_batch([b"{}", b'{"id": 1}', b""])
    assert len(batch) == 2 and indices == [0, 1]
