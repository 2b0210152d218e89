"""Which report of the client is the reason why a message was not delivered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from rayflink.connectors.kafka.kafka_client import ClientErrors
from rayflink.connectors.kafka.kafka_errors import KafkaClientError
from rayflink.connectors.kafka.kafka_producing import MessageQueue, TooLargeMessage
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
