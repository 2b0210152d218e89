"""Messages are decoded by whole batches, and malformed ones follow the policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.malformed_records import MalformedMessage, MalformedRecord, MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import RowBatch
from rayflink.common.serialization import DeserializationSchema

GOOD, BAD, EMPTY = b"1", b"{", b"null"
TAG = OutputTag[MalformedRecord]("malformed")


class Json(DeserializationSchema):
    """JSON values; null has no record. Counts its batches."""

    def __init__(self) -> None:
        self.batches = 0

    def deserialize(self, message: bytes) -> Any:
        return json.loads(message)

    def deserialize_batch(self, messages: Sequence[bytes]) -> Any:
        self.batches += 1
        return super().deserialize_batch(messages)


def _place(index: int) -> str:
    return f"message {index}"


def test_a_batch_without_errors_is_decoded_once() -> None:
    schema = Json()
    decoded = MessageDecoder(schema).decode([GOOD] * 100, _place)
    assert decoded.batch == RowBatch([1] * 100) and decoded.indices is None
    assert schema.batches == 1


def test_the_error_names_place_message_and_remedy() -> None:
    with pytest.raises(MalformedMessage, match=r"message 2: b'\{' cannot be decoded .*MalformedRecords.skip"):
        MessageDecoder(Json()).decode([GOOD, EMPTY, BAD, BAD], _place)


@given(st.lists(st.sampled_from([GOOD, BAD, EMPTY]), max_size=40), st.booleans())
def test_good_messages_pass_and_the_others_are_counted(messages: list[bytes], to_side_output: bool) -> None:
    metrics = MetricGroup()
    policy = MalformedRecords.side_output(TAG) if to_side_output else MalformedRecords.skip()
    decoded = MessageDecoder(Json(), policy, metrics).decode(messages, _place)
    indices = decoded.indices if decoded.indices is not None else range(len(decoded.batch))
    assert [messages[index] for index in indices] == [GOOD] * messages.count(GOOD)
    assert metrics.counter("numRecordsInErrors").get_count() == messages.count(BAD)
    if to_side_output and messages.count(BAD):
        assert decoded.malformed is not None and decoded.malformed.tag_id == TAG.tag_id
        places = [record.place for record in decoded.malformed.batch.values]
        assert places == [_place(index) for index, message in enumerate(messages) if message == BAD]
    else:
        assert decoded.malformed is None


def test_one_malformed_message_of_many_costs_few_attempts() -> None:
    schema = Json()
    MessageDecoder(schema, MalformedRecords.skip()).decode([GOOD] * 500 + [BAD] + [GOOD] * 523, _place)
    assert schema.batches <= 2 * 10 + 4
