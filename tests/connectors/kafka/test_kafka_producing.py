"""The reports of the client: which is the reason why a message was not delivered, and for how long it counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from rayflink.connectors.kafka.kafka_chunks import ChunkId, ChunkWriter
from rayflink.connectors.kafka.kafka_client import ClientErrors
from rayflink.connectors.kafka.kafka_errors import KafkaClientError
from rayflink.connectors.kafka.kafka_ledger import ChunkFate, new_run
from rayflink.connectors.kafka.kafka_messages import KafkaMessages
from rayflink.connectors.kafka.kafka_producing import MessageQueue, TooLargeMessage
from rayflink.connectors.kafka.kafka_transactions import FencedTransaction, TransactionCounts, Transactions
from tests.connectors.kafka.model_kafka import ModelKafka

MESSAGE: Any = SimpleNamespace(topic=lambda: "t")


def test_a_message_that_the_client_has_dropped_is_lost_but_no_reason() -> None:
    with ModelKafka().installed():
        queue = MessageQueue({"bootstrap.servers": "nowhere:1"}, ClientErrors({}))
    queue.note_delivery(None, MESSAGE)
    queue.check()
    queue.note_delivery(KafkaError(KafkaError._PURGE_QUEUE), MESSAGE)
    assert queue.first_failure(0) is None, "another error made the client drop it"
    with pytest.raises(KafkaClientError, match="writing to topic 't' at nowhere:1 failed with _PURGE_QUEUE"):
        queue.check()
    queue.note_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), MESSAGE)
    queue.note_delivery(KafkaError(KafkaError._MSG_TIMED_OUT), MESSAGE)
    assert isinstance(queue.first_failure(0), TooLargeMessage)
    with pytest.raises(TooLargeMessage):
        queue.check()


@pytest.mark.slow
def test_a_transaction_that_was_taken_back_leaves_no_reports_to_the_next() -> None:
    cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "of the mock"})
    brokers = cluster.list_topics("t", timeout=5).brokers.values()
    properties = {
        "bootstrap.servers": ",".join(f"{broker.host}:{broker.port}" for broker in brokers), "linger.ms": "5",
        "transaction.timeout.ms": "10000", "queue.buffering.max.messages": "1000",
    }  # fmt: skip
    writer = ChunkWriter(ChunkId("p-0", new_run(1), 0, "t", 1, 1), None)
    writer.add(KafkaMessages("t", [b"value"] * 3000), [5] * 3000, now_ms=1)
    chunks = writer.take(now_ms=1)
    counts = TransactionCounts()
    transactions = Transactions("p-0", properties, 10**12, counts)
    for _ in range(2):
        assert transactions.fate(chunks[0], now_ms=1) is ChunkFate.WRITE
        transactions.begin(chunks)
        transactions.abandon()
    transactions.begin(chunks)
    transactions.finish(chunks)
    assert (counts.aborted.get_count(), counts.records.get_count()) == (2, 3000)
    transactions.close()


def test_a_longer_timeout_of_transactions_holds_until_one_succeeds() -> None:
    kafka = ModelKafka()
    writer = ChunkWriter(ChunkId("p-0", new_run(1), 0, "t", 1, 1), None)
    with kafka.installed():
        transactions = Transactions("p-0", {"transaction.timeout.ms": "8000"}, 10**12, TransactionCounts())
        for number in range(3):
            writer.add(KafkaMessages("t", [b"value"]), [5], now_ms=1)
            [chunk] = writer.take(now_ms=1)
            if number == 0:
                transactions.fate(chunk, now_ms=1)
                transactions.begin([chunk])
                kafka.at, kafka.fault = kafka.calls, "refused"
                with pytest.raises(FencedTransaction):
                    transactions.finish([chunk])
            transactions.fate(chunk, now_ms=1)
            transactions.begin([chunk])
            transactions.finish([chunk])
        transactions.close()
    assert kafka.timeouts_ms == [8000, 16000, 8000], "readers wait as long for one that dies with its process"
