"""The producer by columns without a broker: what it hands to the library, and the errors that it takes from there."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from confluent_kafka import KafkaException

from rayflink.connectors.kafka import librdkafka
from rayflink.connectors.kafka.block_producer import BlockProducer, MessageRows, joined_rows, new_block_producer
from rayflink.connectors.kafka.kafka_client import ClientErrors, error_name
from rayflink.connectors.kafka.kafka_errors import KafkaClientError
from rayflink.connectors.kafka.kafka_messages import KafkaMessages, MessageColumns, packed, unpacked

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0", "queue.buffering.max.messages": "3"}


class Reports:
    def __init__(self) -> None:
        self.reports: list[tuple[str, str]] = []

    def note(self, error: object, topic: str) -> None:
        self.reports.append((error_name(error), topic))


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def producer(reports: Reports) -> Iterator[BlockProducer]:
    producer = new_block_producer(NOWHERE, ClientErrors(NOWHERE), reports.note)
    assert producer is not None
    yield producer
    producer.purge(blocking=False)


def bytes_from(address: int, size: int) -> bytes | None:
    return ctypes.string_at(int(address), int(size)) if address else None


def columns_of(messages: KafkaMessages) -> list[MessageColumns]:
    return [MessageColumns.of(messages), *unpacked(packed([messages], None)), *unpacked(packed([messages], "lz4"))]


def both(producer: BlockProducer, columns: MessageColumns) -> MessageRows:
    """The messages twice, the second time joined to the first."""
    rows = producer.rows("t", columns)
    joined = joined_rows([rows, rows])
    assert joined.entries.dtype == rows.entries.dtype and len(joined) == 2 * len(rows)
    return joined.select(slice(len(rows), None))


def test_plain_messages_are_pointers_into_their_columns(producer: BlockProducer) -> None:
    messages = KafkaMessages("t", [b"one", None, b"", b"four"], [None, b"k2", b"key", b""], partitions=[0, -1, 2, 7])
    for columns in columns_of(messages):
        rows = both(producer, columns).entries
        assert list(map(bytes_from, rows["value"], rows["value_bytes"])) == messages.values
        assert list(map(bytes_from, rows["key"], rows["key_bytes"])) == messages.keys
        assert rows["partition"].tolist() == messages.partitions
    [alone] = producer.rows("t", MessageColumns.of(KafkaMessages("t", [None]))).entries
    assert (alone["value"], alone["key"], alone["partition"]) == (0, 0, -1)
    for columns in columns_of(KafkaMessages("t", [b"", None])):
        empty = producer.rows("t", columns).entries
        assert list(map(bytes_from, empty["value"], empty["value_bytes"])) == [b"", None]


def test_messages_with_headers_and_timestamps_are_fields(producer: BlockProducer) -> None:
    headers = [[("a", b"1"), ("no", None)], None, [("empty", b"")]]
    messages = KafkaMessages("t", [b"x", None, b"z"], None, headers, [5, -1, 7])
    for columns in columns_of(messages):
        rows = both(producer, columns)
        assert rows.counts is not None and rows.counts.tolist() == [8, 6, 7]
        fields = rows.entries
        assert fields["first"][:, 3].tolist() == [5, 0, 7], "0 is the time of the call"
        assert list(map(bytes_from, fields["first"][:, 4], fields["second"][:, 4])) == messages.values
        assert not fields["first"][:, 5].any(), "no message has a key"
        own = [[field for field in message if field["kind"] == librdkafka.HEADER] for message in fields]
        shown = [
            [(ctypes.string_at(int(h["first"])).decode(), bytes_from(h["second"], h["third"])) for h in m] for m in own
        ]
        assert shown == [headers[0], [], headers[2]]


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3, 4, 5]])
def test_messages_beyond_the_queue_are_given_back(
    producer: BlockProducer, reports: Reports, timestamps: list[int] | None
) -> None:
    messages = KafkaMessages("t", [b"0", b"1", b"2", b"3", b"4"], timestamps=timestamps)
    left, error = producer.produce(producer.rows("t", MessageColumns.of(messages)))
    assert (len(left), error and error_name(error)) == (2, "_QUEUE_FULL")
    again, error = producer.produce(left.select(np.array([1])))
    assert len(again) == 1 and error is not None
    producer.purge(blocking=False)
    producer.flush(1)
    assert reports.reports == [("_PURGE_QUEUE", "t")] * 3


def test_errors_of_the_library_are_those_of_the_client(producer: BlockProducer) -> None:
    with pytest.raises(KafkaException) as raised:
        producer.begin_transaction()
    assert error_name(raised.value.args[0]) == "_NOT_CONFIGURED"
    with pytest.raises(KafkaException):
        producer.list_topics("t", timeout=0.01)
    with pytest.raises(KafkaClientError, match="creating a client"):
        new_block_producer({**NOWHERE, "linger.ms": "-7"}, ClientErrors({}), Reports().note)
