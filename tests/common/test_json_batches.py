"""Batches of JSON messages become the rows that each message becomes alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.records.batches import ArrowBatch, RowBatch, rows_of
from rayflink.common.records.json_rows import JsonRowDeserializationSchema
from rayflink.common.typeinfo import Types

INNER = Types.ROW_NAMED(["x", "y"], [Types.DOUBLE(), Types.STRING()])
KINDS = [Types.BOOLEAN(), Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.DOUBLE(), Types.STRING(),
         INNER, Types.LIST(Types.INT()), Types.OBJECT_ARRAY(INNER), Types.MAP(Types.STRING(), Types.LONG()),
         ]  # fmt: skip
OTHERS = [Types.FLOAT(), Types.BIG_DEC(), Types.SQL_TIMESTAMP(), Types.PRIMITIVE_ARRAY(Types.BYTE())]
VALUES = st.recursive(
    st.sampled_from(
        [None, True, 0, -1, 200, 2**31, 2**63, 1.0, 1.5, 1e300, "", "é", "1", "\ud800", "true", float("nan")]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "z"]), inner, max_size=3),
    max_leaves=4,
)
MESSAGES = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3).map(json.dumps),
    st.sampled_from(["", " ", "null", "[]", "{", '{"a": 1} {}', '\ufeff{"a": 1}', '{\n"a":\n1}']),
)


def outcome(decode: Any) -> str:
    try:
        return repr(decode())
    except ValueError:
        return "malformed"


def rows_one_by_one(schema: JsonRowDeserializationSchema, messages: list[bytes]) -> list[Any]:
    return [row for message in messages if (row := schema.deserialize(message)) is not None]


@given(
    st.lists(st.sampled_from(KINDS + OTHERS), min_size=1, max_size=3),
    st.lists(MESSAGES, max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_a_batch_is_what_its_messages_are(kinds: list[Any], texts: list[str], strict: bool, lenient: bool) -> None:
    schema = JsonRowDeserializationSchema(Types.ROW_NAMED(["a", "b", "c"][: len(kinds)], kinds), strict, lenient)
    messages = [text.encode() for text in texts]
    whole = outcome(lambda: list(rows_of(schema.deserialize_batch(messages)[0])))
    assert whole == outcome(lambda: rows_one_by_one(schema, messages))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_plain_types_are_read_by_columns(kind: Any) -> None:
    schema = JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [kind]))
    batch, indices = schema.deserialize_batch([b'{"a": null}', b"{}"])
    assert isinstance(batch, ArrowBatch) and len(batch) == 2 and indices is None


@pytest.mark.parametrize("kind", OTHERS, ids=str)
def test_other_types_are_read_one_by_one(kind: Any) -> None:
    schema = JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [kind]))
    assert isinstance(schema.deserialize_batch([b'{"a": null}'])[0], RowBatch)


def test_malformed_messages_follow_the_policy() -> None:
    schema = JsonRowDeserializationSchema(Types.ROW_NAMED(["a"], [Types.INT()]))
    decoded = MessageDecoder(schema, MalformedRecords.skip()).decode([b'{"a": 1}', b"{", b'{"a": "2"}'], str)
    assert [row["a"] for row in rows_of(decoded.batch)] == [1, 2] and decoded.indices == [0, 2]
